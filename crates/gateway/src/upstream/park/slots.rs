//! Who waits for answers, and who has to make room.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};

use super::{MAX_PARKED_PER_CALLER, ResumeCommand};

/// The most bytes of questions that wait to be answered at one server.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Calls that are over and whose outcome is still kept.
const MAX_FINISHED: usize = 64;

/// Calls that were given up and whose callers are told so when they come back.
const MAX_EVICTED: usize = 1024;

/// The calls of one server, by names that nobody can guess.
pub(super) struct ParkSlots {
    /// How many may wait for answers.
    max_parked: usize,
    by_id: HashMap<String, ParkSlot>,
    /// Those that wait for answers, of each caller, the oldest first.
    parked: HashMap<Arc<str>, BTreeMap<u64, String>>,
    /// How many these are, and the bytes of their questions.
    parked_count: usize,
    parked_bytes: usize,
    /// How many are over.
    finished: usize,
    /// Counts questions, so that it is known which wait longest.
    sequence: u64,
    /// The names of calls that made room, and whose they were, the oldest first.
    evicted: VecDeque<(String, Arc<str>)>,
}

/// The place of one call.
pub(super) struct ParkSlot {
    principal: Arc<str>,
    commands: mpsc::Sender<ResumeCommand>,
    state: ParkSlotState,
    /// Told to make room.
    evict: Arc<Notify>,
    /// Ends when the call has left its place.
    released: Option<oneshot::Receiver<()>>,
}

/// How a call stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParkSlotState {
    /// Somebody waits for it.
    Active,
    /// It waits for answers since then, and nobody for it; its questions have so many bytes.
    Parked(u64, usize),
    /// It was told to make room.
    Evicted,
    /// It has ended.
    Finished,
}

/// Where somebody who comes back is led to.
pub(super) enum ParkSlotLookup {
    /// To the one who stays with the call.
    Found(mpsc::Sender<ResumeCommand>),
    /// Nowhere: the call had to make room.
    Evicted,
    /// Nowhere: no such call of this caller is known.
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
    pub(super) fn new(most: usize) -> Self {
        let (all, parked, given_up) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self {
            max_parked: most,
            by_id: all,
            parked,
            parked_count: 0,
            parked_bytes: 0,
            finished: 0,
            sequence: 0,
            evicted: given_up,
        }
    }

    pub(super) fn insert(&mut self, id: String, place: ParkSlot) {
        self.by_id.insert(id, place);
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
        match self.by_id.get(id).filter(|place| *place.principal == *principal) {
            Some(place) => ParkSlotLookup::Found(place.commands.clone()),
            None => ParkSlotLookup::Unknown,
        }
    }

    /// Has a call wait for answers to questions of so many bytes, if there is room for one more or its caller's
    /// oldest can make some.
    pub(super) fn park(&mut self, id: &str, bytes: usize) -> bool {
        let Some(principal) = self.by_id.get(id).map(|place| Arc::clone(&place.principal)) else {
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

    /// Somebody waits for the call again, unless it was given up.
    pub(super) fn unpark(&mut self, id: &str) -> bool {
        let is_here = self.by_id.get(id).is_some_and(|it| it.state != ParkSlotState::Evicted);
        if is_here {
            self.set_state(id, ParkSlotState::Active);
        }
        is_here
    }

    /// Notes that a call has ended; tells whether its outcome may be kept.
    pub(super) fn finish(&mut self, id: &str) -> bool {
        self.set_state(id, ParkSlotState::Finished);
        self.finished <= MAX_FINISHED
    }

    /// Has the call of this caller make room that waits longest for answers; what is given back ends when it has.
    pub(super) fn evict_oldest(&mut self, principal: &str) -> Option<oneshot::Receiver<()>> {
        let (_, oldest) = self.parked.get(principal)?.first_key_value()?;
        let oldest = oldest.clone();
        self.set_state(&oldest, ParkSlotState::Evicted);
        let place = self.by_id.get_mut(&oldest)?;
        place.evict.notify_one();
        let (owner, left) = (Arc::clone(&place.principal), place.released.take());
        self.evicted.push_back((oldest, owner));
        if self.evicted.len() > MAX_EVICTED {
            self.evicted.pop_front();
        }
        left
    }

    /// How many wait for answers, and the bytes of their questions.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        (self.parked_count, self.parked_bytes)
    }

    /// Whether no call has a place.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.parked.is_empty()
    }

    fn set_state(&mut self, id: &str, standing: ParkSlotState) {
        let Some(place) = self.by_id.get_mut(id) else { return };
        let before = std::mem::replace(&mut place.state, standing);
        let principal = Arc::clone(&place.principal);
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
