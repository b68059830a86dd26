//! A search with a period finds what a plain scan of all lines finds, also in files that are damaged or out of order.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, proptest};
use proptest::prop_oneof;
use serde_json::Value;

use super::*;

/// A line of a generated log.
#[derive(Clone, Debug)]
struct GeneratedLine {
    /// The time since the end of the call before it, in seconds.
    pause: u64,
    /// The time of the call, in seconds.
    duration: u64,
    /// How much the clock of the writer is slow, in seconds.
    clock: u64,
    form: LineForm,
}

#[derive(Clone, Debug)]
enum LineForm {
    Whole,
    /// Only this part of the line was written, with or without a line end.
    Cut(usize, bool),
    Garbage(String),
    /// The arguments have a member that looks like the time of the line.
    OtherTime(u64),
    Spaced,
}

fn generated_line() -> impl Strategy<Value = GeneratedLine> {
    let duration = prop_oneof![20 => 0..60_u64, 2 => 60..3600_u64, 1 => 3600..90_000_u64];
    let form = prop_oneof![
        30 => Just(LineForm::Whole),
        1 => (0..160_usize, proptest::bool::ANY).prop_map(|(at, end)| LineForm::Cut(at, end)),
        1 => ".{0,300}".prop_map(LineForm::Garbage),
        1 => (0..500_000_u64).prop_map(LineForm::OtherTime),
        2 => Just(LineForm::Spaced),
    ];
    (0..700_u64, duration, 0..600_u64, form)
        .prop_map(|(pause, duration, clock, form)| GeneratedLine { pause, duration, clock, form })
}

/// The second at which the first line is written: after the longest call.
const FIRST_END: u64 = 100_000;

/// The text of a file whose first line is written at this second, and the second of its last line.
fn write_lines(lines: &[GeneratedLine], first: u64) -> (Vec<u8>, u64) {
    let (mut text, mut now) = (String::new(), first);
    for generated in lines {
        now += generated.pause;
        let line = line(now - generated.duration - generated.clock);
        match &generated.form {
            LineForm::Whole => text += &line,
            LineForm::Cut(at, has_end) => {
                text += &line[..*at];
                text += if *has_end { "\n" } else { "" };
                continue;
            }
            LineForm::Garbage(garbage) => text += garbage,
            LineForm::OtherTime(second) => {
                let time = creole_proto::model::format_timestamp(START + second * 1000);
                write!(text, "{{\"arguments\":{{\"time\":\"{time}\"}},{}", &line[1..]).unwrap();
            }
            LineForm::Spaced => text += &line.replace("\":", "\" : "),
        }
        text.push('\n');
    }
    (text.into_bytes(), now)
}

/// The lines of a period, the last one first, by parsing all lines.
fn scan(texts: &[&[u8]], since: u64, until: u64, tool: Option<&str>) -> Vec<String> {
    let stamp = |second: u64| creole_proto::model::format_timestamp(START + second * 1000);
    let period = stamp(since)..=stamp(until);
    let is_found = |line: &&[u8]| {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return false };
        let is_in_period =
            line["time"].as_str().is_some_and(|time| period.contains(&time.to_owned()));
        is_in_period && tool.is_none_or(|tool| line["target"] == tool)
    };
    let lines = texts.iter().flat_map(|text| text.split(|byte| *byte == b'\n').rev());
    lines.filter(is_found).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect()
}

/// All pages of a search, and how many bytes it read.
fn search_all(files: &[PathBuf], query: &AuditQuery) -> (Vec<String>, u64) {
    let (mut query, mut lines, mut bytes) = (query.clone(), Vec::new(), 0);
    loop {
        let page = search(files, &query).unwrap();
        lines.extend(page.lines.into_iter().map(String::from));
        bytes += page.searched_bytes;
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return (lines, bytes),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_of_a_period_finds_what_a_plain_scan_finds(
        older in vec(generated_line(), 0..600),
        newer in vec(generated_line(), 0..1200),
        (since, length) in (0..600_000_u64, 0..300_000_u64),
        limit in 1..200_usize,
        has_tool in proptest::bool::ANY,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let files = ["audit.log.1", "audit.log"].map(|name| folder.path().join(name));
        let (first, end) = write_lines(&older, FIRST_END);
        let (second, _) = write_lines(&newer, end);
        fs::write(&files[0], &first).unwrap();
        fs::write(&files[1], &second).unwrap();
        let tool = has_tool.then_some("tool_3");
        let until = since + length;
        let expected = scan(&[&second, &first], since, until, tool);
        let (since, until) = (Some(time(since)), Some(time(until)));
        let tool = tool.map(str::to_owned);
        let query = AuditQuery { since, until, tool, limit, ..AuditQuery::default() };
        assert_eq!(search_all(&files, &query).0, expected);
    }
}

/// A log of one line per minute.
fn write_minutes(folder: &Path, minutes: impl Iterator<Item = u64>) -> PathBuf {
    let file = folder.join("audit.log");
    fs::write(&file, text(minutes.map(|minute| minute * 60))).unwrap();
    file
}

#[test]
fn lines_after_the_period_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let files = [write_minutes(folder.path(), 0..20_000)];
    let length = fs::metadata(&files[0]).unwrap().len();
    let of = |minutes: std::ops::RangeInclusive<u64>| {
        let (since, until) = (Some(time(minutes.start() * 60)), Some(time(minutes.end() * 60)));
        let (lines, bytes) = search_all(&files, &AuditQuery { since, until, ..query() });
        assert_eq!(lines, minutes.rev().map(|minute| line(minute * 60)).collect::<Vec<_>>());
        bytes
    };
    // The lines of 25 hours and the old lines are read.
    assert!(of(1000..=1010) < length / 4);
    assert!(of(19_990..=19_999) > length / 4, "nothing is skipped, and many old lines are read");
}

#[test]
fn nothing_is_skipped_where_the_times_are_in_no_order() {
    let folder = tempfile::tempdir().unwrap();
    // The clock was set back by ten days after two thirds of the lines.
    let minutes = (0..20_000).chain(5600..15_600);
    let files = [write_minutes(folder.path(), minutes)];
    let (since, until) = (Some(time(6000 * 60)), Some(time(6004 * 60)));
    let (lines, _) = search_all(&files, &AuditQuery { since, until, ..query() });
    let once: Vec<_> = (6000..=6004).rev().map(|minute| line(minute * 60)).collect();
    assert_eq!(lines, [&once[..], &once].concat());
}
