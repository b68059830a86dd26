//! Accepted front matter, and the errors of rejected front matter with their lines.

use creole_proto::wire::Raw;
use serde_json::{Value, json};

use super::*;

fn value(body: &str) -> Value {
    let members = read(&format!("---\n{body}\n---\ntext\n"))
        .unwrap_or_else(|error| panic!("{body}\nline {}: {}", error.line, error.message));
    Raw::from_value(&Node::Map(members)).decode().unwrap()
}

fn parse_error(body: &str) -> FrontMatterError {
    match read(&format!("---\n{body}\n---\n")) {
        Err(error) => error,
        Ok(members) => panic!("{body}\nis read as {members:?}"),
    }
}

#[test]
fn plain_values_have_the_type_that_every_parser_gives_them() {
    let body = "a: text with: colons:inside # comment\nb: 12\nc: -1.50\nd: true\ne: ~\nf:\ng: 1.2.3\nh: a#b\n\
                i: null\nj: False\nk: C++ - and -x";
    let body = body.replace("with: colons", "with-colons");
    let expected = json!({"a": "text with-colons:inside", "b": 12, "c": -1.5, "d": true, "e": null, "f": null,
        "g": "1.2.3", "h": "a#b", "i": null, "j": false, "k": "C++ - and -x"});
    assert_eq!(value(&body), expected);
}

