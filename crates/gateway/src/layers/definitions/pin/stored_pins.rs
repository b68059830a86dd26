//! The pins of one server's tools as a value of a state. Each change is announced on a topic of the same name.

use std::io;

use creole::state::{State, StateError};

use crate::layers::definitions::pin::pinned::Pins;

/// Maximum number of attempts of a change when other writers are faster.
const MAX_ATTEMPTS: usize = 100;

/// The key of a server's pins, and the topic that announces changes of them.
pub(super) fn key(server: &str) -> String {
    format!("pin/{server}")
}

/// The pins of a server and their version; none if nothing is stored.
pub(super) async fn read(state: &State, server: &str) -> io::Result<(Option<Pins>, Option<u64>)> {
    let Some(entry) = state.get(&key(server)).await.map_err(io::Error::other)? else {
        return Ok((None, None));
    };
    let pins = serde_json::from_slice(&entry.value).map_err(|error| {
        io::Error::other(format!("the pins of `{server}` in the state cannot be read: {error}"))
    })?;
    Ok((Some(pins), Some(entry.version)))
}

/// Changes the pins of a server; `change` runs again if somebody else was faster.
pub(super) async fn update<T>(
    state: &State,
    server: &str,
    change: impl Fn(&mut Pins) -> T,
) -> io::Result<T> {
    for _ in 0..MAX_ATTEMPTS {
        let (found, version) = read(state, server).await?;
        let before = found.unwrap_or_default();
        let mut pins = before.clone();
        let done = change(&mut pins);
        if pins == before {
            return Ok(done);
        }
        let value = serde_json::to_vec(&pins)?.into();
        let won = state.swap(&key(server), version, value, None).await.map_err(io::Error::other)?;
        if won.is_some() {
            // Who misses this reads again after the outage of the store.
            _ = state.publish(&key(server), Vec::new().into()).await;
            return Ok(done);
        }
    }
    Err(io::Error::other(StateError::Contended))
}
