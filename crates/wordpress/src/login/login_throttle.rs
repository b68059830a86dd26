//! The login throttle: counts wrong passwords per client address. The site cannot do that, because all requests reach
//! it from this server.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of wrong passwords per address within the window.
const MAX_FAILURES: u32 = 20;
/// The window.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses that are remembered.
const MAX_ADDRESSES: usize = 4096;

/// The number of wrong passwords per address, and the start of its window.
#[derive(Debug, Default)]
pub(crate) struct LoginThrottle(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl LoginThrottle {
    /// The time until an address may try another password.
    pub(crate) fn retry_delay(&self, address: IpAddr) -> Option<Duration> {
        let counted = self.0.lock();
        let (since, count) = counted.get(&throttle_key(address))?;
        let remaining =
            WINDOW.checked_sub(since.elapsed()).filter(|remaining| !remaining.is_zero());
        remaining.filter(|_| *count >= MAX_FAILURES)
    }

    /// Records a wrong password.
    pub(crate) fn record_failure(&self, address: IpAddr) {
        let mut counted = self.0.lock();
        if counted.len() >= MAX_ADDRESSES {
            counted.retain(|_, (since, _)| since.elapsed() < WINDOW);
        }
        if counted.len() >= MAX_ADDRESSES {
            // Counting does not stop an attacker with this many addresses.
            counted.clear();
        }
        let entry = counted.entry(throttle_key(address)).or_insert((Instant::now(), 0));
        if entry.0.elapsed() >= WINDOW {
            *entry = (Instant::now(), 0);
        }
        entry.1 += 1;
    }
}

/// The key of an address. An IPv6 client controls all addresses with the same first half.
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
    async fn a_guessing_caller_waits_and_others_do_not() {
        let throttle = LoginThrottle::default();
        let (guesser, sibling): (IpAddr, IpAddr) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::ffff".parse().unwrap());
        let other: IpAddr = "192.0.2.1".parse().unwrap();
        for _ in 0..MAX_FAILURES {
            assert_eq!(throttle.retry_delay(guesser), None);
            throttle.record_failure(guesser);
        }
        assert_eq!(throttle.retry_delay(sibling), Some(WINDOW));
        assert_eq!(throttle.retry_delay(other), None);
        tokio::time::advance(WINDOW).await;
        assert_eq!(throttle.retry_delay(guesser), None);
        throttle.record_failure(guesser);
        assert_eq!(throttle.retry_delay(guesser), None);
    }
}
