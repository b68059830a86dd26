//! Many attempts at once, and many one after another.

use super::*;

/// Sends these headers concurrently; the responses come in any order.
async fn run_concurrently(
    authenticator: &Authenticator,
    headers: impl Iterator<Item = (HeaderValue, Option<IpAddr>)>,
) -> JoinSet<AuthDecision> {
    let mut sent = JoinSet::new();
    for (header, from) in headers {
        let authenticator = authenticator.clone();
        sent.spawn(async move { authenticator.authenticate(Some(&header), from).await });
    }
    tokio::task::yield_now().await;
    sent
}

async fn statuses(mut sent: JoinSet<AuthDecision>) -> Vec<u16> {
    let mut statuses = Vec::new();
    while let Some(decision) = sent.join_next().await {
        statuses.push(challenge_of(decision.unwrap()).status.as_u16());
    }
    statuses.sort_unstable();
    statuses
}

fn counted(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|each| **each == status).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_parallel_attempts_run_few_hashes_at_a_time_and_all_get_an_answer() {
    let fixture = AuthFixture::new();
    let settings = AuthSettings { users: Some(fixture.users()), ..AuthSettings::default() };
    let authenticator = fixture.open_with(settings, 2, 64).unwrap();
    fixture.work.close(true);
    let headers = (0..500).map(|number| (basic(&format!("user{number}"), "wrong"), peer(number)));
    let mut sent = run_concurrently(&authenticator, headers).await;
    // While no check ends, all attempts except the running and the waiting ones get 503.
    for _ in 0..434 {
        let challenge = challenge_of(sent.join_next().await.unwrap().unwrap());
        assert_eq!(challenge.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(challenge.headers[RETRY_AFTER], "1");
    }
    fixture.work.close(false);
    assert_eq!(statuses(sent).await, [401; 66]);
    assert_eq!((fixture.work.total(), fixture.work.most.load(SeqCst)), (66, 2));
    granted(authenticator.authenticate(Some(&basic("alice", "sesame")), peer(501)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_guesses_at_one_account_are_limited_before_they_are_checked() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    fixture.work.close(true);
    let headers = (0..500).map(|number| (basic("alice", &format!("guess{number}")), peer(1)));
    let mut sent = run_concurrently(&authenticator, headers).await;
    for _ in 0..495 {
        let challenge = challenge_of(sent.join_next().await.unwrap().unwrap());
        assert_eq!(challenge.status, StatusCode::TOO_MANY_REQUESTS);
    }
    fixture.work.close(false);
    assert_eq!(statuses(sent).await, [401; 5]);
    assert_eq!(fixture.work.total(), 5);
}

#[tokio::test]
async fn the_same_attempt_many_times_at_once_is_checked_once() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    fixture.work.close(true);
    let right =
        run_concurrently(&authenticator, (0..300).map(|_| (basic("alice", "sesame"), peer(1))))
            .await;
    let wrong =
        run_concurrently(&authenticator, (0..300).map(|_| (basic("bob", "no"), peer(1)))).await;
    while authenticator.shared.credentials.load().password_checks.waiting_count() < 600
        || fixture.work.total() < 2
    {
        tokio::task::yield_now().await;
    }
    fixture.work.close(false);
    for decision in right.join_all().await {
        granted(decision);
    }
    assert_eq!(statuses(wrong).await, [401; 300]);
    assert_eq!(fixture.work.total(), 2);
}

#[tokio::test]
async fn a_caller_that_disconnects_leaves_the_check_to_the_next() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    fixture.work.close(true);
    let mut first =
        run_concurrently(&authenticator, std::iter::once((basic("alice", "sesame"), None))).await;
    while fixture.work.total() == 0 {
        tokio::task::yield_now().await;
    }
    let second =
        run_concurrently(&authenticator, std::iter::once((basic("alice", "sesame"), None))).await;
    while authenticator.shared.credentials.load().password_checks.waiting_count() < 2 {
        tokio::task::yield_now().await;
    }
    first.abort_all();
    assert!(first.join_next().await.unwrap().unwrap_err().is_cancelled());
    fixture.work.close(false);
    granted(second.join_all().await.remove(0));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_guesses_in_a_minute_check_only_a_few() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let mut answers = Vec::new();
    for number in 0..1000 {
        let header = basic("alice", &format!("guess{number}"));
        let challenge = challenge_of(authenticator.authenticate(Some(&header), peer(1)).await);
        let is_told_when = challenge.headers.contains_key(RETRY_AFTER);
        assert_eq!(is_told_when, challenge.status == StatusCode::TOO_MANY_REQUESTS);
        answers.push(challenge.status.as_u16());
        tokio::time::advance(Duration::from_millis(60)).await;
    }
    // Five are free; then one each after 1, 2, 4, 8, 16 and 32 seconds, the last beyond the minute.
    assert_eq!((fixture.work.total(), counted(&answers, 401)), (10, 10));
    assert_eq!(counted(&answers, 429), 990);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_account_is_held_up_like_a_known_one() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let mut answers: Vec<Vec<Challenge>> = Vec::new();
    for name in ["alice", "mallory"] {
        let mut told = Vec::new();
        for number in 0..20 {
            let header = basic(name, &format!("guess{number}"));
            told.push(challenge_of(authenticator.authenticate(Some(&header), peer(1)).await));
        }
        answers.push(told);
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_caller_cannot_continue_guessing_while_the_owner_is_active() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let right = basic("alice", "sesame");
    granted(authenticator.authenticate(Some(&right), peer(1)).await);
    for number in 0..6 {
        let header = basic("alice", &format!("guess{number}"));
        challenge_of(authenticator.authenticate(Some(&header), peer(1)).await);
        challenge_of(authenticator.authenticate(Some(&header), peer(2)).await);
    }
    for from in [1, 2] {
        let held_up = challenge_of(authenticator.authenticate(Some(&right), peer(from)).await);
        assert_eq!(held_up.status, StatusCode::TOO_MANY_REQUESTS, "{from}");
    }
    granted(authenticator.authenticate(Some(&right), peer(3)).await);
    tokio::time::advance(Duration::from_secs(1)).await;
    granted(authenticator.authenticate(Some(&right), peer(1)).await);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_tries_many_accounts_is_throttled_but_its_known_users_are_not() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let right = basic("alice", "sesame");
    granted(authenticator.authenticate(Some(&right), peer(1)).await);
    let mut answers = Vec::new();
    for number in 0..60 {
        let header = basic(&format!("user{number}"), "password");
        let challenge = challenge_of(authenticator.authenticate(Some(&header), peer(1)).await);
        answers.push(challenge.status.as_u16());
    }
    assert_eq!((counted(&answers, 401), counted(&answers, 429)), (50, 10));
    granted(authenticator.authenticate(Some(&right), peer(1)).await);
}

#[tokio::test(start_paused = true)]
async fn wrong_keys_are_throttled_and_a_valid_one_never_is() {
    let fixture = AuthFixture::new();
    let key = NewKey::random();
    let keys = vec![BearerKey::new("ci", &key.sha256, &[], None).unwrap()];
    let settings = AuthSettings { users: Some(fixture.users()), keys, ..AuthSettings::default() };
    let authenticator = fixture.open(settings).unwrap();
    let mut answers = Vec::new();
    for number in 0..30 {
        let header = HeaderValue::try_from(format!("Bearer guess{number}")).unwrap();
        let challenge = challenge_of(authenticator.authenticate(Some(&header), peer(1)).await);
        answers.push(challenge.status.as_u16());
    }
    assert_eq!((counted(&answers, 401), counted(&answers, 429)), (20, 10));
    granted(authenticator.authenticate(Some(&bearer(&key.key)), peer(1)).await);
    granted(authenticator.authenticate(Some(&basic("alice", "sesame")), peer(1)).await);
}
