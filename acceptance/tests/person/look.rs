//! Tests of colours, wrapping and progress, which appear at a terminal and never in a pipe.

use crate::working_folder::{Sandbox, at_terminal};

/// A shell script that is a server of 2025-06-18 with a tool whose description is longer than a line.
const WORDY: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"wordy","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"talk","description":"Says what it has to say in a sentence that is wider than the terminal","inputSchema":{"type":"object"}}]}' ;;
    *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const LIST: [&str; 5] = ["list", "--", "sh", "-c", WORDY];

#[test]
fn a_list_is_wrapped_at_the_width_of_the_terminal_and_coloured() {
    let sandbox = Sandbox::new();
    let (code, shown) = at_terminal(&mut sandbox.command(&LIST), 50, "");
    assert_eq!(code, Some(0), "{shown}");
    let expected = "\x1b[1mtools (1)\x1b[0m\r\n\
                    \x1b[36m  talk  \x1b[0mSays what it has to say in a sentence\r\n        \
                    that is wider than the terminal\r\n";
    assert!(shown.ends_with(expected), "{shown:?}");
}

#[test]
fn colours_are_off_where_they_are_not_wanted_or_not_understood() {
    let sandbox = Sandbox::new();
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (code, shown) = at_terminal(sandbox.command(&LIST).env(name, value), 50, "");
        assert_eq!(code, Some(0), "{shown}");
        assert!(!shown.contains("\x1b[1m") && !shown.contains("\x1b[3"), "{name}: {shown:?}");
        assert!(shown.contains("in a sentence\r\n        that is wider"), "{name}: {shown:?}");
    }
    let (code, shown) = at_terminal(sandbox.command(&LIST).env("TERM", "dumb"), 50, "");
    assert_eq!((code, shown.contains('\x1b')), (Some(0), false), "{shown:?}");
}

#[test]
fn help_is_wrapped_between_words_at_the_width_of_the_terminal() {
    let sandbox = Sandbox::new();
    let (code, shown) =
        at_terminal(sandbox.command(&["call", "--help"]).env("NO_COLOR", "1"), 80, "");
    assert_eq!(code, Some(0), "{shown}");
    let is_command = |line: &&str| line.starts_with("  creole ");
    let wide = shown.lines().filter(|line| !is_command(line)).find(|line| line.len() > 80);
    assert_eq!(wide, None, "{shown}");
    let further = "\n                              arrays and objects, otherwise a string\n";
    assert!(shown.replace('\r', "").contains(further), "{shown}");
    let (code, shown) = at_terminal(&mut sandbox.command(&["call", "--no-such-option"]), 80, "");
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("unexpected argument"), "{shown}");
}

#[test]
fn a_pipe_gets_complete_lines_without_colours() {
    let output = Sandbox::new().run(&LIST).succeeded();
    let expected = "tools (1)\n  talk  Says what it has to say in a sentence that is wider than the terminal\n";
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (expected, ""));
}

#[test]
fn a_failure_is_marked_at_a_terminal() {
    let sandbox = Sandbox::new();
    let (code, shown) =
        at_terminal(&mut sandbox.command(&["list", "http://127.0.0.1:1/mcp"]), 80, "");
    assert_eq!(code, Some(1));
    assert!(shown.contains("\x1b[31merror:\x1b[0m `127.0.0.1:1` refuses connections"), "{shown:?}");
}

#[test]
fn a_long_call_shows_that_it_goes_on_and_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let call = ["call", "--preset", "everything", "test_slow", "--arg", "milliseconds=2500"];
    let (code, shown) = at_terminal(&mut sandbox.command(&call), 60, "");
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("\r\x1b[2K") && shown.contains(" waiting (1 s)"), "{shown:?}");
    let (_, left) = shown.rsplit_once("\r\x1b[2K").expect("it is erased");
    assert!(!left.contains("waiting"), "{left:?}");
    let output = sandbox.run(&call).succeeded();
    assert_eq!(output.stderr, "");
}

#[test]
fn progress_is_a_bar_that_fits_the_terminal() {
    let sandbox = Sandbox::new();
    let call = ["call", "--preset", "everything", "test_tool_with_progress"];
    let (code, shown) = at_terminal(&mut sandbox.command(&call), 30, "");
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("[#####-----] 50/100"), "{shown:?}");
    for line in shown.split("\r\x1b[2K").filter(|line| line.starts_with('[')) {
        assert!(line.lines().next().unwrap_or_default().len() < 30, "{line:?}");
    }
}
