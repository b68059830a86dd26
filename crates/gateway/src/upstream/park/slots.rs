//! The slots of parked calls: enforces their limits and evicts the oldest.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};

use super::{MAX_PARKED_PER_CALLER, ResumeCommand};

/// The maximum number of bytes of open input requests of one upstream.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of finished calls whose outcome is kept.
const MAX_FINISHED: usize = 64;

/// The maximum number of evicted calls that are remembered, so that their callers get a precise error.
const MAX_EVICTED: usize = 1024;

/// The calls of one upstream, by unguessable ids.
pub(super) struct ParkSlots {
    /// The maximum number of parked calls.
    max_parked: usize,
    by_id: HashMap<String, ParkSlot>,
    /// The parked calls of each caller, oldest first.
    parked: HashMap<Arc<str>, BTreeMap<u64, String>>,
    /// Their number, and the bytes of their input requests.
    parked_count: usize,
    parked_bytes: usize,
    /// The number of finished calls.
    finished: usize,
    /// Counts input requests, to find the oldest.
    sequence: u64,
    /// The ids of evicted calls and their owners, oldest first.
    evicted: VecDeque<(String, Arc<str>)>,
}

/// The slot of one call.
pub(super) struct ParkSlot {
    principal: Arc<str>,
    commands: mpsc::Sender<ResumeCommand>,
    state: ParkSlotState,
    /// Signals the call to end.
    evict: Arc<Notify>,
    /// Resolves when the slot is free.
    released: Option<oneshot::Receiver<()>>,
}

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParkSlotState {
    /// A caller waits for it.
    Active,
    /// It is parked, with its sequence number and the bytes of its input requests.
    Parked(u64, usize),
    /// It is being evicted.
    Evicted,
    /// It has ended.
    Finished,
}

/// The result of a lookup for a returning caller.
pub(super) enum ParkSlotLookup {
    /// The task of the call.
    Found(mpsc::Sender<ResumeCommand>),
    /// The call was evicted.
    Evicted,
    /// The caller has no call of this id.
    Unknown,
}

impl ParkSlot {
    pub(super) fn new(
        principal: &str,
        commands: mpsc::Sender<ResumeCommand>,
        give_up: Arc<Notify>,
        left: oneshot::Receiver<()>,
    ) -> Self {
        let standing = ParkSlotState::Active;
        Self {
            principal: principal.into(),
            commands,
            state: standing,
            evict: give_up,
            released: Some(left),
        }
    }
}

impl ParkSlots {
    pub(super) fn new(max: usize) -> Self {
        let (all, parked, given_up) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self {
            max_parked: max,
            by_id: all,
            parked,
            parked_count: 0,
            parked_bytes: 0,
            finished: 0,
            sequence: 0,
            evicted: given_up,
        }
    }

    pub(super) fn insert(&mut self, id: String, slot: ParkSlot) {
        self.by_id.insert(id, slot);
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.set_state(id, ParkSlotState::Evicted);
        self.by_id.remove(id);
    }

    pub(super) fn find(&self, id: &str, principal: &str) -> ParkSlotLookup {
        let was_given_up = |(name, owner): &(String, Arc<str>)| name == id && **owner == *principal;
        if self.evicted.iter().any(was_given_up) {
            return ParkSlotLookup::Evicted;
        }
        match self.by_id.get(id).filter(|slot| *slot.principal == *principal) {
            Some(slot) => ParkSlotLookup::Found(slot.commands.clone()),
            None => ParkSlotLookup::Unknown,
        }
    }

