//! Tests of arguments: their names, order, values and defaults, and what is rejected before it is sent.

use crate::working_folder::Sandbox;

/// A shell script that is a server of 2025-06-18: one tool whose schema has its own order, and one prompt.
const ORDERED: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"ordered","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"book","description":"Books","inputSchema":{"type":"object","properties":{"when":{"type":"string","description":"d"},"unit":{"type":"string","description":"d","enum":["days","hours"],"default":"days"},"count":{"type":"integer","description":"d","default":1}},"required":["when"]}}]}' ;;
    *'"prompts/list"'*) result='{"prompts":[{"name":"plan","description":"Plans","arguments":[{"name":"goal"},{"name":"after","required":true}]}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"booked"}]}' ;;
    *'"prompts/get"'*) result='{"messages":[]}' ;;
    *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn with_server<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["--", "sh", "-c", ORDERED]].concat()
}

#[test]
fn a_list_keeps_the_order_of_the_schema_and_shows_values_and_defaults() {
    let output = Sandbox::new().run(&with_server(&["list"])).succeeded();
    let expected = "\
tools (1)
  book  Books
        when string, unit? days|hours = days, count? integer = 1
prompts (1)
  plan  Plans
        goal?, after
";
    assert_eq!(output.stdout, expected);
}

#[test]
fn an_unknown_argument_is_refused_with_a_similar_one() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], &str); 4] = [
        (
            &["call", "book", "--arg", "when=now", "--arg", "cuont=2"],
            "error: the tool `book` has no argument `cuont`: did you mean `count`? (`--args` sends a JSON object unchecked)\n",
        ),
        (
            &["call", "book", "--arg", "when=now", "--arg", "colour=red"],
            "error: the tool `book` has no argument `colour`: it has `when`, `unit`, `count` \
             (`--args` sends a JSON object unchecked)\n",
        ),
        (
            &["prompt", "plan", "--arg", "after=x", "--arg", "gaol=y"],
            "error: the prompt `plan` has no argument `gaol`: did you mean `goal`?\n",
        ),
        (
            &["prompt", "plan", "--arg", "goal=x"],
            "error: the prompt `plan` also needs --arg after=TEXT\n",
        ),
    ];
    for (words, stderr) in cases {
        let output = sandbox.run(&with_server(words));
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (Some(2), "", stderr)
        );
    }
    let unchecked = ["call", "book", "--args", r#"{"cuont":2}"#];
    assert_eq!(sandbox.run(&with_server(&unchecked)).succeeded().stdout, "booked\n");
}

#[test]
fn a_strict_check_exits_with_one_if_there_are_findings() {
    let sandbox = Sandbox::new();
    sandbox.run(&with_server(&["check", "--strict"])).succeeded();
    let careless = ORDERED.replace("\"description\":\"Books\",", "");
    let words = ["check", "--strict", "--", "sh", "-c", &careless];
    let output = sandbox.run(&words);
    assert!(output.stdout.contains("findings (1)"), "{}", output.stdout);
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), "error: 1 finding\n"));
    let words = ["check", "--", "sh", "-c", &careless];
    sandbox.run(&words).succeeded();
    let noisy = format!("echo welcome; {ORDERED}");
    let output = sandbox.run(&["check", "--strict", "--json", "--", "sh", "-c", &noisy]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), "error: 1 finding\n"));
    assert!(output.stdout.ends_with("}\n"), "{}", output.stdout);
}
