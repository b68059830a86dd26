//! Streams that the kernel cannot poll (terminals, files), each served by one detached thread.

use crate::sync::Mutex;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;
use std::{io, thread};

use tokio::sync::{Notify, mpsc};

/// Reads on a dedicated thread.
///
/// The thread may block in a read forever; it is never joined, so it delays neither drop nor exit.
#[derive(Debug)]
pub(crate) struct BlockingInput {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// The last chunk, and how much of it was returned.
    chunk: Vec<u8>,
    taken: usize,
}

impl BlockingInput {
    pub(crate) fn start(source: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        thread::Builder::new().name("stdin".into()).spawn(move || read_all(source, &sender))?;
        Ok(Self { chunks, chunk: Vec::new(), taken: 0 })
    }

    /// Appends at most `max` bytes to `buffer`; 0 is the end. Cancel-safe.
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        if self.taken == self.chunk.len() {
            match self.chunks.recv().await {
                Some(chunk) => (self.chunk, self.taken) = (chunk?, 0),
                None => return Ok(0),
            }
        }
        let rest = &self.chunk[self.taken..];
        let part = &rest[..rest.len().min(max.max(1))];
        buffer.extend_from_slice(part);
        self.taken += part.len();
        Ok(part.len())
    }
}

fn read_all(mut source: impl Read, sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    // One buffer for all reads, so that it is zeroed once and a small read does not keep all of its memory.
    let mut chunk = vec![0; CHUNK];
    loop {
        let message = match source.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => Ok(chunk[..read].to_vec()),
            Err(error) if is_transient(&error) => continue,
            Err(error) => Err(error),
        };
        let ends = message.is_err();
        if sender.blocking_send(message).is_err() || ends {
            return;
        }
    }
}

/// Writes on a dedicated thread.
///
/// Bytes are accepted before they are written: call [`flush`](Self::flush) before the process ends.
#[derive(Debug)]
pub(crate) struct BlockingOutput {
    chunks: std::sync::mpsc::Sender<Vec<u8>>,
    progress: Arc<WriteProgress>,
}

impl BlockingOutput {
    pub(crate) fn start(target: impl Write + Send + 'static) -> io::Result<Self> {
        // The channel itself is unbounded; the number of chunks in flight is bounded.
        let (chunks, queue) = std::sync::mpsc::channel();
        let progress = Arc::<WriteProgress>::default();
        let told = Arc::clone(&progress);
        thread::Builder::new()
            .name("stdout".into())
            .spawn(move || write_all(target, &queue, &told))?;
        Ok(Self { chunks, progress })
    }

    /// Accepts a part of `bytes` if there is room.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let mut state = self.progress.lock();
        state.check()?;
        if state.in_flight >= MAX_IN_FLIGHT {
            return Ok(None);
        }
        let part = &bytes[..bytes.len().min(CHUNK)];
        self.chunks.send(part.to_vec()).map_err(|_| io::Error::from(ErrorKind::BrokenPipe))?;
        state.in_flight += 1;
        Ok(Some(part.len()))
    }

    /// Resolves when there is room, or never will be. Cancel-safe.
    pub(crate) async fn writable(&self) {
        self.progress.wait_until(|state| state.ended || state.in_flight < MAX_IN_FLIGHT).await;
    }

    /// Resolves when all accepted bytes are written. Cancel-safe.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        self.progress.wait_until(|state| state.ended || state.in_flight == 0).await;
        self.progress.lock().check()
    }
}

/// The progress of the writing thread.
#[derive(Debug, Default)]
struct WriteProgress {
    state: Mutex<WriteState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct WriteState {
    /// Chunks that were accepted and are not written.
    in_flight: usize,
    /// Whether writing is over, and the error, until it was reported.
    ended: bool,
    error: Option<io::Error>,
}

impl WriteProgress {
    fn lock(&self) -> MutexGuard<'_, WriteState> {
        self.state.lock()
    }

    /// Records that a chunk was written, or that writing it failed.
    fn record(&self, result: io::Result<()>) {
        let mut state = self.lock();
        state.in_flight -= 1;
        state.ended = result.is_err();
        state.error = result.err();
        self.changed.notify_one();
    }

    async fn wait_until(&self, is_so: impl Fn(&WriteState) -> bool) {
        while !is_so(&self.lock()) {
            self.changed.notified().await;
        }
    }
}

