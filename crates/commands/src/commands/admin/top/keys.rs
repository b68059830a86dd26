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
            let mut bytes = [0; 64];
            while let Ok(count) = io::stdin().read(&mut bytes) {
                let pressed = keys_of(&bytes[..count]);
                if count == 0 || pressed.into_iter().any(|key| keys.blocking_send(key).is_err()) {
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

/// The keys that a terminal sends as these bytes. Keys that are pressed fast come together.
#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix terminals are read"))]
fn keys_of(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    loop {
        let (key, rest) = match bytes {
            [] => return keys,
            [0x1b, b'[' | b'O', b'A', rest @ ..] | [b'k', rest @ ..] => (Some(Key::Up), rest),
            [0x1b, b'[' | b'O', b'B', rest @ ..] | [b'j', rest @ ..] => (Some(Key::Down), rest),
            // Another key, such as the arrow to the left: its last byte is a letter or `~`.
            [0x1b, b'[' | b'O', rest @ ..] => {
                let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
                (None, &rest[end.map_or(rest.len(), |end| end + 1)..])
            }
            [0x1b, rest @ ..] => (Some(Key::Escape), rest),
            [b'q' | 3 | 4, rest @ ..] => (Some(Key::Quit), rest),
            [b'\r' | b'\n', rest @ ..] => (Some(Key::Enter), rest),
            [letter, rest @ ..] => (Some(Key::Letter(char::from(*letter))), rest),
        };
        keys.extend(key);
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_the_bytes_of_a_terminal() {
        let only = |bytes: &[u8]| match keys_of(bytes)[..] {
            [key] => key,
            ref keys => panic!("{keys:?}"),
        };
        assert_eq!((only(b"\x1b[A"), only(b"\x1bOA"), only(b"k")), (Key::Up, Key::Up, Key::Up));
        assert_eq!((only(b"\x1b[B"), only(b"j")), (Key::Down, Key::Down));
        assert_eq!((only(b"\x1b"), only(b"\r")), (Key::Escape, Key::Enter));
        assert_eq!(only(b"e"), Key::Letter('e'));
        assert_eq!((only(b"q"), only(b"\x03")), (Key::Quit, Key::Quit));
    }

    #[test]
    fn keys_that_come_together_are_all_read_and_unknown_ones_are_none() {
        assert_eq!(keys_of(b"\x1b[B\x1b[B\r"), [Key::Down, Key::Down, Key::Enter]);
        assert_eq!(keys_of(b"jjkq"), [Key::Down, Key::Down, Key::Up, Key::Quit]);
        assert_eq!(keys_of(b"\x1b[D\x1b[5~\x1b[1;5Ce"), [Key::Letter('e')]);
        assert_eq!(keys_of(b"\x1b["), []);
    }
}
