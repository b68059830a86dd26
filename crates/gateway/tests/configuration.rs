//! Configuration files as a whole: the presets, the schema for editors, and files that cannot be read.

use std::fs;
use std::path::Path;

use creole_gateway::config::schema::schema;
use creole_gateway::{ConfigError, Plan, Source, presets};
use jsonschema::Validator;
use serde_json::Value;

const PACKS: &[&str] = &["hello", "echo", "calculate", "tasks", "guide", "everything"];

fn validator() -> Validator {
    jsonschema::options().build(&schema(PACKS)).expect("the schema is a schema")
}

fn as_json(text: &str) -> Value {
    toml::from_str(text).expect("the text is TOML")
}

fn refusal(path: &Path) -> ConfigError {
    Plan::load(Source::File(path), PACKS).expect_err("the file is refused")
}

#[test]
fn every_preset_loads() {
    for preset in presets::ALL {
        let plan = Plan::load(Source::Preset(preset.name), PACKS)
            .unwrap_or_else(|error| panic!("{}\n{error}", preset.name));
        let has_something = !plan.server.packs.is_empty() || !plan.upstreams.is_empty();
        assert!(has_something, "{}", preset.name);
    }
}

#[test]
fn the_default_is_the_preset_of_that_name() {
    let named = Plan::load(Source::Preset(presets::DEFAULT), PACKS).unwrap();
    assert_eq!(Plan::load(Source::Default, PACKS).unwrap(), named);
    assert_eq!(named.server.packs, ["hello", "echo", "calculate", "tasks", "guide"]);
}

#[test]
fn a_file_means_the_same_as_the_preset_that_it_is_copied_from() {
    let folder = tempfile::tempdir().unwrap();
    for preset in presets::ALL {
        let path = folder.path().join("creole.toml");
        fs::write(&path, preset.text).unwrap();
        let copied = Plan::load(Source::File(&path), PACKS).unwrap();
        assert_eq!(copied, Plan::load(Source::Preset(preset.name), PACKS).unwrap());
    }
}

#[test]
fn every_file_in_the_folder_of_presets_ships_inside() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("presets");
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut shipped: Vec<String> =
        presets::ALL.iter().map(|preset| format!("{}.toml", preset.name)).collect();
    files.sort();
    shipped.sort();
    assert_eq!(files, shipped);
}

