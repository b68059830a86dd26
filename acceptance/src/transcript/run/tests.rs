//! Tests of the runner, on a stage with prepared responses.

use std::collections::VecDeque;
use std::path::Path;

use super::*;

/// Responds to each line with the next prepared block of messages.
#[derive(Default)]
struct Script {
    answers: VecDeque<Vec<&'static str>>,
    waiting: VecDeque<&'static str>,
    sent: Vec<String>,
    clock: Duration,
    end: Option<String>,
}

impl Script {
    fn with_responses(answers: &[&[&'static str]]) -> Self {
        Self { answers: answers.iter().map(|block| block.to_vec()).collect(), ..Self::default() }
    }
}

impl Stage for Script {
    fn send(&mut self, bytes: &[u8]) {
        self.sent.push(String::from_utf8_lossy(bytes).into_owned());
        self.waiting.extend(self.answers.pop_front().unwrap_or_default());
    }

    fn receive(&mut self, _: Duration) -> Option<String> {
        self.waiting.pop_front().map(str::to_owned)
    }

    fn advance(&mut self, by: Duration) -> bool {
        self.clock += by;
        self.clock < Duration::from_secs(60)
    }

    fn close(&mut self) -> Result<(), String> {
        self.waiting.extend(self.answers.pop_front().unwrap_or_default());
        self.end.clone().map_or(Ok(()), Err)
    }
}

fn transcript(dialogue: &str) -> Transcript {
    let text = format!("Shown.\nSpec: a clause\nServer: x\n\n{dialogue}");
    Transcript::parse(Path::new("t.txt"), &text).unwrap()
}

fn run_script(dialogue: &str, script: &mut Script) -> Result<(), String> {
    run(&transcript(dialogue), script, &mut |_, _| {}).map_err(|failure| failure.to_string())
}

#[test]
fn a_session_that_matches_passes() {
    let mut script = Script::with_responses(&[&[r#"{"id":1,"result":{}}"#]]);
    assert_eq!(run_script("> {\"id\":1}\n< {\"result\":{},\"id\":1}\n", &mut script), Ok(()));
    assert_eq!(script.sent, ["{\"id\":1}\n"]);
}

#[test]
fn a_different_message_fails_with_its_line_and_both_sides() {
    let mut script = Script::with_responses(&[&[r#"{"id":2}"#]]);
    let report = run_script("> {\"id\":1}\n< {\"id\":1}\n", &mut script).unwrap_err();
    assert!(report.starts_with("t.txt:6: not the expected message (at id: 2, expected 1)"));
    assert!(report.contains("expected:\n      {\"id\":1}\n  got:\n      {\"id\":2}\n"));
    assert!(report.contains("conversation:\n      > {\"id\":1}\n      < {\"id\":2}\n"));
}

#[test]
fn silence_where_a_message_is_expected_fails() {
    let report = run_script("> {}\n< {}\n", &mut Script::default()).unwrap_err();
    assert!(report.starts_with("t.txt:6: no message arrives"), "{report}");
}

#[test]
fn an_unexpected_message_fails_also_after_the_close() {
    let during = Script::with_responses(&[&["{}"]]);
    let after = Script::with_responses(&[&[], &["{}"]]);
    for mut script in [during, after] {
        let report = run_script("> {}\n!\n", &mut script).unwrap_err();
        assert!(report.contains("an unexpected message"), "{report}");
    }
}

#[test]
fn messages_after_the_close_can_be_expected() {
    let mut script = Script::with_responses(&[&[], &["{\"id\":1}"]]);
    assert_eq!(run_script("> {}\n!\n< {\"id\":1}\n", &mut script), Ok(()));
}

#[test]
fn a_bad_end_fails() {
    let mut script = Script { end: Some("exit status: 1".into()), ..Script::default() };
    let report = run_script("> {}\n", &mut script).unwrap_err();
    assert!(report.contains("got:\n      exit status: 1"), "{report}");
}

#[test]
fn a_block_matches_in_any_order_and_a_plain_line_does_not() {
    let answers: [&[&str]; 1] = [&["{\"id\":2}", "{\"id\":1}"]];
    let block = "> {}\n<~ {\"id\":1}\n<~ {\"id\":2}\n";
    assert_eq!(run_script(block, &mut Script::with_responses(&answers)), Ok(()));
    let ordered = block.replace("<~", "<");
    assert!(run_script(&ordered, &mut Script::with_responses(&answers)).is_err());
}

#[test]
fn a_captured_value_is_sent_back() {
    let mut script = Script::with_responses(&[&[r#"{"cursor":"p\n2"}"#], &[]]);
    let dialogue = "> {}\n< {\"cursor\":\"${next}\"}\n> {\"cursor\":\"${next}\"}\n";
    assert_eq!(run_script(dialogue, &mut script), Ok(()));
    assert_eq!(script.sent[1], "{\"cursor\":\"p\\n2\"}\n");
}

#[test]
fn a_name_that_is_unknown_fails_before_anything_is_sent() {
    let mut script = Script::default();
    let report = run_script("> {\"cursor\":\"${next}\"}\n", &mut script).unwrap_err();
    assert!(report.contains("next has not been captured"));
    assert!(script.sent.is_empty());
}

#[test]
fn the_clock_moves_as_far_as_the_stage_allows() {
    let mut script = Script::default();
    assert_eq!(run_script("+30s\n+500ms\n", &mut script), Ok(()));
    assert_eq!(script.clock, Duration::from_millis(30_500));
    assert!(run_script("+1m\n", &mut script).unwrap_err().contains("cannot move the clock"));
}

#[test]
fn the_observer_sees_every_message() {
    let mut seen = Vec::new();
    let mut script = Script::with_responses(&[&["{\"id\":1}"]]);
    let transcript = transcript("> ping\n< {\"id\":1}\n");
    run(&transcript, &mut script, &mut |direction, text| seen.push((direction, text.to_owned())))
        .unwrap();
    let expected = [(Direction::ToServer, "ping\n"), (Direction::ToClient, "{\"id\":1}")];
    assert_eq!(seen, expected.map(|(direction, text)| (direction, text.to_owned())));
}

#[test]
fn an_update_rewrites_only_the_lines_that_differ() {
    let answers: [&[&str]; 2] = [&["{\"id\":1}"], &["{\"id\":4}", "{\"id\":2}"]];
    let transcript = transcript(
        "# kept\n> a\n< {\"id\":\n  9}\n> b\n<~ {\"id\":2}\n<~ {\"id\":3}\n\n# the end\n",
    );
    let text = update(&transcript, &mut Script::with_responses(&answers)).unwrap().unwrap();
    let dialogue = text.split_once("\n\n").unwrap().1;
    let expected = "# kept\n> a\n< {\"id\":1}\n> b\n<~ {\"id\":2}\n<~ {\"id\":4}\n\n# the end\n";
    assert_eq!(dialogue, expected);
}

#[test]
fn an_update_of_a_true_transcript_changes_nothing() {
    let mut script = Script::with_responses(&[&["{\"id\":1}"]]);
    assert!(update(&transcript("> a\n< {\"id\":\"…\"}\n"), &mut script).unwrap().is_none());
}
