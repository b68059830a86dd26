//! Reads the resource usage of a process from `/proc`.

use std::fs;
use std::time::Duration;

/// One tick of `/proc/PID/stat`: Linux reports 100 per second to programs on every platform.
const TICK: Duration = Duration::from_millis(10);

/// Memory of a process, in bytes.
pub struct Memory {
    /// The current memory.
    pub resident: u64,
    /// The peak memory.
    pub peak: u64,
}

/// Reads the memory of process `id`.
pub fn memory(id: u32) -> Result<Memory, String> {
    let status = read(&format!("/proc/{id}/status"))?;
    Ok(Memory { resident: kilobytes(&status, "VmRSS:")?, peak: kilobytes(&status, "VmHWM:")? })
}

fn kilobytes(status: &str, name: &str) -> Result<u64, String> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| format!("/proc/PID/status has no {name}"))
}

/// The processor time of a process: to the nanosecond for living threads, in ticks for all threads.
pub struct ProcessorTime {
    living_threads: Duration,
    all_threads: Duration,
}

impl ProcessorTime {
    /// The time used since `earlier`.
    ///
    /// The nanosecond counter omits threads that have ended. If the tick counter shows that this happened, the tick
    /// counter is used.
    pub fn since(&self, earlier: &Self) -> Duration {
        let fine = self.living_threads.saturating_sub(earlier.living_threads);
        let coarse = self.all_threads.saturating_sub(earlier.all_threads);
        if coarse > fine + 3 * TICK { coarse } else { fine }
    }
}

/// Reads the processor time of process `id`.
pub fn processor_time(id: u32) -> Result<ProcessorTime, String> {
    let stat = read(&format!("/proc/{id}/stat"))?;
    let all_threads = ticks(&stat).ok_or_else(|| format!("cannot read /proc/{id}/stat: {stat}"))?;

    let mut living_threads = Duration::ZERO;
    let folder = format!("/proc/{id}/task");
    let threads =
        fs::read_dir(&folder).map_err(|error| format!("cannot list {folder}: {error}"))?;
    for thread in threads.flatten() {
        // `since` detects a thread that ended meanwhile.
        let schedule = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let nanoseconds = schedule.split_whitespace().next().and_then(|word| word.parse().ok());
        living_threads += Duration::from_nanos(nanoseconds.unwrap_or(0));
    }
    Ok(ProcessorTime { living_threads, all_threads })
}

/// The sum of user and system time: fields 14 and 15, counted after the name in parentheses,
/// which may itself contain spaces.
fn ticks(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path)
        .map_err(|error| format!("cannot read {path} (the benchmark needs Linux): {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{kilobytes, ticks};

    #[test]
    fn ticks_are_found_behind_a_name_with_spaces() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 100 0 0";
        assert_eq!(ticks(stat), Some(Duration::from_millis(420)));
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t    12 kB\n", "VmRSS:"), Ok(12 * 1024));
    }
}
