//! Tests of how the tables of upstreams are resolved, and of the errors for invalid ones.

use std::path::PathBuf;

use super::*;
use crate::plan::upstream::{Secret, TokenSource, UpstreamAddress};
use crate::tables::enums::{AffinityChoice, UpstreamEra};

fn upstream(table: &str) -> UpstreamPlan {
    plan(&format!("[server]\n[upstreams.files]\n{table}")).upstreams.remove(0)
}

#[test]
fn a_program_is_started_with_its_settings_and_defaults() {
    let files = upstream(
        "command = [\"npx\", \"-y\", \"server\"]\nenv = { A = \"${WHO}\" }\nenv_pass = [\"PATH\"]\ncwd = \"data\"",
    );
    let address = UpstreamAddress::Command {
        command: ["npx", "-y", "server"].map(str::to_owned).to_vec(),
        env: vec![("A".to_owned(), Secret("ann".to_owned()))],
        env_pass: vec!["PATH".to_owned()],
        cwd: Some(PathBuf::from("data")),
    };
    assert_eq!(files.address, address);
    assert_eq!((files.name.as_str(), files.prefix.as_str()), ("files", "files__"));
    assert_eq!((files.revision, files.era), (None, UpstreamEra::Auto));
    assert_eq!((files.affinity, files.interactive), (AffinityChoice::Principal, true));
    assert_eq!((files.timeout.as_secs(), files.startup_timeout.as_secs()), (60, 30));
    assert_eq!((files.max_parked_calls, files.max_sessions), (1024, 64));
    assert_eq!(upstream("command = [\"a\"]\nmax_sessions = 3").max_sessions, 3);
    assert_eq!(files.dialect, builtin("spec").unwrap());
}

#[test]
fn a_url_is_called_with_its_headers_which_are_not_shown() {
    let remote = upstream(
        "url = \"https://example.com/mcp\"\nheaders = { Authorization = \"Bearer s3cret\" }\nprefix = \"gh_\"\nrevision = \"2026-07-28\"",
    );
    assert!(!format!("{remote:?}").contains("s3cret"));
    let headers = vec![("Authorization".to_owned(), Secret("Bearer s3cret".to_owned()))];
    let url = "https://example.com/mcp".to_owned();
    assert_eq!(
        remote.address,
        UpstreamAddress::Url { url, headers, token: None, authorities: None, oauth: None }
    );
    assert_eq!((remote.prefix.as_str(), remote.era), ("gh_", UpstreamEra::Stateless));
}

#[test]
fn a_token_is_read_from_a_file_beside_the_configuration_or_from_a_program() {
    let token = |text: &str| match upstream(&format!("url = \"http://a\"\n{text}")).address {
        UpstreamAddress::Url { token, .. } => token,
        other => panic!("{other:?}"),
    };
    let file = upstream("url = \"http://a\"\ntoken_file = \"t\"").resolve_paths("/etc/x".as_ref());
    let path = PathBuf::from("/etc/x/t");
    assert!(
        matches!(file.address, UpstreamAddress::Url { token: Some(TokenSource::File(path_buf)), .. } if path_buf == path)
    );
    let command = ["gh", "auth", "token"].map(str::to_owned).to_vec();
    let text = "token_command = [\"gh\", \"auth\", \"token\"]";
    assert_eq!(token(text), Some(TokenSource::Command(command)));
    assert_eq!(token(""), None);
}

#[test]
fn upstreams_keep_the_order_of_the_file_and_some_are_disabled() {
    let text = "[server]\n[upstreams.b]\nurl = \"http://b\"\nprefix = \"\"\n[upstreams.off]\nurl = \
                \"http://c\"\nenabled = false\n[upstreams.a]\ncommand = [\"a\"]\n[[upstreams.a.chain]]\nkind \
                = \"retry\"";
    let upstreams = plan(text).upstreams;
    let names: Vec<(&str, &str)> = upstreams
        .iter()
        .map(|upstream| (upstream.name.as_str(), upstream.prefix.as_str()))
        .collect();
    assert_eq!(names, [("b", ""), ("a", "a__")]);
    assert!(matches!(upstreams[1].chain[..], [LayerPlan::Retry(_)]));
}

