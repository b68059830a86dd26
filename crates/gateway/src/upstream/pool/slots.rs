//! The places of conversations with one server: how many there may be, and which one makes room for another.
//!
//! A place belongs to one key as long as it is there. One that has to go is dropped with its conversation and never
//! given to somebody else.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Key, Owner, Slot};

/// The places, by whom they are counted for.
pub(super) struct Slots {
    of: HashMap<Owner, HashMap<Key, Arc<Slot>>>,
    most: usize,
    share: usize,
}

/// Why there is no place for one more conversation: calls run in all that there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Of everybody.
    All(usize),
    /// Of whoever wants it.
    Share(usize),
}

impl Slots {
    /// Room for so many conversations, and for so many of them of one principal.
    pub(super) fn new(most: usize, share: usize) -> Self {
        Self { of: HashMap::new(), most, share }
    }

    /// The place of this key. If it is new and there is no room, what has rested longest goes: of the same principal
    /// where its share is used up, so that nobody pushes others out by being many; never the gateway's own.
    pub(super) fn place(&mut self, key: Key) -> Result<Arc<Slot>, Full> {
        let holder = key.owner.holder();
        let own = self.of.get(&holder);
        if let Some(slot) = own.and_then(|own| own.get(&key)) {
            return Ok(Arc::clone(slot));
        }
        if matches!(holder, Owner::Principal(_))
            && own.is_some_and(|own| own.len() >= self.share)
            && !self.drop_resting(|owner| *owner == holder)
        {
            return Err(Full::Share(self.share));
        }
        let is_others = |owner: &Owner| *owner != Owner::Gateway;
        if is_others(&holder) && self.count() >= self.most && !self.drop_resting(is_others) {
            return Err(Full::All(self.most));
        }
        let slot = Slot::new(Some(key.clone()));
        self.of.entry(holder).or_default().insert(key, Arc::clone(&slot));
        Ok(slot)
    }

    /// The place of this key, if there is one.
    pub(super) fn find(&self, key: &Key) -> Option<Arc<Slot>> {
        self.of.get(&key.owner.holder())?.get(key).map(Arc::clone)
    }

    /// How many there are, but for the gateway's own, which it always has.
    fn count(&self) -> usize {
        let others = self.of.iter().filter(|(holder, _)| **holder != Owner::Gateway);
        others.map(|(_, slots)| slots.len()).sum()
    }

    /// Drops the conversation that has rested longest among those of some holders, if one rests.
    fn drop_resting(&mut self, among: impl Fn(&Owner) -> bool) -> bool {
        let held = self.of.iter().filter(|(holder, _)| among(holder));
        let slots = held.flat_map(|(holder, slots)| slots.iter().map(move |slot| (holder, slot)));
        let resting = slots.filter(|(_, (_, slot))| slot.rests());
        let longest = resting.min_by_key(|(_, (_, slot))| slot.rests_since());
        let Some((holder, key)) = longest.map(|(holder, (key, _))| (holder.clone(), key.clone()))
        else {
            return false;
        };
        self.retain(|other| *other == holder, |other, _| *other != key);
        true
    }

    /// Forgets the places of these holders that are not to stay.
    fn retain(&mut self, of: impl Fn(&Owner) -> bool, stays: impl Fn(&Key, &Arc<Slot>) -> bool) {
        self.of.retain(|holder, slots| {
            if of(holder) {
                slots.retain(|key, slot| stays(key, slot));
            }
            !slots.is_empty()
        });
    }

    /// Forgets conversations that rest too long, except the gateway's own.
    pub(super) fn forget(&mut self, rests_too_long: impl Fn(&Slot) -> bool) {
        let of_others = |holder: &Owner| *holder != Owner::Gateway;
        self.retain(of_others, |_, slot| !(slot.rests() && rests_too_long(slot)));
    }

    /// Forgets these, whoever has them; tells whether there were any.
    pub(super) fn leave(&mut self, is_left: impl Fn(&Slot) -> bool) -> bool {
        let all = |slots: &Self| slots.of.values().map(HashMap::len).sum::<usize>();
        let before = all(self);
        self.retain(|_| true, |_, slot| !is_left(slot));
        all(self) < before
    }

