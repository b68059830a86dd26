//! The line transport: servers on the other end of two byte streams, one message per line; children and any other pair
//! of streams.

use crate::sync::Mutex;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use creole_proto::client::{DropReason, OutgoingFrame};
use creole_proto::fault::Fault;
use creole_proto::framing::{FramedLine, LineDecoder};
use creole_proto::http::request_headers::HeaderField;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::budget::{Budget, BudgetExhausted, BufferReservation, Reservation};
use crate::chain::BoxFuture;
use crate::client::transport::{Exchange, Inbox, LARGE_MESSAGE, Transport, TransportHandle};
use crate::process::{
    Child, ChildInput, ChildOutput, Exit, Program, StderrTail, unavailable_fault,
};
use crate::stream::{ByteSink, ByteSource};

/// Bytes per read.
const CHUNK: usize = 64 * 1024;

/// A large line is longer than one chunk, and is therefore in its own buffer.
const _: () = assert!(CHUNK < LARGE_MESSAGE);

/// Unwritten bytes from which no more calls are started.
const HIGH_WATER: usize = 16 * 1024 * 1024;

/// The capacity that is kept for unwritten bytes.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Maximum time between the two signs of an end: that of the streams and that of the process.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the last standard error output of a process is waited for.
const STDERR_TIMEOUT: Duration = Duration::from_millis(100);

/// Default maximum size of a message.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A server on the other end of two byte streams.
#[derive(Debug)]
pub struct LineServer<I, O> {
    name: String,
    input: I,
    output: O,
    child: Option<Child>,
    max_message_bytes: usize,
    budget: Budget,
    /// Bytes that were read before.
    unread: Vec<u8>,
}

/// A server that runs as our child.
pub type ChildServer = LineServer<ChildOutput, ChildInput>;

impl<I: ByteSource + 'static, O: ByteSink + 'static> LineServer<I, O> {
    /// The server called `name`: `input` reads its messages, and `output` writes ours.
    pub fn new(name: impl Into<String>, input: I, output: O) -> Self {
        let (name, unread) = (name.into(), Vec::new());
        Self {
            name,
            input,
            output,
            child: None,
            max_message_bytes: MAX_MESSAGE_BYTES,
            budget: Budget::of_process(),
            unread,
        }
    }

    /// The same server with a maximum message size; longer messages are dropped, and their calls fail.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// The same server with a memory budget for buffered messages.
    #[must_use]
    #[doc(hidden)]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
}

impl ChildServer {
    /// Starts a program that serves on its standard streams.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start(program: &Program) -> Result<Self, Fault> {
        let (child, stdin, stdout) = Child::start(program).await?;
        Ok(Self::from_running(&program.name, child, stdin, stdout, Vec::new()))
    }

    /// A running program, of which these bytes were already read.
    pub(crate) fn from_running(
        name: &str,
        child: Child,
        stdin: ChildInput,
        stdout: ChildOutput,
        unread: Vec<u8>,
    ) -> Self {
        Self { child: Some(child), unread, ..Self::new(name, stdout, stdin) }
    }
}

impl<I: ByteSource + 'static, O: ByteSink + 'static> Transport for LineServer<I, O> {
    fn name(&self) -> &str {
        &self.name
    }

    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle> {
        let name: Arc<str> = self.name.into();
        let outlet = Arc::new(LineWriter {
            queue: Mutex::new(WriteQueue {
                sink: Some(Arc::new(self.output)),
                bytes: Vec::new(),
                written: 0,
                is_broken: false,
                writer: None,
            }),
        });
        let tail = self.child.as_ref().map(|child| child.tail().clone());
        let logs = self.child.as_ref().is_none_or(|child| child.logs());
        let reader = MessageReader {
            tail,
            logs,
            name: Arc::clone(&name),
            inbox: inbox.clone(),
            input: self.input,
            lines: LineDecoder::new(self.max_message_bytes),
            max_message_bytes: self.max_message_bytes,
            reservation: BufferReservation::new(reserve_memory(self.budget, Arc::clone(&name))),
            unread: self.unread,
        };
        let exited = self.child.as_ref().map(Child::wait_for_exit);
        let reader = tokio::spawn(reader.run(exited)).abort_handle();
        let writer = tokio::spawn(run_writer(Arc::clone(&outlet), name, inbox)).abort_handle();
        Arc::new(LineTransport {
            writer_queue: outlet,
            reader,
            writer,
            child: Mutex::new(self.child),
        })
    }
}

