//! When a server is called once more, and when it has asked enough.

use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use tokio::time::{Instant, sleep};

use super::MOST_ROUNDS;
use crate::call::Context;

/// How long to wait before a server that asks nothing is called again; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The same while somebody is busy with a page: people take longer than servers.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_LOOK: Duration = Duration::from_secs(15);

/// The rounds of one call.
pub(super) struct Pace {
    left: usize,
    pause: Duration,
    look: Duration,
    /// How long a person may take for what was asked.
    patience: Duration,
    answered: Instant,
}

impl Pace {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            left: MOST_ROUNDS,
            pause: FIRST_PAUSE,
            look: FIRST_LOOK,
            patience,
            answered: Instant::now(),
        }
    }

    /// Whether the server may be called once more.
    pub(super) fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// Somebody answered what is new in this round.
    pub(super) fn answered(&mut self) {
        self.left -= 1;
        self.look = FIRST_LOOK;
        self.answered = Instant::now();
    }

    /// A server that asks nothing only wants to be called again later.
    pub(super) async fn rest(&mut self) {
        self.left -= 1;
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// A server that asks for nothing but pages that somebody was sent to waits as we do: these rounds are not
    /// counted, a person has as long for the page as for any other question.
    pub(super) async fn look_again(&mut self, context: &Context) -> Result<(), Fault> {
        if Instant::now() + self.look > self.answered + self.patience {
            let detail = format!("a page was not done with in {} s", self.patience.as_secs());
            return Err(Fault::new(FaultKind::InputRefused, detail));
        }
        // The call is not stuck. A value that is no increase is told to nobody.
        context.progress(f64::NEG_INFINITY, None, None).await;
        sleep(self.look).await;
        self.look = (self.look * 2).min(LONGEST_LOOK);
        Ok(())
    }
}
