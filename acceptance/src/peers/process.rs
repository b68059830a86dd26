//! Runs a process to its end, with a deadline.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long the pipes of an ended process may stay open, held by a process that it left behind.
const LEFT_OPEN: Duration = Duration::from_secs(2);

/// The output of an ended process.
pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command in its own process group, which is killed at the deadline.
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
        let text = stderr.text(Instant::now() + LEFT_OPEN);
        return Err(format!("{name} did not exit in time and was killed; its output:\n{text}"));
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

/// Kills a process group. Uses the shell because the standard library cannot, and a system call would be unsafe code.
fn kill(group: u32) {
    let script = format!("kill -s KILL -- -{group}");
    // The group may be gone already.
    let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
}

/// The bytes of a pipe, collected by a thread.
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

    /// The text up to the end of the pipe, or up to `closing` if it does not end.
    fn text(&self, closing: Instant) -> String {
        // The result does not matter: the text so far is used in both cases.
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
        // The child holds the pipe: if it were still alive, this would have taken `LEFT_OPEN` longer.
        assert!(started.elapsed() < LEFT_OPEN, "{:?}", started.elapsed());
    }

    #[test]
    fn a_process_left_behind_does_not_block_its_parents_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo done"]);
        let started = Instant::now();
        let output = output(&mut command, started + Duration::from_secs(60)).unwrap();
        assert_eq!(output.stdout, "done\n");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
}
