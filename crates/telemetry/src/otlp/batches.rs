//! The task that exports queued items in batches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::backoff::Backoff;
use super::client::{Accepted, SendError, SendRequest};
use super::queue::QueueReceiver;
use super::settings::{BatchSettings, Signal};

/// Makes messages of queued items.
pub(super) trait MakeMessages: Send {
    /// What calls queue.
    type Item: Send;
    /// A span or a log record.
    type Message: Send;

    /// Makes the messages of an item.
    fn messages(&mut self, item: Self::Item, into: &mut Vec<Self::Message>);

    /// Makes the request with these messages.
    fn request(&mut self, messages: Vec<Self::Message>) -> Vec<u8>;
}

/// Counts and logs what happens to requests.
pub(super) struct ExportReport {
    signal: Signal,
    count: Arc<dyn Fn(ReportedCount) + Send + Sync>,
    /// Whether the last request failed. Only changes are logged.
    is_failing: bool,
}

/// A number for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedCount {
    /// One request, with this outcome.
    Export(Signal, &'static str),
    /// Items that were not exported.
    Dropped(Signal, u64),
}

impl ExportReport {
    pub(super) fn new(signal: Signal, count: Arc<dyn Fn(ReportedCount) + Send + Sync>) -> Self {
        Self { signal, count, is_failing: false }
    }

    /// Counts items that were not exported.
    pub(super) fn dropped(&self, number: u64) {
        if number > 0 {
            (self.count)(ReportedCount::Dropped(self.signal, number));
        }
    }

    /// Records the end of a request.
    pub(super) fn ended(&mut self, sent: &Result<Accepted, SendError>) {
        let signal = self.signal.name();
        let outcome = match sent {
            Ok(Accepted { rejected: None }) => "success",
            Ok(Accepted { rejected: Some((number, reason)) }) => {
                self.dropped(*number);
                tracing::warn!(
                    signal,
                    number,
                    reason,
                    "the collector rejected a part of an export"
                );
                "partial"
            }
            Err(SendError::Retry(reason, _)) if !self.is_failing => {
                tracing::warn!(signal, reason, "cannot export telemetry; trying again");
                "retry"
            }
            Err(SendError::Retry(..)) => "retry",
            Err(SendError::Refused(reason)) => {
                if !self.is_failing {
                    tracing::warn!(signal, reason, "the collector refused an export");
                }
                "refused"
            }
        };
        (self.count)(ReportedCount::Export(self.signal, outcome));
        if self.is_failing && sent.is_ok() {
            tracing::info!(signal, "telemetry is exported again");
        }
        self.is_failing = sent.is_err();
    }
}

/// Exports the items of a queue until the signal to stop, and then what is left.
pub(super) struct BatchExport<M: MakeMessages> {
    pub(super) queue: QueueReceiver<M::Item>,
    pub(super) maker: M,
    pub(super) client: Arc<dyn SendRequest>,
    pub(super) settings: BatchSettings,
    pub(super) report: ExportReport,
    /// Becomes true when the process ends.
    pub(super) stop: watch::Receiver<bool>,
}

impl<M: MakeMessages> BatchExport<M> {
    /// Runs until the signal to stop.
    pub(super) async fn run(mut self) {
        let mut messages = Vec::new();
        loop {
            let is_stopping = self.wait_for_items().await;
            loop {
                self.report.dropped(self.queue.take_dropped());
                while messages.len() < self.settings.max_batch
                    && let Some(item) = self.queue.next()
                {
                    self.maker.messages(item, &mut messages);
                }
                if messages.is_empty() {
                    break;
                }
                let rest = messages.split_off(messages.len().min(self.settings.max_batch));
                let batch = std::mem::replace(&mut messages, rest);
                self.export(batch).await;
            }
            if is_stopping {
                return;
            }
        }
    }

    /// Waits for a batch, or for items that have waited long enough. Returns whether the process ends.
    async fn wait_for_items(&mut self) -> bool {
        let mut stop = self.stop.clone();
        let waiting = async {
            self.queue.wait_for_first().await;
            tokio::select! {
                () = self.queue.wait_for_batch() => {}
                () = sleep(self.settings.delay) => {}
            }
        };
        tokio::select! {
            () = waiting => false,
            _ = stop.wait_for(|stops| *stops) => true,
        }
    }

