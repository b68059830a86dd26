//! `creole audit`: checks and searches audit logs.

use std::io;
use std::path::Path;

use creole_gateway::audit::{
    AuditPage, AuditQuery, Verification, line_schema, search, verify, verify_reader,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::{AuditCommand, AuditSearchArgs, AuditVerifyArgs};
use crate::failure::Failure;
use crate::output;

/// Runs the verb.
pub(crate) fn run(command: &AuditCommand) -> Result<(), Failure> {
    match command {
        AuditCommand::Verify(args) => run_verify(args),
        AuditCommand::Search(args) => run_search(args),
        AuditCommand::Schema => output::write_data(&format!("{:#}\n", line_schema())),
    }
}

fn run_verify(args: &AuditVerifyArgs) -> Result<(), Failure> {
    let expected = args.contains.as_deref();
    let is_stdin = |file: &Path| file == Path::new("-");
    let found = match args.files.as_slice() {
        [file] if is_stdin(file) => verify_reader(io::stdin().lock(), expected),
        files if files.iter().any(|file| is_stdin(file)) => {
            let message = "`-` reads stdin and stands alone; remove the other files";
            return Err(Failure::Usage(message.to_owned()));
        }
        files => verify(files, expected),
    };
    let found = found.map_err(|error| Failure::Refused(format!("cannot read {error}")))?;
    let text = match args.json {
        true => format!("{:#}\n", verification_json(&found)),
        false => verification_text(&found),
    };
    output::write_data(&text)?;
    match &found.first_break {
        None => Ok(()),
        Some(found) => {
            let place = format!("{}:{}", found.file.display(), found.line);
            Err(Failure::Call(output::printable(&format!("{place}: {}", found.reason))))
        }
    }
}

fn verification_text(found: &Verification) -> String {
    let count = |number: u64, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let files = count(found.files as u64, "file", "files");
    let lines = count(found.lines, "line", "lines");
    let mut all = Vec::new();
    if found.first_break.is_none() {
        all.push(match (found.lines, found.unchained) {
            (0, 0) => format!("{files}, no lines"),
            (0, _) => format!("{files}, no hash chain: the log has no `chain = true`"),
            _ => format!("{files}, {lines}: the hash chain is whole"),
        });
    }
    if found.lines > 0 && found.unchained > 0 {
        let lines = count(found.unchained, "line", "lines");
        all.push(format!("{lines} before the start of the chain, without hashes"));
    }
    for chain in &found.chains {
        let file = chain.file.display();
        let writer = chain.writer.as_ref().map(|name| format!(" (writer {name})"));
        let start = if chain.is_whole { "" } else { "; older lines were deleted" };
        let (writer, lines) = (writer.unwrap_or_default(), count(chain.lines, "line", "lines"));
        all.push(format!("  {file}{writer}: {lines}, newest hash {}{start}", chain.newest));
    }
    match all.is_empty() {
        true => String::new(),
        false => output::printable(&format!("{}\n", all.join("\n"))),
    }
}

fn verification_json(found: &Verification) -> Value {
    let chains = found.chains.iter().map(|chain| {
        json!({
            "file": chain.file.to_string_lossy(),
            "writer": chain.writer,
            "lines": chain.lines,
            "isWhole": chain.is_whole,
            "newest": chain.newest,
        })
    });
    let chains: Vec<Value> = chains.collect();
    let first_break = found.first_break.as_ref().map(|found| {
        let file = found.file.to_string_lossy();
        json!({ "file": file, "line": found.line, "reason": found.reason.to_string() })
    });
    json!({
        "ok": found.first_break.is_none(),
        "files": found.files,
        "lines": found.lines,
        "unchained": found.unchained,
        "chains": chains,
        "break": first_break,
    })
}

fn run_search(args: &AuditSearchArgs) -> Result<(), Failure> {
    if args.since.zip(args.until).is_some_and(|(since, until)| since > until) {
        let message = "the period is empty: --since is later than --until; exchange them";
        return Err(Failure::Usage(message.to_owned()));
    }
    let query = AuditQuery {
        principal: args.principal.clone(),
        tool: args.tool.clone(),
        outcome: args.outcome.clone(),
        since: args.since,
        until: args.until,
        trace: args.trace.clone(),
        text: args.text.clone(),
        limit: usize::from(args.limit),
        cursor: args.cursor.clone(),
    };
    let page = search(&args.files, &query).map_err(|error| Failure::Refused(error.to_string()))?;
    if args.json {
        return output::write_data(&page_json(&page));
    }
    let lines: String = page.lines.iter().map(|line| line_text(line) + "\n").collect();
    output::write_data(&output::printable(&lines))?;
    match &page.next {
        Some(cursor) => {
            let reason = match page.is_complete {
                true => "there may be more lines",
                false => "the time of the search is over",
            };
            output::write_messages(&[format!("{reason}; continue with --cursor {cursor}")]);
        }
        None if page.lines.is_empty() => output::write_messages(&["no line matches".to_owned()]),
        None => {}
    }
    Ok(())
}

/// The page as JSON. Each line is written as it is in the log. The text is made once, since a page may have megabytes.
fn page_json(page: &AuditPage) -> String {
    let is_json = |line: &&str| serde_json::from_str::<&RawValue>(line).is_ok();
    let lines = page.lines.iter().map(|line| &**line).filter(is_json);
    let mut text = String::from("{\n  \"items\": [");
    let mut separator = "\n    ";
    for line in lines {
        text.push_str(separator);
        text.push_str(line);
        separator = ",\n    ";
    }
    text.push_str(if separator.starts_with(',') { "\n  ],\n" } else { "],\n" });
    if let Some(next) = &page.next {
        text.push_str(&format!("  \"next\": {},\n", json!(next)));
    }
    let AuditPage { searched_bytes, is_complete, .. } = page;
    text.push_str(&format!(
        "  \"searchedBytes\": {searched_bytes},\n  \"complete\": {is_complete}\n}}\n"
    ));
    text
}

/// A line for people: time, principal, method, target, outcome, duration and trace.
fn line_text(line: &str) -> String {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let text = |key: &str| line[key].as_str().unwrap_or_default();
    if let Some(lost) = line["lost"].as_u64() {
        return format!("{}  {lost} lines were lost", text("time"));
    }
    let reasons = [text("fault"), text("layer"), text("deniedBy")];
    let reasons: Vec<&str> = reasons.into_iter().filter(|reason| !reason.is_empty()).collect();
    let outcome = match reasons.is_empty() {
        true => text("outcome").to_owned(),
        false => format!("{} ({})", text("outcome"), reasons.join(", ")),
    };
    let duration =
        line["durationUs"].as_u64().map(|micros| format!("{:.1} ms", micros as f64 / 1000.0));
    let parts = [
        text("time").to_owned(),
        text("principal").to_owned(),
        text("server").to_owned(),
        [text("method"), text("target")].join(" ").trim_end().to_owned(),
        outcome,
        duration.unwrap_or_default(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("  ")
}
