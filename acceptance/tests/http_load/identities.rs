//! Tests that every response reaches its own caller, whatever id the caller used.

use std::time::Instant;

use creole_acceptance::load::{Era, HttpLimitSettings, HttpServer};

use crate::crowd::Crowd;
use crate::{MEBIBYTE, turn};

async fn assert_everybody_is_answered(crowd: Crowd) {
    let _turn = turn().await;
    let server = HttpServer::start(HttpLimitSettings::default());
    let before = server.weight();
    let started = Instant::now();
    let history = crowd.call(server.address()).await;
    let elapsed = started.elapsed();
    let after = server.weight();
    let calls = crowd.clients * crowd.calls;
    println!(
        "{} clients on {} connections: {calls} calls in {:.1} s, {:.0} a second, {} MiB more",
        crowd.clients,
        crowd.connections,
        elapsed.as_secs_f64(),
        f64::from(u32::try_from(calls).unwrap()) / elapsed.as_secs_f64(),
        after.growth_since(before) / MEBIBYTE,
    );
    history.assert_right(calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_clients_of_the_legacy_era_may_all_use_the_id_1() {
    let eras = [Era::Legacy; 2];
    let crowd = Crowd { clients: 12, calls: 100, connections: 12, eras, sleeps: true };
    assert_everybody_is_answered(crowd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_clients_of_the_modern_era_may_all_use_the_id_1() {
    let eras = [Era::Modern; 2];
    let crowd = Crowd { clients: 12, calls: 100, connections: 12, eras, sleeps: true };
    assert_everybody_is_answered(crowd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_clients_than_connections_share_them_without_mixing_anything_up() {
    let crowd = Crowd { clients: 40, calls: 50, connections: 5, eras: Era::ALL, sleeps: true };
    assert_everybody_is_answered(crowd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_of_both_eras_get_200_000_right_answers_to_the_id_1() {
    let crowd = Crowd { clients: 200, calls: 1000, connections: 200, eras: Era::ALL, sleeps: true };
    assert_everybody_is_answered(crowd).await;
}
