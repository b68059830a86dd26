//! The standard input of this process, read on a dedicated thread, where a read may block.
//!
//! A blocking read is one system call per message, whatever stdin is; polling before the read would be two. The
//! descriptor is not changed, because other processes may share it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::task::coop::consume_budget;

use crate::stream::ByteSource;

/// The standard input. Its reads block.
pub(crate) struct Stdin(OwnedFd);

impl Stdin {
    /// # Errors
    /// When descriptor 0 cannot be duplicated.
    pub(crate) fn open() -> io::Result<Self> {
        duplicate(rustix::stdio::stdin()).map(Self)
    }

    fn fill(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<usize> {
        loop {
            match rustix::io::read(&self.0, spare_capacity(buffer)) {
                // Another process made it non-blocking.
                Err(Errno::AGAIN) => self.wait()?,
                Err(Errno::INTR) => {}
                read => return read,
            }
        }
    }

    fn wait(&self) -> rustix::io::Result<()> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl ByteSource for Stdin {
    async fn read(&mut self, buffer: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        // The thread never yields, and calls that start on it need a fresh budget.
        consume_budget().await;
        buffer.reserve_exact(max);
        Ok(self.fill(buffer)?)
    }
}

/// Avoids the numbers 0 to 2, so that nothing else ever opens as stdin or stdout.
pub(crate) fn duplicate(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;
    use std::time::Duration;

    use creole_test_wait::blocking::delay;
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::*;

    #[tokio::test]
    async fn available_bytes_are_appended_and_the_end_is_zero() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (mut stdin, mut buffer) = (Stdin(reader.into()), b">".to_vec());
        writer.write_all(b"hello").unwrap();
        assert_eq!(stdin.read(&mut buffer, 100).await.unwrap(), 5);
        drop(writer);
        assert_eq!(stdin.read(&mut buffer, 100).await.unwrap(), 0);
        assert_eq!(buffer, b">hello");
    }

    #[tokio::test]
    async fn a_descriptor_that_does_not_block_is_waited_for_and_left_as_it_is() {
        let (reader, mut writer) = io::pipe().unwrap();
        fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        let (mut stdin, mut buffer) = (Stdin(reader.into()), Vec::new());
        let later = thread::spawn(move || {
            delay(Duration::from_millis(50));
            writer.write_all(b"late").unwrap();
        });
        assert_eq!(stdin.read(&mut buffer, 100).await.unwrap(), 4);
        assert!(fcntl_getfl(&stdin.0).unwrap().contains(OFlags::NONBLOCK));
        later.join().unwrap();
    }
}
