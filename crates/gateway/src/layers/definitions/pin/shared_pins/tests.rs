//! Tests of two replicas whose pins are in one state.

use creole::state::StateLimits;
use creole::{Middleware, Server, Service, Tool};
use creole_proto::model::{ListKind, ToolResult};
use creole_proto::wire::Raw;
use creole_test_wait::{eventually_async, never_within};

use super::*;
use crate::layers::definitions::pin::{Pin, PinLocation};
use crate::layers::testing::{call, fault, listed_names, text};

/// A replica with one tool.
struct Replica {
    pin: Arc<Pin>,
    service: Service,
}

fn tool(name: &str, about: &str) -> Tool {
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    Tool::raw(name, about, schema, |_, _| Box::pin(async { Ok(ToolResult::text("done")) }))
}

impl Replica {
    async fn start(state: &State, about: &str) -> Self {
        let pins = SharedPinSet::new(state.clone());
        pins.load(vec!["files".to_owned()]).await;
        let pin = Arc::new(Pin::shared("files", &pins));
        let layers: Vec<Arc<dyn Middleware>> = vec![Arc::clone(&pin) as _];
        let service = Server::new("t").tool(tool("read", about)).with_all(layers).start();
        Self { pin, service }
    }

    async fn lists(&self) -> Vec<String> {
        self.service.registry().reapply_layers_if_changed();
        listed_names(&self.service, ListKind::Tools).await
    }

    async fn will_list(&self, names: &[&str]) {
        let what = || format!("the list {names:?}");
        eventually_async(what, async || self.lists().await == names).await;
    }
}

fn location(state: &State) -> PinLocation {
    PinLocation::State { state: state.clone(), server: "files".to_owned() }
}

/// Waits until the state knows of a change of the tool, and approves it.
async fn approve(state: &State) {
    let approve = async || location(state).approve("files", None).await.unwrap() == ["read"];
    eventually_async("the change is known", approve).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_at_one_replica_holds_at_all_and_at_those_that_start_later() {
    let state = State::default();
    let replicas = [Replica::start(&state, "Reads").await, Replica::start(&state, "Reads").await];
    for replica in &replicas {
        replica.will_list(&["read"]).await;
    }
    for replica in &replicas {
        replica.service.registry().add_tool(tool("read", "Reads and sends"));
        assert!(replica.lists().await.is_empty());
    }
    let refused = fault(call(&replicas[0].service, "a", "read", "{}").await);
    assert!(refused.detail.ends_with("`creole approve FILE files read` approves it"));
    approve(&state).await;
    for replica in &replicas {
        replica.will_list(&["read"]).await;
        assert_eq!(text(&call(&replica.service, "a", "read", "{}").await), "done");
    }
    let later = Replica::start(&state, "Reads and sends").await;
    assert_eq!(later.lists().await, ["read"]);
    let old = Replica::start(&state, "Reads").await;
    assert!(old.lists().await.is_empty(), "the approved definition is another one");
}

#[tokio::test(start_paused = true)]
async fn while_the_state_fails_decisions_hold_and_new_tools_are_withheld() {
    let mut limits = StateLimits::default();
    limits.bytes = 4096;
    let state = State::memory(limits);
    let replica = Replica::start(&state, "Reads").await;
    replica.will_list(&["read"]).await;
    // Nothing more can be stored.
    let mut length = 0;
    while state.put("filler", vec![0; length].into(), None).await.is_ok() {
        length += 1;
    }
    replica.service.registry().add_tool(tool("write", "Writes"));
    assert_eq!(replica.lists().await, ["read"]);
    let refused = fault(call(&replica.service, "a", "write", "{}").await);
    assert!(refused.detail.contains("is new and not recorded"), "{}", refused.detail);
    never_within(3 * RETRY_PAUSE, "a decision", || replica.pin.definitions_changed()).await;
    assert_eq!(text(&call(&replica.service, "a", "read", "{}").await), "done");
    state.remove("filler").await.unwrap();
    replica.will_list(&["read", "write"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_approval_withholds_again_and_lost_pins_are_stored_again() {
    let state = State::default();
    let replica = Replica::start(&state, "Reads").await;
    replica.will_list(&["read"]).await;
    replica.service.registry().add_tool(tool("read", "Burns"));
    let key = stored_pins::key("files");
    let withheld = eventually_async("the change", async || {
        let pins = location(&state).pins().await.unwrap();
        let entry = state.get(&key).await.unwrap();
        pins.iter().any(|pin| pin.changed.is_some()).then_some(entry).flatten()
    })
    .await;
    approve(&state).await;
    replica.will_list(&["read"]).await;
    // What a failover of a store may do: the last write is lost, and listeners learn that they missed something.
    state.put(&key, withheld.value, None).await.unwrap();
    state.publish(&key, Vec::new().into()).await.unwrap();
    replica.will_list(&[]).await;
    approve(&state).await;
    replica.will_list(&["read"]).await;

    // A store that lost everything does not make a changed tool a new one.
    state.remove(&key).await.unwrap();
    replica.service.registry().add_tool(tool("read", "Drowns"));
    assert!(replica.lists().await.is_empty());
    approve(&state).await;
    replica.will_list(&["read"]).await;
}
