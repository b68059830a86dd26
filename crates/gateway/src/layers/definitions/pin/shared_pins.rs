//! The pins of one server's tools in a state that replicas share.
//!
//! What is stored decides, and a copy of it in memory answers. A decision that is known holds while the state fails.
//! A definition that the state does not have yet is withheld until it is stored there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::sync::Mutex;
use creole::state::State;
use creole_proto::model::Definition;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::layers::definitions::pin::pinned::{MAX_TOOLS, ObservedTool, PinnedTool, Pins};
use crate::layers::definitions::pin::stored_pins;

/// How long new definitions are collected before they are stored.
const SAVE_DELAY: Duration = Duration::from_millis(50);

/// The pause before the state is tried again after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The pins of the servers of a process in its state. Clones share them, so that they survive a reload.
#[derive(Clone, Debug)]
pub struct SharedPinSet {
    state: State,
    servers: Arc<Mutex<BTreeMap<String, Arc<SharedPins>>>>,
}

impl SharedPinSet {
    /// The pins in this state.
    #[must_use]
    pub fn new(state: State) -> Self {
        Self { state, servers: Arc::default() }
    }

    /// Reads the pins of servers, so that their known tools are there from the start. If the state fails, they are read
    /// as soon as it works. Must be called within a tokio runtime.
    pub async fn load(&self, servers: Vec<String>) {
        let mut loads = JoinSet::new();
        for pins in servers.iter().map(|server| self.of(server)) {
            // The failure is reported where it is tried again.
            loads.spawn(async move { _ = pins.synchronise().await });
        }
        loads.join_all().await;
    }

    /// The pins of a server, which follow the state from the first call on.
    pub(super) fn of(&self, server: &str) -> Arc<SharedPins> {
        let mut servers = self.servers.lock();
        if let Some(pins) = servers.get(server) {
            return Arc::clone(pins);
        }
        let pins = Arc::new(SharedPins::new(server, &self.state));
        servers.insert(server.to_owned(), Arc::clone(&pins));
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(follow(Arc::downgrade(&pins), self.state.clone()));
        }
        pins
    }
}

/// The pins of one server.
#[derive(Debug)]
pub(super) struct SharedPins {
    pub(super) server: String,
    state: State,
    known: Mutex<KnownPins>,
    /// Notified when there is something to store.
    wake: Arc<Notify>,
    /// Counts the times that other tools than before were withheld.
    decisions: AtomicU64,
}

#[derive(Debug, Default)]
struct KnownPins {
    /// What is stored.
    stored: Pins,
    /// The current definitions.
    observed: BTreeMap<String, ObservedTool>,
    /// The tools whose current definitions may not be stored yet.
    unsaved: BTreeSet<String>,
}

impl SharedPins {
    fn new(server: &str, state: &State) -> Self {
        Self {
            server: server.to_owned(),
            state: state.clone(),
            known: Mutex::default(),
            wake: Arc::default(),
            decisions: AtomicU64::new(0),
        }
    }

    /// Whether the tool may be listed with its current definition.
    pub(super) fn admit(&self, item: &Definition) -> bool {
        let (name, seen) = (item.name(), ObservedTool::from(item));
        let mut known = self.known.lock();
        if known.observed.get(name) != Some(&seen) {
            if known.observed.len() >= MAX_TOOLS && !known.observed.contains_key(name) {
                return false;
            }
            if known.stored.get(name).is_some_and(|pinned| pinned.sha256 != seen.sha256) {
                let server = &*self.server;
                tracing::warn!(
                    server,
                    tool = name,
                    "the definition of this tool changed; the tool is withheld until it is approved"
                );
            }
            known.observed.insert(name.to_owned(), seen);
            known.unsaved.insert(name.to_owned());
            self.wake.notify_one();
        }
        known.is_admitted(name)
    }

    /// Whether calls of the tool are refused.
    pub(super) fn is_withheld(&self, tool: &str) -> bool {
        !self.known.lock().is_admitted(tool)
    }

    /// Whether the tool is pinned.
    pub(super) fn contains(&self, tool: &str) -> bool {
        self.known.lock().stored.contains_key(tool)
    }

