//! Streams of sessions behind a load balancer that takes replicas away.

use std::fs;
use std::time::Duration;

use creole_acceptance::gateway::{
    HandshakeClient, ScriptedChildren, ScriptedReplies, StatelessClient,
};
use creole_acceptance::replicas::{LoadBalancer, ReplicaSet, each_store, served_by};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::event_stream::EventStream;

const VERSION: &str = "2025-11-25";

/// Longer than two replicas may differ in when they hear of a change.
const A_MOMENT: Duration = Duration::from_millis(1500);

/// The session of a client of the load balancer.
fn open_session(balancer: &LoadBalancer) -> HandshakeClient {
    HandshakeClient::open(balancer.address(), VERSION, json!({}), None)
}

#[test]
fn the_stream_of_a_call_is_resumed_wherever_the_load_balancer_leads() {
    each_store(|store| {
        let asking = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]);
        let children = ScriptedChildren::new(asking);
        let gateway = format!(
            "[server]\nname = \"g\"\n[upstreams.behind]\nprefix = \"\"\ncommand = {}\n",
            json!(children.command())
        );
        let replicas = ReplicaSet::start(&store, &gateway, 3);
        let Some(balancer) = LoadBalancer::start(&replicas.addresses()) else { return };
        let client = open_session(&balancer);
        let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": "p"}});
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let mut stream = EventStream::open(balancer.address(), &client.written(&call));
        let received = children.hears("tools/call");
        let token = received.message["params"]["_meta"]["progressToken"].clone();
        let mut progress = 0;
        let mut tell = |count: u64| {
            for _ in 0..count {
                progress += 1;
                let params = json!({"progressToken": token, "progress": progress});
                received.by.tells("notifications/progress", &params);
            }
        };
        let mut messages = Vec::new();
        let mut read = |stream: &mut EventStream, count: usize| {
            messages.extend((0..count).map(|_| stream.next().expect("a message")));
        };
        tell(2);
        read(&mut stream, 2);
        // First the replica that has the call is taken away, and then the one that relays its stream.
        for _ in 0..2 {
            balancer.remove(&served_by(&stream.head));
            assert_eq!(stream.next(), None, "its connection was cut");
            tell(2);
            let last = stream.last_id.take();
            let rest = client.written_stream(last.as_deref());
            stream = EventStream::open(balancer.address(), &rest);
            tell(1);
            read(&mut stream, 3);
        }
        received.text("done");
        let response = stream.next().unwrap();
        assert_eq!((&response["id"], crate::text(&response)), (&json!(7), "done"));
        assert_eq!(stream.next(), None, "the stream ends with the response");
        let numbers: Vec<_> = messages.iter().map(|it| &it["params"]["progress"]).collect();
        assert_eq!(json!(numbers), json!([1, 2, 3, 4, 5, 6, 7, 8]), "each came once, in order");
    });
}

/// Replicas whose tools change with their configuration.
struct ChangingTools {
    replicas: ReplicaSet,
    configuration: String,
    file: std::path::PathBuf,
    changes: usize,
}

impl ChangingTools {
    /// Adds a tool, and waits until each replica lists it.
    fn change(&mut self) {
        self.changes += 1;
        let mut text = self.configuration.clone();
        for number in 0..self.changes {
            text += &format!(
                "[tools.tool-{number}]\ndescription = \"Succeeds\"\ncommand = [\"true\"]\n"
            );
        }
        let new = self.file.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &self.file).unwrap();
        let name = format!("tool-{}", self.changes - 1);
        for address in self.replicas.addresses() {
            eventually("the new tool is listed", || {
                let listed = StatelessClient::new(address).request("tools/list", json!({}));
                listed.to_string().contains(&name)
            });
        }
    }
}

/// Asserts that exactly one change of the tools is announced.
#[track_caller]
fn hears_one_change(stream: &mut EventStream) {
    let message: Value = stream.next().expect("an announcement");
    assert_eq!(message["method"], "notifications/tools/list_changed", "{message}");
    stream.is_silent_for(A_MOMENT);
}