impl WriteState {
    fn check(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None if self.ended => Err(ErrorKind::BrokenPipe.into()),
            None => Ok(()),
        }
    }
}

fn write_all(
    mut target: impl Write,
    queue: &std::sync::mpsc::Receiver<Vec<u8>>,
    progress: &WriteProgress,
) {
    while let Ok(chunk) = queue.recv() {
        let result = write_chunk(&mut target, &chunk);
        let ends = result.is_err();
        // The receiver may have been dropped; accepted bytes are written nevertheless.
        progress.record(result);
        if ends {
            return;
        }
    }
}

fn write_chunk(target: &mut impl Write, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match target.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
    target.flush()
}

/// Whether to try again, after a pause if another process made the shared terminal non-blocking.
fn is_transient(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::WouldBlock {
        thread::sleep(Duration::from_millis(5));
    }
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

const CHUNK: usize = 32 * 1024;

/// Multiplied by [`CHUNK`], the maximum backlog for a stopped terminal.
const MAX_IN_FLIGHT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    impl BlockingOutput {
        async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
            loop {
                if let Some(taken) = self.try_write(bytes)? {
                    return Ok(taken);
                }
                self.writable().await;
            }
        }
    }

    /// A target that a test can stop.
    #[derive(Clone, Default)]
    struct StoppableTarget(Arc<Mutex<Vec<u8>>>);

    impl Write for StoppableTarget {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Failing;

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn input_is_read_in_the_requested_sizes_and_ends() {
        let mut input = BlockingInput::start(&b"abcdefg"[..]).unwrap();
        let mut buffer = Vec::new();
        assert_eq!(input.read(&mut buffer, 3).await.unwrap(), 3);
        assert_eq!(input.read(&mut buffer, 100).await.unwrap(), 4);
        assert_eq!(input.read(&mut buffer, 100).await.unwrap(), 0);
        assert_eq!(input.read(&mut buffer, 100).await.unwrap(), 0);
        assert_eq!(buffer, b"abcdefg");
    }

    /// Input of single bytes. It marks the end of the buffer, and counts the reads that find the mark.
    struct Crumbs {
        left: usize,
        found: Arc<Mutex<usize>>,
    }

    impl Read for Crumbs {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            *self.found.lock() += usize::from(buffer.ends_with(b"x"));
            buffer[0] = b'a';
            buffer[CHUNK - 1] = b'x';
            let read = self.left.min(1);
            self.left -= read;
            Ok(read)
        }
    }

    #[test]
    fn a_byte_costs_neither_a_zeroed_chunk_nor_its_memory() {
        let (found, (sender, mut chunks)) = (Arc::default(), mpsc::channel(8));
        read_all(Crumbs { left: 5, found: Arc::clone(&found) }, &sender);
        assert_eq!(*found.lock(), 5, "reads into the buffer of the first one");
        while let Ok(chunk) = chunks.try_recv() {
            assert!(chunk.unwrap().capacity() < CHUNK);
        }
    }

    #[tokio::test]
    async fn output_is_written_in_order_before_flush_returns() {
        let target = StoppableTarget::default();
        let output = BlockingOutput::start(target.clone()).unwrap();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| i as u8).collect();
        let mut sent = 0;
        while sent < bytes.len() {
            sent += output.write(&bytes[sent..]).await.unwrap();
        }
        output.flush().await.unwrap();
        assert!(*target.0.lock() == bytes);
    }

    #[tokio::test]
    async fn a_stopped_target_accepts_a_bounded_amount() {
        let target = StoppableTarget::default();
        let output = BlockingOutput::start(target.clone()).unwrap();
        let mut taken = 0;
        let stop = target.0.lock();
        while let Some(more) = output.try_write(&[7; CHUNK]).unwrap() {
            taken += more;
        }
        drop(stop);
        assert_eq!(taken, MAX_IN_FLIGHT * CHUNK);
        output.flush().await.unwrap();
        assert_eq!(target.0.lock().len(), taken);
    }

    #[tokio::test]
    async fn a_failing_target_reports_its_error_and_then_a_broken_pipe() {
        let output = BlockingOutput::start(Failing).unwrap();
        output.write(b"x").await.unwrap();
        assert_eq!(output.flush().await.unwrap_err().kind(), ErrorKind::StorageFull);
        let later = async {
            loop {
                if let Err(error) = output.write(b"y").await {
                    break error;
                }
            }
        };
        assert_eq!(later.await.kind(), ErrorKind::BrokenPipe);
    }
}
