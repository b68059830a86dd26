//! Failed logins of replicas, counted together: each announces the failures that it counted, and counts those of others.
//!
//! An announcement is a message, at most one per second, and a login waits for none. While the state fails, and for what
//! more failures happen than a message has room for, each replica counts alone.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::attempt_outbox::AttemptResult;
use super::fingerprints::Fingerprints;
use super::login_throttle::LoginThrottle;
use super::{Digest, random};
use crate::state::{Result, State, Subscription, TopicEvent};

/// The topic of the announcements.
const TOPIC: &str = "auth/attempts";

/// Where the key of the fingerprints in announcements is.
const KEY: &str = "auth/attempts-key";

/// The time between two announcements, and between two attempts to reach the state.
const INTERVAL: Duration = Duration::from_secs(1);

/// Counts together with the replicas that share this state, until the throttle is dropped. Must be called within a tokio
/// runtime.
pub(super) fn start(
    throttle: &Arc<LoginThrottle>,
    fingerprints: &Arc<Fingerprints>,
    state: &State,
) {
    let (throttle, fingerprints) = (Arc::downgrade(throttle), Arc::clone(fingerprints));
    tokio::spawn(run(throttle, fingerprints, state.clone()));
}

async fn run(throttle: Weak<LoginThrottle>, fingerprints: Arc<Fingerprints>, state: State) {
    let origin = random();
    let mut subscription = loop {
        if let Ok(subscription) = join(&fingerprints, &state).await {
            break subscription;
        }
        sleep(INTERVAL).await;
    };
    let Some(outbox) = throttle.upgrade().map(|throttle| throttle.share()) else { return };
    let mut next_announcement = Instant::now();
    loop {
        let event = tokio::select! {
            event = subscription.next() => event,
            results = outbox.take(next_announcement) => {
                // Without the state, each replica counts alone.
                _ = state.publish(TOPIC, encode(&origin, &results).into()).await;
                next_announcement = Instant::now() + INTERVAL;
                continue;
            }
        };
        let (Some(event), Some(throttle)) = (event, throttle.upgrade()) else { return };
        if let TopicEvent::Message(message) = event {
            for (result, subject) in decode(&origin, &message) {
                throttle.apply(result, subject);
            }
        }
    }
}

/// Takes over the key that all replicas have, and subscribes to their announcements.
async fn join(fingerprints: &Fingerprints, state: &State) -> Result<Subscription> {
    let own = random();
    let is_own = state.swap(KEY, None, own.to_vec().into(), None).await?.is_some();
    let stored = if is_own { None } else { state.get(KEY).await? };
    let stored = stored.and_then(|entry| Digest::try_from(&*entry.value).ok());
    fingerprints.share_subjects(stored.unwrap_or(own));
    state.subscribe(TOPIC).await
}

fn encode(origin: &Digest, results: &[(AttemptResult, Digest)]) -> Vec<u8> {
    let mut message = origin.to_vec();
    for (result, subject) in results {
        message.push(result.code());
        message.extend_from_slice(subject);
    }
    message
}

/// The results in an announcement of another replica.
fn decode(own: &Digest, message: &[u8]) -> Vec<(AttemptResult, Digest)> {
    let Some((origin, results)) = message.split_first_chunk::<32>() else { return Vec::new() };
    if origin == own {
        return Vec::new();
    }
    let result = |chunk: &[u8]| {
        let (code, subject) = chunk.split_first()?;
        Some((AttemptResult::from_code(*code)?, Digest::try_from(subject).ok()?))
    };
    results.chunks(33).filter_map(result).collect()
}

#[cfg(test)]
mod tests {
    use creole_test_wait::{eventually, never_within};

    use super::*;
    use crate::auth::attempt_outbox::MAX_RESULTS;
    use crate::auth::login_throttle::Attempt;

    const ADDRESS: Digest = [3; 32];

    /// The throttles of two replicas on one state.
    async fn two(state: &State) -> [Arc<LoginThrottle>; 2] {
        let throttles = [Arc::default(), Arc::default()];
        let fingerprints = [Arc::new(Fingerprints::new()), Arc::new(Fingerprints::new())];
        for (throttle, fingerprints) in throttles.iter().zip(&fingerprints) {
            start(throttle, fingerprints, state);
        }
        let subject = |index: usize| fingerprints[index].of_subject(b"account", &[b"ann"]);
        assert_ne!(subject(0), subject(1));
        eventually("a shared key", || subject(0) == subject(1)).await;
        eventually("both listen", || throttles.iter().all(|throttle| throttle.is_shared())).await;
        throttles
    }

    fn fail(throttle: &Arc<LoginThrottle>, account: Digest) {
        throttle.begin(account, ADDRESS).unwrap().fail();
    }

    #[tokio::test(start_paused = true)]
    async fn failures_at_replicas_count_together_and_a_right_password_resets_all() {
        let [one, other] = two(&State::default()).await;
        let (ann, bob) = ([1; 32], [2; 32]);
        for _ in 0..3 {
            fail(&one, ann);
        }
        eventually("the other counts them", || other.failures(&ann) == 3).await;
        for _ in 0..2 {
            fail(&other, ann);
        }
        eventually("both throttle", || one.wait(&ann).is_some() && other.wait(&ann).is_some())
            .await;
        assert!(one.wait(&bob).is_none() && other.wait(&bob).is_none());
        fail(&one, bob);
        eventually("the other counts it", || other.failures(&bob) == 1).await;
        one.begin(bob, ADDRESS).map(Attempt::succeed).unwrap();
        eventually("the other resets it", || other.failures(&bob) == 0).await;
        assert_eq!((one.failures(&ADDRESS), other.failures(&ADDRESS)), (6, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_makes_one_operation_a_second_and_success_makes_none() {
        let state = State::default();
        let [one, other] = two(&state).await;
        let mut messages = state.subscribe(TOPIC).await.unwrap();
        one.begin([1; 32], ADDRESS).map(Attempt::succeed).unwrap();
        never_within(5 * INTERVAL, "a message", || !one.share().is_empty()).await;
        for number in 0_u32..10_000 {
            let mut subject = [7; 32];
            subject[..4].copy_from_slice(&number.to_be_bytes());
            _ = one.record_wrong_key(subject);
        }
        eventually("the results are announced", || one.share().is_empty()).await;
        let Some(TopicEvent::Message(message)) = messages.next().await else { panic!() };
        assert_eq!(message.len(), 32 + 33 * MAX_RESULTS);
        let mut last = [7; 32];
        last[..4].copy_from_slice(&1023_u32.to_be_bytes());
        eventually("the other counts them", || other.failures(&last) == 1).await;
    }
}
