//! Throttles failed logins: a few attempts are free, further ones are increasingly slow.
//!
//! Failed attempts are counted by account and address, and by address alone. An attempt counts from its start, so that
//! many concurrent ones are not all free. Whether an account exists makes no difference. Replicas may count together.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::Digest;
use super::attempt_outbox::{AttemptOutbox, AttemptResult};

/// Maximum number of tracked subjects.
const MAX_SUBJECTS: usize = 20_000;
/// After this time without a failed attempt, the earlier ones are forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(1800);

/// The number of free failed attempts, and the maximum wait after more.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThrottleRule {
    free_attempts: u32,
    max_delay: Duration,
}

/// One account, from one address.
pub(super) const ACCOUNT: ThrottleRule =
    ThrottleRule { free_attempts: 5, max_delay: Duration::from_secs(900) };
/// Passwords from one address, for any account: many users may share it.
pub(super) const ADDRESS: ThrottleRule =
    ThrottleRule { free_attempts: 50, max_delay: Duration::from_secs(300) };
/// Keys from one address. They cannot be guessed: this slows down a program with an old key.
pub(super) const KEYS: ThrottleRule =
    ThrottleRule { free_attempts: 20, max_delay: Duration::from_secs(60) };

/// Tracks failed attempts.
#[derive(Debug, Default)]
pub(super) struct LoginThrottle {
    table: Mutex<HashMap<Digest, FailedAttempts>>,
    /// The results for other replicas, if there may be some.
    outbox: OnceLock<Arc<AttemptOutbox>>,
}

#[derive(Clone, Copy, Debug)]
struct FailedAttempts {
    failures: u32,
    /// Attempts that are being verified.
    pending: u32,
    last_attempt: Instant,
    blocked_until: Instant,
}

impl LoginThrottle {
    /// How long this subject must still wait.
    pub(super) fn wait(&self, subject: &Digest) -> Option<Duration> {
        let now = Instant::now();
        self.table().get(subject).and_then(|attempts| attempts.wait(now))
    }

    /// Starts an attempt on an account from an address, or returns how long to wait.
    pub(super) fn begin(
        self: &Arc<Self>,
        account: Digest,
        address: Digest,
    ) -> Result<Attempt, Duration> {
        let now = Instant::now();
        let subjects = [(account, ACCOUNT), (address, ADDRESS)];
        let mut table = self.table();
        for (subject, rule) in &subjects {
            if let Some(attempts) = table.get(subject) {
                attempts.admit(*rule, now)?;
            }
        }
        for (subject, _) in subjects {
            entry(&mut table, subject, now).pending += 1;
        }
        drop(table);
        Ok(Attempt { limiter: Arc::clone(self), account, address, is_open: true })
    }

    /// Counts a wrong key from an address, or returns how long to wait.
    pub(super) fn record_wrong_key(&self, subject: Digest) -> Result<(), Duration> {
        let now = Instant::now();
        let mut table = self.table();
        let attempts = entry(&mut table, subject, now);
        if let Some(wait) = attempts.wait(now) {
            return Err(wait);
        }
        attempts.fail(KEYS, now);
        drop(table);
        self.tell(AttemptResult::KeyFailed, subject);
        Ok(())
    }

    /// Counts the results that another replica announced.
    pub(super) fn apply(&self, result: AttemptResult, subject: Digest) {
        let now = Instant::now();
        let mut table = self.table();
        let rule = match result {
            AttemptResult::AccountFailed => ACCOUNT,
            AttemptResult::AddressFailed => ADDRESS,
            AttemptResult::KeyFailed => KEYS,
            AttemptResult::AccountReset => {
                if let Some(attempts) = table.get_mut(&subject) {
                    attempts.failures = 0;
                }
                return;
            }
        };
        entry(&mut table, subject, now).fail(rule, now);
    }

    /// Tells other replicas from now on what is counted.
    pub(super) fn share(&self) -> Arc<AttemptOutbox> {
        Arc::clone(self.outbox.get_or_init(Arc::default))
    }

