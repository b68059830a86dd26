//! Reads a child's standard error: always, so that the child never blocks; logs it at a bounded rate; and keeps its
//! end, to be quoted when the child fails.

use crate::sync::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::wire::is_control;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::program_meter::ProgramMeter;
use crate::stream::stdio::Input;

/// How much of the end is kept, and how many lines of it are shown.
const MAX_TAIL_BYTES: usize = 16 * 1024;
const MAX_TAIL_LINES: usize = 50;

/// Maximum length of a line that is logged in full.
const MAX_LINE_BYTES: usize = 2 * 1024;

/// How many bytes are logged in each [`PERIOD`].
const MAX_LOGGED_PER_PERIOD: usize = 1024 * 1024;
const PERIOD: Duration = Duration::from_secs(60);

/// Bytes per read.
const CHUNK: usize = 64 * 1024;

/// The end of a child's standard error. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StderrTail(Arc<TailBuffer>);

#[derive(Debug, Default)]
struct TailBuffer {
    bytes: Mutex<VecDeque<u8>>,
    progress: watch::Sender<TailProgress>,
}

/// The amount of output so far.
#[derive(Clone, Copy, Debug, Default)]
struct TailProgress {
    /// Complete lines.
    lines: u64,
    /// Whether the output is over.
    is_complete: bool,
}

impl StderrTail {
    fn push(&self, bytes: &[u8]) {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let mut kept = self.0.bytes.lock();
        let bytes = &bytes[bytes.len().saturating_sub(MAX_TAIL_BYTES)..];
        let excess = (kept.len() + bytes.len()).saturating_sub(MAX_TAIL_BYTES);
        kept.drain(..excess);
        kept.extend(bytes);
        drop(kept);
        if lines > 0 {
            self.0.progress.send_modify(|progress| progress.lines += lines);
        }
    }

    /// Resolves when the output is over, or after this time: other processes may hold the stream open.
    pub async fn wait_complete(&self, patience: Duration) {
        let mut receiver = self.0.progress.subscribe();
        let _ = timeout(patience, receiver.wait_for(|progress| progress.is_complete)).await;
    }

    /// Resolves with the number of lines when there are more than these; `None` at the end.
    pub async fn wait_lines_after(&self, seen: u64) -> Option<u64> {
        let mut receiver = self.0.progress.subscribe();
        let more = receiver
            .wait_for(|progress| progress.lines > seen || progress.is_complete)
            .await
            .ok()?;
        Some(more.lines).filter(|lines| *lines > seen)
    }

    /// The last lines, as printable text.
    pub fn text(&self) -> String {
        self.lines(MAX_TAIL_LINES).join("\n").trim().to_owned()
    }

    /// The last lines as printable text, at most this many.
    pub(super) fn lines(&self, max: usize) -> Vec<String> {
        let mut kept = self.0.bytes.lock();
        let text = kept.make_contiguous().trim_ascii_end();
        if text.is_empty() {
            return Vec::new();
        }
        let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
        lines[lines.len().saturating_sub(max)..].iter().map(|line| printable(line)).collect()
    }

    /// The last line that is not blank.
    pub fn last_line(&self) -> Option<String> {
        let text = self.text();
        text.lines().next_back().filter(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// Text without characters that a terminal or a log would interpret.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let mut text = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\t' => text.push(character),
            _ if is_control(character) => text.extend(character.escape_default()),
            _ => text.push(character),
        }
    }
    text
}

/// Reads a child's standard error to its end, and logs it if there is a name.
pub(super) async fn drain(
    mut input: Input,
    name: Option<String>,
    meter: Option<Arc<ProgramMeter>>,
    tail: StderrTail,
) {
    let log = |name| StderrLog { meter, ..StderrLog::new(name) };
    let (mut chunk, mut lines) = (Vec::with_capacity(CHUNK), name.map(log));
    // A read error is an end like any other.
    while let Ok(1..) = input.read(&mut chunk, CHUNK).await {
        tail.push(&chunk);
        if let Some(lines) = &mut lines {
            lines.push(&chunk);
        }
        chunk.clear();
    }
    if let Some(mut lines) = lines {
        lines.finish();
    }
    tail.0.progress.send_modify(|progress| progress.is_complete = true);
}

/// Logs lines until the allowance of a period is used up, and then the amount that was dropped.
struct StderrLog {
    name: String,
    line: Vec<u8>,
    period: Instant,
    logged: usize,
    omitted: usize,
    meter: Option<Arc<ProgramMeter>>,
}

impl StderrLog {
    fn new(name: String) -> Self {
        Self { name, line: Vec::new(), period: Instant::now(), logged: 0, omitted: 0, meter: None }
    }

    fn push(&mut self, chunk: &[u8]) {
        if self.period.elapsed() >= PERIOD {
            self.log_omitted();
            (self.period, self.logged) = (Instant::now(), 0);
        }
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let available = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(available)]);
            self.omitted += part.len().saturating_sub(available);
            if part.ends_with(b"\n") {
                self.end_of_line();
            }
        }
    }

    fn end_of_line(&mut self) {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        if self.logged + line.len() > MAX_LOGGED_PER_PERIOD {
            self.omitted += line.len();
            if let Some(meter) = &self.meter {
                meter.stderr_dropped();
            }
        } else if !line.trim_ascii().is_empty() {
            self.logged += line.len();
            tracing::info!(upstream = %self.name, "{}", printable(line));
        }
        self.line.clear();
    }

    fn log_omitted(&mut self) {
        if self.omitted > 0 {
            let bytes = std::mem::take(&mut self.omitted);
            tracing::warn!(upstream = %self.name, bytes, "lines of its stderr were dropped");
        }
    }

    fn finish(&mut self) {
        self.end_of_line();
        self.log_omitted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_keeps_the_end_and_shows_it_harmlessly() {
        let tail = StderrTail::default();
        assert_eq!(tail.last_line(), None);
        tail.push(&[b'x'; 3 * MAX_TAIL_BYTES]);
        tail.push(b"\nred \x1b[31malert\x07 \xff\xfe\r\n");
        let text = tail.text();
        assert!(text.len() < 2 * MAX_TAIL_BYTES);
        assert_eq!(text.lines().last(), Some("red \\u{1b}[31malert\\u{7} \u{fffd}\u{fffd}"));
        assert_eq!(tail.last_line().as_deref(), text.lines().last());
    }

    #[test]
    fn the_last_fifty_lines_are_shown() {
        let tail = StderrTail::default();
        (0..200)
            .for_each(|line| tail.push(format!("line {line} {}\n", "x".repeat(300)).as_bytes()));
        let text = tail.text();
        assert_eq!(text.lines().count(), 50);
        assert!(text.starts_with("line 150 ") && text.contains("line 199 "), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_logged_up_to_the_allowance_of_each_minute() {
        let mut log = StderrLog::new("t".into());
        let line = [&[b'y'; 1023][..], b"\n"].concat();
        (0..10_000).for_each(|_| log.push(&line));
        assert!(log.logged <= MAX_LOGGED_PER_PERIOD, "{}", log.logged);
        assert_eq!(log.logged + log.omitted, 10_000 * 1023);
        tokio::time::advance(PERIOD).await;
        log.push(&line);
        assert_eq!((log.logged, log.omitted), (1023, 0));
    }

    #[test]
    fn an_endless_line_uses_bounded_memory() {
        let mut log = StderrLog::new("t".into());
        (0..1000).for_each(|_| log.push(&[b'z'; 65_536]));
        assert!(log.line.len() <= MAX_LINE_BYTES);
        log.finish();
        assert_eq!(log.omitted, 0);
    }
}
