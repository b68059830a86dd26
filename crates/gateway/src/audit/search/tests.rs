//! Tests of the search: found lines, pages, rotation between pages, and limits.

mod plain_scan;

use std::fs;
use std::time::UNIX_EPOCH;

use super::*;

/// The time of line 0 of the tests, in milliseconds since 1970.
const START: u64 = 1_790_000_000_000;

fn time(second: u64) -> std::time::SystemTime {
    UNIX_EPOCH + Duration::from_millis(START + second * 1000)
}

/// A line of a call that started at this second.
fn line(second: u64) -> String {
    let time = creole_proto::model::format_timestamp(START + second * 1000);
    let principal = ["ann", "bob", "key:ci"][usize::try_from(second % 3).unwrap()];
    let tool = format!("tool_{}", second % 7);
    let outcome = if second.is_multiple_of(5) { "fault" } else { "ok" };
    format!(
        "{{\"durationUs\":7,\"method\":\"tools/call\",\"outcome\":\"{outcome}\",\"principal\":\"{principal}\",\
         \"target\":\"{tool}\",\"time\":\"{time}\",\"trace\":\"{second:032x}\"}}"
    )
}

fn text(seconds: impl Iterator<Item = u64>) -> String {
    seconds.map(|second| line(second) + "\n").collect()
}

/// A log of 30 lines in three files.
fn three_files(folder: &Path) -> Vec<PathBuf> {
    let files = ["audit.log", "audit.log.1", "audit.log.2"].map(|name| folder.join(name));
    for (file, seconds) in files.iter().zip([20..30, 10..20, 0..10]) {
        fs::write(file, text(seconds)).unwrap();
    }
    files.into()
}

fn query() -> AuditQuery {
    AuditQuery { limit: 100, ..AuditQuery::default() }
}

fn seconds(page: &AuditPage) -> Vec<u64> {
    let second = |line: &str| (0..100_000).find(|second| self::line(*second) == *line).unwrap();
    page.lines.iter().map(|line| second(line)).collect()
}

#[test]
fn lines_are_found_by_each_member_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let files = three_files(folder.path());
    let found = |query: AuditQuery| {
        let page = search(&files, &query).unwrap();
        assert!(page.is_complete && page.next.is_none());
        seconds(&page)
    };
    let all: Vec<u64> = (0..30).rev().collect();
    let only = |keep: &dyn Fn(u64) -> bool| all.iter().copied().filter(|it| keep(*it)).collect();
    assert_eq!(found(query()), all);
    let text = |text: &str| Some(text.to_owned());
    let by_tool: Vec<u64> = only(&|it| it % 7 == 3);
    assert_eq!(found(AuditQuery { tool: text("tool_3"), ..query() }), by_tool);
    assert_eq!(found(AuditQuery { tool: text("*_3"), ..query() }), by_tool);
    assert_eq!(found(AuditQuery { tool: text("tool_"), ..query() }), [0; 0]);
    let by_principal: Vec<u64> = only(&|it| it % 3 == 2);
    assert_eq!(found(AuditQuery { principal: text("key:ci"), ..query() }), by_principal);
    let by_outcome: Vec<u64> = only(&|it| it % 5 == 0);
    assert_eq!(found(AuditQuery { outcome: text("fault"), ..query() }), by_outcome);
    let (since, until) = (Some(time(8)), Some(time(21)));
    let by_time: Vec<u64> = only(&|it| (8..=21).contains(&it));
    assert_eq!(found(AuditQuery { since, until, ..query() }), by_time);
    let trace = Some(format!("{:032X}", 26));
    assert_eq!(found(AuditQuery { trace, ..query() }), [26]);
    assert_eq!(found(AuditQuery { text: text("\"tool_6\""), ..query() }).len(), 4);
    let both = AuditQuery { principal: text("ann"), outcome: text("fault"), ..query() };
    assert_eq!(found(both), [15, 0]);
}

#[test]
fn a_name_is_not_found_in_another_member() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let lines = [
        r#"{"arguments":{"principal":"eve","target":"x","time":"2099"},"principal":"ann","time":"2026"}"#,
        r#"{"principal":"eve","method":"prompts/get","target":"x","time":"2026"}"#,
        "not a line",
        r#"{"time":"2026","lost":3}"#,
        r#"{"principal":"e\u202eve","time":"2026"}"#,
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let files = [file];
    let find = |query: &AuditQuery| -> Vec<String> {
        let lines = search(&files, query).unwrap().lines;
        lines.into_iter().map(|line| line.to_string()).collect()
    };
    let of = |name: &str| AuditQuery { principal: Some(name.to_owned()), ..query() };
    assert_eq!(find(&of("eve")), [lines[1]]);
    assert_eq!(find(&of("e\u{202e}ve")), [lines[4]]);
    assert_eq!(find(&AuditQuery { tool: Some("x".to_owned()), ..query() }), [""; 0]);
    assert_eq!(find(&query()).len(), 4);
}