#[test]
fn every_preset_is_valid_against_the_schema() {
    let validator = validator();
    for preset in presets::ALL {
        let errors: Vec<String> =
            validator.iter_errors(&as_json(preset.text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", preset.name);
    }
}

/// A file with every key that there is.
const FULL: &str = r#"
        [server]
        name = "acme"
        title = "Acme"
        version = "1"
        instructions = "x"
        packs = ["echo", "${PACK}"]
        page_size = 1
        [server.limits]
        call_timeout_seconds = 1
        call_timeout_max_seconds = 1
        calls_in_flight = 1
        question_timeout_seconds = 1
        [server.dialect]
        extends = "bossman"
        name = "house"
        about = "x"
        revision = "2025-03-26"
        stateless = false
        version = "1.0"
        initialize_requires = ["protocolVersion"]
        lifecycle = "flag"
        initialized_aliases = ["initialized"]
        repeated_initialize = "accept"
        methods = ["initialize"]
        capabilities = "flags"
        capability_flags = { x = true }
        advertise = ["tools"]
        conceal = ["logging"]
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
        telemetry = true
        [server.dialect.errors]
        unknown-tool = { code = -32000, message = "no", data = "no" }
        tool-failed = { channel = "tool-result", data = { why = "{detail}" } }
        timeout = { data = false }
        [http]
        listen = "127.0.0.1:0"
        path = "/mcp"
        legacy_sse = "/sse"
        hosts = ["mcp.example.com"]
        origins = ["https://app.example.com"]
        tls = { certificate = "a.pem", key = "b.pem" }
        [http.limits]
        max_body = 1024
        max_connections = 1
        max_sessions = 1
        session_timeout_seconds = 1
        header_timeout_seconds = 1
        body_timeout_seconds = 1
        idle_timeout_seconds = 1
        write_timeout_seconds = 1
        drain_timeout_seconds = 1
        [auth]
        users = "users.txt"
        keys_file = "keys.txt"
        role = "mcp"
        [[auth.keys]]
        name = "ci"
        sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        roles = ["mcp"]
        expires = "2027-01-31T12:00:00Z"
        [[auth.keys]]
        name = "cd"
        sha256 = "${KEY}"
        [state]
        file = "state.sqlite"
        [[server.chain]]
        kind = "audit"
        file = "audit.log"
        max_bytes = 4096
        keep = 0
        arguments = "redacted"
        patterns = ["x"]
        pointers = ["/x"]
        sync = true
        [[server.chain]]
        kind = "rate-limit"
        principal_calls = 1
        overall_calls = 1
        seconds = 1
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
        startup_seconds = 1
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
        [log]
        format = "${FORMAT:-text}"
        level = "warn"
        payloads = false
        [skills]
        folder = "skills"
    "#;

#[test]
fn the_schema_knows_every_key() {
    let full = FULL;
    let errors: Vec<String> =
        validator().iter_errors(&as_json(full)).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_reader_knows_every_key_of_chains_and_upstreams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    let (start, end) = (FULL.find("[[server.chain]]").unwrap(), FULL.find("[log]").unwrap());
    fs::write(&path, format!("[server]\n{}", &FULL[start..end])).unwrap();
    let plan = Plan::load(Source::File(&path), PACKS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.server.chain.len(), 9);
    assert_eq!(plan.upstreams.len(), 1, "one is not enabled");
}

#[test]
fn the_example_of_the_document_is_right() {
    let text = include_str!("../../../docs/chain.md");
    let (_, rest) = text.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    fs::write(&path, example).unwrap();
    let plan = Plan::load(Source::File(&path), PACKS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.server.chain.len(), plan.upstreams.len()), (3, 2));
    assert!(validator().is_valid(&as_json(example)));
}

#[test]
fn wrong_files_are_not_valid_against_the_schema() {
    let validator = validator();
    let wrong = [
        "",
        "[server]\npakcs = []",
        "[server]\nname = 5",
        "[server]\npacks = \"echo\"",
        "[server]\npacks = [\"ecco\"]",
        "[server]\npage_size = 0",
        "[server]\npage_size = 1001",
        "[server]\ndialect = \"spek\"",
        "[server.dialect]\nextends = \"spek\"",
        "[server.dialect]\nrevision = \"2026-07-28\"",
        "[server.dialect]\nmethods = [\"tool/list\"]",
        "[server.dialect]\nadvertise = [\"tolls\"]",
        "[server.dialect]\nlifecycle = \"strikt\"",
        "[server.dialect.errors.unknown-tol]\ncode = 1",
        "[server.dialect.errors.busy]\ndata = 3",
        "[server.limits]\ncalls_in_flight = 0",
        "[server]\n[auth]\nuser = \"users.txt\"",
        "[server]\n[auth]\nkeys = [{ name = \"ci\" }]",
        "[server]\n[auth]\nkeys = [{ name = \"ci\", sha256 = \"creole_key\" }]",
        "[server]\n[log]\nformat = \"xml\"",
        "[server]\n[http]\nport = 80",
        "[server]\n[state]\nfile = 1",
        "[server]\n[http.tls]\nkey = \"a\"",
        "[server]\n[http.limits]\nmax_connections = 0",
        "[server]\n[upstreams.x]\naddress = \"y\"",
        "[server]\n[upstreams.x]\ncommand = \"npx\"",
        "[server]\n[[server.chain]]\nseconds = 1",
        "[server]\n[[server.chain]]\nkind = \"timout\"\nseconds = 1",
        "[server]\n[[server.chain]]\nkind = \"timeout\"",
        "[server]\n[[server.chain]]\nkind = \"timeout\"\nseconds = 1\nsecond = 1",
        "[server]\n[[server.chain]]\nkind = \"filter\"\nkinds = [\"toys\"]",
        "[[servers]]\nnam = \"x\"",
        "[server]\n[[servers]]\nname = \"x\"",
    ];
    for text in wrong {
        assert!(!validator.is_valid(&as_json(text)), "{text}");
    }
}

#[test]
fn every_key_of_the_schema_is_described() {
    let document = schema(PACKS);
    let mut tables: Vec<&Value> = document["$defs"].as_object().unwrap().values().collect();
    tables.push(&document);
    for table in tables {
        let Some(properties) = table["properties"].as_object() else { continue };
        for (key, property) in properties {
            assert!(property["description"].is_string(), "{key}: {property}");
        }
    }
    let text = document.to_string();
    assert!(
        !text.contains(r#""type":"null""#) && !text.contains(r#","null"]"#),
        "TOML has no null"
    );
}

#[test]
fn files_of_users_and_keys_are_looked_for_beside_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    let text = "[server]\n[auth]\nusers = \"users.txt\"\nkeys_file = \"/etc/creole/keys.txt\"\n";
    fs::write(&path, text).unwrap();
    let auth = Plan::load(Source::File(&path), PACKS).unwrap().auth.unwrap();
    assert_eq!(auth.users, Some(folder.path().join("users.txt")));
    assert_eq!(auth.keys_file.as_deref(), Some(Path::new("/etc/creole/keys.txt")));
}

#[test]
fn what_is_no_readable_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("latin1.toml"), b"[server]\nname = \"caf\xe9\"\n").unwrap();
    fs::write(path("huge.toml"), vec![b'\n'; 1_048_577]).unwrap();
    assert!(refusal(&path("none.toml")).what.starts_with("there is no file"));
    assert!(refusal(folder.path()).what.ends_with("is a directory, not a configuration file"));
    assert!(refusal(&path("latin1.toml")).what.ends_with("is not UTF-8 text (line 2)"));
    assert!(refusal(&path("huge.toml")).what.ends_with("is longer than 1048576 bytes"));
    assert_eq!(refusal(Path::new("")).what, "the name of the configuration file is empty");
}

#[test]
fn an_unknown_preset_is_refused_with_those_that_there_are() {
    let error = Plan::load(Source::Preset("bosman"), PACKS).unwrap_err();
    let expected = "error: unknown preset `bosman`\n  = help: did you mean `bossman`? the presets \
                    are `default`, `bb-mcp-server`, `mcp-chain`, `bossman`, `fpf-governance`, \
                    `everything`";
    assert_eq!(error.to_string(), expected);
}