    /// Parks a call with input requests of this many bytes, if a slot is free or the oldest call of its caller can be
    /// evicted.
    pub(super) fn park(&mut self, id: &str, bytes: usize) -> bool {
        let Some(principal) = self.by_id.get(id).map(|slot| Arc::clone(&slot.principal)) else {
            return false;
        };
        let of_one = self.parked.get(&principal).map_or(0, BTreeMap::len);
        let is_full = self.parked_count >= self.max_parked
            || of_one >= MAX_PARKED_PER_CALLER
            || self.parked_bytes.saturating_add(bytes) > MAX_BYTES;
        if is_full && self.evict_oldest(&principal).is_none() {
            return false;
        }
        self.sequence += 1;
        self.set_state(id, ParkSlotState::Parked(self.sequence, bytes));
        true
    }

    /// Records that a caller waits for the call again, unless it was evicted.
    pub(super) fn unpark(&mut self, id: &str) -> bool {
        let is_here =
            self.by_id.get(id).is_some_and(|park_slot| park_slot.state != ParkSlotState::Evicted);
        if is_here {
            self.set_state(id, ParkSlotState::Active);
        }
        is_here
    }

    /// Records that a call has ended. Returns whether its outcome may be kept.
    pub(super) fn finish(&mut self, id: &str) -> bool {
        self.set_state(id, ParkSlotState::Finished);
        self.finished <= MAX_FINISHED
    }

    /// Evicts the oldest parked call of this principal. The receiver resolves when its slot is free.
    pub(super) fn evict_oldest(&mut self, principal: &str) -> Option<oneshot::Receiver<()>> {
        let (_, oldest) = self.parked.get(principal)?.first_key_value()?;
        let oldest = oldest.clone();
        self.set_state(&oldest, ParkSlotState::Evicted);
        let slot = self.by_id.get_mut(&oldest)?;
        slot.evict.notify_one();
        let (owner, left) = (Arc::clone(&slot.principal), slot.released.take());
        self.evicted.push_back((oldest, owner));
        if self.evicted.len() > MAX_EVICTED {
            self.evicted.pop_front();
        }
        left
    }

    /// The ids of the parked calls, and the bindings of their callers.
    pub(super) fn parked(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_parked = |slot: &ParkSlot| matches!(slot.state, ParkSlotState::Parked(..));
        let parked = self.by_id.iter().filter(move |(_, slot)| is_parked(slot));
        parked.map(|(id, slot)| (id.as_str(), &*slot.principal))
    }

    /// Evicts a parked call.
    pub(super) fn evict(&mut self, id: &str) {
        self.set_state(id, ParkSlotState::Evicted);
        let Some(slot) = self.by_id.get(id) else { return };
        slot.evict.notify_one();
        self.evicted.push_back((id.to_owned(), Arc::clone(&slot.principal)));
        if self.evicted.len() > MAX_EVICTED {
            self.evicted.pop_front();
        }
    }

    /// The number of parked calls, and the bytes of their input requests.
    pub(super) fn usage(&self) -> (usize, usize) {
        (self.parked_count, self.parked_bytes)
    }

    /// Whether no call has a slot.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.parked.is_empty()
    }

    fn set_state(&mut self, id: &str, standing: ParkSlotState) {
        let Some(slot) = self.by_id.get_mut(id) else { return };
        let before = std::mem::replace(&mut slot.state, standing);
        let principal = Arc::clone(&slot.principal);
        match before {
            ParkSlotState::Parked(since, bytes) => {
                self.parked_count -= 1;
                self.parked_bytes -= bytes;
                if let Some(of_one) = self.parked.get_mut(&principal) {
                    of_one.remove(&since);
                    if of_one.is_empty() {
                        self.parked.remove(&principal);
                    }
                }
            }
            ParkSlotState::Finished => self.finished -= 1,
            ParkSlotState::Active | ParkSlotState::Evicted => {}
        }
        match standing {
            ParkSlotState::Parked(since, bytes) => {
                self.parked_count += 1;
                self.parked_bytes += bytes;
                self.parked.entry(principal).or_default().insert(since, id.to_owned());
            }
            ParkSlotState::Finished => self.finished += 1,
            ParkSlotState::Active | ParkSlotState::Evicted => {}
        }
    }
}
