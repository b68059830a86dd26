//! Limits the rounds of a multi-round-trip request: decides when a server is called again, and when it has requested
//! enough input.

use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use tokio::time::{Instant, sleep};

use super::MAX_ROUNDS;
use crate::call::Context;

/// The pause before a server that requests no input is called again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The same during a URL elicitation: users take longer than servers.
const FIRST_URL_POLL: Duration = Duration::from_secs(1);
const MAX_URL_POLL: Duration = Duration::from_secs(15);

/// The rounds of one call.
pub(super) struct RoundLimit {
    rounds_left: usize,
    pause: Duration,
    url_poll: Duration,
    /// How long a user may take for an input request.
    input_timeout: Duration,
    last_input_at: Instant,
}

impl RoundLimit {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            rounds_left: MAX_ROUNDS,
            pause: FIRST_PAUSE,
            url_poll: FIRST_URL_POLL,
            input_timeout: timeout,
            last_input_at: Instant::now(),
        }
    }

    /// Whether the server may be called again.
    pub(super) fn has_rounds_left(&self) -> bool {
        self.rounds_left > 0
    }

    /// The new input requests of this round have their responses.
    pub(super) fn record_input(&mut self) {
        self.rounds_left -= 1;
        self.url_poll = FIRST_URL_POLL;
        self.last_input_at = Instant::now();
    }

    /// A server that requests no input only wants a retry later.
    pub(super) async fn wait_before_retry(&mut self) {
        self.rounds_left -= 1;
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }

    /// A server that only requests URL elicitations that were accepted waits as we do: these rounds are not counted,
    /// and a user has as long for the URL as for any other input request.
    pub(super) async fn wait_before_url_poll(&mut self, context: &Context) -> Result<(), Fault> {
        if Instant::now() + self.url_poll > self.last_input_at + self.input_timeout {
            let detail = format!(
                "the URL elicitation was not completed within {} s",
                self.input_timeout.as_secs()
            );
            return Err(Fault::new(FaultKind::InputRefused, detail));
        }
        // Shows that the call is not stuck. A value that is no increase is not sent to the client.
        context.progress(f64::NEG_INFINITY, None, None).await;
        sleep(self.url_poll).await;
        self.url_poll = (self.url_poll * 2).min(MAX_URL_POLL);
        Ok(())
    }
}
