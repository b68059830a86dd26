//! Servers on the other end of two byte streams, one message a line: children, and whatever else is a pair of
//! streams.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use creole_proto::client::{DropReason, OutgoingFrame};
use creole_proto::fault::Fault;
use creole_proto::framing::{FramedLine, LineDecoder};
use creole_proto::http::request_headers::HeaderField;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::link::{Carrier, Inbox, LARGE, Link, Transport};
use crate::budget::{Budget, BudgetExhausted, BufferReservation, Reservation};
use crate::chain::BoxFuture;
use crate::process::{
    Child, ChildInput, ChildOutput, Exit, Program, StderrTail, unavailable_fault,
};
use crate::transport::{Sink, Source};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A large line is more than one chunk, and therefore in a buffer of its own.
const _: () = assert!(CHUNK < LARGE);

/// How much may wait for a server that does not read before no more calls are begun.
const HIGH_WATER: usize = 16 * 1024 * 1024;

/// How much room is kept for what waits.
const KEPT: usize = 64 * 1024;

/// How long the two signs of an end, that of the streams and that of the process, may lie apart.
const APART: Duration = Duration::from_millis(500);

/// How long the last words of a process are waited for.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The longest message that is read, unless said otherwise.
const LONGEST: usize = 16 * 1024 * 1024;

/// A server on the other end of two byte streams.
#[derive(Debug)]
pub struct LineServer<I, O> {
    name: String,
    input: I,
    output: O,
    child: Option<Child>,
    longest: usize,
    budget: Budget,
    /// What was read of it before.
    unread: Vec<u8>,
}

/// A server that runs as our child.
pub type ChildServer = LineServer<ChildOutput, ChildInput>;

impl<I: Source + 'static, O: Sink + 'static> LineServer<I, O> {
    /// The server that is called `name`, writes what `input` reads and reads what `output` writes.
    pub fn new(name: impl Into<String>, input: I, output: O) -> Self {
        let (name, unread) = (name.into(), Vec::new());
        Self {
            name,
            input,
            output,
            child: None,
            longest: LONGEST,
            budget: Budget::of_process(),
            unread,
        }
    }

    /// The same server; longer messages of it are dropped, and the calls that they answer fail.
    #[must_use]
    pub fn longest_message(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    /// The same server; messages of it take memory of this budget while they are buffered.
    #[must_use]
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
        Ok(Self::of(&program.name, child, stdin, stdout, Vec::new()))
    }

    /// A program that runs, and of which this was read already.
    pub(super) fn of(
        name: &str,
        child: Child,
        stdin: ChildInput,
        stdout: ChildOutput,
        unread: Vec<u8>,
    ) -> Self {
        Self { child: Some(child), unread, ..Self::new(name, stdout, stdin) }
    }
}

impl<I: Source + 'static, O: Sink + 'static> Transport for LineServer<I, O> {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(self: Box<Self>, inbox: Inbox) -> Arc<dyn Link> {
        let name: Arc<str> = self.name.into();
        let outlet = Arc::new(Outlet {
            waiting: Mutex::new(Waiting {
                sink: Some(Arc::new(self.output)),
                bytes: Vec::new(),
                taken: 0,
                is_broken: false,
                writer: None,
            }),
        });
        let tail = self.child.as_ref().map(|child| child.tail().clone());
        let logs = self.child.as_ref().is_none_or(|child| child.logs());
        let reader = Reader {
            tail,
            logs,
            name: Arc::clone(&name),
            inbox: inbox.clone(),
            input: self.input,
            lines: LineDecoder::new(self.longest),
            longest: self.longest,
            room: BufferReservation::new(hold(self.budget, Arc::clone(&name))),
            unread: self.unread,
        };
        let exited = self.child.as_ref().map(Child::wait_for_exit);
        let reader = tokio::spawn(reader.run(exited)).abort_handle();
        let writer = tokio::spawn(write_on(Arc::clone(&outlet), name, inbox)).abort_handle();
        Arc::new(LineLink { outlet, reader, writer, child: Mutex::new(self.child) })
    }
}

