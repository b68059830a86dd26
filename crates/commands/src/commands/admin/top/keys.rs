//! The keys of a terminal, one by one, and the screen that is restored at the end.

use std::io;
#[cfg(unix)]
use std::io::Read;

use tokio::sync::mpsc;

use crate::output;

/// Shows another screen, without a cursor. The second text returns to the first one.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE_SCREEN: &str = "\x1b[?25h\x1b[?1049l";

/// A key that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A letter.
    Letter(char),
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// `q`, or an interrupt.
    Quit,
}

/// A terminal whose keys are read one by one. It is restored when the value is dropped.
pub(super) struct RawTerminal {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

impl RawTerminal {
    /// Changes the terminal of stdin, and reads its keys from now on.
    #[cfg(unix)]
    pub(super) fn open() -> io::Result<(Self, mpsc::Receiver<Key>)> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        let _ = output::write_data(ENTER_SCREEN);
        let (keys, read) = mpsc::channel(16);
        // The thread ends with the process: it waits for a key.
        std::thread::spawn(move || {
            let mut bytes = [0; 16];
            while let Ok(count) = io::stdin().read(&mut bytes) {
                if count == 0 || keys.blocking_send(key(&bytes[..count])).is_err() {
                    return;
                }
            }
        });
        Ok((Self { before }, read))
    }

    /// This system has no such terminals.
    #[cfg(not(unix))]
    pub(super) fn open() -> io::Result<(Self, mpsc::Receiver<Key>)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = output::write_data(LEAVE_SCREEN);
        #[cfg(unix)]
        let _ = rustix::termios::tcsetattr(
            io::stdin(),
            rustix::termios::OptionalActions::Flush,
            &self.before,
        );
    }
}

/// The key that a terminal sends as these bytes.
#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix terminals are read"))]
fn key(bytes: &[u8]) -> Key {
    match bytes {
        [b'q' | 3 | 4, ..] => Key::Quit,
        [b'\r' | b'\n', ..] => Key::Enter,
        b"\x1b[A" | b"\x1bOA" | b"k" => Key::Up,
        b"\x1b[B" | b"\x1bOB" | b"j" => Key::Down,
        [0x1b, ..] => Key::Escape,
        [letter, ..] => Key::Letter(char::from(*letter)),
        [] => Key::Escape,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_the_bytes_of_a_terminal() {
        assert_eq!(key(b"\x1b[A"), Key::Up);
        assert_eq!(key(b"\x1b[B"), Key::Down);
        assert_eq!(key(b"\x1b"), Key::Escape);
        assert_eq!(key(b"\r"), Key::Enter);
        assert_eq!(key(b"e"), Key::Letter('e'));
        assert_eq!((key(b"q"), key(b"\x03")), (Key::Quit, Key::Quit));
    }
}
