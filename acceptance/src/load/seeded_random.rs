//! A random number generator with a seed, so that runs are reproducible.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// A random number generator (SplitMix64), sufficient for delays and for nonces without an attacker.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The seed in the variable `LOAD_SEED`, or a new one. A test prints it.
    #[must_use]
    pub fn seed() -> u64 {
        let given = std::env::var("LOAD_SEED").ok().and_then(|seed| seed.parse().ok());
        given.unwrap_or_else(|| RandomState::new().hash_one("seed"))
    }

    /// A separate generator for each client.
    #[must_use]
    pub fn new(seed: u64, client: usize) -> Self {
        let mut random = Self(seed ^ (client as u64).wrapping_mul(0xd129_0d3a_42c1_9b2f));
        random.number();
        random
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// A random duration of up to this many milliseconds.
    pub fn milliseconds(&mut self, max: u64) -> Duration {
        Duration::from_micros(self.below(max * 1000 + 1))
    }

    /// Thirty-two digits that no other call has.
    pub fn nonce(&mut self) -> String {
        format!("{:016x}{:016x}", self.number(), self.number())
    }
}
