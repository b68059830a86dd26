//! Hints for the user about a server that does not respond as expected.

use creole::proto::fault::Fault;
use serde_json::Value;

/// How a key is given, without writing it on the command line.
const KEY_HEADER: &str = "--header 'Authorization: Bearer ${TOKEN}'";

/// The URL that the user gave, and whether credentials were given with it.
#[derive(Clone, Debug)]
pub(crate) struct GivenUrl {
    pub(crate) url: String,
    pub(crate) has_credentials: bool,
}

impl GivenUrl {
    /// Adds a hint for the user to the fault.
    pub(crate) fn explain(&self, mut fault: Fault) -> Fault {
        let data: Value = match &fault.data {
            Some(data) => data.decode().unwrap_or_default(),
            None => return fault,
        };
        let name = data["upstream"].as_str().unwrap_or_default();
        match (data["reason"].as_str().unwrap_or_default(), data["status"].as_u64()) {
            ("unauthorized", _) if self.has_credentials => {
                fault.detail = format!("`{name}` refused these credentials (status 401)");
            }
            ("unauthorized", _) => {
                fault.detail = format!(
                    "`{name}` requires credentials (status 401); send them with {KEY_HEADER}"
                );
            }
            ("login_required", _) if !self.has_credentials => {
                let url = self.url.split(['?', '#']).next().unwrap_or(&self.url);
                fault.detail = format!(
                    "{url} requires a login; run: creole login {url}; or send a key with {KEY_HEADER}"
                );
            }
            ("credentials", _) if !self.has_credentials => {
                let hint = format!("; if the server wants a key, send it with {KEY_HEADER}");
                fault.detail.push_str(&hint);
            }
            ("not_found", Some(status)) => {
                let path = path(&self.url);
                fault.detail = format!("`{name}` responds with status {status} at `{path}`");
                if path != "/mcp" {
                    fault.detail.push_str("; MCP endpoints are often at `/mcp`");
                }
            }
            ("connection_lost" | "no_answer", None) if self.url.starts_with("http://") => {
                fault.detail.push_str("; it may be a TLS port: try `https://`");
            }
            _ => {}
        }
        fault
    }
}

/// The path of a URL, without its query.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("/", |offset| &rest[offset..]);
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use creole::proto::fault::FaultKind;
    use creole::proto::wire::Raw;
    use serde_json::json;

    use super::*;

    fn explained(url: &str, has_credentials: bool, data: Value) -> String {
        let given = GivenUrl { url: url.to_owned(), has_credentials };
        let fault = Fault::new(FaultKind::BackendUnavailable, "it broke");
        given.explain(fault.with_data(Raw::from_value(&data))).detail
    }

    #[test]
    fn a_status_is_explained_by_what_was_typed() {
        let data = |reason: &str, status: u16| json!({"reason": reason, "upstream": "h", "status": status});
        let nothing = "`h` responds with status 404 at `/`; MCP endpoints are often at `/mcp`";
        assert_eq!(explained("http://h?key=1", false, data("not_found", 404)), nothing);
        assert_eq!(
            explained("http://h/mcp", false, data("not_found", 404)),
            "`h` responds with status 404 at `/mcp`"
        );
        let login = "http://h/mcp requires a login; run: creole login http://h/mcp; or send a key with \
                     --header 'Authorization: Bearer ${TOKEN}'";
        let required = json!({"reason": "login_required", "upstream": "h"});
        assert_eq!(explained("http://h/mcp?key=1", false, required), login);
        let failed = explained("http://h/mcp", false, json!({"reason": "credentials"}));
        assert!(failed.starts_with("it broke; if the server wants a key"), "{failed}");
        let refused = "`h` refused these credentials (status 401)";
        assert_eq!(explained("http://h/", true, data("unauthorized", 401)), refused);
        assert!(
            explained("http://h/", false, data("unauthorized", 401))
                .contains("--header 'Authorization")
        );
    }

    #[test]
    fn a_connection_that_breaks_off_may_be_a_tls_port() {
        let lost = json!({"reason": "connection_lost", "upstream": "h"});
        let message = "it broke; it may be a TLS port: try `https://`";
        assert_eq!(explained("http://h/mcp", false, lost.clone()), message);
        assert_eq!(explained("https://h/mcp", false, lost), "it broke");
    }
}
