//! Wrong passwords, counted by where they come from: the site sees them all come from here, and cannot.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many wrong passwords one address may try.
const MAX_FAILURES: u32 = 20;
/// In this time.
const WINDOW: Duration = Duration::from_secs(60);
/// How many addresses are remembered.
const MAX_ADDRESSES: usize = 4096;

/// How many wrong passwords came from where, and since when.
#[derive(Debug, Default)]
pub(super) struct LoginThrottle(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl LoginThrottle {
    /// How long somebody from there has to wait before another password is tried.
    pub(super) fn retry_delay(&self, address: IpAddr) -> Option<Duration> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = counted.get(&throttle_key(address))?;
        let left = WINDOW.checked_sub(since.elapsed()).filter(|left| !left.is_zero());
        left.filter(|_| *count >= MAX_FAILURES)
    }

    /// Counts a wrong password.
    pub(super) fn record_failure(&self, address: IpAddr) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= MAX_ADDRESSES {
            counted.retain(|_, (since, _)| since.elapsed() < WINDOW);
        }
        if counted.len() >= MAX_ADDRESSES {
            // Whoever has that many addresses is not stopped by counting them.
            counted.clear();
        }
        let entry = counted.entry(throttle_key(address)).or_insert((Instant::now(), 0));
        if entry.0.elapsed() >= WINDOW {
            *entry = (Instant::now(), 0);
        }
        entry.1 += 1;
    }
}

/// Whose address it is: of IPv6, somebody has all with the same first half.
fn throttle_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let half = u128::from(address) >> 64 << 64;
            IpAddr::V6(half.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_guesses_waits_and_others_do_not() {
        let strikes = LoginThrottle::default();
        let (guesser, sibling): (IpAddr, IpAddr) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::ffff".parse().unwrap());
        let other: IpAddr = "192.0.2.1".parse().unwrap();
        for _ in 0..MAX_FAILURES {
            assert_eq!(strikes.retry_delay(guesser), None);
            strikes.record_failure(guesser);
        }
        assert_eq!(strikes.retry_delay(sibling), Some(WINDOW));
        assert_eq!(strikes.retry_delay(other), None);
        tokio::time::advance(WINDOW).await;
        assert_eq!(strikes.retry_delay(guesser), None);
        strikes.record_failure(guesser);
        assert_eq!(strikes.retry_delay(guesser), None);
    }
}