#[test]
fn pages_continue_after_a_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let files = three_files(folder.path());
    let mut query = AuditQuery { limit: 7, ..query() };
    let mut all = Vec::new();
    for number in 0.. {
        let page = search(&files, &query).unwrap();
        assert!(page.lines.len() <= 7);
        all.extend(seconds(&page));
        let Some(next) = page.next else { break };
        query.cursor = Some(next);
        if number == 1 {
            let path = |name: &str| folder.path().join(name);
            let renamed = [("audit.log.1", "audit.log.2"), ("audit.log", "audit.log.1")];
            renamed.into_iter().for_each(|(from, to)| fs::rename(path(from), path(to)).unwrap());
            fs::write(path("audit.log"), text(30..31)).unwrap();
        }
    }
    // The rotation deleted the oldest file.
    assert_eq!(all, (10..30).rev().collect::<Vec<_>>());
}

#[test]
fn the_lines_of_several_logs_are_merged_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a", "b", "c"].map(|name| folder.path().join(name));
    for (index, file) in (0..).zip(&files) {
        fs::write(file, text((0..30).filter(|second| second % 3 == index))).unwrap();
    }
    let mut query = AuditQuery { limit: 4, ..query() };
    let mut all = Vec::new();
    loop {
        let page = search(&files, &query).unwrap();
        all.extend(seconds(&page));
        let Some(next) = page.next else { break };
        query.cursor = Some(next);
    }
    assert_eq!(all, (0..30).rev().collect::<Vec<_>>());
}

#[test]
fn a_page_whose_time_is_over_has_a_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, text(0..2000)).unwrap();
    let files = [file];
    let mut query = AuditQuery { tool: Some("none".to_owned()), ..query() };
    let mut pages = 0;
    let mut bytes = 0;
    loop {
        let page = search_within(&files, &query, Duration::ZERO).unwrap();
        (pages, bytes) = (pages + 1, bytes + page.searched_bytes);
        let Some(next) = page.next else { break };
        assert!(!page.is_complete);
        query.cursor = Some(next);
    }
    assert_eq!(pages, 2000_u32.div_ceil(LINES_PER_LOOK) + u32::from(2000 % LINES_PER_LOOK == 0));
    assert_eq!(bytes, fs::metadata(&files[0]).unwrap().len());
}

#[test]
fn old_lines_end_the_search_and_lines_out_of_order_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let old = text(0..30_000);
    fs::write(&file, old + &text((50_000..50_100).flat_map(|it| [it, it - 45_000]))).unwrap();
    let query = AuditQuery { since: Some(time(50_000)), limit: 1000, ..query() };
    let page = search(std::slice::from_ref(&file), &query).unwrap();
    assert_eq!((page.lines.len(), page.next), (100, None));
    assert!(page.searched_bytes < fs::metadata(&file).unwrap().len() / 2);
}

#[test]
fn invalid_cursors_and_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let files = three_files(folder.path());
    for cursor in ["", "x", "1-2", "end.end", "0-ffffffffffffffff"] {
        let query = AuditQuery { cursor: Some(cursor.to_owned()), ..query() };
        assert!(matches!(search(&files, &query), Err(SearchError::Cursor)), "{cursor}");
    }
    let end = AuditQuery { cursor: Some("end".to_owned()), ..query() };
    assert!(search(&files, &end).unwrap().lines.is_empty());
    let error = search(&[folder.path().join("none")], &query()).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
    let many: Vec<_> = (0..17).map(|it| folder.path().join(format!("log{it}"))).collect();
    assert!(matches!(search(&many, &query()), Err(SearchError::TooManyLogs(17))));
}

#[test]
fn a_page_of_long_lines_ends_early() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let line = format!("{{\"time\":\"2026\",\"arguments\":\"{}\"}}\n", "x".repeat(1 << 20));
    fs::write(&file, line.repeat(12)).unwrap();
    let page = search(&[file], &query()).unwrap();
    assert_eq!(page.lines.len(), 8);
    assert!(page.next.is_some() && page.is_complete);
}