struct LineTransport<O: ByteSink> {
    writer_queue: Arc<LineWriter<O>>,
    reader: AbortHandle,
    writer: AbortHandle,
    child: Mutex<Option<Child>>,
}

impl<O: ByteSink + 'static> TransportHandle for LineTransport<O> {
    fn send(&self, frame: OutgoingFrame<'_>, _: Vec<HeaderField>) -> Option<Exchange> {
        let mut waiting = self.writer_queue.lock();
        if waiting.sink.is_none() || waiting.is_broken {
            return None;
        }
        waiting.bytes.extend_from_slice(frame.text);
        waiting.bytes.push(b'\n');
        // The writer runs after the tasks that are ready now, so their frames are written together.
        if let Some(writer) = waiting.writer.take() {
            writer.wake();
        }
        None
    }

    fn is_full(&self) -> bool {
        self.writer_queue.lock().bytes.len() > HIGH_WATER
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.shut_down();
        let child = self.child.lock().take();
        Box::pin(async move {
            if let Some(child) = child {
                child.stop().await;
            }
        })
    }
}

impl<O: ByteSink> LineTransport<O> {
    /// Closes the server's input, which makes it exit, and stops reading from it.
    fn shut_down(&self) {
        self.reader.abort();
        self.writer.abort();
        let mut waiting = self.writer_queue.lock();
        // The last frames, if the server accepts them at once.
        waiting.write();
        waiting.sink = None;
    }
}

impl<O: ByteSink> Drop for LineTransport<O> {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The bytes that wait to be written.
struct LineWriter<O> {
    queue: Mutex<WriteQueue<O>>,
}

struct WriteQueue<O> {
    /// `None` once it is closed.
    sink: Option<Arc<O>>,
    bytes: Vec<u8>,
    written: usize,
    is_broken: bool,
    /// The waker of the writer, while there is nothing to write.
    writer: Option<Waker>,
}

impl<O> LineWriter<O> {
    fn lock(&self) -> MutexGuard<'_, WriteQueue<O>> {
        self.queue.lock()
    }
}

impl<O> WriteQueue<O> {
    fn has_bytes(&self) -> bool {
        self.written < self.bytes.len()
    }

