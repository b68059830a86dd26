//! Tests of ten thousand clients that only listen, and of a change that is announced to all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use creole_acceptance::load::{Client, Era, HttpLimitSettings, HttpServer, Pool, Stream};
use creole_test_wait::delay;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{MEBIBYTE, PATIENCE, affordable, turn};

/// The wanted number of streams.
const STREAMS: u64 = 10_000;

/// The number of streams that are opened concurrently.
const AT_ONCE: usize = 32;

/// The maximum memory of a server with that many streams.
const MOST_MEMORY: u64 = 200 * MEBIBYTE;

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_get_streams_all_receive_a_change_once() {
    assert_all_are_told(Era::Legacy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_subscriptions_all_receive_a_change_once() {
    assert_all_are_told(Era::Modern).await;
}

async fn assert_all_are_told(era: Era) {
    let _turn = turn().await;
    let count = affordable(STREAMS);
    let server = HttpServer::start(HttpLimitSettings {
        connections: Some(2 * STREAMS),
        sessions: Some(2 * STREAMS),
        ..HttpLimitSettings::default()
    });
    let pool = Arc::new(Pool::new(server.address(), AT_ONCE));
    let canary = Client::connect(&pool, Era::Modern).await.unwrap();
    let before = server.weight();

    let started = Instant::now();
    let streams = open(&pool, era, count).await;
    let opened = started.elapsed();
    let idle = server.weight();
    delay(Duration::from_secs(1)).await;
    let processor = server.weight().processor.saturating_sub(idle.processor);
    println!(
        "{count} streams ({era:?}) opened in {:.1} s: {} MiB, {} bytes each; {processor:?} of \
         processor time in one idle second",
        opened.as_secs_f64(),
        idle.memory / MEBIBYTE,
        idle.memory.saturating_sub(before.memory) / count,
    );
    assert!(idle.memory < MOST_MEMORY, "{idle:?}");

    let mut receiver = listen(era, streams);
    for round in 1..=2 {
        change(&canary, count, &mut receiver, round).await;
    }
    // A duplicate notification would have arrived by the end of the second round.
    assert!(receiver.try_recv().is_err(), "a stream got a notification twice");
    let after = server.weight();
    println!("afterwards {} MiB, at most {} MiB", after.memory / MEBIBYTE, after.peak / MEBIBYTE);
    assert!(after.peak < MOST_MEMORY, "{after:?}");
}

/// Opens streams, a limited number at a time.
async fn open(pool: &Arc<Pool>, era: Era, count: u64) -> Vec<Stream> {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (pool, permits) = (Arc::clone(pool), Arc::clone(&permits));
        tasks.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            let client = Client::connect(&pool, era).await?;
            let mut stream = client.listen(&subscription(number)).await?;
            if era == Era::Modern {
                let first = timeout(PATIENCE, stream.next())
                    .await
                    .map_err(|elapsed| elapsed.to_string())?;
                assert_acknowledged(number, first?.as_ref());
            }
            Ok::<_, String>((number, stream))
        });
    }
    let mut streams = Vec::new();
    while let Some(opened) = tasks.join_next().await {
        streams.push(opened.unwrap().unwrap());
    }
    streams.sort_by_key(|(number, _)| *number);
    streams.into_iter().map(|(_, stream)| stream).collect()
}

/// The id of a subscription.
fn subscription(number: u64) -> Value {
    json!(format!("listener {number}"))
}

#[track_caller]
fn assert_acknowledged(number: u64, message: Option<&Value>) {
    let message = message.expect("an acknowledgement");
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    assert_eq!(subscription_of(message), subscription(number), "{message}");
    assert_eq!(message["params"]["notifications"]["toolsListChanged"], true, "{message}");
}

fn subscription_of(message: &Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
}

/// Reads every stream and reports each change notification. Any other message fails the test.
fn listen(era: Era, streams: Vec<Stream>) -> mpsc::UnboundedReceiver<Result<u64, String>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for (number, mut stream) in (0..).zip(streams) {
        let sender = sender.clone();
        tokio::spawn(async move {
            loop {
                let heard = match stream.next().await {
                    Ok(Some(message)) => checked(era, number, &message),
                    Ok(None) => Err(format!("stream {number} was ended")),
                    Err(problem) => Err(format!("stream {number}: {problem}")),
                };
                let is_over = heard.is_err();
                if sender.send(heard).is_err() || is_over {
                    return;
                }
            }
        });
    }
    receiver
}

fn checked(era: Era, number: u64, message: &Value) -> Result<u64, String> {
    let is_own = era == Era::Legacy || subscription_of(message) == subscription(number);
    if message["method"] == CHANGED && is_own {
        return Ok(number);
    }
    Err(format!("stream {number} got {message}"))
}

/// Changes the list of tools and waits until every stream got the notification exactly once.
async fn change(
    canary: &Client,
    count: u64,
    receiver: &mut mpsc::UnboundedReceiver<Result<u64, String>>,
    round: usize,
) {
    let started = Instant::now();
    let answer = canary.call(&json!(1), "test_trigger_tool_change", &json!({})).await.unwrap();
    assert!(answer[0]["result"]["content"].is_array(), "{answer:?}");
    let answered = started.elapsed();
    let mut seen = vec![false; usize::try_from(count).unwrap()];
    for already in 0..count {
        let heard = timeout(PATIENCE, receiver.recv()).await;
        let heard = heard
            .unwrap_or_else(|_| panic!("only {already} of {count} streams got the notification"));
        let number = usize::try_from(heard.expect("listeners").unwrap()).unwrap();
        assert!(
            !std::mem::replace(&mut seen[number], true),
            "stream {number} got a notification twice"
        );
    }
    println!(
        "change {round}: answered after {answered:.1?}, all told after {:.1?}",
        started.elapsed()
    );
}