#[test]
fn announcements_are_neither_lost_nor_repeated_when_a_replica_is_taken_away() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, "[server]\nname = \"g\"\npacks = [\"echo\"]\n", 3);
        let file = replicas.configuration().to_owned();
        let configuration = fs::read_to_string(&file).unwrap();
        let mut tools = ChangingTools { replicas, configuration, file, changes: 0 };
        let Some(balancer) = LoadBalancer::start(&tools.replicas.addresses()) else { return };
        let client = open_session(&balancer);
        // Every replica knows the session, and so hears of each change.
        for address in tools.replicas.addresses() {
            crate::is_echoed(&client.at(address), "known");
        }
        let open = |last: Option<&str>| {
            EventStream::open(balancer.address(), &client.written_stream(last))
        };
        let mut stream = open(None);
        tools.change();
        hears_one_change(&mut stream);
        for _ in 0..2 {
            let replica = served_by(&stream.head);
            balancer.remove(&replica);
            assert_eq!(stream.next(), None, "its connection was cut");
            // Nobody reads when the tools change.
            tools.change();
            let last = stream.last_id.take();
            stream = open(last.as_deref());
            assert_ne!(served_by(&stream.head), replica);
            hears_one_change(&mut stream);
            tools.change();
            hears_one_change(&mut stream);
            balancer.restore(&replica);
        }
    });
}

#[test]
fn a_stream_follows_the_subscriptions_that_other_replicas_received() {
    each_store(|store| {
        let file = store.folder().join("docs/a.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "one").unwrap();
        let folders = "[server]\nname = \"g\"\n[folders.docs]\npath = \"docs\"\n";
        let replicas = ReplicaSet::start(&store, folders, 2);
        let [first, second] = [0, 1].map(|index| replicas.address(index));
        let client = HandshakeClient::open(first, VERSION, json!({}), None);
        let mut stream = EventStream::open(first, &client.written_stream(None));
        let uri = json!({"uri": "folder://docs/a.md"});
        let mut number = 0;
        let mut change = || {
            number += 1;
            fs::write(&file, format!("change {number}")).unwrap();
        };
        // The replicas know of each other within some seconds.
        let updated = eventually("an update", || {
            let subscribed = client.at(second).request("resources/subscribe", &uri);
            assert_eq!(subscribed["result"], json!({}), "{subscribed}");
            change();
            stream.within(Duration::from_millis(500)).ok().flatten()
        });
        assert_eq!(updated["method"], "notifications/resources/updated", "{updated}");
        assert_eq!(updated["params"], uri);
        // A replica that opens a stream later knows them as well.
        let mut other = EventStream::open(second, &client.written_stream(None));
        eventually("the end of the subscription", || {
            let ended = client.at(first).request("resources/unsubscribe", &uri);
            assert_eq!(ended["result"], json!({}), "{ended}");
            while let Ok(Some(_)) = other.within(Duration::from_millis(200)) {}
            change();
            other.within(A_MOMENT).is_err()
        });
    });
}

#[test]
fn a_replica_that_stops_says_when_to_reconnect_and_the_next_one_goes_on() {
    each_store(|store| {
        let mut replicas =
            ReplicaSet::start(&store, "[server]\nname = \"g\"\npacks = [\"echo\"]\n", 2);
        let Some(balancer) = LoadBalancer::start(&replicas.addresses()) else { return };
        let client = open_session(&balancer);
        let mut stream = EventStream::open(balancer.address(), &client.written_stream(None));
        let stopped = served_by(&stream.head);
        let index = usize::from(stopped.ends_with('1'));
        let mut leaving = replicas.remove(index);
        leaving.stop().unwrap();
        assert_eq!((stream.next(), stream.retry), (None, Some(500)));
        let last = stream.last_id.take();
        assert!(last.is_some(), "the stream was primed");
        let rest = client.written_stream(last.as_deref());
        let stream = EventStream::open(balancer.address(), &rest);
        assert_ne!(served_by(&stream.head), stopped);
        crate::is_echoed(&client, "after");
    });
}