    /// Sends one batch, as often as it takes. When the process ends, it is sent once more.
    async fn export(&mut self, batch: Vec<M::Message>) {
        let number = batch.len() as u64;
        let request = self.maker.request(batch);
        let mut backoff = Backoff::default();
        loop {
            let is_last = *self.stop.borrow();
            let sent = self.client.send(request.clone()).await;
            self.report.ended(&sent);
            match sent {
                Ok(_) => return,
                Err(SendError::Refused(_)) => return self.report.dropped(number),
                Err(SendError::Retry(..)) if is_last => return self.report.dropped(number),
                Err(SendError::Retry(_, after)) => self.pause(backoff.next_wait(after)).await,
            }
            // The queue is full while the collector is dead, and that is seen before its return.
            self.report.dropped(self.queue.take_dropped());
        }
    }

    /// Waits before a request is repeated, or until the process ends.
    async fn pause(&mut self, wait: Duration) {
        let stopping = self.stop.wait_for(|stops| *stops);
        tokio::select! {
            () = sleep(wait) => {}
            // Also if the owner is gone.
            _ = stopping => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use creole_test_wait::delay;
    use tokio::time::Instant;

    use super::super::client::Sending;
    use super::super::queue::queue;
    use super::*;

    /// Each item has two messages; a request has one byte for each.
    struct Pairs;

    impl MakeMessages for Pairs {
        type Item = u8;
        type Message = u8;

        fn messages(&mut self, item: u8, into: &mut Vec<u8>) {
            into.extend([item, item]);
        }

        fn request(&mut self, messages: Vec<u8>) -> Vec<u8> {
            messages
        }
    }

    /// Answers requests from a list, then accepts them.
    #[derive(Default)]
    struct Scripted {
        answers: Mutex<Vec<Result<Accepted, SendError>>>,
        requests: Mutex<Vec<(Duration, Vec<u8>)>>,
        started: Option<Instant>,
    }

    impl SendRequest for Scripted {
        fn send(&self, message: Vec<u8>) -> Sending<'_> {
            let at = self.started.unwrap().elapsed();
            self.requests.lock().unwrap().push((at, message));
            let mut answers = self.answers.lock().unwrap();
            let answer =
                if answers.is_empty() { Ok(Accepted::default()) } else { answers.remove(0) };
            Box::pin(async move { answer })
        }
    }

    type Counts = Arc<Mutex<Vec<ReportedCount>>>;

    struct Stage {
        queue: super::super::queue::QueueSender<u8>,
        scripted: Arc<Scripted>,
        counts: Counts,
        stop: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
    }

    impl Stage {
        fn new(max_queue: usize, answers: Vec<Result<Accepted, SendError>>) -> Self {
            let settings = BatchSettings { max_queue, max_batch: 4, delay: Duration::from_secs(5) };
            let (sender, receiver) = queue(max_queue, 4);
            let scripted = Arc::new(Scripted {
                answers: Mutex::new(answers),
                started: Some(Instant::now()),
                ..Scripted::default()
            });
            let (stop, stopping) = watch::channel(false);
            let counts = Counts::default();
            let into = Arc::clone(&counts);
            let export = BatchExport {
                queue: receiver,
                maker: Pairs,
                client: Arc::clone(&scripted) as Arc<dyn SendRequest>,
                settings,
                report: ExportReport::new(
                    Signal::Traces,
                    Arc::new(move |count| into.lock().unwrap().push(count)),
                ),
                stop: stopping,
            };
            let task = tokio::spawn(export.run());
            Self { queue: sender, scripted, counts, stop, task }
        }

        fn requests(&self) -> Vec<(u64, Vec<u8>)> {
            let requests = self.scripted.requests.lock().unwrap();
            requests.iter().map(|(at, sent)| (at.as_secs(), sent.clone())).collect()
        }

        fn dropped(&self) -> u64 {
            let counts = self.counts.lock().unwrap();
            counts
                .iter()
                .map(|count| match count {
                    ReportedCount::Dropped(_, number) => *number,
                    ReportedCount::Export(..) => 0,
                })
                .sum()
        }

        fn outcomes(&self) -> Vec<&'static str> {
            let counts = self.counts.lock().unwrap();
            let outcome = |count: &ReportedCount| match count {
                ReportedCount::Export(_, outcome) => Some(*outcome),
                ReportedCount::Dropped(..) => None,
            };
            counts.iter().filter_map(outcome).collect()
        }
    }