    /// How often other tools than before were withheld.
    pub(super) fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::Acquire)
    }

    /// Stores what was observed, and takes over what is stored.
    async fn synchronise(&self) -> io::Result<()> {
        let (found, _) = stored_pins::read(&self.state, &self.server).await?;
        self.adopt(found.unwrap_or_default());
        if self.known.lock().is_settled() {
            return Ok(());
        }
        let merged = stored_pins::update(&self.state, &self.server, |pins| {
            self.known.lock().merge_into(pins);
            pins.clone()
        });
        self.adopt(merged.await?);
        Ok(())
    }

    /// Takes over what is stored. A tool that is missing there was lost, and stays as it was.
    fn adopt(&self, mut stored: Pins) {
        let mut known = self.known.lock();
        let before = known.admitted();
        for (tool, pinned) in std::mem::take(&mut known.stored) {
            stored.entry(tool).or_insert(pinned);
        }
        known.stored = stored;
        let KnownPins { stored, observed, unsaved } = &mut *known;
        unsaved.retain(|tool| !is_stored(stored.get(tool), observed.get(tool)));
        if known.admitted() != before {
            self.decisions.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl KnownPins {
    fn is_admitted(&self, tool: &str) -> bool {
        match (self.stored.get(tool), self.observed.get(tool)) {
            (Some(pinned), Some(seen)) => pinned.sha256 == seen.sha256,
            (Some(pinned), None) => pinned.changed.is_none(),
            (None, _) => false,
        }
    }

    fn admitted(&self) -> BTreeSet<String> {
        self.observed.keys().filter(|tool| self.is_admitted(tool)).cloned().collect()
    }

    /// Whether there is nothing to store.
    fn is_settled(&self) -> bool {
        let is_reported = |(tool, seen): (&String, &ObservedTool)| {
            let pinned = self.stored.get(tool);
            pinned.is_some_and(|it| it.sha256 == seen.sha256 || it.changed.is_some())
        };
        self.unsaved.is_empty() && self.observed.iter().all(is_reported)
    }

    /// Adds to stored pins what was observed here, and what they have lost.
    fn merge_into(&self, pins: &mut Pins) {
        for (tool, pinned) in &self.stored {
            pins.entry(tool.clone()).or_insert_with(|| pinned.clone());
        }
        for (tool, seen) in &self.observed {
            let (is_new, has_room) = (self.unsaved.contains(tool), pins.len() < MAX_TOOLS);
            match pins.get_mut(tool) {
                // Another replica may still see another definition.
                Some(pinned) if pinned.sha256 == seen.sha256 && !is_new => {}
                Some(pinned) if pinned.sha256 == seen.sha256 => pinned.changed = None,
                Some(pinned) if is_new || pinned.changed.is_none() => {
                    pinned.changed = Some(seen.clone());
                }
                Some(_) => {}
                None if has_room => {
                    pins.insert(tool.clone(), seen.clone().into());
                }
                None => {}
            }
        }
    }
}

/// Whether this definition of a tool is stored, as the approved or as the current one.
fn is_stored(pinned: Option<&PinnedTool>, seen: Option<&ObservedTool>) -> bool {
    let (Some(pinned), Some(seen)) = (pinned, seen) else { return false };
    match &pinned.changed {
        None => pinned.sha256 == seen.sha256,
        Some(changed) => changed == seen,
    }
}

/// Synchronises the pins with the state when something changed in either, until the pins are dropped.
async fn follow(pins: Weak<SharedPins>, state: State) {
    let (mut subscription, mut is_failing) = (None, false);
    loop {
        let Some(shared) = pins.upgrade() else { return };
        let (server, wake) = (shared.server.clone(), Arc::clone(&shared.wake));
        if subscription.is_none() {
            subscription = state.subscribe(&stored_pins::key(&server)).await.ok();
        }
        let result = shared.synchronise().await;
        drop(shared);
        if let Err(error) = &result
            && !is_failing
        {
            tracing::warn!(server, %error, "cannot share the pins of tools; new and changed tools are withheld");
        }
        is_failing = result.is_err();
        let Some(events) = subscription.as_mut().filter(|_| !is_failing) else {
            sleep(RETRY_PAUSE).await;
            continue;
        };
        let is_open = tokio::select! {
            event = events.next() => event.is_some(),
            () = wake.notified() => {
                sleep(SAVE_DELAY).await;
                true
            }
        };
        if !is_open {
            return;
        }
    }
}

impl Drop for SharedPins {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests;
