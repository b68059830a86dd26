//! Replaces the bridge program `mcp-remote` by the URL that it connects to.

mod options;

use creole_tools::ordered_value::OrderedValue;
use serde_json::Value;

use self::options::BridgeOptions;
use crate::commands::setup::import::entry::{entries, quoted, scalar_text};
use crate::commands::setup::import::secrets::ExtractedSecrets;

/// The name of the program, with or without a version.
const PROGRAM: &str = "mcp-remote";

/// Whether a server is such a program.
pub(crate) fn is_bridge(server: &OrderedValue) -> bool {
    bridged_address(server).is_some()
}

/// The arguments of the program, of which the first is the URL.
fn bridged_address(server: &OrderedValue) -> Option<Vec<String>> {
    let command = server["command"].as_str()?.to_owned();
    let words = server["args"].items().iter().filter_map(scalar_text);
    let mut words = std::iter::once(command).chain(words);
    let is_program = |word: &String| {
        let last = word.rsplit('/').next().unwrap_or_default();
        last.split('@').next() == Some(PROGRAM)
    };
    words.find(is_program)?;
    let rest: Vec<String> = words.collect();
    let is_address = |word: &String| word.starts_with("http://") || word.starts_with("https://");
    rest.first().is_some_and(is_address).then_some(rest)
}

/// The URL, the headers and the settings of the login. Other arguments are dropped with a note.
pub(crate) fn lines(
    name: &str,
    server: &OrderedValue,
    secrets: &mut ExtractedSecrets,
) -> Vec<String> {
    let words = bridged_address(server).unwrap_or_default();
    let mut words = words.iter().map(|word| with_variables(word, &server["env"]));
    let url = words.next().unwrap_or_default();
    let options = BridgeOptions::parse(words);
    if !options.unknown.is_empty() {
        let others = options.unknown.join(", ");
        secrets.note(format!(
            "`{name}` is connected without {PROGRAM}; ignored options, which \
            Creole does not support: {others}"
        ));
    }
    let mut lines = vec![format!("url = {}", quoted(&secrets.url(name, &url)))];
    let mut headers = OrderedValue::Object(Vec::new());
    for (key, value) in &options.headers {
        headers.insert(key, OrderedValue::Leaf(Value::from(value.as_str())));
    }
    lines.extend(entries("headers", &headers, |key, value| secrets.header(name, key, value)));
    lines.extend(options.login_line(name, secrets));
    lines.extend(options.filter_line());
    lines
}

/// An argument with the variables of the entry expanded.
fn with_variables(word: &str, env: &OrderedValue) -> String {
    let mut word = word.to_owned();
    for (key, value) in env.members() {
        word = word.replace(&format!("${{{key}}}"), &scalar_text(value).unwrap_or_default());
    }
    word
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::setup::import::entry::tests::written;

    #[test]
    fn a_bridge_becomes_the_address_that_it_leads_to() {
        let server = json!({
            "command": "npx",
            "args": ["-y", "mcp-remote@0.1.16", "https://example.com/mcp", "--header", "X-Team:${TEAM}", "--debug"],
            "env": { "TEAM": "a" }
        });
        let expected = "\
[upstreams.srv]
url = \"https://example.com/mcp\"
headers = { \"X-Team\" = \"a\" }
";
        let (table, notes) = written(&server);
        assert_eq!(table.as_deref(), Some(expected));
        assert!(
            notes[0].contains("without mcp-remote") && notes[0].ends_with("`--debug`"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_secret_in_a_header_is_not_written_down() {
        let args = json!([
            "mcp-remote",
            "https://example.com/mcp",
            "--header",
            "Authorization: Bearer abcdef1234567890"
        ]);
        let (table, _) = written(&json!({ "command": "npx", "args": args }));
        assert!(!table.unwrap().contains("abcdef1234567890"));
    }

    #[test]
    fn the_settings_of_a_login_are_kept() {
        let server = json!({
            "command": "npx",
            "args": [
                "mcp-remote", "https://example.com/mcp", "3334", "--host", "127.0.0.1", "--allow-http",
                "--static-oauth-client-info", "{\"client_id\":\"abc\",\"client_secret\":\"${SECRET}\"}",
                "--static-oauth-client-metadata", "{\"scope\":\"read write\",\"client_name\":\"x\"}",
                "--disable-resource-parameter", "--auth-timeout", "900", "--transport", "http-only"
            ],
            "env": { "SECRET": "hunter2hunter2" }
        });
        let expected = "\
[upstreams.srv]
url = \"https://example.com/mcp\"
oauth = { client_id = \"abc\", client_secret = \"${SRV_CLIENT_SECRET}\", scopes = [\"read\", \"write\"], resource_parameter = \"off\" }
";
        let (table, notes) = written(&server);
        assert_eq!(table.as_deref(), Some(expected));
        let login =
            "log in to `srv` with: creole login srv --config FILE --port 3334 --timeout 900";
        assert!(notes.contains(&login.to_owned()), "{notes:?}");
        let redirect = "register the redirect URL http://127.0.0.1:3334/callback for the client of `srv`; mcp-remote used \
                        another one";
        assert!(notes.contains(&redirect.to_owned()), "{notes:?}");
        assert!(!notes.concat().contains("hunter2"));
    }

    #[test]
    fn settings_that_cannot_be_kept_are_named() {
        let args = json!([
            "mcp-remote",
            "https://example.com/mcp",
            "--resource",
            "https://example.com/",
            "--ignore-tool",
            "delete*",
            "--static-oauth-client-info",
            "@/home/a/client.json"
        ]);
        let (table, notes) = written(&json!({ "command": "npx", "args": args }));
        let expected = "\
[upstreams.srv]
url = \"https://example.com/mcp\"
chain = [{ kind = \"filter\", deny = [\"delete*\"] }]
";
        assert_eq!(table.as_deref(), Some(expected));
        assert!(notes[0].ends_with(": `--resource https://example.com/`"), "{notes:?}");
        let file = "copy `client_id` and `client_secret` of `/home/a/client.json` into `[upstreams.srv.oauth]`";
        assert!(notes.contains(&file.to_owned()), "{notes:?}");
    }

    #[test]
    fn a_program_that_is_no_bridge_stays_one() {
        let is_one = |server: Value| is_bridge(&server.into());
        assert!(!is_one(
            json!({ "command": "npx", "args": ["-y", "other", "https://example.com/mcp"] })
        ));
        assert!(!is_one(json!({ "command": "mcp-remote", "args": ["--help"] })));
    }
}
