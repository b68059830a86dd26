//! One end of a pipe or socket that is read and written without blocking and without changing its mode for other
//! processes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// The direction of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// A descriptor that the kernel can poll.
#[derive(Debug)]
pub(crate) struct Pollable {
    fd: OwnedFd,
    kind: DescriptorKind,
}

#[derive(Debug)]
enum DescriptorKind {
    /// Each call is non-blocking (`MSG_DONTWAIT`), so the mode of the socket does not change: stdout is often the same
    /// socket as stderr, and a log line must not fail with "try again".
    Socket,
    /// A file description of our own, opened non-blocking.
    Reopened,
    /// A description shared with other processes; its flags are restored on drop.
    Shared { before: OFlags },
}

impl Pollable {
    /// Prepares `fd` if it is a pipe or a socket, and returns it if it is neither.
    ///
    /// epoll refuses files and `/dev/null`, and a terminal shares its mode with the shell, so those are left to a
    /// blocking thread; so is everything outside Linux, where none of this is tested.
    pub(crate) fn open(fd: OwnedFd, direction: Direction) -> io::Result<Result<Self, OwnedFd>> {
        if !cfg!(target_os = "linux") {
            return Ok(Err(fd));
        }
        match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::Socket => Ok(Ok(Self { fd, kind: DescriptorKind::Socket })),
            FileType::Fifo => match reopen(&fd, direction) {
                Ok(fd) => Ok(Ok(Self { fd, kind: DescriptorKind::Reopened })),
                // No /proc, another user's pipe, or a named pipe without a reader.
                Err(_) => Self::share(fd).map(Ok),
            },
            _ => Ok(Err(fd)),
        }
    }

    /// Makes the description behind `fd` non-blocking for as long as this value lives.
    pub(crate) fn share(fd: OwnedFd) -> io::Result<Self> {
        let before = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, before | OFlags::NONBLOCK)?;
        Ok(Self { fd, kind: DescriptorKind::Shared { before } })
    }

    /// Appends the available bytes to `buffer`, at most `max`; returns how many were read and how many were requested.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>, max: usize) -> io::Result<(usize, usize)> {
        let max = max.max(1);
        if spare(buffer) < max.min(MIN_SPARE) {
            buffer.reserve(max.min(CHUNK));
        }
        if spare(buffer) <= max {
            let asked = spare(buffer);
            return Ok((self.read_once(|| spare_capacity(buffer))?, asked));
        }
        // Safe code cannot hand out a part of the spare capacity, so the part is zeroed first.
        let (filled, asked) = (buffer.len(), max.min(MAX_ZEROED));
        buffer.resize(filled + asked, 0);
        let read = self.read_once(|| &mut buffer[filled..]);
        buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        Ok((read?, asked))
    }

    fn read_once<B, F>(&self, buffer: F) -> io::Result<usize>
    where
        B: rustix::buffer::Buffer<u8, Output = usize>,
        F: FnOnce() -> B,
    {
        let read = match self.kind {
            DescriptorKind::Socket => {
                rustix::net::recv(&self.fd, buffer(), RecvFlags::DONTWAIT).map(|r| r.0)
            }
            _ => rustix::io::read(&self.fd, buffer()),
        };
        // The caller polls again, which is the same as repeating the call.
        read.map_err(|error| if error == Errno::INTR { Errno::AGAIN } else { error }.into())
    }

    /// Writes what fits right now.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match self.kind {
                DescriptorKind::Socket => {
                    rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
                }
                _ => rustix::io::write(&self.fd, bytes),
            };
            if written != Err(Errno::INTR) {
                return Ok(written?);
            }
        }
    }

    /// A second descriptor of the same description, which epoll can watch for other events.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }
}

impl AsRawFd for Pollable {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Pollable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Pollable {
    fn drop(&mut self) {
        if let DescriptorKind::Shared { before } = self.kind {
            // A failure has no consequence: the descriptor closes in any case.
            let _ = rustix::fs::fcntl_setfl(&self.fd, before);
        }
    }
}

/// Opens the pipe behind `fd` again: the new description is ours, the old one keeps its mode.
fn reopen(fd: &OwnedFd, direction: Direction) -> rustix::io::Result<OwnedFd> {
    let access = match direction {
        Direction::Read => OFlags::RDONLY,
        Direction::Write => OFlags::WRONLY,
    };
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

fn spare(buffer: &Vec<u8>) -> usize {
    buffer.capacity() - buffer.len()
}

/// With less spare capacity than this, a buffer grows before it is filled.
const MIN_SPARE: usize = 4 * 1024;

/// How much a buffer grows: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// How much is zeroed for one read into a buffer with more spare capacity than may be used.
const MAX_ZEROED: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn blocks(fd: impl AsFd) -> bool {
        !rustix::fs::fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK)
    }

    #[test]
    fn a_pipe_is_reopened_and_the_inherited_end_keeps_its_mode() {
        let (reader, _writer) = io::pipe().unwrap();
        let inherited = OwnedFd::from(reader);
        let copy = inherited.try_clone().unwrap();
        let pollable = Pollable::open(inherited, Direction::Read).unwrap().unwrap();
        assert!(matches!(pollable.kind, DescriptorKind::Reopened));
        assert!(blocks(&copy));
        assert!(!blocks(&pollable));
    }

    #[test]
    fn a_socket_keeps_its_mode() {
        let (local, _theirs) = UnixStream::pair().unwrap();
        let copy = local.try_clone().unwrap();
        let pollable = Pollable::open(local.into(), Direction::Write).unwrap().unwrap();
        assert_eq!(pollable.write(b"x").unwrap(), 1);
        assert!(blocks(&copy));
        let error = pollable.read(&mut Vec::new(), 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_shared_description_gets_its_mode_back_on_drop() {
        let (reader, _writer) = io::pipe().unwrap();
        let copy = reader.try_clone().unwrap();
        let pollable = Pollable::share(reader.into()).unwrap();
        assert!(!blocks(&copy));
        drop(pollable);
        assert!(blocks(&copy));
    }

    #[test]
    fn a_pipe_whose_reader_disconnected_opens_and_then_fails_to_write() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let pollable = Pollable::open(writer.into(), Direction::Write).unwrap().unwrap();
        assert_eq!(pollable.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn files_and_devices_are_given_back() {
        for path in ["/dev/null", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let file = std::fs::File::open(path).unwrap();
            assert!(Pollable::open(file.into(), Direction::Read).unwrap().is_err(), "{path}");
        }
    }

    #[test]
    fn a_read_never_exceeds_its_maximum_whatever_the_capacity() {
        use std::io::Write;
        for capacity in [0, 3, 100, 1 << 20] {
            let (reader, mut writer) = io::pipe().unwrap();
            let pollable = Pollable::open(reader.into(), Direction::Read).unwrap().unwrap();
            writer.write_all(b"0123456789").unwrap();
            let mut buffer = Vec::with_capacity(capacity);
            buffer.extend_from_slice(b"ab");
            let (read, asked) = pollable.read(&mut buffer, 4).unwrap();
            assert!((1..=4).contains(&read) && asked <= 4, "{read} of {asked}");
            assert_eq!(buffer, b"ab0123456789"[..2 + read]);
            let error = loop {
                match pollable.read(&mut buffer, 1000) {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            assert_eq!(buffer, b"ab0123456789");
        }
    }
}
