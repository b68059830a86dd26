//! The turn of the worker that serves the input of a connection, and the watch over its polls.
//!
//! One worker at a time serves the input, so messages are served in order. It polls a new call without the lock. A handler
//! that computes keeps it there, and the input would wait. So the background worker looks at every [`LOOK_INTERVAL`] while
//! calls are made. It ends the turn of a worker that is in the same poll as before, and another worker serves the input.

use std::time::Duration;

use tokio::time::Instant;

/// How often the background worker looks. A handler that computes holds the input up for at most twice this time.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of workers that compute after their turn was ended. With more, the input waits for one of them.
pub(crate) const MAX_REPLACED: usize = 16;

/// The turn of the worker that serves the input.
#[derive(Debug, Default)]
pub(crate) struct ServingTurn {
    /// Whether a worker that computes can be replaced.
    is_watched: bool,
    /// The number of the latest turn.
    number: u64,
    /// Whether its worker still serves.
    is_taken: bool,
    /// Whether its worker is in the code of a handler.
    is_polling: bool,
    /// The number of polls so far.
    polls: u64,
    /// Workers that are in the code of a handler although their turn was ended.
    replaced: usize,
    watch: PollWatch,
}

/// How the background worker watches polls.
#[derive(Debug, Default)]
enum PollWatch {
    /// It does not.
    #[default]
    Off,
    /// It was woken to start.
    Requested,
    /// It looks at this time whether more polls than these were made.
    At(Instant, u64),
}

impl ServingTurn {
    pub(crate) fn new(is_watched: bool) -> Self {
        Self { is_watched, ..Self::default() }
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Begins a turn; returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.is_taken = true;
        self.number += 1;
        self.number
    }

    /// Ends the turn of this number. Returns whether it had not been ended before.
    pub(crate) fn end(&mut self, number: u64) -> bool {
        match self.is_current(number) {
            true => self.is_taken = false,
            false => self.replaced -= 1,
        }
        self.is_current(number)
    }

    pub(crate) fn is_current(&self, number: u64) -> bool {
        self.number == number
    }

    /// A call is about to be polled. Returns whether the background worker must be woken to watch it.
    pub(crate) fn begin_poll(&mut self, number: u64) -> bool {
        if !self.is_current(number) {
            return false;
        }
        self.polls += 1;
        self.is_polling = true;
        let is_new = self.is_watched && matches!(self.watch, PollWatch::Off);
        if is_new {
            self.watch = PollWatch::Requested;
        }
        is_new
    }

    pub(crate) fn end_poll(&mut self, number: u64) {
        if self.is_current(number) {
            self.is_polling = false;
        }
    }

    /// When the background worker looks next.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        match self.watch {
            PollWatch::At(time, _) => Some(time),
            PollWatch::Off | PollWatch::Requested => None,
        }
    }

    /// Looks, if it is time. Returns whether the worker has been in one poll since the last look.
    pub(crate) fn look(&mut self) -> bool {
        let seen = match self.watch {
            PollWatch::Off => return false,
            PollWatch::Requested => None,
            PollWatch::At(time, _) if time > Instant::now() => return false,
            PollWatch::At(_, seen) => Some(seen),
        };
        let is_same = seen == Some(self.polls);
        self.watch = match is_same && !self.is_polling {
            true => PollWatch::Off,
            false => PollWatch::At(Instant::now() + LOOK_INTERVAL, self.polls),
        };
        is_same && self.is_polling
    }

    /// Whether the turn of another worker may be ended.
    pub(crate) fn may_replace(&self) -> bool {
        self.replaced < MAX_REPLACED
    }

    /// Ends the turn of a worker that is in a poll.
    pub(crate) fn replace(&mut self) {
        self.number += 1;
        self.replaced += 1;
        self.is_taken = false;
        self.is_polling = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_long_poll_is_reported_and_no_poll_ends_the_watch() {
        let mut turn = ServingTurn::new(true);
        let number = turn.begin();
        assert!(turn.begin_poll(number), "the first poll asks for a watch");
        assert!(!turn.look(), "the watch starts");
        turn.end_poll(number);
        assert!(!turn.begin_poll(number), "the watch is on");
        tokio::time::advance(LOOK_INTERVAL).await;
        assert!(!turn.look(), "this is another poll");
        tokio::time::advance(LOOK_INTERVAL / 2).await;
        assert!(!turn.look(), "it is too early");
        tokio::time::advance(LOOK_INTERVAL).await;
        assert!(turn.look());
        turn.replace();
        turn.end_poll(number);
        assert!(!turn.end(number), "the worker learns that its turn was ended");
        tokio::time::advance(LOOK_INTERVAL).await;
        assert!(!turn.look());
        assert_eq!(turn.next_look(), None, "nothing is polled and nothing is watched");
    }

    #[test]
    fn the_number_of_replaced_workers_is_bounded() {
        let mut turn = ServingTurn::default();
        let mut numbers = Vec::new();
        while turn.may_replace() {
            numbers.push(turn.begin());
            turn.replace();
        }
        assert_eq!(numbers.len(), MAX_REPLACED);
        assert!(!turn.end(numbers[0]));
        assert!(turn.may_replace(), "one of them has ended");
    }
}
