//! Tests of the errors that `creole config check` reports about invalid files.

use creole_acceptance::process_under_test::check;

use super::{stage, write};

#[test]
fn a_valid_configuration_lists_its_items() {
    let config = "[server]\n[folders.docs]\npath = \"docs\"\n[prompts.mine]\npath = \"docs\"\n\
                  [resources.rules]\nuri = \"acme://rules\"\nfile = \"docs/a.md\"\n";
    let folder = stage(&[("creole.toml", config), ("docs/a.md", "A")]);
    let (code, text, error) = check(folder.path());
    assert_eq!(code, Some(0), "{error}");
    for line in ["\n  folders  docs\n", "\n  prompts  mine\n", "\n  files    rules\n"] {
        assert!(text.contains(line), "{text}");
    }
    write(folder.path(), "docs/b.md", "---\ntitle: B\n---\nOne\n\n{{ nobody }}\n");
    let (code, text, error) = check(folder.path());
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(error.contains("docs/b.md:6:4: unknown argument `nobody`"), "{error}");
}

#[test]
fn what_is_wrong_is_shown_at_its_place_with_help() {
    for (table, description, location, help) in [
        (
            "[folders.docs]\npath = \"dosc\"",
            "the folder `dosc` does not exist",
            "creole.toml:3:8",
            "relative to the folder of this configuration file",
        ),
        ("[prompts.mine]\npath = \"\"", "`path` is empty", "creole.toml:3:8", ""),
        (
            "[resources.r]\nuri = \"r\"\ntext = \"\"",
            "invalid URI `r`",
            "creole.toml:3:7",
            "acme://rules",
        ),
        (
            "[folders.docs]\npath = \"docs\"\ninclude = [\"[ab]\"]",
            "invalid pattern `[ab]`",
            "creole.toml:4:12",
            "`**`",
        ),
        (
            "[folder.docs]\npath = \"docs\"",
            "unknown key `folder`",
            "creole.toml:2:2",
            "did you mean `folders`?",
        ),
    ] {
        let folder = stage(&[("creole.toml", &format!("[server]\n{table}\n")), ("docs/a.md", "")]);
        let (code, _, error) = check(folder.path());
        assert_eq!(code, Some(2), "{table}");
        for part in [description, location, help] {
            assert!(error.contains(part), "{table}: no {part}:\n{error}");
        }
    }
}