#[test]
fn each_error_of_an_upstream_names_its_position_and_problem() {
    let cases = [
        ("", "2:12 the upstream has neither `command` nor `url`"),
        ("command = [\"a\"]\nurl = \"http://b\"", "4:7 the upstream has both `command` and `url`"),
        ("command = \"npx server\"", "3:11 expected a list, found the string \"npx server\""),
        ("command = []", "3:11 `command` has no program"),
        ("command = [\"\"]", "3:11 `command` has no program"),
        ("command = [\"a\", \"\\u0000\"]", "3:17 an argument contains a NUL character"),
        (
            "command = [\"a\"]\nheaders = { A = \"b\" }",
            "4:11 `headers` is only valid for upstreams with a `url`",
        ),
        (
            "command = [\"a\"]\ntoken_file = \"t\"",
            "4:14 `token_file` is only valid for upstreams with a `url`",
        ),
        (
            "url = \"http://a\"\ntoken_file = \"t\"\ntoken_command = [\"a\"]",
            "5:17 the upstream has both `token_file` and `token_command`",
        ),
        (
            "url = \"http://a\"\ntoken_file = \"t\"\nheaders = { authorization = \"b\" }",
            "4:14 `token_file` conflicts with the header `Authorization`",
        ),
        ("url = \"http://a\"\ntoken_file = \"\"", "4:14 `token_file` is empty"),
        ("url = \"http://a\"\ntoken_command = []", "4:17 `token_command` has no program"),
        (
            "url = \"http://a\"\nenv = { A = \"b\" }",
            "4:7 `env` is only valid for upstreams with a `command`",
        ),
        (
            "url = \"http://a\"\ncwd = \"b\"",
            "4:7 `cwd` is only valid for upstreams with a `command`",
        ),
        (
            "command = [\"a\"]\nenv = { \"A-B\" = \"b\" }",
            "4:9 invalid environment variable name `A-B`",
        ),
        ("command = [\"a\"]\nenv_pass = [\"A=B\"]", "4:13 invalid environment variable name `A=B`"),
        ("url = \"ftp://a\"", "3:7 invalid URL `ftp://a`"),
        ("url = \"https://:80\"", "3:7 invalid URL `https://:80`"),
        ("url = \"http://a/#b\"", "3:7 the URL `http://a/#b` has a fragment"),
        ("url = \"http://u:p@a\"", "3:7 `url` contains a user name or a password"),
        ("url = \"http://a\"\nheaders = { \"a b\" = \"c\" }", "4:13 invalid header name `a b`"),
        (
            "url = \"http://a\"\nheaders = { Mcp-Session-Id = \"c\" }",
            "4:13 the header `Mcp-Session-Id` is set by the transport",
        ),
        (
            "url = \"http://a\"\nheaders = { A = \"b\\n\" }",
            "4:17 the value of `A` contains a character that is not allowed in a header",
        ),
        ("url = \"http://a\"\nprefix = \"a b\"", "4:10 invalid prefix `a b`"),
        ("url = \"http://a\"\nrevision = \"2025\"", "4:12 unknown revision `2025`"),
        (
            "url = \"http://a\"\nrevision = \"2025-03-26\"\nera = \"stateless\"",
            "5:7 `revision` 2025-03-26 does not belong to the configured `era`",
        ),
        ("url = \"http://a\"\nera = \"new\"", "4:7 unknown value `new`"),
        ("url = \"http://a\"\nseparator = \"-\"", "4:1 unknown key `separator`"),
        (
            "url = \"http://a\"\n[[upstreams.files.chain]]\nkind = \"x\"",
            "5:8 unknown kind of layer `x`",
        ),
    ];
    for (table, expected) in cases {
        let text = format!("[server]\n[upstreams.files]\n{table}");
        assert_eq!(error_text(&refusal(&text)), expected, "{table}");
    }
    let named = |name: &str| {
        error_text(&refusal(&format!("[server]\n[upstreams.{name}]\nurl = \"http://a\"")))
    };
    let expected =
        "2:12 invalid upstream name `a__b`: `__` separates the upstream's name from a tool's name";
    assert_eq!(named("a__b"), expected);
    assert_eq!(named("\"a b\""), "2:12 invalid upstream name `a b`");
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let shown = refusal("[server]\n[upstreams.a]\nurl = \"http://u:s3cret@a\"").to_string();
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_disabled_entry_does_not_need_its_variables() {
    let text = "[server]\n[upstreams.off]\nurl = \"${UNSET}/mcp\"\nheaders = { A = \"${ALSO}\" }\nenabled = false\n\
                [tools.off]\nenabled = false\nurl = \"https://${UNSET}/\"\n\
                [upstreams.on]\ncommand = [\"x\"]\n";
    let names: Vec<String> =
        plan(text).upstreams.into_iter().map(|upstream| upstream.name).collect();
    assert_eq!(names, ["on"]);
    let enabled = text.replace("enabled = false\n[tools", "enabled = true\n[tools");
    assert!(refusal(&enabled).to_string().contains("` is not set"), "{enabled}");
    // Other errors of a disabled entry are still reported.
    let invalid = "[upstreams.off]\nurl = \"no address\"\nenabled = false\n";
    assert!(
        refusal(invalid).to_string().contains("invalid URL"),
        "{}",
        refusal(invalid).to_string()
    );
    let unclosed = "[upstreams.off]\nurl = \"${UNSET\"\nenabled = false\n";
    assert!(
        refusal(unclosed).to_string().contains("without a closing `}`"),
        "{}",
        refusal(unclosed).to_string()
    );
}
