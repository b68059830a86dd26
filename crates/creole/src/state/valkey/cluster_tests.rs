//! A state in a cluster of servers.

use std::time::Duration;

use creole_test_wait::{eventually, eventually_async};

use super::super::{LogRetention, State, StateLimits, TopicEvent};
use super::ValkeySettings;
use super::test_server::{TestServer, free_port};

/// A key of the state, which decides where the others are.
const KEY: &str = "creole:{creole}:ve:a";

/// Two masters, each with half of the slots, and a replica of the one that has the keys.
struct Cluster {
    owner: TestServer,
    other: TestServer,
    replica: TestServer,
    /// The ports of the owner and the other master.
    ports: [u16; 2],
}

/// Starts a node, and returns it with its port. The other nodes of a cluster need its second port.
fn start_node() -> (TestServer, u16, u16) {
    let (port, bus_port) = (free_port(), free_port());
    let node = TestServer::start(&[
        "--cluster-enabled",
        "yes",
        "--port",
        &port.to_string(),
        "--cluster-port",
        &bus_port.to_string(),
    ]);
    (node, port, bus_port)
}

/// Runs a command that must succeed.
fn run(node: &TestServer, words: &[&str]) {
    assert_eq!(node.run(words).trim(), "OK", "{words:?}");
}

impl Cluster {
    async fn start() -> Self {
        let (first, first_port, bus_port) = start_node();
        let (second, second_port, _) = start_node();
        let (replica, ..) = start_node();
        for node in [&second, &replica] {
            let (port, bus_port) = (first_port.to_string(), bus_port.to_string());
            run(node, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus_port]);
        }
        run(&first, &["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
        run(&second, &["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]);
        let slot: u16 = first.run(&["CLUSTER", "KEYSLOT", KEY]).trim().parse().unwrap();
        let mut cluster = match slot {
            ..8192 => {
                Self { owner: first, other: second, replica, ports: [first_port, second_port] }
            }
            _ => Self { owner: second, other: first, replica, ports: [second_port, first_port] },
        };
        cluster.replicate().await;
        cluster
    }

    /// Waits until the nodes know each other, and until the replica has the data of the owner.
    async fn replicate(&mut self) {
        let nodes = [&self.owner, &self.other, &self.replica];
        eventually("the cluster is complete", || {
            nodes.iter().all(|node| {
                let info = node.run(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        })
        .await;
        let owner = self.owner.run(&["CLUSTER", "MYID"]);
        run(&self.replica, &["CLUSTER", "REPLICATE", owner.trim()]);
        eventually("the replica is connected", || {
            self.owner.run(&["INFO", "replication"]).contains("state=online")
        })
        .await;
    }

    /// A state that knows only the node on this port.
    async fn open(port: u16) -> State {
        let settings = ValkeySettings::new(format!("valkey://127.0.0.1:{port}"))
            .cluster(true)
            .timeout(Duration::from_secs(5));
        State::valkey(settings, StateLimits::default()).await.unwrap()
    }
}

#[tokio::test]
async fn every_node_of_a_cluster_leads_to_the_one_that_has_the_keys() {
    if !TestServer::is_installed() {
        return;
    }
    let cluster = Cluster::start().await;
    let [state, other] =
        [Cluster::open(cluster.ports[0]).await, Cluster::open(cluster.ports[1]).await];
    let version = state.put("a", "1".into(), None).await.unwrap();
    assert_eq!(other.get("a").await.unwrap().unwrap().version, version);
    assert!(other.swap("a", Some(version), "2".into(), None).await.unwrap().is_some());
    assert_eq!(state.get("a").await.unwrap().unwrap().value, "2");
    let retention = LogRetention { entries: 10, ttl: Duration::from_secs(60) };
    let number = state.append("log", "entry".into(), retention).await.unwrap();
    assert_eq!(other.read_after("log", 0, 10).await.unwrap(), [(number, "entry".into())]);
    let mut messages = state.subscribe("topic").await.unwrap();
    other.publish("topic", "hello".into()).await.unwrap();
    assert_eq!(messages.next().await, Some(TopicEvent::Message("hello".into())));
    assert_eq!(cluster.owner.run(&["EXISTS", KEY]).trim(), "1");
}

#[tokio::test]
async fn a_cluster_is_used_again_after_a_failover() {
    if !TestServer::is_installed() {
        return;
    }
    let cluster = Cluster::start().await;
    let state = Cluster::open(cluster.ports[1]).await;
    let version = state.put("a", "1".into(), None).await.unwrap();
    run(&cluster.replica, &["CLUSTER", "FAILOVER", "TAKEOVER"]);
    let later = eventually_async("a change reaches the new owner", async || {
        let version = state.put("a", "2".into(), None).await.ok()?;
        let stored = cluster.replica.run(&["HGET", KEY, "v"]);
        stored.trim().ends_with('2').then_some(version)
    })
    .await;
    assert!(later > version);
}