    /// Resolves when there are bytes to write, or the sink is closed.
    fn poll_bytes(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.has_bytes() || self.sink.is_none() {
            return Poll::Ready(());
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<O: ByteSink> WriteQueue<O> {
    /// Writes as much as is accepted at once.
    fn write(&mut self) {
        let Some(sink) = self.sink.clone() else { return };
        while self.has_bytes() && !self.is_broken {
            match sink.try_write(&self.bytes[self.written..]) {
                Ok(Some(count)) => self.written += count,
                Ok(None) => break,
                Err(_) => self.is_broken = true,
            }
        }
        self.drop_written();
    }

    fn drop_written(&mut self) {
        if !self.has_bytes() || self.is_broken {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_CAPACITY);
            self.written = 0;
        } else if self.written > KEPT_CAPACITY {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

/// Writes queued frames: all of them by one system call, as long as the server reads.
async fn run_writer<O: ByteSink>(writer: Arc<LineWriter<O>>, name: Arc<str>, inbox: Inbox) {
    loop {
        let (sink, has_some, is_broken) = {
            let mut waiting = writer.lock();
            waiting.write();
            (waiting.sink.clone(), waiting.has_bytes(), waiting.is_broken)
        };
        let Some(sink) = sink else { return };
        if is_broken || (has_some && sink.writable().await.is_err()) {
            // Usually the server has ended, and the reader gets the reason.
            sleep(EXIT_TIMEOUT).await;
            let detail = format!("`{name}` no longer reads its input");
            return inbox.on_closed(unavailable_fault(&name, detail, "upstream_ended"));
        }
        if !has_some {
            drop(sink);
            poll_fn(|context| writer.lock().poll_bytes(context)).await;
        }
    }
}

/// Reads the server's messages.
struct MessageReader<I> {
    tail: Option<StderrTail>,
    /// Whether the end of the server is logged.
    logs: bool,
    name: Arc<str>,
    inbox: Inbox,
    input: I,
    lines: LineDecoder,
    max_message_bytes: usize,
    /// The memory reservation for a partial message.
    reservation: BufferReservation<ReserveMemory>,
    /// Bytes that were read before.
    unread: Vec<u8>,
}

/// Reserves memory on behalf of a server.
type ReserveMemory = Box<dyn FnOnce() -> Reservation + Send>;

fn reserve_memory(budget: Budget, name: Arc<str>) -> ReserveMemory {
    Box::new(move || budget.reserve_for(&*name))
}

impl<I: ByteSource> MessageReader<I> {
    async fn run(mut self, exited: Option<impl Future<Output = Exit>>) {
        let Some(exited) = exited else {
            self.read_to_end().await;
            let detail = format!("`{}` closed the connection", self.name);
            return self.inbox.on_closed(unavailable_fault(&self.name, detail, "upstream_ended"));
        };
        let mut exited = std::pin::pin!(exited);
        let exit = tokio::select! {
            biased;
            () = self.read_to_end() => timeout(EXIT_TIMEOUT, exited).await.ok(),
            exit = &mut exited => {
                // Its last output may still be in the pipe, which other processes may hold open.
                let _ = timeout(EXIT_TIMEOUT, self.read_to_end()).await;
                Some(exit)
            }
        };
        let stopped = || {
            let detail = format!("`{}` closed its output", self.name);
            unavailable_fault(&self.name, detail, "upstream_ended")
        };
        let mut fault = exit.map_or_else(stopped, |exit| exit.fault(&self.name));
        if let Some(tail) = &self.tail {
            tail.wait_complete(STDERR_TIMEOUT).await;
            // For the operator: a gateway's callers do not get it.
            fault.trace = Some(tail.text()).filter(|text| !text.is_empty());
        }
        if self.logs {
            let stderr = fault.trace.as_deref().unwrap_or_default();
            tracing::warn!(upstream = %self.name, stderr, "{}", fault.detail);
        }
        self.inbox.on_closed(fault);
    }

    /// Reads to the end. A last line without a line end may be a partial message, and is dropped.
    async fn read_to_end(&mut self) {
        let mut chunk = std::mem::take(&mut self.unread);
        chunk.chunks(CHUNK).for_each(|part| self.deliver_messages(part));
        chunk.clear();
        chunk.reserve(CHUNK);
        while let Ok(1..) = read(&mut self.input, &mut chunk).await {
            self.deliver_messages(&chunk);
            chunk.clear();
        }
    }

    /// Reserves memory for a partial message that grew. Without memory, no more of it is buffered. Returns the reason
    /// if the message must be dropped.
    fn reserve_for_partial(&mut self, more: usize) -> DropReason {
        let buffered = self.lines.buffered_bytes();
        let needed = if buffered == 0 { 0 } else { buffered + more };
        let limit = match self.reservation.resize_to(needed) {
            Ok(()) => self.max_message_bytes,
            Err(BudgetExhausted) => buffered.max(CHUNK).min(self.max_message_bytes),
        };
        self.lines.set_limit(limit);
        if limit < self.max_message_bytes { DropReason::NoMemory } else { DropReason::TooLong }
    }

    /// Delivers the messages that end in these bytes.
    fn deliver_messages(&mut self, mut rest: &[u8]) {
        let reason = self.reserve_for_partial(rest.len());
        while let Some(line) = self.lines.next(&mut rest) {
            match line {
                FramedLine::Complete(line) if line.len() < LARGE_MESSAGE => {
                    self.inbox.on_message(line, None)
                }
                FramedLine::Complete(_) => {
                    if let Some(line) = self.lines.take_line() {
                        self.inbox.on_large_message(line, None);
                    }
                }
                FramedLine::TooLong(start) => {
                    if reason == DropReason::NoMemory {
                        tracing::warn!(upstream = %self.name, "the memory budget is exhausted; a message was dropped");
                    }
                    self.inbox.on_dropped_start(start, reason);
                }
                FramedLine::TooLongEnd(end) => self.inbox.on_dropped_end(end),
            }
        }
    }
}

async fn read(input: &mut impl ByteSource, chunk: &mut Vec<u8>) -> io::Result<usize> {
    input.read(chunk, CHUNK).await
}
