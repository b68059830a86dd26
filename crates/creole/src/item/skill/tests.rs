//! Valid and invalid skills.

use std::fmt::Write;

use creole_proto::revision::Rules;
use serde_json::{Value, json};

use super::*;

const FRONT: &str = "---\nname: mail\ndescription: Writes mail\nlicense: MIT\n---\nBe brief.\n";

fn entry(skill: &Skill) -> Value {
    let rules = Rules::CANONICAL;
    serde_json::from_str(skill.definition().text(rules)).unwrap()
}

fn made(path: &str, files: Vec<(&str, &str)>) -> Result<Skill, SkillError> {
    Skill::new(path, files.into_iter().map(|(name, text)| (name, text.as_bytes())))
}

fn parse_error(path: &str, files: Vec<(&str, &str)>) -> String {
    made(path, files).unwrap_err().to_string()
}

#[test]
fn an_entry_lists_every_file_with_its_digest() {
    let skill = made("acme/mail", vec![("SKILL.md", FRONT), ("a b/c.txt", "abc"), ("a b.txt", "")])
        .unwrap();
    assert_eq!((skill.uri(), skill.name()), ("skill://acme/mail/SKILL.md", "mail"));
    let entry = entry(&skill);
    assert_eq!(entry["uri"], skill.uri());
    let front = json!({"name": "mail", "description": "Writes mail", "license": "MIT"});
    assert_eq!(entry["frontmatter"], front);
    assert_eq!(entry["resources"].as_array().unwrap().len(), 3);
    // The digest of `abc` is the example of FIPS 180.
    let expected = json!({"uri": "skill://acme/mail/a%20b/c.txt", "size": 3,
        "digest": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"});
    assert!(entry["resources"].as_array().unwrap().contains(&expected), "{entry}");
}

#[test]
fn names_follow_the_rules() {
    let named = |name: &str| {
        let text = format!("---\nname: {name}\ndescription: x\n---\n");
        Skill::new(name, [("SKILL.md", text.into_bytes())])
    };
    for right in ["a", "a-1", "0", &"a".repeat(64)] {
        // A name of digits only is a number to YAML.
        let quoted = format!("---\nname: \"{right}\"\ndescription: x\n---\n");
        assert!(Skill::new(right, [("SKILL.md", quoted.into_bytes())]).is_ok(), "{right}");
    }
    for invalid in ["A", "a_b", "-a", "a-", "a--b", "ü", "a.b", &"a".repeat(65)] {
        assert!(named(invalid).is_err(), "{invalid}");
    }
}

#[test]
fn each_error_is_reported_with_file_and_line() {
    let cases = [
        (parse_error("mail", vec![]), "the skill has no `SKILL.md`; add a file `SKILL.md`"),
        (
            parse_error("mail", vec![("SKILL.md", "no")]),
            "SKILL.md:1: the file does not begin with front matter; ",
        ),
        (
            parse_error("mail", vec![("SKILL.md", "---\nname: mail\nx: *y\n---")]),
            "SKILL.md:3: anchors, aliases and tags are not supported; ",
        ),
        (
            parse_error("mail", vec![("SKILL.md", "---\nname: mail\n---")]),
            "SKILL.md: `description` is missing; ",
        ),
        (
            parse_error("mail", vec![("SKILL.md", "---\nname: 1\ndescription: x\n---")]),
            "SKILL.md: `name` is not a string; ",
        ),
        (
            parse_error("post", vec![("SKILL.md", FRONT)]),
            "SKILL.md: `name` is `mail`, but the folder is `post`; ",
        ),
        (
            parse_error("../mail", vec![("SKILL.md", FRONT)]),
            "the path of the skill has a segment `.` or `..`",
        ),
        (
            parse_error("mail", vec![("SKILL.md", FRONT), ("../x", "")]),
            "../x: the path of the file has a segment",
        ),
        (
            parse_error("mail", vec![("SKILL.md", FRONT), ("a", ""), ("a", "")]),
            "a: two files have this name",
        ),
        (
            parse_error("mail", vec![("SKILL.md", FRONT), ("a", ""), ("a/b", "")]),
            "a: the name is used for a file and a folder",
        ),
    ];
    for (text, expected) in cases {
        assert!(text.starts_with(expected), "{text}");
    }
    let latin: Vec<u8> = b"---\nname: mail\ndescription: f\xfcr\n---".to_vec();
    let text = Skill::new("mail", [("SKILL.md", latin)]).unwrap_err().to_string();
    assert_eq!(text, "SKILL.md:3: the file is not UTF-8 text; save it as UTF-8");
}

#[test]
fn a_skill_has_the_size_limits_of_clients() {
    let files = |count: usize| {
        let more = (1..count).map(|number| (format!("{number}.md"), Vec::new()));
        Skill::new("mail", more.chain([("SKILL.md".to_owned(), FRONT.as_bytes().to_vec())]))
    };
    assert!(files(MAX_FILES).is_ok());
    assert!(files(MAX_FILES + 1).unwrap_err().message.contains("512"));
    let bytes = |size: usize| {
        let rest = vec![b'x'; size - FRONT.len()];
        Skill::new("mail", [("SKILL.md", FRONT.as_bytes().to_vec()), ("rest", rest)])
    };
    assert!(bytes(MAX_BYTES).is_ok());
    assert!(bytes(MAX_BYTES + 1).unwrap_err().message.contains("16777216"));
    let mut long = "---\nname: mail\ndescription: ".to_owned();
    _ = write!(long, "{}\n---\n", "ü".repeat(MAX_DESCRIPTION + 1));
    assert!(Skill::new("mail", [("SKILL.md", long.into_bytes())]).is_err());
}