    /// Takes all of them.
    pub(super) fn take(&mut self) -> Vec<Arc<Slot>> {
        self.of.drain().flat_map(|(_, slots)| slots.into_values()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::time::Duration;

    use creole::proto::revision::Era;

    use super::super::Asks;
    use super::*;

    fn principal(name: &str) -> Owner {
        Owner::Principal(name.into())
    }

    fn session(principal: &str, name: &str) -> Owner {
        Owner::Conversation { principal: principal.into(), name: name.into() }
    }

    /// One of the conversations that somebody may have: callers choose what they say they can do.
    fn key(owner: Owner, kind: usize) -> Key {
        let asks = Asks { raw: Some(kind.to_string()), ..Asks::default() };
        Key { owner, era: Era::Handshake, asks, exclusive: false, lane: 0 }
    }

    fn has(slots: &Slots, owner: Owner, kind: usize) -> bool {
        let key = key(owner, kind);
        slots.of.get(&key.owner.holder()).is_some_and(|slots| slots.contains_key(&key))
    }

    async fn a_moment() {
        tokio::time::advance(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_conversation_that_rested_longest_makes_room_and_no_other() {
        let mut slots = Slots::new(3, 3);
        for name in ["ann", "bob", "cid"] {
            slots.place(key(principal(name), 0)).unwrap();
            a_moment().await;
        }
        // Ann called again meanwhile, so Bob's is the oldest.
        slots.place(key(principal("ann"), 0)).unwrap().touch();
        slots.place(key(principal("dan"), 0)).unwrap();
        let left = ["ann", "bob", "cid", "dan"].map(|name| has(&slots, principal(name), 0));
        assert_eq!(left, [true, false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn conversations_in_which_calls_run_stay_and_more_are_refused() {
        let mut slots = Slots::new(2, 2);
        let _running = ["ann", "bob"].map(|name| slots.place(key(principal(name), 0)).unwrap());
        assert_eq!(slots.place(key(principal("cid"), 0)).err(), Some(Full::All(2)));
        assert!(slots.place(key(principal("ann"), 0)).is_ok(), "what is there is found");
        assert_eq!(slots.count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_who_says_something_else_each_time_pushes_only_itself_out() {
        let mut slots = Slots::new(4, 2);
        slots.place(key(principal("ann"), 0)).unwrap();
        slots.place(key(session("bob", "his"), 0)).unwrap();
        for kind in 0..100 {
            a_moment().await;
            slots.place(key(principal("mallory"), kind)).unwrap();
            // Opening sessions instead is no way around it.
            slots.place(key(session("mallory", &kind.to_string()), 0)).unwrap();
        }
        assert!(has(&slots, principal("ann"), 0) && has(&slots, session("bob", "his"), 0));
        assert!(has(&slots, principal("mallory"), 99));
        assert_eq!(slots.count(), 4);
        let running = [98, 99].map(|kind| slots.place(key(principal("mallory"), kind)).unwrap());
        assert_eq!(slots.place(key(principal("mallory"), 0)).err(), Some(Full::Share(2)));
        drop(running);
        assert!(slots.place(key(principal("mallory"), 0)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_gateways_own_conversation_is_always_there() {
        let mut slots = Slots::new(1, 1);
        let running = slots.place(key(principal("ann"), 0)).unwrap();
        slots.place(key(Owner::Gateway, 0)).unwrap();
        a_moment().await;
        assert!(slots.place(key(principal("bob"), 0)).is_err());
        drop(running);
        slots.place(key(principal("bob"), 0)).unwrap();
        slots.place(key(Owner::Lists, 0)).unwrap();
        slots.forget(|_| true);
        assert!(has(&slots, Owner::Gateway, 0));
        assert_eq!(slots.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_never_passes_from_one_key_to_another() {
        let mut slots = Slots::new(5, 3);
        let mut seen: Vec<(Weak<Slot>, Key)> = Vec::new();
        for step in 0..500_usize {
            a_moment().await;
            let name = ["ann", "bob", "cid", "dan"][step * 7 % 4];
            let owner = match step % 3 {
                0 => session(name, "one"),
                _ => principal(name),
            };
            let key = key(owner, step * 5 % 9);
            let slot = slots.place(key.clone()).unwrap();
            for (place, of) in &seen {
                let is_same = std::ptr::eq(place.as_ptr(), Arc::as_ptr(&slot));
                assert!(!is_same || *of == key, "{of:?} became that of {key:?}");
            }
            // What is remembered here keeps the memory, so that a new place is not mistaken for an old one.
            seen.push((Arc::downgrade(&slot), key));
            assert!(slots.count() <= 5);
        }
    }
}
