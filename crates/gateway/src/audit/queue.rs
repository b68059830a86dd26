//! The queue of an audit log and the thread that writes its lines.
//!
//! Calls never wait for the thread, unless the log is required. Lines that cannot be queued or written are counted. The
//! count is written as a line as soon as lines can be written again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use creole::internal::sync::Mutex;
use creole::internal::telemetry::metrics::{Counter, Metrics, OwnedSeries, table};
use tokio::sync::oneshot;

use crate::audit::hash_chain::ChainHash;
use crate::audit::line;
use crate::audit::sink::{Sink, SinkLine};

/// The kind of the layer.
pub(crate) const KIND: &str = "audit";

/// The capacity of the queue in lines and in bytes.
const MAX_LINES: usize = 4096;
const MAX_BYTES: usize = 16 << 20;

/// How often a lost line is tried to be reported, how often a failure is logged, and how often the newest hash is logged.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// The pause before a flush is queued again.
const FLUSH_PAUSE: Duration = Duration::from_millis(1);

/// How long a call waits until its line is written, if it must be.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Is told whether a line was written.
type Reply = Option<oneshot::Sender<bool>>;

/// The queues of this process, each with its number.
static QUEUES: Mutex<Vec<(u64, SyncSender<Entry>)>> = Mutex::new(Vec::new());

/// Waits until the lines that are queued now are written, at most this long. At the end of a process, other threads may
/// still hold its layers, which would write their lines too late.
pub fn flush(timeout: Duration) {
    let end = Instant::now() + timeout;
    let queues: Vec<_> = QUEUES.lock().iter().map(|(_, entries)| entries.clone()).collect();
    let (done, replies) = sync_channel(queues.len());
    let is_sent = |entries: &&SyncSender<Entry>| loop {
        match entries.try_send(Entry::Flush(done.clone())) {
            Err(TrySendError::Full(_)) if Instant::now() < end => sleep(FLUSH_PAUSE),
            sent => break sent.is_ok(),
        }
    };
    for _ in 0..queues.iter().filter(is_sent).count() {
        if replies.recv_timeout(end.saturating_duration_since(Instant::now())).is_err() {
            return tracing::error!("the audit log was not written in time");
        }
    }
}

enum Entry {
    Line(SinkLine, Reply),
    /// Write what is queued, and reply.
    Flush(SyncSender<()>),
    /// Write what is queued, and end.
    Stop,
}

/// The metrics of written and lost lines.
pub(crate) struct AuditCounters {
    lines: Counter,
    lost: Counter,
    /// Counts lost lines as decisions of the layer.
    decisions: OwnedSeries,
    /// The server and the upstream that the layer is around; one of them is empty.
    place: [Box<str>; 2],
}

impl AuditCounters {
    /// The metrics of a log around this server, or around this upstream.
    pub(crate) fn new(metrics: &Arc<Metrics>, server: &str, upstream: &str) -> Self {
        Self {
            lines: metrics.counter(&table::AUDIT_LINES, &[]),
            lost: metrics.counter(&table::AUDIT_LOST, &[]),
            decisions: metrics.owned_series(),
            place: [server.into(), upstream.into()],
        }
    }

    fn lose(&self, lines: u64) {
        self.lost.add(lines);
        let [server, upstream] = &self.place;
        self.decisions.add(&table::LAYER_DECISIONS, &[server, upstream, KIND, "lost"], lines);
    }
}

/// The queue of an audit log.
pub(crate) struct LineQueue {
    entries: SyncSender<Entry>,
    shared: Arc<QueueState>,
}

struct QueueState {
    /// The bytes of the queued lines.
    bytes: AtomicUsize,
    /// The lost lines that no line reports yet.
    unreported: AtomicU64,
    counters: AuditCounters,
}

impl QueueState {
    fn lose(&self, lines: u64) {
        self.unreported.fetch_add(lines, Ordering::AcqRel);
        self.counters.lose(lines);
    }
}

impl LineQueue {
    /// Starts the thread that writes the lines.
    pub(crate) fn start(sink: Sink, counters: AuditCounters) -> io::Result<(Self, WriterThread)> {
        let (entries, queued) = sync_channel(MAX_LINES);
        let (bytes, unreported) = (AtomicUsize::new(0), AtomicU64::new(0));
        let shared = Arc::new(QueueState { bytes, unreported, counters });
        let writer = Writer::new(sink, queued, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("creole-audit".to_owned());
        let thread = Some(thread.spawn(move || writer.run())?);
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        QUEUES.lock().push((number, entries.clone()));
        let writer = WriterThread { number, entries: entries.clone(), thread };
        Ok((Self { entries, shared }, writer))
    }

    /// Queues a line, or counts it as lost.
    pub(crate) fn push(&self, text: String, trace: Option<[u8; 16]>) {
        self.send(SinkLine { text: text.into(), trace }, None);
    }

    /// Queues a line and waits until it is written. Returns whether it was.
    pub(crate) async fn hand_over(&self, text: String, trace: Option<[u8; 16]>) -> HandOver {
        let (written, reply) = oneshot::channel();
        self.send(SinkLine { text: text.into(), trace }, Some(written));
        match tokio::time::timeout(HAND_OVER_TIMEOUT, reply).await {
            Ok(Ok(true)) => HandOver::Done,
            Ok(_) => HandOver::Failed,
            Err(_) => HandOver::TimedOut,
        }
    }

    fn send(&self, line: SinkLine, reply: Reply) {
        let length = line.text.len();
        let queued = self.shared.bytes.fetch_add(length, Ordering::AcqRel);
        let is_full = queued + length > MAX_BYTES;
        if is_full || self.entries.try_send(Entry::Line(line, reply)).is_err() {
            self.shared.bytes.fetch_sub(length, Ordering::AcqRel);
            self.shared.lose(1);
        }
    }
}

/// Whether a line was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// It was written.
    Done,
    /// It was not and will not be written.
    Failed,
    /// It may be written later.
    TimedOut,
}

