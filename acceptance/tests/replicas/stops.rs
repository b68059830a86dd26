//! A replica that is asked to stop while clients call, listen and wait.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::Request;
use creole_acceptance::replicas::{RecordingServer, ReplicaSet, ReplicaStore, tenant_key, tenants};
use serde_json::{Value, json};

use crate::event_stream::EventStream;
use crate::parked_call::ParkedCall;
use crate::text;

/// How many calls run, how many streams of each kind are open, and how many calls wait for input.
const RUNNING: usize = 100;
const LISTENING: usize = 250;
const PARKED: usize = 20;

/// How long the calls run. After a second, the response of a call becomes a stream, which shows that the call runs.
const MILLISECONDS: u64 = 6000;

/// The callers: one may have 16 parked calls.
const TENANTS: usize = 2;

/// Sends these requests at the same time.
fn open_all(address: SocketAddr, requests: Vec<Request>) -> Vec<EventStream> {
    thread::scope(|scope| {
        let open = |request| scope.spawn(move || EventStream::open(address, &request));
        let opening: Vec<_> = requests.into_iter().map(open).collect();
        opening.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

/// The streams of changes of both eras.
struct Listeners {
    sessions: Vec<EventStream>,
    subscriptions: Vec<EventStream>,
}

impl Listeners {
    fn open(address: SocketAddr) -> Self {
        let key = |number: usize| tenant_key(number % TENANTS);
        let session = |number| {
            let key = key(number);
            HandshakeClient::open(address, "2025-11-25", json!({}), Some(&key)).written_stream(None)
        };
        let sessions = open_all(address, (0..LISTENING).map(session).collect());
        let subscription = |number| {
            let filter = json!({"notifications": {"toolsListChanged": true}});
            let client = StatelessClient::new(address).with_key(&key(number));
            client.written(&json!(number), "subscriptions/listen", filter)
        };
        let mut subscriptions = open_all(address, (0..LISTENING).map(subscription).collect());
        for stream in &mut subscriptions {
            let first = stream.next().unwrap();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        }
        Self { sessions, subscriptions }
    }

    /// Asserts that each stream ends as its revision says.
    fn have_ended(self) {
        for mut stream in self.sessions {
            assert_eq!((stream.next(), stream.retry), (None, Some(500)));
        }
        for (number, mut stream) in self.subscriptions.into_iter().enumerate() {
            let last = stream.next().expect("its result");
            assert!(last["id"] == number && last["result"].is_object(), "{last}");
            assert_eq!(stream.next(), None);
        }
    }
}

#[test]
fn a_replica_that_stops_ends_its_calls_and_streams_and_leaves_what_waits_to_the_others() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let upstream = RecordingServer::start(Ipv4Addr::LOCALHOST);
    let gateway = format!(
        "[server]\nname = \"gateway\"\n{}[upstreams.behind]\nprefix = \"\"\nera = \"handshake\"\nurl = \"{}\"\n",
        tenants(TENANTS),
        upstream.url()
    );
    let mut replicas = ReplicaSet::start(&store, &gateway, 2);
    let (leaving, other) = (replicas.address(0), replicas.address(1));
    let park = |number| {
        // The first one runs for longer than the others after its client has returned.
        let milliseconds = if number == 0 { MILLISECONDS } else { 0 };
        let arguments = json!({"nonce": format!("parked {number}"), "milliseconds": milliseconds});
        ParkedCall::begin_as(number % TENANTS, leaving, "ask", arguments)
    };
    let parked: Vec<_> = (0..PARKED).map(park).collect();
    let listeners = Listeners::open(leaving);
    let run = |number: usize| {
        let arguments = json!({"nonce": format!("running {number}"), "milliseconds": MILLISECONDS});
        let client = StatelessClient::new(leaving).with_key(&tenant_key(number % TENANTS));
        let params = json!({"name": "run", "arguments": arguments});
        client.written(&json!(number), "tools/call", params)
    };
    let running = open_all(leaving, (0..RUNNING).map(run).collect());

    let mut leaving = replicas.remove_oldest();
    leaving.signal("TERM");
    listeners.have_ended();
    let (first, rest) = parked.split_first().unwrap();
    thread::scope(|scope| {
        // One client returns to the other replica while the calls still run.
        let returned = scope.spawn(|| first.settle_at(other));
        for (number, mut stream) in running.into_iter().enumerate() {
            let response: Value = stream.next().expect("its response");
            assert_eq!(text(&response), format!("running {number}"));
            assert_eq!(stream.next(), None);
        }
        assert_eq!(text(&returned.join().unwrap()), first.result());
    });
    assert_eq!(leaving.wait(), Some(0), "{}", leaving.log());
    assert!(!leaving.log().contains("before the drain timeout"), "{}", leaving.log());
    for call in rest {
        assert_eq!(text(&call.settle_at(other)), call.result());
    }
    let executions = upstream.executions();
    assert_eq!(executions.len(), RUNNING + PARKED, "{executions:?}");
    assert!(executions.values().all(|count| *count == 1), "{executions:?}");
}
