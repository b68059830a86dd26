//! Tests of a rolling update: replicas of two versions, of which one reads a format that the other does not know.

use std::sync::Arc;

use creole::internal::replicas::Replicas;
use creole::serve::http::{EndpointSettings, McpEndpoint};
use creole::state::{RecordFormats, State, StateError};
use creole_test_wait::eventually_async;
use http::header::RETRY_AFTER;

use crate::client::{ToolWatch, call, open, service};

const OLD: RecordFormats = RecordFormats { oldest: 1, newest: 1 };
const NEW: RecordFormats = RecordFormats { oldest: 1, newest: 2 };

/// A replica of a version.
struct Replica {
    endpoint: McpEndpoint,
    replicas: Replicas,
    state: State,
}

impl Replica {
    fn start(state: &State, formats: RecordFormats) -> Self {
        let state = state.clone().with_formats(formats);
        let replicas = Replicas::new(state.clone()).unwrap();
        replicas.announce(&Arc::default());
        let mut settings = EndpointSettings::default();
        (settings.state, settings.replicas) = (state.clone(), Some(replicas.clone()));
        let endpoint = McpEndpoint::new(service(&ToolWatch::default()), settings);
        Self { endpoint, replicas, state }
    }

    async fn stop(self) {
        self.replicas.leave().await;
    }

    /// The status of a call in a session.
    async fn call(&self, session: &str) -> u16 {
        self.endpoint.handle(call(session, 1, "echo")).await.status().as_u16()
    }

    /// The format in which a session is stored.
    async fn stored_format(&self, session: &str) -> Result<u8, StateError> {
        Ok(self.state.get(&format!("session/{session}")).await?.unwrap().format)
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_survive_an_update_of_one_replica_after_the_other_and_its_reversal() {
    let state = State::default();
    let olds = [Replica::start(&state, OLD), Replica::start(&state, OLD)];
    let session = open(&olds[0].endpoint).await;
    assert_eq!(olds[1].call(&session).await, 200);

    // While one replica has the old version, all write what it reads.
    let [first, second] = olds;
    first.stop().await;
    let new = Replica::start(&state, NEW);
    let during = open(&new.endpoint).await;
    for replica in [&second, &new] {
        for session in [&session, &during] {
            assert_eq!(replica.call(session).await, 200);
            assert_eq!(replica.stored_format(session).await, Ok(1));
        }
    }

    // When the last of them has ended, sessions are stored in the new format with their next request.
    second.stop().await;
    eventually_async("the new format", async || {
        new.call(&session).await == 200 && new.stored_format(&session).await == Ok(2)
    })
    .await;

    // A replica that goes back cannot read it at first. It says so, and loses nothing.
    let back = Replica::start(&state, OLD);
    let refused = back.endpoint.handle(call(&session, 1, "echo")).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()[RETRY_AFTER], "2");
    let unknown = StateError::UnknownFormat { found: 2, oldest: 1, newest: 1 };
    assert_eq!(back.stored_format(&session).await, Err(unknown));
    eventually_async("the old format", async || {
        new.call(&session).await == 200 && new.stored_format(&session).await == Ok(1)
    })
    .await;
    assert_eq!(back.call(&session).await, 200);
    assert_eq!(back.call(&during).await, 200, "a session that nobody wrote in the new format");
}