struct LineLink<O: Sink> {
    outlet: Arc<Outlet<O>>,
    reader: AbortHandle,
    writer: AbortHandle,
    child: Mutex<Option<Child>>,
}

impl<O: Sink + 'static> Link for LineLink<O> {
    fn send(&self, frame: OutgoingFrame<'_>, _: Vec<HeaderField>) -> Option<Carrier> {
        let mut waiting = self.outlet.lock();
        if waiting.sink.is_none() || waiting.is_broken {
            return None;
        }
        waiting.bytes.extend_from_slice(frame.text);
        waiting.bytes.push(b'\n');
        // Written by the writer, whose turn comes after those who are ready now: what they send goes with it.
        if let Some(writer) = waiting.writer.take() {
            writer.wake();
        }
        None
    }

    fn is_full(&self) -> bool {
        self.outlet.lock().bytes.len() > HIGH_WATER
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.shut();
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(child) = child {
                child.stop().await;
            }
        })
    }
}

impl<O: Sink> LineLink<O> {
    /// Closes the server's input, by which it is told to end, and stops listening to it.
    fn shut(&self) {
        self.reader.abort();
        self.writer.abort();
        let mut waiting = self.outlet.lock();
        // What was said last, if the server takes it at once.
        waiting.write();
        waiting.sink = None;
    }
}

impl<O: Sink> Drop for LineLink<O> {
    fn drop(&mut self) {
        self.shut();
    }
}

/// What waits to be written.
struct Outlet<O> {
    waiting: Mutex<Waiting<O>>,
}

struct Waiting<O> {
    /// Absent once it is closed.
    sink: Option<Arc<O>>,
    bytes: Vec<u8>,
    taken: usize,
    is_broken: bool,
    /// Who writes, while there is nothing to write.
    writer: Option<Waker>,
}

impl<O> Outlet<O> {
    fn lock(&self) -> MutexGuard<'_, Waiting<O>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> Waiting<O> {
    fn has_some(&self) -> bool {
        self.taken < self.bytes.len()
    }

