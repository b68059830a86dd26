//! Limits the wrong tokens of one network. Tokens cannot be guessed; this limits the work that wrong ones cause.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::Mutex;

/// The number of wrong tokens of a network within [`PERIOD`]. After them, tokens that are not cached wait.
const MAX_WRONG: u32 = 100;

/// The time in which wrong tokens are counted.
const PERIOD: Duration = Duration::from_secs(60);

/// The maximum number of networks that are counted.
const MAX_NETWORKS: usize = 20_000;

/// Counts wrong tokens by network.
#[derive(Debug, Default)]
pub(super) struct TokenThrottle {
    networks: Mutex<HashMap<[u8; 16], (u32, Instant)>>,
}

impl TokenThrottle {
    /// How long a network must wait.
    pub(super) fn wait(&self, peer: Option<IpAddr>) -> Option<Duration> {
        let networks = self.networks.lock();
        let (count, since) = networks.get(&network(peer))?;
        let rest = PERIOD.checked_sub(since.elapsed()).filter(|rest| !rest.is_zero())?;
        (*count >= MAX_WRONG).then_some(rest)
    }

    /// Counts a wrong token.
    pub(super) fn count(&self, peer: Option<IpAddr>) {
        let (now, network) = (Instant::now(), network(peer));
        let mut networks = self.networks.lock();
        if networks.len() >= MAX_NETWORKS && !networks.contains_key(&network) {
            networks.retain(|_, (_, since)| now.duration_since(*since) < PERIOD);
        }
        if networks.len() >= MAX_NETWORKS && !networks.contains_key(&network) {
            // Those that are not throttled make room: they only begin to be counted again.
            networks.retain(|_, (count, _)| *count >= MAX_WRONG);
            if networks.len() >= MAX_NETWORKS {
                return;
            }
        }
        let (count, since) = networks.entry(network).or_insert((0, now));
        if now.duration_since(*since) >= PERIOD {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
    }
}

/// The network of an address: the first 24 bits of IPv4, the first 56 bits of IPv6.
fn network(peer: Option<IpAddr>) -> [u8; 16] {
    match peer.map(|address| address.to_canonical()) {
        None => [0; 16],
        Some(IpAddr::V4(address)) => {
            let mut octets = address.to_ipv6_mapped().octets();
            octets[15] = 0;
            octets
        }
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d & 0xff00, 0, 0, 0, 0).octets()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_waits_after_a_hundred_wrong_tokens() {
        let throttle = TokenThrottle::default();
        for number in 0..MAX_WRONG {
            assert_eq!(throttle.wait(peer("192.0.2.1")), None, "{number}");
            throttle.count(peer("192.0.2.1"));
        }
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(throttle.wait(peer("192.0.2.99")), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(peer("::ffff:192.0.2.5")), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(peer("192.0.3.1")), None);
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(throttle.wait(peer("192.0.2.1")), None);
    }

    #[test]
    fn a_network_has_24_bits_or_56() {
        assert_eq!(network(peer("2001:db8:1:2ff::1")), network(peer("2001:db8:1:200::9")));
        assert_ne!(network(peer("2001:db8:1:200::1")), network(peer("2001:db8:1:300::1")));
        assert_ne!(network(peer("192.0.2.1")), network(peer("192.0.3.1")));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_networks_is_limited() {
        let throttle = TokenThrottle::default();
        for number in 0..u32::try_from(2 * MAX_NETWORKS).unwrap() {
            throttle.count(Some(IpAddr::V4((number << 8).into())));
        }
        assert!(throttle.networks.lock().len() <= MAX_NETWORKS);
    }
}
