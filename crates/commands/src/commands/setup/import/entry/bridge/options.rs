//! The options of `mcp-remote`, and what they become.

use serde_json::Value;

use crate::commands::setup::import::entry::quoted;
use crate::commands::setup::import::secrets::ExtractedSecrets;

/// The timeout of `creole login`, in seconds.
const LOGIN_TIMEOUT: u64 = 300;

/// The port of mcp-remote, unless an option names another.
const DEFAULT_PORT: u16 = 3334;

/// Options that Creole needs not, because it does the same without them.
const NEEDLESS: [&str; 3] = ["--allow-http", "--silent", "--enable-proxy"];

/// The options of `mcp-remote`.
#[derive(Debug, Default)]
pub(super) struct BridgeOptions {
    pub(super) headers: Vec<(String, String)>,
    /// The port that the browser returns to.
    port: Option<u16>,
    /// The id and the secret of the client.
    client: Option<(String, Option<String>)>,
    scopes: Vec<String>,
    omits_resource: bool,
    /// Patterns of tools that are left out.
    ignored_tools: Vec<String>,
    timeout: Option<u64>,
    /// The files of the client and of its metadata, with the keys that must be copied.
    files: Vec<(String, &'static str)>,
    /// The options that have no counterpart, as they are shown.
    pub(super) unknown: Vec<String>,
}

impl BridgeOptions {
    /// The options after the URL.
    pub(super) fn parse(words: impl Iterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let has_value = [
                "--header",
                "--host",
                "--transport",
                "--auth-timeout",
                "--resource",
                "--ignore-tool",
                "--static-oauth-client-info",
                "--static-oauth-client-metadata",
            ]
            .contains(&word.as_str());
            let value = if has_value { words.next() } else { None };
            if !options.take(&word, value.as_deref()) {
                let value = value.map(|value| format!(" {value}")).unwrap_or_default();
                options.unknown.push(format!("`{word}{value}`"));
            }
        }
        options
    }

    /// Takes an option. Returns whether it has a counterpart.
    fn take(&mut self, word: &str, value: Option<&str>) -> bool {
        match (word, value) {
            ("--header", Some(value)) => match value.split_once(':') {
                Some((key, value)) => {
                    self.headers.push((key.trim().to_owned(), value.trim().to_owned()));
                }
                None => return false,
            },
            ("--static-oauth-client-info", Some(value)) => return self.take_client(value),
            ("--static-oauth-client-metadata", Some(value)) => return self.take_metadata(value),
            ("--auth-timeout", Some(value)) => match value.parse() {
                Ok(seconds) => self.timeout = Some(seconds),
                Err(_) => return false,
            },
            ("--ignore-tool", Some(value)) => self.ignored_tools.push(value.to_owned()),
            // The browser returns to 127.0.0.1, and the transport is detected.
            ("--host" | "--transport", Some(_)) => {}
            ("--disable-resource-parameter", None) => self.omits_resource = true,
            (word, None) if NEEDLESS.contains(&word) => {}
            (word, None) => match word.parse() {
                Ok(port) => self.port = Some(port),
                Err(_) => return false,
            },
            _ => return false,
        }
        true
    }

    fn take_client(&mut self, value: &str) -> bool {
        if let Some(file) = value.strip_prefix('@') {
            self.files.push((file.to_owned(), "`client_id` and `client_secret`"));
            return true;
        }
        let client: Value = serde_json::from_str(value).unwrap_or_default();
        let text = |key: &str| client[key].as_str().map(str::to_owned);
        self.client = text("client_id").map(|id| (id, text("client_secret")));
        self.client.is_some()
    }

    fn take_metadata(&mut self, value: &str) -> bool {
        if let Some(file) = value.strip_prefix('@') {
            self.files.push((file.to_owned(), "`scopes`, from `scope`,"));
            return true;
        }
        let metadata: Value = serde_json::from_str(value).unwrap_or_default();
        let scopes = metadata["scope"].as_str().unwrap_or_default();
        self.scopes.extend(scopes.split_whitespace().map(str::to_owned));
        metadata.is_object()
    }

    /// The key `chain` of the upstream, with the filter of its tools.
    pub(super) fn filter_line(&self) -> Option<String> {
        let patterns: Vec<String> = self.ignored_tools.iter().map(|name| quoted(name)).collect();
        let patterns = patterns.join(", ");
        (!patterns.is_empty())
            .then(|| format!("chain = [{{ kind = \"filter\", deny = [{patterns}] }}]"))
    }

    /// The key `oauth` of the upstream, and notes on the login.
    pub(super) fn login_line(&self, name: &str, secrets: &mut ExtractedSecrets) -> Option<String> {
        let is_authorized =
            self.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case("authorization"));
        if is_authorized {
            return None;
        }
        for (file, keys) in &self.files {
            secrets.note(format!("copy {keys} of `{file}` into `[upstreams.{name}.oauth]`"));
        }
        // A client that was registered by hand has one redirect URL.
        let fixed_port = self.port.or(self.client.as_ref().map(|_| DEFAULT_PORT));
        let port = fixed_port.map(|port| format!(" --port {port}")).unwrap_or_default();
        let timeout = self.timeout.filter(|seconds| *seconds > LOGIN_TIMEOUT);
        let timeout = timeout.map(|seconds| format!(" --timeout {seconds}")).unwrap_or_default();
        let command = format!("creole login {name} --config FILE{port}{timeout}");
        secrets.note(match self.has_login() {
            true => format!("log in to `{name}` with: {command}"),
            false => format!("if `{name}` requires a login, run: {command}"),
        });
        if let (Some(_), Some(port)) = (&self.client, fixed_port) {
            secrets.note(format!(
                "register the redirect URL http://127.0.0.1:{port}/callback for the client of `{name}`; mcp-remote used \
                another one"
            ));
        }
        let keys = self.keys(name, secrets);
        (!keys.is_empty()).then(|| format!("oauth = {{ {} }}", keys.join(", ")))
    }

    /// Whether the options are about a login.
    fn has_login(&self) -> bool {
        self.client.is_some()
            || self.port.is_some()
            || self.timeout.is_some()
            || self.omits_resource
            || !self.scopes.is_empty()
            || !self.files.is_empty()
    }

    fn keys(&self, name: &str, secrets: &mut ExtractedSecrets) -> Vec<String> {
        let mut keys = Vec::new();
        if let Some((id, secret)) = &self.client {
            keys.push(format!("client_id = {}", quoted(&secrets.text(name, id))));
            if let Some(secret) = secret {
                let secret = secrets.header(name, "client_secret", secret);
                keys.push(format!("client_secret = {}", quoted(&secret)));
            }
        }
        if !self.scopes.is_empty() {
            let scopes: Vec<String> = self.scopes.iter().map(|scope| quoted(scope)).collect();
            keys.push(format!("scopes = [{}]", scopes.join(", ")));
        }
        if self.omits_resource {
            keys.push("resource_parameter = \"off\"".to_owned());
        }
        keys
    }
}
