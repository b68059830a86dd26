//! Who waits for answers, and who has to make room.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};

use super::{MOST_OF_ONE, Resume};

/// The most bytes of questions that wait to be answered at one server.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Calls that are over and whose outcome is still kept.
const MOST_OVER: usize = 64;

/// Calls that were given up and whose callers are told so when they come back.
const MOST_GIVEN_UP: usize = 1024;

/// The calls of one server, by names that nobody can guess.
pub(super) struct Places {
    /// How many may wait for answers.
    most: usize,
    all: HashMap<String, Place>,
    /// Those that wait for answers, of each caller, the oldest first.
    parked: HashMap<Arc<str>, BTreeMap<u64, String>>,
    /// How many these are, and the bytes of their questions.
    count: usize,
    bytes: usize,
    /// How many are over.
    over: usize,
    /// Counts questions, so that it is known which wait longest.
    asked: u64,
    /// The names of calls that made room, and whose they were, the oldest first.
    given_up: VecDeque<(String, Arc<str>)>,
}

/// The place of one call.
pub(super) struct Place {
    principal: Arc<str>,
    commands: mpsc::Sender<Resume>,
    standing: Standing,
    /// Told to make room.
    give_up: Arc<Notify>,
    /// Ends when the call has left its place.
    left: Option<oneshot::Receiver<()>>,
}

/// How a call stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Somebody waits for it.
    Awaited,
    /// It waits for answers since then, and nobody for it; its questions have so many bytes.
    Parked(u64, usize),
    /// It was told to make room.
    GivenUp,
    /// It has ended.
    Over,
}

/// Where somebody who comes back is led to.
pub(super) enum Found {
    /// To the one who stays with the call.
    Here(mpsc::Sender<Resume>),
    /// Nowhere: the call had to make room.
    GivenUp,
    /// Nowhere: no such call of this caller is known.
    Not,
}

impl Place {
    pub(super) fn new(
        principal: &str,
        commands: mpsc::Sender<Resume>,
        give_up: Arc<Notify>,
        left: oneshot::Receiver<()>,
    ) -> Self {
        let standing = Standing::Awaited;
        Self { principal: principal.into(), commands, standing, give_up, left: Some(left) }
    }
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        let (all, parked, given_up) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { most, all, parked, count: 0, bytes: 0, over: 0, asked: 0, given_up }
    }

    pub(super) fn insert(&mut self, id: String, place: Place) {
        self.all.insert(id, place);
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.stand(id, Standing::GivenUp);
        self.all.remove(id);
    }

    pub(super) fn find(&self, id: &str, principal: &str) -> Found {
        let was_given_up = |(name, owner): &(String, Arc<str>)| name == id && **owner == *principal;
        if self.given_up.iter().any(was_given_up) {
            return Found::GivenUp;
        }
        match self.all.get(id).filter(|place| *place.principal == *principal) {
            Some(place) => Found::Here(place.commands.clone()),
            None => Found::Not,
        }
    }

    /// Has a call wait for answers to questions of so many bytes, if there is room for one more or its caller's
    /// oldest can make some.
    pub(super) fn park(&mut self, id: &str, bytes: usize) -> bool {
        let Some(principal) = self.all.get(id).map(|place| Arc::clone(&place.principal)) else {
            return false;
        };
        let of_one = self.parked.get(&principal).map_or(0, BTreeMap::len);
        let is_full = self.count >= self.most
            || of_one >= MOST_OF_ONE
            || self.bytes.saturating_add(bytes) > MOST_BYTES;
        if is_full && self.give_up_oldest(&principal).is_none() {
            return false;
        }
        self.asked += 1;
        self.stand(id, Standing::Parked(self.asked, bytes));
        true
    }

    /// Somebody waits for the call again, unless it was given up.
    pub(super) fn unpark(&mut self, id: &str) -> bool {
        let is_here = self.all.get(id).is_some_and(|it| it.standing != Standing::GivenUp);
        if is_here {
            self.stand(id, Standing::Awaited);
        }
        is_here
    }

    /// Notes that a call has ended; tells whether its outcome may be kept.
    pub(super) fn keep(&mut self, id: &str) -> bool {
        self.stand(id, Standing::Over);
        self.over <= MOST_OVER
    }

    /// Has the call of this caller make room that waits longest for answers; what is given back ends when it has.
    pub(super) fn give_up_oldest(&mut self, principal: &str) -> Option<oneshot::Receiver<()>> {
        let (_, oldest) = self.parked.get(principal)?.first_key_value()?;
        let oldest = oldest.clone();
        self.stand(&oldest, Standing::GivenUp);
        let place = self.all.get_mut(&oldest)?;
        place.give_up.notify_one();
        let (owner, left) = (Arc::clone(&place.principal), place.left.take());
        self.given_up.push_back((oldest, owner));
        if self.given_up.len() > MOST_GIVEN_UP {
            self.given_up.pop_front();
        }
        left
    }

    /// How many wait for answers, and the bytes of their questions.
    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize) {
        (self.count, self.bytes)
    }

    /// Whether no call has a place.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.parked.is_empty()
    }

    fn stand(&mut self, id: &str, standing: Standing) {
        let Some(place) = self.all.get_mut(id) else { return };
        let before = std::mem::replace(&mut place.standing, standing);
        let principal = Arc::clone(&place.principal);
        match before {
            Standing::Parked(since, bytes) => {
                self.count -= 1;
                self.bytes -= bytes;
                if let Some(of_one) = self.parked.get_mut(&principal) {
                    of_one.remove(&since);
                    if of_one.is_empty() {
                        self.parked.remove(&principal);
                    }
                }
            }
            Standing::Over => self.over -= 1,
            Standing::Awaited | Standing::GivenUp => {}
        }
        match standing {
            Standing::Parked(since, bytes) => {
                self.count += 1;
                self.bytes += bytes;
                self.parked.entry(principal).or_default().insert(since, id.to_owned());
            }
            Standing::Over => self.over += 1,
            Standing::Awaited | Standing::GivenUp => {}
        }
    }
}
