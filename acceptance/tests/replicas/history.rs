//! The history of calls and tasks while replicas and their store fail: what is answered is right, no call is executed
//! twice, and no acknowledged task is lost.

mod callers;
mod client;
mod faults;
mod tasks;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use std::{env, thread};

use creole_acceptance::http::client::ConnectionCloser;
use creole_acceptance::load::{
    Call, ExecutedCall, History, SeededRandom, descriptors, execution_breaches,
};
use creole_acceptance::peers::if_installed;
use creole_acceptance::replicas::{
    Link, NetworkedReplicas, RecordingServer, ReplicaStore, TestNetwork, tenants,
};
use creole_test_wait::PATIENCE;
use creole_test_wait::blocking::{eventually, within};

use callers::Caller;
use client::HistoryClient;
use faults::Faults;
use tasks::AcknowledgedTask;

/// The variable with the duration of the run in seconds.
const DURATION: &str = "REPLICA_HISTORY_SECONDS";

/// The duration without it.
const DEFAULT_SECONDS: u64 = 60;

/// The number of replicas.
pub(crate) const REPLICAS: u8 = 3;

/// How many calls are answered after each repair.
const CALLS_AFTER_REPAIR: usize = 10;

/// What the clients of a run and its failures share.
pub(crate) struct Run {
    addresses: Vec<SocketAddr>,
    answered: AtomicUsize,
    is_over: AtomicBool,
    /// The last stream of each client.
    streams: Mutex<HashMap<usize, ConnectionCloser>>,
}

impl Run {
    fn new(addresses: Vec<SocketAddr>) -> Self {
        let (answered, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { addresses, answered, is_over, streams: Mutex::default() }
    }

    /// Closes this stream at the end, if its client still waits for it then.
    fn watch(&self, tenant: usize, stream: ConnectionCloser) {
        self.streams.lock().unwrap().insert(tenant, stream);
    }

    /// Waits for the clients after the run is over.
    fn join<'a>(&self, clients: Vec<ScopedJoinHandle<'_, HistoryClient<'a>>>) -> Observations {
        let have_ended = within(PATIENCE, || clients.iter().all(ScopedJoinHandle::is_finished));
        self.streams.lock().unwrap().values().for_each(ConnectionCloser::end);
        let mut seen = Observations::default();
        clients.into_iter().for_each(|client| seen.add(client.join().unwrap()));
        assert!(have_ended.is_some(), "a stream never ends");
        seen
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until further calls are answered.
    fn wait_for_calls(&self) {
        let wanted = self.answered.load(Ordering::Relaxed) + CALLS_AFTER_REPAIR;
        eventually("calls are answered", || self.answered.load(Ordering::Relaxed) >= wanted);
    }
}

/// All that the clients saw.
#[derive(Default)]
struct Observations {
    answered: Vec<Call>,
    executed: Vec<ExecutedCall>,
    tasks: Vec<AcknowledgedTask>,
    refused: usize,
}

impl Observations {
    fn add(&mut self, client: HistoryClient<'_>) {
        self.answered.extend(client.answered);
        self.executed.extend(client.executed);
        self.tasks.extend(client.tasks);
        self.refused += client.refused;
    }
}

/// Runs a test with replicas in networks of their own, on each store that is a server.
pub(crate) fn each_network(test: impl Fn(TestNetwork, ReplicaStore) + Sync) {
    let run = |open: fn(std::net::Ipv4Addr) -> Option<ReplicaStore>| {
        let Some(network) = if_installed("network namespaces", TestNetwork::new(REPLICAS)) else {
            return;
        };
        let Some(store) = open(network.test_address(Link::Store)) else { return };
        test(network, store);
    };
    thread::scope(|scope| {
        scope.spawn(|| run(ReplicaStore::valkey_at));
        scope.spawn(|| run(ReplicaStore::postgres_at));
    });
}

/// A gateway for callers with keys, in front of a recording server in each era.
pub(crate) fn gateway(callers: usize, upstream: &RecordingServer) -> String {
    let mut configuration = format!(
        "[server]\nname = \"replicated\"\n{}[http.limits]\ndrain_timeout_seconds = 1\n",
        tenants(callers)
    );
    for era in ["handshake", "stateless"] {
        configuration += &format!(
            "[upstreams.{era}]\nprefix = \"{era}_\"\nurl = \"{}\"\nera = \"{era}\"\n\
             chain = [{{ kind = \"retry\" }}]\n",
            upstream.url()
        );
    }
    configuration
}

#[test]
fn what_is_answered_is_right_while_replicas_and_the_store_fail() {
    let seconds = env::var(DURATION).ok().and_then(|text| text.parse().ok());
    let duration = Duration::from_secs(seconds.unwrap_or(DEFAULT_SECONDS));
    let seed = SeededRandom::seed();
    _ = descriptors();
    each_network(|network, store| run_history(network, store, seed, duration));
}

#[expect(clippy::print_stderr, reason = "the output of a failed test has the seed and the figures")]
fn run_history(network: TestNetwork, store: ReplicaStore, seed: u64, duration: Duration) {
    let name = store.name();
    eprintln!("{name}: LOAD_SEED={seed}");
    let upstream = RecordingServer::start(network.test_address(Link::Clients));
    let configuration = gateway(Caller::ALL.len(), &upstream);
    let replicas = NetworkedReplicas::start(network, &store, &configuration);
    let run = Run::new(replicas.addresses());
    let mut faults = Faults::new(replicas, store, SeededRandom::new(seed, usize::MAX));
    let mut seen = thread::scope(|scope| {
        let run = &run;
        let drive = |(number, caller): (usize, &Caller)| {
            let mut client = HistoryClient::new(run, number, SeededRandom::new(seed, number));
            let caller = *caller;
            let session = caller.open_session(&mut client);
            scope.spawn(move || {
                caller.drive(&mut client, session.as_ref());
                client
            })
        };
        let clients: Vec<_> = Caller::ALL.iter().enumerate().map(drive).collect();
        let over = OnDrop(&run.is_over);
        run.wait_for_calls();
        let end = Instant::now() + duration;
        while Instant::now() < end {
            faults.fail_once();
            run.wait_for_calls();
        }
        drop(over);
        run.join(clients)
    });
    let completed = tasks::settle(&run.addresses, &seen.tasks);
    seen.executed.iter_mut().for_each(|call| call.has_result |= completed.contains(&call.nonce));
    let (calls, executions) = (seen.answered.len(), upstream.executions());
    eprintln!(
        "{name}: {} calls made, {calls} answered, {} refused, {} executed, {} tasks ({} completed), {}",
        seen.executed.len(),
        seen.refused,
        executions.values().sum::<usize>(),
        seen.tasks.len(),
        completed.len(),
        faults.summary(),
    );
    let mut history = History::default();
    history.add(seen.answered);
    history.assert_right(calls);
    assert_eq!(execution_breaches(&seen.executed, &executions), []);
}

/// Sets a flag when dropped, also when the test panics.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
