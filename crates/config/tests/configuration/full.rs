//! Tests of a configuration with every key.

/// A configuration file with every key.
pub(crate) const FULL: &str = r#"
        admin = { listen = "unix:admin.sock", users = "admins.txt", keys_file = "admin-keys.txt", hosts = ["admin.example.com"], console = true, capture = "ask", metrics_open = false, trace_url = "https://traces.example.com/{trace}", tls = { certificate = "cert.pem", key = "key.pem", client_certificates = "ca.pem" } }
        log = { format = "${FORMAT:-text}", level = "warn", payloads = false }
        telemetry = { endpoint = "https://x", protocol = "grpc", headers = { x = "y" }, ca_file = "authority.pem", timeout_seconds = 1, attributes = { x = "y" }, traces = { otlp = true, sample = 0.5, parent = "auto", errors = true, slow_ms = 1, payloads = false, principals = "none" }, metrics = { otlp = true, interval_seconds = 1, tools = true }, logs = { otlp = false } }
        state = { url = "valkeys://127.0.0.1:6379/0", password = "x", name = "team", keys_file = "seal", ca_file = "authority.pem", timeout_seconds = 1, wait_replicas = 1, cluster = false, sentinel = { nodes = ["127.0.0.1:26379"], master = "team" }, insecure = false }
        [server]
        name = "acme"
        title = "Acme"
        version = "1"
        instructions = "x"
        packs = ["echo", "${PACK:-hello}", "skills", "tasks", "wordpress", "buddyboss-platform"]
        page_size = 1
        path = "/mcp"
        auth = { issuers = ["corp"], required_scopes = ["mcp"], dpop = "require", role = "mcp" }
        upstreams = ["github"]
        tools = ["log"]
        folders = ["docs"]
        prompts = ["texts"]
        resources = ["rules"]
        openapi = ["pets"]
        databases = ["shop"]
        [server.limits]
        call_timeout_seconds = 1
        call_timeout_max_seconds = 1
        calls_in_flight = 1
        input_timeout_seconds = 1
        list_wait_seconds = 1
        max_tasks = 1
        max_tasks_per_principal = 1
        task_lifetime_seconds = 1
        task_lifetime_max_seconds = 1
        [server.dialect]
        extends = "bossman"
        name = "house"
        about = "x"
        revision = "2025-03-26"
        stateless = false
        handshake = true
        initialized_notification = "notifications/initialized"
        version = "1.0"
        initialize_requires = ["protocolVersion"]
        lifecycle = "flag"
        initialized_aliases = ["initialized"]
        repeated_initialize = "accept"
        methods = ["initialize"]
        capabilities = "flags"
        capability_flags = { x = true }
        advertise = ["tools"]
        definitions = "full"
        ids = "integers"
        missing_id = "notification"
        null_id = "refuse"
        refused_id = "echo"
        unreadable_id = "by-revision"
        batch = "by-revision"
        arguments_required = true
        is_error = "when-true"
        paging = true
        schemas = "as-written"
        max_message = 1048576
        event_streams = true
        error_statuses = true
        telemetry = true
        [server.dialect.errors]
        unknown-tool = { code = -32000, message = "no", data = "no" }
        tool-failed = { channel = "tool-result", data = { why = "{detail}" } }
        timeout = { data = false }
        [http]
        listen = "127.0.0.1:0"
        public_url = "https://mcp.example.com"
        path = "/mcp"
        legacy_sse = "/sse"
        hosts = ["mcp.example.com"]
        origins = ["https://app.example.com"]
        trusted_proxies = ["10.0.0.0/8"]
        tls = { certificate = "a.pem", key = "b.pem", client_certificates = "c.pem" }
        [http.limits]
        max_body = 1024
        max_buffered = 1048576
        max_connections = 1
        max_connections_per_address = 1
        max_sessions = 1
        session_timeout_seconds = 1
        header_timeout_seconds = 1
        body_timeout_seconds = 1
        idle_timeout_seconds = 1
        write_timeout_seconds = 1
        drain_delay_seconds = 1
        drain_timeout_seconds = 1
        [auth]
        users = "users.txt"
        keys_file = "keys.txt"
        role = "mcp"
        [auth.oauth]
        required_scopes = ["mcp"]
        scopes_supported = ["mcp", "files:read"]
        unlisted = "deny"
        dpop = "accept"
        dpop_nonce = true
        max_token = 4096
        legacy_metadata = false
        documentation = "https://example.com/docs"
        [auth.scopes."files:read"]
        tools = ["files__read_*"]
        resources = ["folder://docs/**"]
        prompts = ["summary"]
        tasks = ["files__*"]
        methods = ["tools/list"]
        [auth.scopes."files:write"]
        implies = ["files:read"]
        roles = ["writer"]
        [auth.issuers.corp]
        issuer = "https://id.example.com/realms/corp"
        audiences = ["https://mcp.example.com/mcp"]
        algorithms = ["RS256", "ES384"]
        token_type = "jwt"
        introspect = "always"
        subject_claim = "oid"
        scopes_claim = "x.scopes"
        roles_claim = "realm_access.roles"
        clients = ["editor"]
        skew_seconds = 1
        max_age_seconds = 1
        ca_file = "authority.pem"
        allow_private = true
        [auth.issuers.corp.introspection]
        url = "https://id.example.com/introspect"
        client_id = "creole"
        client_secret = "x"
        method = "post"
        cache_seconds = 1
        audience = "implied"
        [auth.issuers.plain]
        issuer = "https://plain.example.com/"
        token_type = "at+jwt"
        jwks_url = "https://plain.example.com/keys"
        [auth.issuers.file]
        issuer = "https://file.example.com/"
        jwks_file = "keys.json"
        introspect = "never"
        introspection = { url = "https://file.example.com/i", client_id = "x", client_secret_file = "key.txt", method = "basic", audience = "required" }
        [auth.issuers.key]
        issuer = "https://key.example.com/"
        introspect = "never"
        introspection = { client_id = "x", private_key_file = "client.pem", method = "private_key_jwt" }
        [[auth.keys]]
        name = "ci"
        sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        roles = ["mcp"]
        expires = "2027-01-31T12:00:00Z"
        [[auth.keys]]
        name = "cd"
        sha256 = "${KEY:-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4f72b9807785afee48bb}"
        [policy]
        default = "deny"
        [[policy.rules]]
        name = "readers"
        effect = "allow"
        roles = ["dev"]
        principals = ["user:*", "oauth:corp:*"]
        clients = ["editor"]
        issuers = ["corp"]
        servers = ["acme"]
        scopes = ["files:read"]
        tools = ["github__read_*"]
        resources = ["file:///*"]
        prompts = ["greet"]
        tasks = ["github__*"]
        methods = ["completion/*"]
        when = "arguments.owner == principal.name"
        message = "You may read your own files."
        [[server.chain]]
        kind = "audit"
        to = "file"
        file = "audit.log"
        chain = true
        required = true
        remote = false
        max_bytes = 4096
        keep = 0
        arguments = "redacted"
        patterns = ["x"]
        pointers = ["/x"]
        sync = true
        [[server.chain]]
        kind = "script"
        file = "front.js"
        compute_ms = 1000
        memory_mb = 1
        concurrency = 1
        [[server.chain]]
        kind = "rate-limit"
        principal_calls = 1
        overall_calls = 1
        seconds = 1
        shared = true
        [[server.chain]]
        kind = "concurrency"
        calls = 1
        queue = 0
        wait_seconds = 1
        [[server.chain]]
        kind = "filter"
        kinds = ["tools", "resources", "templates", "prompts", "skills"]
        allow = ["*"]
        deny = ["x"]
        read_only = true
        destructive = false
        idempotent = true
        open_world = false
        [[server.chain]]
        kind = "rename"
        kinds = ["tools", "prompts"]
        names = { a = "b" }
        strip = "x"
        add = "y"
        [[server.chain]]
        kind = "rewrite"
        [server.chain.tools.search]
        title = "x"
        description = "x"
        defaults = { a = 1 }
        fixed = { b = [true, "x", { c = 1.5 }] }
        [[server.chain]]
        kind = "redact"
        patterns = ["x"]
        pointers = ["/x"]
        replacement = "y"
        from = "both"
        [[server.chain]]
        kind = "size-limit"
        arguments = 1
        results = 1
        [[server.chain]]
        kind = "cache"
        ttl_seconds = 1
        max_bytes = 1024
        names = ["x"]
        public = true
        [upstreams.files]
        command = ["npx", "server"]
        env = { A = "b" }
        env_pass = ["PATH"]
        cwd = "x"
        prefix = "f_"
        dialect = "bossman"
        revision = "2025-03-26"
        era = "handshake"
        affinity = "shared"
        interactive = false
        timeout_seconds = 1
        startup_timeout_seconds = 1
        max_parked_calls = 1
        max_sessions = 1
        propagate = true
        baggage = ["x"]
        enabled = false
        [[upstreams.files.chain]]
        kind = "timeout"
        seconds = 1
        names = ["x"]
        [[upstreams.files.chain]]
        kind = "retry"
        attempts = 2
        delay_ms = 1
        max_delay_ms = 1
        names = ["x"]
        [[upstreams.files.chain]]
        kind = "circuit-breaker"
        failures = 1
        open_seconds = 1
        [[upstreams.files.chain]]
        kind = "pin"
        file = "pins.json"
        [upstreams.github]
        url = "https://example.com/mcp"
        headers = { Authorization = "Bearer ${TOKEN:-x}" }
        dialect = { hidden_capabilities = ["logging"] }
        [upstreams.rotated]
        url = "https://example.com/mcp"
        token_file = "token"
        [upstreams.asked]
        url = "https://example.com/mcp"
        token_command = ["gh", "auth", "token"]
        ca_file = "authority.pem"
        [upstreams.person]
        url = "https://example.com/mcp"
        [upstreams.person.oauth]
        grant = "login"
        client_metadata_url = "https://example.com/client.json"
        initial_access_token = "x"
        issuer = "https://id.example.com"
        scopes = ["a"]
        max_scopes = ["a", "b"]
        resource_parameter = "off"
        dpop = "require"
        allow_private = true
        legacy_oauth = false
        [upstreams.registered]
        url = "https://example.com/mcp"
        [upstreams.registered.oauth]
        initial_access_token_file = "key.txt"
        [upstreams.program]
        url = "https://example.com/mcp"
        [upstreams.program.oauth]
        grant = "client-credentials"
        client_id = "x"
        private_key_file = "client.pem"
        private_key_id = "x"
        private_key_algorithm = "ES256"
        assertion_audience = "token_endpoint"
        [upstreams.workload]
        url = "https://example.com/mcp"
        [upstreams.workload.oauth]
        grant = "jwt-bearer"
        client_id = "x"
        client_secret_file = "key.txt"
        assertion_file = "token"
        [upstreams.platform]
        url = "https://example.com/mcp"
        [upstreams.platform.oauth]
        grant = "jwt-bearer"
        assertion_command = ["identity", "token"]
        [upstreams.company]
        url = "https://example.com/mcp"
        [upstreams.company.oauth]
        grant = "enterprise"
        client_id = "x"
        client_secret = "x"
        id_token_command = ["identity", "token"]
        idp_token_url = "https://id.example.com/token"
        idp_client_id = "x"
        idp_client_secret = "x"
        [upstreams.branch]
        url = "https://example.com/mcp"
        [upstreams.branch.oauth]
        grant = "enterprise"
        client_id = "x"
        client_secret = "x"
        id_token_file = "token"
        idp_token_url = "https://id.example.com/token"
        idp_client_id = "x"
        idp_client_secret_file = "key.txt"
        [upstreams.inside]
        preset = "default"
        [skills]
        folder = "."
        [tools.log]
        description = "x"
        title = "x"
        enabled = true
        read_only = true
        destructive = false
        idempotent = true
        open_world = false
        output_schema = { type = "object" }
        timeout_seconds = 1
        output_limit_bytes = 1
        dangerously_let_callers_write_scripts = false
        command = ["git", ["-n", "{count}"], { when = "all", words = ["--all"] }, "--", "{word}", "{list}"]
        stdin = "x"
        env = { A = "b" }
        env_files = { C = "key.txt" }
        env_pass = ["LANG"]
        cwd = "."
        exit_codes = [0]
        result = "json"
        progress = true
        concurrency = 1
        [tools.log.arguments]
        count = { type = "integer", description = "x", required = true, minimum = 1, maximum = 2 }
        all = { type = "boolean", default = false }
        word = { type = "string", enum = ["a"], min_length = 1, max_length = 1, pattern = "a", leading_dash = true }
        list = { type = "array", items = "string", min_items = 1, max_items = 2 }
        [tools.picture]
        description = "x"
        command = ["cat", "x.png"]
        result = "image"
        mime_type = "image/png"
        [tools.find]
        description = "x"
        http.method = "PUT"
        http.url = "https://example.com/{kind}"
        http.query = { q = "{kind}" }
        http.headers = { X-Trace = "t" }
        http.body = { n = 1 }
        http.auth = { bearer = "x" }
        http.retries = 1
        http.allow_private = true
        http.pick = "/x"
        http.template = "x"
        http.result = "text"
        arguments.kind = { type = "string" }
        [tools.basic]
        description = "x"
        http = { url = "https://example.com", auth = { user = "x", password = "y" } }
        [tools.files]
        description = "x"
        http = { url = "https://example.com", auth = { user = "x", password_file = "y" } }
        [tools.token]
        description = "x"
        http = { url = "https://example.com", auth = { bearer_file = "y" } }
        [tools.key]
        description = "x"
        http = { url = "https://example.com", auth = { header = "X-Key", value = "y" } }
        [tools.key_file]
        description = "x"
        http = { url = "https://example.com", auth = { header = "X-Key", value_file = "y" } }
        [folders.docs]
        path = "."
        title = "x"
        description = "x"
        include = ["*.md"]
        exclude = ["x"]
        hidden = true
        hard_links = true
        max_depth = 1
        max_files = 1
        max_file_bytes = 1
        watch = false
        enabled = true
        [prompts.texts]
        path = "."
        prefix = "x"
        watch = false
        enabled = true
        [resources.rules]
        uri = "acme://rules/{name}"
        title = "x"
        description = "x"
        mime_type = "text/plain"
        text = "x"
        values = { name = ["a"] }
        enabled = true
        [resources.page]
        uri = "acme://page"
        file = "api.yaml"
        [openapi.pets]
        file = "api.yaml"
        base_url = "https://example.com"
        prefix = "p_"
        methods = ["GET"]
        include = ["listPets"]
        exclude = ["getPet"]
        deprecated = true
        auth = { bearer = "x" }
        headers = { X-Version = "1" }
        retries = 1
        allow_private = true
        timeout_seconds = 1
        output_limit_bytes = 1
        enabled = true
        [openapi.pets.operations]
        listPets.name = "pets"
        listPets.title = "x"
        listPets.description = "x"
        listPets.read_only = true
        listPets.destructive = false
        listPets.idempotent = true
        listPets.open_world = false
        [openapi.pets.security]
        key = { value = "x" }
        other_key = { value_file = "x" }
        token = { bearer = "x" }
        other_token = { bearer_file = "x" }
        basic = { user = "x", password = "x" }
        oauth = { client_id = "x", client_secret = "x", token_url = "https://example.com/token", scopes = ["x"] }
        other_oauth = { client_id = "x", client_secret_file = "x", token_url = "https://example.com/token" }
        other_basic = { user = "x", password_file = "x" }
        [tasks]
        url = "sqlite:tasks.sqlite3"
        [databases.shop]
        url = "sqlite:shop.sqlite3"
        tables = ["products"]
        max_rows = 1
        timeout_seconds = 1
        connections = 1
        [tools.products]
        description = "x"
        database = "shop"
        query = "SELECT 1"
        [tools.slug]
        description = "x"
        script = { file = "slug.js", compute_ms = 1000, memory_mb = 1, concurrency = 1 }
        [wordpress]
        url = "https://site.example"
        allow_http = false
        capability = "edit_posts"
        user = "editor"
        password = "x"
        sets = ["phase-1"]
        timeout_seconds = 1
        routes = { read = ["wp/v2/posts/*"], write = ["wp/v2/posts"] }
        [openapi]
        far = { url = "https://example.com/api.yaml", base_url = "https://example.com", enabled = false }
        others = { file = "api.yaml", prefix = "o_", trust_servers = true }
    "#;
