//! The slots of upstream connections: enforces their limits and evicts idle ones.
//!
//! A slot belongs to one key for its whole life. An evicted slot is dropped with its connection and never given to
//! another key.

use std::collections::HashMap;
use std::sync::Arc;

use crate::upstream::connections::pool::UpstreamSlot;
use crate::upstream::connections::session_key::{SessionKey, SessionOwner};

/// The slots by the owner that they count for.
pub(crate) struct UpstreamSlots {
    by_owner: HashMap<SessionOwner, HashMap<SessionKey, Arc<UpstreamSlot>>>,
    max_slots: usize,
    max_per_owner: usize,
}

/// Why there is no slot for a further connection: all slots have active calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolFull {
    /// The limit of all owners.
    All(usize),
    /// The limit of this owner.
    PerOwner(usize),
}

impl UpstreamSlots {
    /// Slots with these limits: connections in total, and per principal.
    pub(crate) fn new(max: usize, share: usize) -> Self {
        Self { by_owner: HashMap::new(), max_slots: max, max_per_owner: share }
    }

    /// All slots.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<UpstreamSlot>> {
        self.by_owner.values().flat_map(HashMap::values)
    }

    /// The slot of this key. If it is new and a limit is reached, the slot that was idle longest is evicted: one of the
    /// same principal if its share is used up, so that one principal cannot displace others. The gateway's own slots
    /// are never evicted.
    pub(crate) fn get_or_insert(&mut self, key: SessionKey) -> Result<Arc<UpstreamSlot>, PoolFull> {
        let holder = key.owner.quota_owner();
        let own = self.by_owner.get(&holder);
        if let Some(slot) = own.and_then(|own| own.get(&key)) {
            return Ok(Arc::clone(slot));
        }
        if matches!(holder, SessionOwner::Principal(_))
            && own.is_some_and(|own| own.len() >= self.max_per_owner)
            && !self.evict_idle(|owner| *owner == holder)
        {
            return Err(PoolFull::PerOwner(self.max_per_owner));
        }
        let is_others = |owner: &SessionOwner| *owner != SessionOwner::Gateway;
        if is_others(&holder) && self.count() >= self.max_slots && !self.evict_idle(is_others) {
            return Err(PoolFull::All(self.max_slots));
        }
        let slot = UpstreamSlot::new(Some(key.clone()));
        self.by_owner.entry(holder).or_default().insert(key, Arc::clone(&slot));
        Ok(slot)
    }

    /// The slot of this key, if there is one.
    pub(crate) fn find(&self, key: &SessionKey) -> Option<Arc<UpstreamSlot>> {
        self.by_owner.get(&key.owner.quota_owner())?.get(key).map(Arc::clone)
    }

    /// The number of slots without the gateway's own.
    fn count(&self) -> usize {
        let others = self.by_owner.iter().filter(|(holder, _)| **holder != SessionOwner::Gateway);
        others.map(|(_, slots)| slots.len()).sum()
    }

    /// Evicts the slot that was idle longest among those of matching owners, if one is idle.
    fn evict_idle(&mut self, among: impl Fn(&SessionOwner) -> bool) -> bool {
        let held = self.by_owner.iter().filter(|(holder, _)| among(holder));
        let slots = held.flat_map(|(holder, slots)| slots.iter().map(move |slot| (holder, slot)));
        let resting = slots.filter(|(_, (_, slot))| slot.is_idle());
        let longest = resting.min_by_key(|(_, (_, slot))| slot.idle_since());
        let Some((holder, key)) = longest.map(|(holder, (key, _))| (holder.clone(), key.clone()))
        else {
            return false;
        };
        self.retain(|other| *other == holder, |other, _| *other != key);
        true
    }

    /// Removes the slots of matching owners that do not satisfy the condition.
    fn retain(
        &mut self,
        of: impl Fn(&SessionOwner) -> bool,
        stays: impl Fn(&SessionKey, &Arc<UpstreamSlot>) -> bool,
    ) {
        self.by_owner.retain(|holder, slots| {
            if of(holder) {
                slots.retain(|key, slot| stays(key, slot));
            }
            !slots.is_empty()
        });
    }

    /// Removes slots that were idle too long, except the gateway's own.
    pub(crate) fn remove_idle(&mut self, rests_too_long: impl Fn(&UpstreamSlot) -> bool) {
        let of_others = |holder: &SessionOwner| *holder != SessionOwner::Gateway;
        self.retain(of_others, |_, slot| !(slot.is_idle() && rests_too_long(slot)));
    }

    /// Removes the matching slots of all owners. Returns whether there were any.
    pub(crate) fn remove_matching(&mut self, is_left: impl Fn(&UpstreamSlot) -> bool) -> bool {
        let all = |slots: &Self| slots.by_owner.values().map(HashMap::len).sum::<usize>();
        let before = all(self);
        self.retain(|_| true, |_, slot| !is_left(slot));
        all(self) < before
    }

    /// Removes and returns all slots.
    pub(crate) fn take_all(&mut self) -> Vec<Arc<UpstreamSlot>> {
        self.by_owner.drain().flat_map(|(_, slots)| slots.into_values()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::time::Duration;

    use creole::proto::revision::Era;

    use super::*;
    use crate::upstream::connections::capabilities::DeclaredInputs;

    fn principal(name: &str) -> SessionOwner {
        SessionOwner::Principal(name.into())
    }

    fn session(principal: &str, name: &str) -> SessionOwner {
        SessionOwner::ClientSession { principal: principal.into(), name: name.into() }
    }

    /// One of the keys that an owner may have: callers choose the capabilities that they declare.
    fn key(owner: SessionOwner, kind: usize) -> SessionKey {
        let declared = DeclaredInputs { raw: Some(kind.to_string()), ..DeclaredInputs::default() };
        SessionKey { owner, era: Era::Handshake, inputs: declared, exclusive: false, lane: 0 }
    }

    fn has(slots: &UpstreamSlots, owner: SessionOwner, kind: usize) -> bool {
        let key = key(owner, kind);
        slots.by_owner.get(&key.owner.quota_owner()).is_some_and(|slots| slots.contains_key(&key))
    }

    async fn a_moment() {
        tokio::time::advance(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_is_evicted_and_no_other() {
        let mut slots = UpstreamSlots::new(3, 3);
        for name in ["ann", "bob", "cid"] {
            slots.get_or_insert(key(principal(name), 0)).unwrap();
            a_moment().await;
        }
        // Ann has called again meanwhile, so Bob's slot is the oldest.
        slots.get_or_insert(key(principal("ann"), 0)).unwrap().touch();
        slots.get_or_insert(key(principal("dan"), 0)).unwrap();
        let left = ["ann", "bob", "cid", "dan"].map(|name| has(&slots, principal(name), 0));
        assert_eq!(left, [true, false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_with_running_calls_stay_and_more_are_refused() {
        let mut slots = UpstreamSlots::new(2, 2);
        let _running =
            ["ann", "bob"].map(|name| slots.get_or_insert(key(principal(name), 0)).unwrap());
        assert_eq!(slots.get_or_insert(key(principal("cid"), 0)).err(), Some(PoolFull::All(2)));
        assert!(slots.get_or_insert(key(principal("ann"), 0)).is_ok(), "an existing slot is found");
        assert_eq!(slots.count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_with_changing_keys_evicts_only_its_own_connections() {
        let mut slots = UpstreamSlots::new(4, 2);
        slots.get_or_insert(key(principal("ann"), 0)).unwrap();
        slots.get_or_insert(key(session("bob", "his"), 0)).unwrap();
        for kind in 0..100 {
            a_moment().await;
            slots.get_or_insert(key(principal("mallory"), kind)).unwrap();
            // Opening sessions instead does not evade the limit.
            slots.get_or_insert(key(session("mallory", &kind.to_string()), 0)).unwrap();
        }
        assert!(has(&slots, principal("ann"), 0) && has(&slots, session("bob", "his"), 0));
        assert!(has(&slots, principal("mallory"), 99));
        assert_eq!(slots.count(), 4);
        let running =
            [98, 99].map(|kind| slots.get_or_insert(key(principal("mallory"), kind)).unwrap());
        assert_eq!(
            slots.get_or_insert(key(principal("mallory"), 0)).err(),
            Some(PoolFull::PerOwner(2))
        );
        drop(running);
        assert!(slots.get_or_insert(key(principal("mallory"), 0)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_gateways_own_connection_is_always_available() {
        let mut slots = UpstreamSlots::new(1, 1);
        let running = slots.get_or_insert(key(principal("ann"), 0)).unwrap();
        slots.get_or_insert(key(SessionOwner::Gateway, 0)).unwrap();
        a_moment().await;
        assert!(slots.get_or_insert(key(principal("bob"), 0)).is_err());
        drop(running);
        slots.get_or_insert(key(principal("bob"), 0)).unwrap();
        slots.get_or_insert(key(SessionOwner::ListsOnly, 0)).unwrap();
        slots.remove_idle(|_| true);
        assert!(has(&slots, SessionOwner::Gateway, 0));
        assert_eq!(slots.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_never_passes_from_one_key_to_another() {
        let mut slots = UpstreamSlots::new(5, 3);
        let mut seen: Vec<(Weak<UpstreamSlot>, SessionKey)> = Vec::new();
        for step in 0..500_usize {
            a_moment().await;
            let name = ["ann", "bob", "cid", "dan"][step * 7 % 4];
            let owner = match step % 3 {
                0 => session(name, "one"),
                _ => principal(name),
            };
            let key = key(owner, step * 5 % 9);
            let slot = slots.get_or_insert(key.clone()).unwrap();
            for (place, of) in &seen {
                let is_same = std::ptr::eq(place.as_ptr(), Arc::as_ptr(&slot));
                assert!(!is_same || *of == key, "{of:?} became that of {key:?}");
            }
            // The weak reference keeps the allocation, so that a new slot cannot have the address of an old one.
            seen.push((Arc::downgrade(&slot), key));
            assert!(slots.count() <= 5);
        }
    }
}