#[test]
fn members_keep_their_order() {
    let members = read("---\nz: 1\na: 2\n---").unwrap();
    assert_eq!(Raw::from_value(&Node::Map(members)).as_str(), r#"{"z":1,"a":2}"#);
}

#[test]
fn quoted_strings_are_decoded() {
    let body = r#"a: "x: \"y\" \\ \n\t\x41\u00e9\U0001F600 # no"  # yes
b: 'it''s: "so"'
"c d": ''
'e': "\/""#;
    let expected = json!({"a": "x: \"y\" \\ \n\tA\u{e9}\u{1f600} # no", "b": "it's: \"so\"", "c d": "", "e": "/"});
    assert_eq!(value(body), expected);
}

#[test]
fn mappings_and_lists_nest_by_indentation() {
    let body = "metadata:\n  author: ann\n  deep:\n    deeper: 1\n\n  # comment\n  last: x\ntools:\n- a\n- b: 1\n  \
                c: 2\n-\n  d: 3\n- - e\n  - f\nother:\n    - g\n    - \"h\"\nend: yes!";
    let expected = json!({"metadata": {"author": "ann", "deep": {"deeper": 1}, "last": "x"},
        "tools": ["a", {"b": 1, "c": 2}, {"d": 3}, ["e", "f"]], "other": ["g", "h"], "end": "yes!"});
    assert_eq!(value(body), expected);
}

#[test]
fn brackets_contain_lists_and_mappings_of_one_line() {
    let body = "a: [x, 'y, z', 1, [true, null], {b: c}]  # comment\nd: {}\ne: []\nf: {\"g\":1, h: http://x/, }";
    let expected = json!({"a": ["x", "y, z", 1, [true, null], {"b": "c"}], "d": {}, "e": [],
        "f": {"g": 1, "h": "http://x/"}});
    assert_eq!(value(body), expected);
}

#[test]
fn block_strings_keep_or_fold_their_line_ends() {
    let lines = "\n  one\n  two\n\n  three\n    far\n  four\n\n\nz: 1";
    let text = |header: &str| value(&format!("a: {header}{lines}"))["a"].clone();
    assert_eq!(text("|"), "one\ntwo\n\nthree\n  far\nfour\n");
    assert_eq!(text("|-"), "one\ntwo\n\nthree\n  far\nfour");
    assert_eq!(text("|+"), "one\ntwo\n\nthree\n  far\nfour\n\n\n");
    assert_eq!(text("> # comment"), "one two\nthree\n  far\nfour\n");
    assert_eq!(text(">-"), "one two\nthree\n  far\nfour");
    assert_eq!(value("a: |\nb: >-\n\nc: x"), json!({"a": "", "b": "", "c": "x"}));
    assert_eq!(value("a: |\n\n  # not a comment\nb: x")["a"], "\n# not a comment\n");
}

#[test]
fn a_plain_string_continues_on_indented_lines() {
    assert_eq!(
        value("a: one\n  two\n\n  three # end\nb: x"),
        json!({"a": "one two\nthree", "b": "x"})
    );
    assert_eq!(value("a:\n  one\n  two\nb: 1"), json!({"a": "one two", "b": 1}));
    assert_eq!(value("a:\n - one\n   two\n - 3"), json!({"a": ["one two", 3]}));
}

#[test]
fn windows_line_ends_are_accepted() {
    let members = read("---\r\nname: a\r\nb: |\r\n  x\r\n  y\r\n--- \r\nrest").unwrap();
    let expected = [("name", "a"), ("b", "x\ny\n")];
    let expected = expected.map(|(name, text)| (name.to_owned(), Node::Text(text.to_owned())));
    assert_eq!(members, expected);
}

#[test]
fn ambiguous_values_are_refused() {
    for text in [
        "yes",
        "No",
        "ON",
        "off",
        "y",
        "010",
        "0x1F",
        "0o7",
        "1_000",
        "1e3",
        "1.",
        ".5",
        "+1",
        "-0",
        ".inf",
        "-.INF",
        ".NaN",
        "12:30",
        "1:2:3",
        "2026-07-28",
        "2026-7-8 10:00:00",
        "2026-07-28T10:00:00Z",
        "=",
        "<<",
        "1234567890123456",
        "0.1234567890123456",
    ] {
        assert_eq!(parse_error(&format!("name: x\nkey: {text}")).line, 3, "{text}");
    }
}

#[test]
fn each_error_is_reported_with_its_line() {
    let cases = [
        (2, "just text"),
        (2, "key:value"),
        (3, "a: 1\na: 2"),
        (3, "a: 1\n  b: 2"),
        (3, "  a: 1\nb: 2"),
        (3, "a: 1\n\tb: 2"),
        (2, "a: Use when: needed"),
        (3, "a: text\n  more: text"),
        (3, "a: text\n  - item"),
        (2, "a: ends with:"),
        (2, "a: \"open"),
        (2, "a: 'open"),
        (2, "a: \"x\" y"),
        (2, "a: \"\\q\""),
        (2, "a: \"\\ud800\""),
        (2, "a: [x"),
        (2, "a: [x y: z]"),
        (2, "a: [,]"),
        (2, "a: {x}"),
        (2, "a: {x:1}"),
        (2, "a: {x: 1, x: 2}"),
        (2, "a: [x #y]"),
        (2, "a: &anchor x"),
        (2, "a: *alias"),
        (2, "a: !!str x"),
        (2, "a: @x"),
        (2, "a: %x"),
        (2, "a: - x"),
        (2, "<<: x"),
        (2, "1: x"),
        (2, "true: x"),
        (2, "? a"),
        (2, "- a"),
        (2, "a: |2\n  x"),
        (2, "a: | x"),
        (4, "a: |\n     \n  x"),
        (5, "a: |\n\n  text\n b: x"),
        (2, "a: b\u{7}"),
        (2, "a: b\tc"),
        (2, "a: b\u{2028}"),
        (4, "a:\n    - x\n  - y"),
        (2, "? a\n: b"),
        (3, "?\n  a\n: b"),
        (2, "a: {? b: c}"),
        (2, "a: {b: }"),
        (2, "a: [b: c]"),
        (2, "a: [x,\n  z]"),
        (2, "a: \"x\n  y\""),
        (2, "a: 'x\n  y'"),
        (2, "[a]: b"),
        (2, "{a: b}: c"),
        (2, "a: &b x\nc: *b"),
        (2, "%YAML 1.1"),
        (3, "a: x\n..."),
        (2, "a: |-2\n  x"),
    ];
    for (line, body) in cases {
        let error = parse_error(body);
        assert_eq!(error.line, line, "{body:?}: {}", error.message);
        assert!(!error.help.is_empty(), "{body:?}");
    }
}

#[test]
fn front_matter_is_at_the_start_of_the_file_and_has_an_end() {
    for text in [
        "",
        "name: x",
        " ---\nname: x\n---",
        "\u{feff}---\n---",
        "--- \n---",
        "---\nname: x\n",
        "---",
    ] {
        assert!(read(text).is_err(), "{text:?}");
    }
    assert_eq!(read("---\n---"), Ok(Members::new()));
}

#[test]
fn length_and_depth_have_an_end() {
    let long = format!("---\na: {}\n---", "x".repeat(MAX_BYTES));
    assert!(read(&long).unwrap_err().message.contains("longer"));
    let deep = |levels: usize| {
        (0..levels).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>()
    };
    assert!(parse_error(&deep(40)).message.contains("deeper"));
    assert!(parse_error(&format!("a: {}", "[".repeat(5000))).message.contains("deeper"));
    assert!(parse_error(&format!("a:\n  {}x", "- ".repeat(5000))).message.contains("deeper"));
    value(&deep(10));
}

#[test]
fn a_document_has_its_front_matter_and_the_text_after_it() {
    let document = FrontMatterDocument::read(
        "---\ntitle: T\nlist:\n  - name: a\n    needed: true\n---\r\nOne\nTwo\n",
    )
    .unwrap();
    let expected = serde_json::json!({"title": "T", "list": [{"name": "a", "needed": true}]});
    assert_eq!(serde_json::Value::Object(document.members), expected);
    assert_eq!((document.body, document.line), ("One\nTwo\n", 7));
    for plain in ["", "Text\n---\n", "# Title"] {
        let document = FrontMatterDocument::read(plain).unwrap();
        assert!(document.members.is_empty());
        assert_eq!((document.body, document.line), (plain, 1));
    }
    assert_eq!(FrontMatterDocument::read("---\n---").unwrap().body, "");
    assert_eq!(FrontMatterDocument::read("---\ntitle: yes\n---\n").unwrap_err().line, 2);
    assert!(
        FrontMatterDocument::read("---\ntitle: T\n").unwrap_err().message.contains("has no end")
    );
}
