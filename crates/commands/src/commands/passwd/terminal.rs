//! Reads a password from a terminal without showing it.

use std::io;
use std::io::Read;
use std::os::fd::AsFd;

use creole::internal::credential_files::Secret;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use super::line_of;
use crate::failure::Failure;
use crate::output;

/// The byte that Ctrl-C sends.
const INTERRUPT: u8 = 3;

/// Asks the user at the terminal of stdin.
pub(super) fn ask(prompt: &str) -> Result<Secret, Failure> {
    output::prompt(prompt);
    let typed = read_hidden(io::stdin());
    output::write_message("");
    match typed {
        Ok(Some(password)) => Ok(password),
        Ok(None) => Err(Failure::Passwd("interrupted; nothing was changed".to_owned())),
        Err(error) => Err(Failure::Passwd(format!("cannot read the terminal: {error}"))),
    }
}

/// Reads one line from a terminal. `None` if it was interrupted.
///
/// While the line is typed, Ctrl-C ends the input instead of the process: a process that ends here would leave the
/// terminal with echo off.
fn read_hidden(mut terminal: impl AsFd + Read) -> io::Result<Option<Secret>> {
    let before = tcgetattr(&terminal)?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    hidden.local_modes.insert(LocalModes::ICANON);
    hidden.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let line = read_line(&mut terminal);
    restore(&terminal, &before)?;
    Ok(line?.filter(|bytes| !bytes.contains(&INTERRUPT)).map(line_of))
}

fn restore(terminal: &impl AsFd, before: &Termios) -> io::Result<()> {
    Ok(tcsetattr(terminal, OptionalActions::Flush, before)?)
}

/// A terminal returns one line per read, unless a signal interrupts it.
fn read_line(terminal: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; 4096];
    loop {
        match terminal.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(0) => return Ok(None),
            Ok(count) => {
                bytes.truncate(count);
                return Ok(Some(bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::thread;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// Both ends of a terminal: the user's and the process's.
    fn terminal() -> (File, File) {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
        let process = OpenOptions::new().read(true).write(true).open(name).unwrap();
        (File::from(person), process)
    }

    fn echoes(terminal: &File) -> bool {
        tcgetattr(terminal).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// The result of typing these bytes after the echo is off, and the output of the terminal.
    fn typed(bytes: &'static [u8]) -> (Option<Vec<u8>>, String) {
        let (mut person, process) = terminal();
        let (watched, reader) = (process.try_clone().unwrap(), process.try_clone().unwrap());
        assert!(echoes(&watched));
        let reading = thread::spawn(move || read_hidden(reader).unwrap());
        while echoes(&watched) {
            thread::yield_now();
        }
        person.write_all(bytes).unwrap();
        let read = reading.join().unwrap().map(|secret| secret.expose().to_vec());
        assert!(echoes(&watched), "the terminal echoes its input again");
        (&process).write_all(b".").unwrap();
        let mut shown = vec![0; 100];
        let count = person.read(&mut shown).unwrap();
        (read, String::from_utf8_lossy(&shown[..count]).into_owned())
    }

    #[test]
    fn a_typed_password_is_read_and_not_shown() {
        let (read, shown) = typed(b"correct horse\n");
        assert_eq!(read.as_deref(), Some(&b"correct horse"[..]));
        assert!(!shown.contains("horse"), "{shown:?}");
    }

    #[test]
    fn an_interrupt_ends_the_line_at_once_and_changes_nothing() {
        assert_eq!(typed(b"correct\x03").0, None);
    }

    #[test]
    fn the_end_of_input_is_an_interrupt() {
        assert_eq!(typed(b"\x04").0, None);
    }

    #[test]
    fn a_typed_mistake_can_be_mended() {
        assert_eq!(typed(b"wrong\x15right\n").0.as_deref(), Some(&b"right"[..]));
    }
}