/// The thread that writes the lines. Dropping it waits until all queued lines are written.
pub(crate) struct WriterThread {
    number: u64,
    entries: SyncSender<Entry>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        QUEUES.lock().retain(|(number, _)| *number != self.number);
        // A thread that panicked takes no entries and has nothing more to write.
        if self.entries.send(Entry::Stop).is_ok()
            && let Some(thread) = self.thread.take()
        {
            _ = thread.join();
        }
    }
}

/// Why a batch of lines ends.
enum BatchEnd {
    /// More lines may follow.
    More,
    /// A flush waits for them.
    Flush(SyncSender<()>),
    /// They are the last ones.
    Last,
}

/// Writes the queued lines.
struct Writer {
    sink: Sink,
    queued: Receiver<Entry>,
    shared: Arc<QueueState>,
    /// When the current failure was last logged.
    failure_logged: Option<Instant>,
    /// The hash that was last logged, and when.
    announced: (Option<ChainHash>, Instant),
}

impl Writer {
    fn new(sink: Sink, queued: Receiver<Entry>, shared: Arc<QueueState>) -> Self {
        let announced = (sink.newest_hash(), Instant::now());
        Self { sink, queued, shared, failure_logged: None, announced }
    }

    fn run(mut self) {
        loop {
            let (lines, end) = self.receive();
            self.write(lines);
            self.announce_hash(!matches!(end, BatchEnd::More));
            match end {
                BatchEnd::More => {}
                // A flush that no longer waits needs no reply.
                BatchEnd::Flush(done) => _ = done.try_send(()),
                BatchEnd::Last => return self.report_rest(),
            }
        }
    }

    /// Waits for lines. Returns also why there are no more.
    fn receive(&self) -> (Vec<(SinkLine, Reply)>, BatchEnd) {
        let first = match self.wait_time() {
            None => self.queued.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(time) => self.queued.recv_timeout(time),
        };
        let mut lines = Vec::new();
        let mut next = match first {
            Ok(entry) => Some(entry),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return (lines, BatchEnd::Last),
        };
        while let Some(entry) = next {
            match entry {
                Entry::Line(line, reply) => lines.push((line, reply)),
                Entry::Flush(done) => return (lines, BatchEnd::Flush(done)),
                Entry::Stop => return (lines, BatchEnd::Last),
            }
            next = (lines.len() < MAX_LINES).then(|| self.queued.try_recv().ok()).flatten();
        }
        (lines, BatchEnd::More)
    }

    /// How long to wait for the next line. `None`: until there is one.
    fn wait_time(&self) -> Option<Duration> {
        if self.shared.unreported.load(Ordering::Acquire) > 0 {
            return Some(RETRY_INTERVAL);
        }
        let (announced, at) = self.announced;
        let is_news = self.sink.newest_hash() != announced;
        is_news.then(|| LOG_INTERVAL.saturating_sub(at.elapsed()))
    }

    fn write(&mut self, lines: Vec<(SinkLine, Reply)>) {
        let (mut lines, mut replies): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let bytes = lines.iter().map(|line: &SinkLine| line.text.len()).sum();
        self.shared.bytes.fetch_sub(bytes, Ordering::AcqRel);
        let lost = self.shared.unreported.swap(0, Ordering::AcqRel);
        if lost > 0 {
            lines.insert(0, SinkLine { text: line::gap(lost).into(), trace: None });
            replies.insert(0, None);
        }
        if lines.is_empty() {
            return;
        }
        let (written, result) = self.sink.write(&lines);
        self.shared.counters.lines.add(written as u64);
        // The gap is the first line: what it reports is not reported yet.
        let is_gap_missing = lost > 0 && written == 0;
        if is_gap_missing {
            self.shared.unreported.fetch_add(lost, Ordering::AcqRel);
        }
        let missing = lines.len() - written - usize::from(is_gap_missing);
        if missing > 0 {
            self.shared.lose(missing as u64);
        }
        for (index, reply) in replies.into_iter().enumerate() {
            // A call that no longer waits needs no reply.
            reply.map(|reply| reply.send(index < written));
        }
        match result {
            Err(error) => self.log_failure(&error),
            Ok(()) => self.log_recovery(lost),
        }
    }

    fn log_failure(&mut self, error: &io::Error) {
        if self.failure_logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            self.failure_logged = Some(Instant::now());
            let lost = self.shared.unreported.load(Ordering::Acquire);
            let file = self.sink.name();
            tracing::error!(%file, %error, lost, "cannot write the audit log");
        }
    }

    fn log_recovery(&mut self, lost: u64) {
        if self.failure_logged.take().is_some() {
            let file = self.sink.name();
            tracing::warn!(%file, lost, "the audit log is written again");
        }
    }

    /// Logs the newest hash, so that lines that are removed from the end of the log are missed.
    fn announce_hash(&mut self, is_last: bool) {
        let (announced, at) = self.announced;
        let newest = self.sink.newest_hash();
        if newest != announced && (is_last || at.elapsed() >= LOG_INTERVAL) {
            self.announced = (newest, Instant::now());
            let (file, hash) = (self.sink.name(), newest.map(|hash| hash.to_string()));
            tracing::info!(%file, hash, "newest hash of the audit log");
        }
    }

    /// Logs the lost lines that no line could report.
    fn report_rest(&self) {
        let lost = self.shared.unreported.load(Ordering::Acquire);
        if lost > 0 {
            let file = self.sink.name();
            tracing::error!(%file, lost, "lines of the audit log are lost");
        }
    }
}