    fn busy(after: Option<u64>) -> Result<Accepted, SendError> {
        Err(SendError::Retry("busy".to_owned(), after.map(Duration::from_secs)))
    }

    #[tokio::test(start_paused = true)]
    async fn items_wait_for_others_and_a_whole_batch_goes_at_once() {
        let stage = Stage::new(100, Vec::new());
        stage.queue.push(1, 2);
        delay(Duration::from_secs(6)).await;
        assert_eq!(stage.requests(), [(5, vec![1, 1])]);
        for item in 2..=4 {
            stage.queue.push(item, 2);
        }
        delay(Duration::from_secs(1)).await;
        assert_eq!(stage.requests()[1..], [(6, vec![2, 2, 3, 3]), (6, vec![4, 4])]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_comes_back_gets_the_batch_after_the_demanded_wait() {
        let stage = Stage::new(100, vec![busy(Some(7)), busy(None)]);
        stage.queue.push(1, 2);
        delay(Duration::from_secs(60)).await;
        let times: Vec<u64> = stage.requests().iter().map(|(at, _)| *at).collect();
        assert_eq!(times.len(), 3);
        assert!((12..=15).contains(&times[1]), "{times:?}");
        assert!(times[2] - times[1] <= 3, "{times:?}");
        assert_eq!(stage.outcomes(), ["retry", "retry", "success"]);
        assert_eq!(stage.dropped(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_dead_collector_leaves_is_dropped_and_counted_exactly() {
        let stage = Stage::new(8, (0..10).map(|_| busy(None)).collect());
        let mut taken = 0;
        for second in 0..60 {
            taken += u64::from(stage.queue.push(second, 2)) * 2;
            delay(Duration::from_secs(1)).await;
        }
        assert!(stage.dropped() > 0, "they are counted while the collector is dead");
        delay(Duration::from_secs(300)).await;
        let sent: usize = stage.requests()[10..].iter().map(|(_, batch)| batch.len()).sum();
        assert_eq!(sent as u64, taken);
        stage.queue.push(1, 2);
        delay(Duration::from_secs(6)).await;
        assert_eq!(stage.dropped(), 120 - taken);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_batch_and_rejected_items_are_counted_and_not_sent_again() {
        let partial = Accepted { rejected: Some((1, "bad".to_owned())) };
        let refused = Err(SendError::Refused("no".to_owned()));
        let stage = Stage::new(100, vec![Ok(partial), refused]);
        stage.queue.push(1, 2);
        delay(Duration::from_secs(6)).await;
        stage.queue.push(2, 2);
        delay(Duration::from_secs(60)).await;
        assert_eq!(stage.requests().len(), 2);
        assert_eq!((stage.dropped(), stage.outcomes()), (3, vec!["partial", "refused"]));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_process_sends_what_waits_once() {
        let stage = Stage::new(100, Vec::new());
        for item in 1..=3 {
            stage.queue.push(item, 2);
        }
        stage.stop.send_replace(true);
        stage.task.await.unwrap();
        let sent: Vec<u8> =
            stage.scripted.requests.lock().unwrap().iter().flat_map(|(_, it)| it.clone()).collect();
        assert_eq!(sent, [1, 1, 2, 2, 3, 3]);

        let stage = Stage::new(100, (0..10).map(|_| busy(None)).collect());
        stage.queue.push(1, 2);
        delay(Duration::from_millis(5500)).await;
        stage.stop.send_replace(true);
        assert!(!stage.task.is_finished());
        delay(Duration::from_millis(1)).await;
        assert!(stage.task.is_finished());
        assert_eq!((stage.requests().len(), stage.dropped()), (2, 2));
    }
}
