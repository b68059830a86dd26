//! The pauses between attempts to connect.

use std::time::Duration;

use crate::random::random_bytes;

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Pauses that double, each between half and all of its length, so that processes do not connect in step.
#[derive(Debug)]
pub(super) struct ReconnectPause(Duration);

impl Default for ReconnectPause {
    fn default() -> Self {
        Self(SHORTEST)
    }
}

impl ReconnectPause {
    /// Waits before the next attempt.
    pub(super) async fn wait(&mut self) {
        let pause = self.next_pause();
        tokio::time::sleep(pause).await;
    }

    fn next_pause(&mut self) -> Duration {
        let length = self.0;
        self.0 = (length * 2).min(LONGEST);
        let share = random_bytes::<1>().map_or(255, |[byte]| u32::from(byte));
        length / 2 + length / 2 * share / 255
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit() {
        let mut pauses = ReconnectPause::default();
        for round in 0..10u32 {
            let length = (SHORTEST * 2u32.pow(round)).min(LONGEST);
            let pause = pauses.next_pause();
            assert!(pause >= length / 2 && pause <= length, "round {round}: {pause:?}");
        }
    }
}
