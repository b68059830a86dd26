//! Finds out whether a client that has closed its side of a connection still reads.
//!
//! The end of what a client sends looks the same whether it waits for its answer or is gone. Only something that is
//! written to it tells: the system of a client that is gone refuses it, and the next write fails.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long nothing is written at first: most answers are there by then.
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// How long after each other something is written: twice soon, since the first write is never refused.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(15),
];

/// Says when to write something.
#[derive(Debug)]
pub(crate) struct HalfCloseProber {
    timer: Pin<Box<Sleep>>,
    written: usize,
}

impl HalfCloseProber {
    /// The first time is soon.
    pub(crate) fn new() -> Self {
        Self { timer: Box::pin(sleep_until(Instant::now() + FIRST_DELAY)), written: 0 }
    }

    /// Ready when something is to be written.
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
        let begun = Instant::now();
        let mut prober = HalfCloseProber::new();
        let mut times = Vec::new();
        for _ in 0..7 {
            poll_fn(|context| prober.poll_due(context)).await;
            times.push(begun.elapsed().as_millis());
        }
        assert_eq!(times, [50, 70, 170, 670, 2670, 17_670, 32_670]);
    }
}
