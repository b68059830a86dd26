//! Who waits for answers, and who has to make room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};

use super::{MOST_OF_ONE, Resume};

/// Calls of one server that wait for answers.
const MOST: usize = 64;

/// Calls that are over and whose outcome is still kept.
const MOST_OVER: usize = 64;

/// Calls that were given up and whose callers are told so when they come back.
const MOST_GIVEN_UP: usize = 1024;

/// The calls of one server, by names that nobody can guess.
#[derive(Default)]
pub(super) struct Places {
    all: HashMap<String, Place>,
    /// Counts questions, so that it is known which wait longest.
    asked: u64,
    /// The names of calls that made room, and whose they were.
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
    /// It waits for answers since then, and nobody for it.
    Parked(u64),
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

    fn is_parked(&self) -> bool {
        matches!(self.standing, Standing::Parked(_))
    }
}

impl Places {
    pub(super) fn insert(&mut self, id: String, place: Place) {
        self.all.insert(id, place);
    }

    pub(super) fn remove(&mut self, id: &str) {
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

    /// Has a call wait for answers, if there is room for one more or its caller's oldest can make some.
    pub(super) fn park(&mut self, id: &str) -> bool {
        let Some(principal) = self.all.get(id).map(|place| Arc::clone(&place.principal)) else {
            return false;
        };
        let parked = self.all.values().filter(|place| place.is_parked());
        let of_one = parked.clone().filter(|place| place.principal == principal).count();
        let is_full = parked.count() >= MOST || of_one >= MOST_OF_ONE;
        if is_full && self.give_up_oldest(&principal).is_none() {
            return false;
        }
        self.asked += 1;
        self.stand(id, Standing::Parked(self.asked));
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
        let over = self.all.values().filter(|place| place.standing == Standing::Over).count();
        self.stand(id, Standing::Over);
        over < MOST_OVER
    }

    /// Has the call of this caller make room that waits longest for answers; what is given back ends when it has.
    pub(super) fn give_up_oldest(&mut self, principal: &str) -> Option<oneshot::Receiver<()>> {
        let parked_since = |place: &Place| match place.standing {
            Standing::Parked(since) if *place.principal == *principal => Some(since),
            _ => None,
        };
        let all = self.all.iter().filter_map(|(id, place)| Some((parked_since(place)?, id)));
        let (_, oldest) = all.min()?;
        let oldest = oldest.clone();
        let place = self.all.get_mut(&oldest)?;
        place.standing = Standing::GivenUp;
        place.give_up.notify_one();
        let (owner, left) = (Arc::clone(&place.principal), place.left.take());
        self.given_up.push_back((oldest, owner));
        if self.given_up.len() > MOST_GIVEN_UP {
            self.given_up.pop_front();
        }
        left
    }

    fn stand(&mut self, id: &str, standing: Standing) {
        if let Some(place) = self.all.get_mut(id) {
            place.standing = standing;
        }
    }
}
