//! Detects whether a client that has closed its sending side still reads.
//!
//! The end of a client's input looks the same whether the client waits for its response or has disconnected. Only a
//! write shows the difference: the system of a client that has disconnected rejects it, and the next write fails.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The delay before the first probe: most responses are ready by then.
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// The pauses between probes: two soon, since the first write never fails.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(15),
];

/// Schedules the probes.
#[derive(Debug)]
pub(crate) struct HalfCloseProber {
    timer: Pin<Box<Sleep>>,
    written: usize,
}

impl HalfCloseProber {
    /// A prober whose first probe is soon.
    pub(crate) fn new() -> Self {
        Self { timer: Box::pin(sleep_until(Instant::now() + FIRST_DELAY)), written: 0 }
    }

    /// Ready when a probe is due.
    pub(crate) fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.as_mut().poll(context));
        let pause = PAUSES[self.written.min(PAUSES.len() - 1)];
        self.written += 1;
        self.timer.as_mut().reset(Instant::now() + pause);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_time_soon_and_then_ever_more_rarely() {
        let started = Instant::now();
        let mut prober = HalfCloseProber::new();
        let mut times = Vec::new();
        for _ in 0..7 {
            poll_fn(|context| prober.poll_due(context)).await;
            times.push(started.elapsed().as_millis());
        }
        assert_eq!(times, [50, 70, 170, 670, 2670, 17_670, 32_670]);
    }
}
