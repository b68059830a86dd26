//! Measures the processes of a program: their number, their memory and their CPU time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::group::ProcessGroup;
use crate::sync::Mutex;
use crate::telemetry::metrics::Counter;

/// The unit of CPU times in `/proc`: Linux's `USER_HZ` is 100 on every architecture that we build for. The number and the
/// page size are not read from the auxiliary vector, because `rustix` cannot read it in a process under valgrind 3.19.
const TICKS_PER_SECOND: f64 = 100.0;

/// How long the numbers of all processes are used before they are read again.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Of how many processes the end of the standard error is kept.
const MAX_TAILS: usize = 4;

/// Reads the last lines of the standard error of one process, at most this many.
pub(super) type ReadStderr = Box<dyn Fn(usize) -> Vec<String> + Send + Sync>;

/// Measures the running processes of one program. Programs with several connections have several groups.
pub struct ProgramMeter {
    groups: Mutex<HashSet<i32>>,
    /// Read the standard error of its last processes, the newest last.
    tails: Mutex<VecDeque<ReadStderr>>,
    stderr_dropped: Counter,
}

/// The processes of a program, with all that they started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// How many there are.
    pub processes: u64,
    /// Their resident memory in bytes.
    pub memory_bytes: u64,
    /// Their CPU time in seconds.
    pub cpu_seconds: f64,
}

impl ProgramMeter {
    /// A meter that counts dropped lines of standard error here.
    pub fn new(stderr_dropped: Counter) -> Arc<Self> {
        Arc::new(Self { groups: Mutex::default(), tails: Mutex::default(), stderr_dropped })
    }

    /// Reads the standard error of a process that starts.
    pub(super) fn keep_tail(&self, tail: ReadStderr) {
        let mut tails = self.tails.lock();
        if tails.len() >= MAX_TAILS {
            tails.pop_front();
        }
        tails.push_back(tail);
    }

    /// The last lines of its standard error as printable text, at most this many. Those of one process are together.
    pub fn stderr_lines(&self, max: usize) -> Vec<String> {
        let lines: Vec<String> = self.tails.lock().iter().flat_map(|tail| tail(max)).collect();
        let excess = lines.len().saturating_sub(max);
        lines.into_iter().skip(excess).collect()
    }

    /// Counts bytes of standard error that are not logged as a dropped piece.
    pub(super) fn stderr_dropped(&self) {
        self.stderr_dropped.increment();
    }

    /// Measures a group until the guard is dropped.
    pub(super) fn measure(self: &Arc<Self>, group: ProcessGroup) -> MeasuredGroup {
        self.groups.lock().insert(group.id());
        MeasuredGroup { meter: Arc::clone(self), group: group.id() }
    }

    /// The processes now. The numbers are at most five seconds old.
    pub fn usage(&self) -> ProcessUsage {
        let groups = self.groups.lock().clone();
        let all = all_groups();
        let of_program = groups.iter().filter_map(|group| all.get(group));
        of_program.fold(ProcessUsage::default(), |sum, group| sum.plus(group))
    }
}

impl ProcessUsage {
    fn plus(self, other: &Self) -> Self {
        Self {
            processes: self.processes + other.processes,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
        }
    }
}

impl fmt::Debug for ProgramMeter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProgramMeter").finish_non_exhaustive()
    }
}

/// A group of processes that is measured.
pub(super) struct MeasuredGroup {
    meter: Arc<ProgramMeter>,
    group: i32,
}

impl Drop for MeasuredGroup {
    fn drop(&mut self) {
        self.meter.groups.lock().remove(&self.group);
    }
}

type Groups = Arc<HashMap<i32, ProcessUsage>>;

/// All process groups of the machine.
fn all_groups() -> Groups {
    static LAST: Mutex<Option<(Instant, Groups)>> = Mutex::new(None);
    let mut last = LAST.lock();
    match &*last {
        Some((read, groups)) if read.elapsed() < MAX_AGE => Arc::clone(groups),
        _ => {
            let groups = Arc::new(read_groups());
            *last = Some((Instant::now(), Arc::clone(&groups)));
            groups
        }
    }
}

/// Reads all process groups from `/proc`. Other systems have none.
fn read_groups() -> HashMap<i32, ProcessUsage> {
    let mut groups: HashMap<i32, ProcessUsage> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return groups };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_str().is_none_or(|name| name.parse::<u32>().is_err()) {
            continue;
        }
        if let Some((group, usage)) = read_process(&entry.path()) {
            let sum = groups.entry(group).or_default();
            *sum = sum.plus(&usage);
        }
    }
    groups
}

/// Reads the group and the usage of one process from its folder in `/proc`.
fn read_process(folder: &Path) -> Option<(i32, ProcessUsage)> {
    let read = |file| std::fs::read_to_string(folder.join(file)).ok();
    let (group, cpu_seconds) = parse_stat(&read("stat")?)?;
    let memory_bytes = resident_memory(&read("status")?);
    Some((group, ProcessUsage { processes: 1, memory_bytes, cpu_seconds }))
}

/// The group and the CPU time in seconds in a line of `/proc/PID/stat` (proc_pid_stat(5)).
fn parse_stat(line: &str) -> Option<(i32, f64)> {
    // The name of the program may contain spaces and parentheses.
    let rest = &line[line.rfind(')')? + 1..];
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let group = fields.get(2)?.parse().ok()?;
    let ticks = number(14)? + number(15)?;
    Some((group, ticks as f64 / TICKS_PER_SECOND))
}

/// The resident memory in bytes in `/proc/PID/status` (proc_pid_status(5)). A process that ended and was not waited for has
/// none.
fn resident_memory(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.map_or(0, |kibibytes| kibibytes * 1024)
}

/// The CPU time and the resident memory of this process, if the system tells.
pub fn own_usage() -> Option<ProcessUsage> {
    read_process(Path::new("/proc/self")).map(|(_, usage)| usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read_although_a_name_contains_parentheses() {
        let line = "12 (a) b (c)) S 1 77 77 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 5 9000 3 0 0";
        assert_eq!(parse_stat(line), Some((77, 2.0)));
    }

    #[test]
    fn resident_memory_is_given_in_kibibytes() {
        assert_eq!(resident_memory("Name:\tVmRSS: 9\nVmRSS:\t    1234 kB\n"), 1234 * 1024);
        assert_eq!(resident_memory("Name:\tended\nState:\tZ (zombie)\n"), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        let own = own_usage().unwrap();
        assert!(own.memory_bytes > 1_000_000, "{own:?}");
        let all = read_groups().values().map(|group| group.processes).sum::<u64>();
        assert!(all >= 1, "{all}");
    }
}
