//! Runs a process to its end, but not for ever.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long the pipes of a process that has ended may stay open, held by a process it left behind.
const LEFT_OPEN: Duration = Duration::from_secs(2);

/// What a process that ended has left.
pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command in a process group of its own, which is killed at the deadline.
pub(crate) fn output(command: &mut Command, deadline: Instant) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
    let group = child.id();
    let stdout = Collected::from(child.stdout.take());
    let stderr = Collected::from(child.stderr.take());
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait()));
    let Ok(status) = end.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
        kill(group);
        let said = stderr.text(Instant::now() + LEFT_OPEN);
        return Err(format!("{name} did not end in time and was killed; it said:\n{said}"));
    };
    let status = status.map_err(|error| format!("{name} cannot be waited for: {error}"))?;
    let closing = Instant::now() + LEFT_OPEN;
    let output = Output {
        success: status.success(),
        stdout: stdout.text(closing),
        stderr: stderr.text(closing),
    };
    if Instant::now() >= closing {
        kill(group);
    }
    Ok(output)
}

/// Ends a process group at once. The shell is asked because the standard library cannot, and calling
/// the system would be unsafe code.
fn kill(group: u32) {
    let script = format!("kill -s KILL -- -{group}");
    // A group that is gone by now needs no killing.
    let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
}

/// The bytes of a pipe, gathered by a thread.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Collected {
    fn from(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (ended, end) = mpsc::channel();
        if let Some(mut pipe) = pipe {
            let bytes = Arc::clone(&bytes);
            thread::spawn(move || {
                let mut buffer = [0; 8192];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    let mut bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                    bytes.extend_from_slice(&buffer[..count]);
                }
                ended.send(())
            });
        }
        Self { bytes, end }
    }

    /// What came until the pipe's end, or until `closing` if it does not end.
    fn text(&self, closing: Instant) -> String {
        // Both outcomes, the end and the end of patience, leave the same thing to do.
        let _ = self.end.recv_timeout(closing.saturating_duration_since(Instant::now()));
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_never_ends_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo waiting >&2; wait"]);
        let started = Instant::now();
        let error = output(&mut command, started + Duration::from_millis(300)).err().unwrap();
        assert!(error.contains("waiting"), "{error}");
        // The child holds the pipe: had it been left alive, this would have taken `LEFT_OPEN` more.
        assert!(started.elapsed() < LEFT_OPEN, "{:?}", started.elapsed());
    }

    #[test]
    fn a_process_left_behind_does_not_hold_up_its_parents_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo done"]);
        let started = Instant::now();
        let output = output(&mut command, started + Duration::from_secs(60)).unwrap();
        assert_eq!(output.stdout, "done\n");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
}
