//! The resource usage of a process, from `/proc` of Linux.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use creole_test_wait::blocking::eventually;

/// The clock ticks in which Linux counts processor time, the same on every machine that we know.
const TICKS_PER_SECOND: u64 = 100;

/// The resource usage of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Its memory, in bytes.
    pub memory: u64,
    /// Its peak memory, in bytes.
    pub peak: u64,
    /// The number of its threads.
    pub threads: u64,
    /// The number of its open descriptors.
    pub descriptors: usize,
    /// Its processor time.
    pub processor: Duration,
}

impl ResourceUsage {
    /// Measures a running process.
    #[must_use]
    #[track_caller]
    pub fn of(process: u32) -> Self {
        let status = read(process, "status");
        Self {
            memory: 1024 * number(&status, "VmRSS:"),
            peak: 1024 * number(&status, "VmHWM:"),
            threads: number(&status, "Threads:"),
            descriptors: fs::read_dir(format!("/proc/{process}/fd")).expect("its files").count(),
            processor: processor(process).1,
        }
    }

    /// How much its peak memory exceeds the memory before.
    #[must_use]
    pub fn growth_since(self, before: Self) -> u64 {
        self.peak.saturating_sub(before.memory)
    }
}

/// The open sockets of a process, by their names in Linux.
#[must_use]
#[track_caller]
pub fn sockets(process: u32) -> BTreeSet<PathBuf> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).expect("its files");
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).collect()
}

/// Waits for a child that was not waited for yet to exit without a signal, and returns its total processor time.
#[track_caller]
pub(super) fn processor_time_until_end(process: u32) -> Duration {
    let running = || format!("still running, having taken {:?}", processor(process).1);
    eventually(running, || match processor(process) {
        ('Z', time) => Some(time),
        _ => None,
    })
}

/// The processor time of the first thread of a process. It is still available for an ended child that was not waited
/// for.
#[track_caller]
pub(super) fn first_thread(process: u32) -> Duration {
    let message = read(process, "schedstat");
    let nanos = message.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanos.expect("a number of nanoseconds"))
}

/// The state of a process and its processor time. Both are still available for an ended child that was not waited for.
fn processor(process: u32) -> (char, Duration) {
    let stat = read(process, "stat");
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(") ").expect("the fields of a process");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a number of ticks");
    let spent = ticks(11) + ticks(12);
    let state = fields[0].chars().next().expect("a state");
    (state, Duration::from_millis(spent * 1000 / TICKS_PER_SECOND))
}

fn read(process: u32, file: &str) -> String {
    let path = format!("/proc/{process}/{file}");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn number(status: &str, key: &str) -> u64 {
    let line =
        status.lines().find_map(|line| line.strip_prefix(key)).expect("a line of the status");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}
