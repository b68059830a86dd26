//! Tests of sessions that no client ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use creole_acceptance::load::{
    Client, Era, History, HttpLimitSettings, HttpServer, Pool, Requests, SeededRandom,
};
use creole_test_wait::{delay, eventually_async};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{MEBIBYTE, turn};

/// The number of sessions that are opened concurrently.
const AT_ONCE: usize = 16;

/// Tries to open this many sessions. Returns the ids of the opened ones, and the errors.
async fn open(pool: &Arc<Pool>, count: usize) -> (Vec<String>, Vec<String>) {
    let mut tasks = JoinSet::new();
    for worker in 0..AT_ONCE {
        let pool = Arc::clone(pool);
        tasks.spawn(async move {
            let requests = Requests::new(pool.server(), Era::Legacy);
            let (mut opened, mut refused) = (Vec::new(), Vec::new());
            for _ in (worker..count).step_by(AT_ONCE) {
                match Client::open_session(&pool, &requests).await.expect("an answer") {
                    Ok(session) => opened.push(session),
                    Err(refusal) => refused.push(refusal),
                }
            }
            (opened, refused)
        });
    }
    let (mut opened, mut refused) = (Vec::new(), Vec::new());
    while let Some(ended) = tasks.join_next().await {
        let (more, others) = ended.unwrap();
        opened.extend(more);
        refused.extend(others);
    }
    (opened, refused)
}

/// Fails unless there was an error and each error says that the server is full.
#[track_caller]
fn assert_full(refused: &[String]) {
    let others: Vec<&String> =
        refused.iter().filter(|refusal| !refusal.starts_with("status 503")).collect();
    assert!(others.is_empty(), "other errors than a full server: {others:?}");
    assert!(!refused.is_empty(), "no session was rejected");
}

/// Fails unless a client without a session is served.
async fn assert_others_are_served(pool: &Arc<Pool>) {
    let client = Client::connect(pool, Era::Modern).await.unwrap();
    let mut history = History::default();
    history.add([client.echo(0, 1, SeededRandom::new(SeededRandom::seed(), 0).nonce()).await]);
    history.assert_right(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_sessions_fit_and_the_next_is_refused_until_one_ends() {
    const MOST: usize = 10_000;
    const MOST_MEMORY: u64 = 200 * MEBIBYTE;
    let _turn = turn().await;
    let server = HttpServer::start(HttpLimitSettings {
        sessions: Some(MOST as u64),
        session_timeout_seconds: Some(3600),
        ..HttpLimitSettings::default()
    });
    let pool = Arc::new(Pool::new(server.address(), AT_ONCE));
    assert_others_are_served(&pool).await;
    let before = server.weight();
    let started = Instant::now();
    let (opened, refused) = open(&pool, MOST).await;
    let after = server.weight();
    println!(
        "{} sessions in {:.1} s: {} MiB, {} bytes each",
        opened.len(),
        started.elapsed().as_secs_f64(),
        after.memory / MEBIBYTE,
        after.memory.saturating_sub(before.memory) / MOST as u64,
    );
    assert_eq!((opened.len(), refused.first()), (MOST, None));
    assert!(after.peak < MOST_MEMORY, "{after:?}");

    let (more, refused) = open(&pool, 100).await;
    assert_eq!(more, Vec::<String>::new(), "more sessions than allowed");
    assert_full(&refused);
    assert_others_are_served(&pool).await;

    let session = opened[0].clone();
    let requests = Requests::new(server.address(), Era::Legacy).in_session(session);
    let ended = pool.exchange(&requests.delete()).await.unwrap();
    assert!((200..300).contains(&ended.head.status), "{:?}", ended.head);
    let (more, _) = open(&pool, 1).await;
    assert_eq!(more.len(), 1, "an ended session frees its slot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_sessions_expire_and_make_room() {
    const MOST: usize = 200;
    const ROUNDS: usize = 3;
    let _turn = turn().await;
    let server = HttpServer::start(HttpLimitSettings {
        sessions: Some(MOST as u64),
        session_timeout_seconds: Some(3),
        ..HttpLimitSettings::default()
    });
    let pool = Arc::new(Pool::new(server.address(), AT_ONCE));
    let mut weights = Vec::new();
    for round in 1..=ROUNDS {
        let (opened, _) = open(&pool, MOST).await;
        let (_, refused) = open(&pool, MOST).await;
        assert_full(&refused);
        assert_others_are_served(&pool).await;
        let waited = wait_for_room(&pool).await;
        println!(
            "round {round}: {} opened, {} refused, room after {waited:.1?}",
            opened.len(),
            refused.len()
        );
        let gone = opened.last().expect("a session").clone();
        assert_forgotten(&pool, gone).await;
        weights.push(server.weight());
        // Longer than the session timeout, so that all sessions expire.
        delay(Duration::from_secs(4)).await;
    }
    let growth = weights[ROUNDS - 1].memory.saturating_sub(weights[0].memory);
    assert!(growth < 16 * MEBIBYTE, "memory grows with expired sessions: {weights:?}");
}

/// Tries until a session can be opened, and returns how long that took.
async fn wait_for_room(pool: &Arc<Pool>) -> Duration {
    let started = Instant::now();
    eventually_async("a session expires", async || {
        let (opened, refused) = open(pool, 1).await;
        if opened.is_empty() {
            assert_full(&refused);
        }
        !opened.is_empty()
    })
    .await;
    started.elapsed()
}

/// Waits until a session has expired, and asserts that its client gets 404.
async fn assert_forgotten(pool: &Arc<Pool>, session: String) {
    // A request would extend the session, so none is sent for longer than its timeout.
    delay(Duration::from_secs(5)).await;
    let requests = Requests::new(pool.server(), Era::Legacy).in_session(session);
    let call = requests.call(&json!(1), "echo", &json!({"message": "anyone?"}));
    let answer = pool.exchange(&call).await.unwrap();
    assert_eq!(answer.head.status, 404, "{:?}", answer.head);
}