    /// Resolves when there is something to write, or nowhere to write it to.
    fn poll_some(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.has_some() || self.sink.is_none() {
            return Poll::Ready(());
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<O: Sink> Waiting<O> {
    /// Writes what is taken at once.
    fn write(&mut self) {
        let Some(sink) = self.sink.clone() else { return };
        while self.has_some() && !self.is_broken {
            match sink.try_write(&self.bytes[self.taken..]) {
                Ok(Some(count)) => self.taken += count,
                Ok(None) => break,
                Err(_) => self.is_broken = true,
            }
        }
        self.forget_taken();
    }

    fn forget_taken(&mut self) {
        if !self.has_some() || self.is_broken {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.taken = 0;
        } else if self.taken > KEPT {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

/// Writes what is sent: all that waits by one system call, as long as the server takes it.
async fn write_on<O: Sink>(outlet: Arc<Outlet<O>>, name: Arc<str>, inbox: Inbox) {
    loop {
        let (sink, has_some, is_broken) = {
            let mut waiting = outlet.lock();
            waiting.write();
            (waiting.sink.clone(), waiting.has_some(), waiting.is_broken)
        };
        let Some(sink) = sink else { return };
        if is_broken || (has_some && sink.writable().await.is_err()) {
            // Mostly the server has ended, and whoever reads from it knows more.
            sleep(APART).await;
            let detail = format!("`{name}` no longer reads what it is sent");
            return inbox.ended(unavailable_fault(&name, detail, "upstream_ended"));
        }
        if !has_some {
            drop(sink);
            poll_fn(|context| outlet.lock().poll_some(context)).await;
        }
    }
}

/// Reads what the server says.
struct Reader<I> {
    tail: Option<StderrTail>,
    /// Whether the end of the server is logged.
    logs: bool,
    name: Arc<str>,
    inbox: Inbox,
    input: I,
    lines: LineDecoder,
    longest: usize,
    /// The memory for a message that came in part.
    room: BufferReservation<Hold>,
    /// What was read before.
    unread: Vec<u8>,
}

/// Says for whom memory is held.
type Hold = Box<dyn FnOnce() -> Reservation + Send>;

fn hold(budget: Budget, name: Arc<str>) -> Hold {
    Box::new(move || budget.reserve_for(&*name))
}

impl<I: Source> Reader<I> {
    async fn run(mut self, exited: Option<impl Future<Output = Exit>>) {
        let Some(exited) = exited else {
            self.read_on().await;
            let detail = format!("`{}` closed the connection", self.name);
            return self.inbox.ended(unavailable_fault(&self.name, detail, "upstream_ended"));
        };
        let mut exited = std::pin::pin!(exited);
        let exit = tokio::select! {
            biased;
            () = self.read_on() => timeout(APART, exited).await.ok(),
            exit = &mut exited => {
                // What it said before its end may still be in the pipe. Others may hold that open.
                let _ = timeout(APART, self.read_on()).await;
                Some(exit)
            }
        };
        let stopped = || {
            let detail = format!("`{}` closed its output", self.name);
            unavailable_fault(&self.name, detail, "upstream_ended")
        };
        let mut fault = exit.map_or_else(stopped, |exit| exit.fault(&self.name));
        if let Some(tail) = &self.tail {
            tail.wait_complete(LAST_WORDS).await;
            // For whoever runs it: a gateway's callers are not told.
            fault.trace = Some(tail.text()).filter(|text| !text.is_empty());
        }
        if self.logs {
            let stderr = fault.trace.as_deref().unwrap_or_default();
            tracing::warn!(upstream = %self.name, stderr, "{}", fault.detail);
        }
        self.inbox.ended(fault);
    }

    /// Reads to the end. A last line without its end may be half a message, and is dropped.
    async fn read_on(&mut self) {
        let mut chunk = std::mem::take(&mut self.unread);
        chunk.chunks(CHUNK).for_each(|part| self.take(part));
        chunk.clear();
        chunk.reserve(CHUNK);
        while let Ok(1..) = read(&mut self.input, &mut chunk).await {
            self.take(&chunk);
            chunk.clear();
        }
    }

    /// Holds memory for a message that came in part, of which there is more now. Without memory no more of it is
    /// buffered. Says why a message is dropped that has to be.
    fn make_room(&mut self, more: usize) -> DropReason {
        let buffered = self.lines.buffered_bytes();
        let needed = if buffered == 0 { 0 } else { buffered + more };
        let limit = match self.room.resize_to(needed) {
            Ok(()) => self.longest,
            Err(BudgetExhausted) => buffered.max(CHUNK).min(self.longest),
        };
        self.lines.set_limit(limit);
        if limit < self.longest { DropReason::NoMemory } else { DropReason::TooLong }
    }

    /// Hands on the messages that end in these bytes.
    fn take(&mut self, mut rest: &[u8]) {
        let why = self.make_room(rest.len());
        while let Some(line) = self.lines.next(&mut rest) {
            match line {
                FramedLine::Complete(line) if line.len() < LARGE => self.inbox.received(line, None),
                FramedLine::Complete(_) => {
                    if let Some(line) = self.lines.take_line() {
                        self.inbox.received_large(line, None);
                    }
                }
                FramedLine::TooLong(start) => {
                    if why == DropReason::NoMemory {
                        tracing::warn!(upstream = %self.name, "there is no memory left for a message; it is dropped");
                    }
                    self.inbox.dropped(start, why);
                }
                FramedLine::TooLongEnd(end) => self.inbox.dropped_end(end),
            }
        }
    }
}

async fn read(input: &mut impl Source, chunk: &mut Vec<u8>) -> io::Result<usize> {
    input.read(chunk, CHUNK).await
}
