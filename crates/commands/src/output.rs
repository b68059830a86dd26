//! The only module that writes to the terminal: data to stdout, messages to stderr.
//!
//! Nothing is buffered and nothing panics: a reader that closed the pipe needs no more output.

pub(crate) mod help;
pub(crate) mod layout;
pub(crate) mod progress;
pub(crate) mod render;

use std::io;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::proto::wire::is_control;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::failure::Failure;
use crate::output::layout::{Layout, has_ansi, truncated};

/// The width of a progress line if the terminal does not report its width.
const DEFAULT_STATUS_WIDTH: usize = 78;

/// Moves to the beginning of the line and erases it.
const ERASE: &str = "\r\x1b[2K";

/// Whether a progress line is shown and must be erased.
static HAS_STATUS: AtomicBool = AtomicBool::new(false);

/// Writes the output of a command to stdout.
pub(crate) fn write_data(text: &str) -> Result<(), Failure> {
    write_bytes(text.as_bytes())
}

/// Writes the output of a command to stdout, as arbitrary bytes.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    erase_status();
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Whether each line on stderr is a JSON object.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes each line on stderr as a JSON object from now on, like the log.
pub(crate) fn use_json_messages() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Writes a message to stderr.
pub(crate) fn write_message(text: &str) {
    erase_status();
    let line = match AS_JSON.load(Ordering::Relaxed) {
        true => json_line(text),
        false => format!("{text}\n"),
    };
    // A failure cannot be reported anywhere.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A message in the format of the JSON log.
fn json_line(text: &str) -> String {
    let (level, message) = match text.split_once(": ") {
        Some(("error", message)) => ("ERROR", message),
        Some(("warning", message)) => ("WARN", message),
        Some(("creole", message)) => ("INFO", message),
        _ => ("INFO", text),
    };
    let mut timestamp = String::new();
    // If the clock cannot be read, the timestamp is empty.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let line = serde_json::json!({
        "timestamp": timestamp,
        "level": level,
        "fields": { "message": message },
    });
    format!("{line}\n")
}

/// Writes messages to stderr, each with the name of this program.
pub(crate) fn write_messages(lines: &[String]) {
    lines.iter().for_each(|line| write_message(&format!("creole: {line}")));
}

/// Writes the failure of a command.
pub(crate) fn write_failure(failure: &Failure) {
    let text = failure.to_string();
    match text.strip_prefix("error:") {
        Some(rest) if !AS_JSON.load(Ordering::Relaxed) => {
            let mark = Layout::of_stderr().bad("error:");
            write_message(&format!("{mark}{}", rest.replace("\nerror:", &format!("\n{mark}"))));
        }
        _ => write_message(&text),
    }
}

/// Whether there is a terminal that can show progress.
pub(crate) fn can_show_status() -> bool {
    io::stderr().is_terminal() && has_ansi()
}

/// Shows progress in a line that the next one replaces. Only at a terminal.
pub(crate) fn show_status(text: &str) {
    if can_show_status() {
        let text = printable(text).replace(['\n', '\t'], " ");
        let width = Layout::of_stderr()
            .width()
            .map_or(DEFAULT_STATUS_WIDTH, |width| width.saturating_sub(1));
        HAS_STATUS.store(true, Ordering::Relaxed);
        let _ = io::stderr().write_all(format!("{ERASE}{}", truncated(&text, width)).as_bytes());
    }
}

/// Erases the progress line.
pub(crate) fn erase_status() {
    if HAS_STATUS.swap(false, Ordering::Relaxed) {
        let _ = io::stderr().write_all(ERASE.as_bytes());
    }
}

/// Writes a prompt to stderr. The user answers in the same line.
pub(crate) fn prompt(text: &str) {
    erase_status();
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Foreign text without terminal control sequences.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            // Bidirectional control characters make a text look like another one.
            _ if is_control(character) => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Prints help, the version or an error of the command line.
pub(crate) fn write_usage(notice: &clap::Error) -> ExitCode {
    let layout = if notice.use_stderr() { Layout::of_stderr() } else { Layout::of_stdout() };
    // A failure cannot be reported anywhere.
    let _ = match layout.width() {
        None => notice.print(),
        Some(width) => {
            let text = match layout.has_colours() {
                true => notice.render().ansi().to_string(),
                false => notice.render().to_string(),
            };
            let text = help::wrapped(&text, width);
            match notice.use_stderr() {
                true => io::stderr().write_all(text.as_bytes()),
                false => io::stdout().write_all(text.as_bytes()),
            }
        }
    };
    ExitCode::from(u8::try_from(notice.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_message_is_one_line_with_its_level() {
        let line = json_line("error: a\n --> b");
        assert_eq!(line.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&read["level"], &read["fields"]["message"]),
            (&"ERROR".into(), &"a\n --> b".into())
        );
        assert!(read["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        assert!(json_line("creole: `a` listens").contains("INFO"));
    }

    #[test]
    fn terminal_escapes_are_removed() {
        assert_eq!(printable("a\x1b[2Jb\tc\nd\r"), "a\\u{1b}[2Jb\tc\nd\\r");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(printable("Zürich ✓"), "Zürich ✓");
    }
}
