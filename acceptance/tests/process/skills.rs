//! Tests of a folder of skills with the binary: the served skills, and the errors for an invalid one.

use std::fs;
use std::path::Path;

use creole_acceptance::process_under_test::{Server, check};
use serde_json::json;

const CONFIG: &str = "[server]\npacks = [\"skills\"]\n\n[skills]\nfolder = \"mine\"\n";

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn an_invalid_skill_is_reported_with_file_and_line_and_the_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "creole.toml", CONFIG);
    let front = "---\nname: mail\ndescription: Writes mail\n---\nBe brief.\n";
    write(folder.path(), "mine/mail/SKILL.md", front);
    write(folder.path(), "mine/mail/data/words.txt", "kind");
    let (code, text, _) = check(folder.path());
    assert_eq!(code, Some(0));
    assert!(text.ends_with("\n  skills   mail\n"), "{text}");

    write(folder.path(), "mine/post/SKILL.md", "---\nname: post\ndescription: yes\n---\n");
    let invalid = "mine/post/SKILL.md:3: `yes` is a boolean for some YAML readers and a string for others; put the value in \
                 quotes";
    let (code, text, error) = check(folder.path());
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(error.contains(invalid), "{error}");

    let config = folder.path().join("creole.toml");
    let mut server = Server::start(&[config.to_str().unwrap()]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let list = server.request("skills/list", &json!({"_meta": meta}));
    let skills = list["result"]["skills"].as_array().unwrap();
    assert_eq!((skills.len(), &skills[0]["uri"]), (1, &json!("skill://mail/SKILL.md")));
    // The read returns the listed content, even if the file has changed since.
    write(folder.path(), "mine/mail/data/words.txt", "changed");
    let read = json!({"uri": "skill://mail/data/words.txt", "_meta": meta});
    let read = server.request("resources/read", &read);
    assert_eq!(read["result"]["contents"][0]["text"], "kind");
    let ended = server.finish();
    assert!(ended.log.contains("skill excluded") && ended.log.contains(invalid), "{}", ended.log);
}

#[test]
fn a_missing_folder_is_refused_with_its_position_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "creole.toml", CONFIG);
    let (code, text, error) = check(folder.path());
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(
        error.contains("error: the folder `mine` does not exist")
            && error.contains("creole.toml:5:10"),
        "{error}"
    );
}