    fn tell(&self, result: AttemptResult, subject: Digest) {
        if let Some(outbox) = self.outbox.get() {
            outbox.push(result, subject);
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Digest, FailedAttempts>> {
        self.table.lock()
    }
}

#[cfg(test)]
impl LoginThrottle {
    /// The number of failures of a subject.
    pub(super) fn failures(&self, subject: &Digest) -> u32 {
        self.table().get(subject).map_or(0, |attempts| attempts.failures)
    }

    /// Whether the results are announced to other replicas.
    pub(super) fn is_shared(&self) -> bool {
        self.outbox.get().is_some()
    }
}

/// An attempt that is being verified. One that is dropped counts as failed: disconnecting does not make it free.
#[derive(Debug)]
pub(super) struct Attempt {
    limiter: Arc<LoginThrottle>,
    account: Digest,
    address: Digest,
    is_open: bool,
}

impl Attempt {
    /// The attempt succeeded: the account is reset. The address is not, or one valid account would erase the attempts
    /// on others.
    pub(super) fn succeed(mut self) {
        self.is_open = false;
        let mut table = self.limiter.table();
        let mut had_failed = false;
        finish_attempt(&mut table, &self.account, |attempts| {
            had_failed = std::mem::take(&mut attempts.failures) > 0;
        });
        finish_attempt(&mut table, &self.address, |_| ());
        drop(table);
        if had_failed {
            self.limiter.tell(AttemptResult::AccountReset, self.account);
        }
    }

    /// The attempt failed.
    pub(super) fn fail(self) {
        drop(self);
    }

    /// The attempt was not verified.
    pub(super) fn cancel(mut self) {
        self.is_open = false;
        let mut table = self.limiter.table();
        finish_attempt(&mut table, &self.account, |_| ());
        finish_attempt(&mut table, &self.address, |_| ());
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.is_open {
            let now = Instant::now();
            let mut table = self.limiter.table();
            finish_attempt(&mut table, &self.account, |attempts| attempts.fail(ACCOUNT, now));
            finish_attempt(&mut table, &self.address, |attempts| attempts.fail(ADDRESS, now));
            drop(table);
            self.limiter.tell(AttemptResult::AccountFailed, self.account);
            self.limiter.tell(AttemptResult::AddressFailed, self.address);
        }
    }
}

/// Ends an attempt; a subject without failures is not tracked.
fn finish_attempt(
    table: &mut HashMap<Digest, FailedAttempts>,
    subject: &Digest,
    change: impl FnOnce(&mut FailedAttempts),
) {
    if let Some(attempts) = table.get_mut(subject) {
        attempts.pending = attempts.pending.saturating_sub(1);
        change(attempts);
        if attempts.failures == 0 && attempts.pending == 0 {
            table.remove(subject);
        }
    }
}

fn entry(
    table: &mut HashMap<Digest, FailedAttempts>,
    subject: Digest,
    now: Instant,
) -> &mut FailedAttempts {
    if table.len() >= MAX_SUBJECTS && !table.contains_key(&subject) {
        evict(table, now);
    }
    let fresh = FailedAttempts { failures: 0, pending: 0, last_attempt: now, blocked_until: now };
    let attempts = table.entry(subject).or_insert(fresh);
    if attempts.is_expired(now) {
        attempts.failures = 0;
    }
    attempts
}

/// Removes forgotten subjects; if that is not enough, the half with the fewest failures.
fn evict(table: &mut HashMap<Digest, FailedAttempts>, now: Instant) {
    table.retain(|_, attempts| attempts.pending > 0 || !attempts.is_expired(now));
    if table.len() < MAX_SUBJECTS {
        return;
    }
    let mut ranks: Vec<_> = table
        .iter()
        .map(|(subject, failed_attempts)| {
            (failed_attempts.failures, failed_attempts.last_attempt, *subject)
        })
        .collect();
    let half = ranks.len() / 2;
    let (least, ..) = ranks.select_nth_unstable(half);
    for (.., subject) in least {
        table.remove(subject);
    }
}

impl FailedAttempts {
    fn is_expired(&self, now: Instant) -> bool {
        now.duration_since(self.last_attempt) >= FORGET_AFTER
    }

    fn wait(&self, now: Instant) -> Option<Duration> {
        Some(self.blocked_until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Whether another attempt is allowed: beyond the free ones, one at a time.
    fn admit(&self, rule: ThrottleRule, now: Instant) -> Result<(), Duration> {
        let failures = if self.is_expired(now) { 0 } else { self.failures };
        match self.wait(now) {
            Some(wait) => Err(wait),
            None if self.pending > 0 && failures + self.pending >= rule.free_attempts => {
                Err(Duration::from_secs(1))
            }
            None => Ok(()),
        }
    }

    /// The first failure beyond the free ones costs a second, each further one twice as long.
    fn fail(&mut self, rule: ThrottleRule, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last_attempt = now;
        if let Some(beyond) = self.failures.checked_sub(rule.free_attempts) {
            let wait = Duration::from_secs(1 << beyond.min(20));
            self.blocked_until = now + wait.min(rule.max_delay);
        }
    }
}

/// The part of an address that one party owns: for IPv6 the first 64 bits, because the owner of one such address has
/// them all.
pub(crate) fn network_prefix(peer: Option<IpAddr>) -> [u8; 16] {
    match peer.map(|address| address.to_canonical()) {
        None => [0; 16],
        Some(IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).octets()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Digest = [1; 32];
    const BOB: Digest = [2; 32];
    const HERE: Digest = [3; 32];
    const THERE: Digest = [4; 32];

    fn limiter() -> Arc<LoginThrottle> {
        Arc::default()
    }

    fn fail(
        limiter: &Arc<LoginThrottle>,
        account: Digest,
        address: Digest,
    ) -> Result<(), Duration> {
        limiter.begin(account, address).map(Attempt::fail)
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_free_attempts_each_wait_is_twice_the_last_up_to_a_limit() {
        let limiter = limiter();
        for _ in 0..ACCOUNT.free_attempts {
            fail(&limiter, ALICE, HERE).unwrap();
        }
        for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
            let wait = Duration::from_secs(expected);
            assert_eq!(fail(&limiter, ALICE, HERE), Err(wait));
            assert_eq!(limiter.wait(&ALICE), Some(wait));
            pass(expected).await;
            assert_eq!(limiter.wait(&ALICE), None);
            fail(&limiter, ALICE, HERE).unwrap();
        }
        fail(&limiter, BOB, HERE).expect("another account is free");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_limited_whatever_the_account() {
        let limiter = limiter();
        for number in 0..ADDRESS.free_attempts {
            let mut account = [0; 32];
            account[..4].copy_from_slice(&number.to_be_bytes());
            account[31] = 9;
            fail(&limiter, account, HERE).unwrap();
        }
        assert_eq!(fail(&limiter, ALICE, HERE), Err(Duration::from_secs(1)));
        fail(&limiter, ALICE, THERE).expect("another address is free");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_at_the_same_moment_are_not_all_free() {
        let limiter = limiter();
        let begun: Vec<_> = (0..100).filter_map(|_| limiter.begin(ALICE, HERE).ok()).collect();
        assert_eq!(begun.len(), 5);
        begun.into_iter().for_each(Attempt::cancel);
        assert!(limiter.table().is_empty(), "an unchecked attempt is not recorded");
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_attempt_frees_the_account_and_not_the_address() {
        let limiter = limiter();
        for _ in 0..4 {
            fail(&limiter, ALICE, HERE).unwrap();
        }
        limiter.begin(ALICE, HERE).unwrap().succeed();
        assert!(!limiter.table().contains_key(&ALICE));
        assert_eq!(limiter.table()[&HERE].failures, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_attempt_counts_as_failed() {
        let limiter = limiter();
        for _ in 0..5 {
            drop(limiter.begin(ALICE, HERE).unwrap());
        }
        assert!(limiter.begin(ALICE, HERE).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn failed_attempts_are_forgotten_in_time() {
        let limiter = limiter();
        for _ in 0..5 {
            fail(&limiter, ALICE, HERE).unwrap();
        }
        pass(FORGET_AFTER.as_secs()).await;
        for _ in 0..5 {
            fail(&limiter, ALICE, HERE).unwrap();
        }
        assert!(fail(&limiter, ALICE, HERE).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded_and_keeps_the_most_frequent_failures() {
        let limiter = limiter();
        for _ in 0..7 {
            let _ = fail(&limiter, ALICE, HERE);
            pass(4).await;
        }
        for number in 0_u32..100_000 {
            let mut subject = [7; 32];
            subject[..4].copy_from_slice(&number.to_be_bytes());
            limiter.record_wrong_key(subject).unwrap();
        }
        let table = limiter.table();
        assert!(table.len() <= MAX_SUBJECTS && table.contains_key(&ALICE), "{}", table.len());
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| network_prefix(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
