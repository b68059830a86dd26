//! Lists of a server as each kind of client sees them: some have tools only for clients that can be asked for what
//! these need.
//!
//! The usual lists are those that the gateway's own conversation sees. What is listed for clients that can be asked for
//! more is seen in a conversation of its own, in which nobody is asked; it is opened when such a client first looks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::call::Context;
use creole::proto::fault::Fault;
use creole::proto::model::{Definition, ListKind};
use creole::proto::revision::Era;
use creole::{Abilities, Audience};
use tokio::time::{Instant, timeout};

use super::catalogue::{self, address};
use super::keeper::REFRESH;
use super::left_out::Reason;
use super::pool::{Asks, Key, Owner};
use super::{Affinity, Upstream};

/// How long the usual list is shown instead of one that could not be fetched.
const PAUSE: Duration = Duration::from_secs(10);

/// What a server lists, and for whom.
#[derive(Default)]
pub(super) struct Kinds(Mutex<BTreeMap<ListKind, Lists>>);

#[derive(Default)]
struct Lists {
    usual: Vec<Arc<Definition>>,
    /// Counts how often the usual list was fetched.
    age: u64,
    special: BTreeMap<Abilities, Special>,
}

/// A list for one kind of client.
#[derive(Default)]
struct Special {
    /// Nothing where the usual list is shown.
    items: Option<Vec<Arc<Definition>>>,
    /// The age of the usual list at which it was fetched.
    age: u64,
    /// When it is fetched again, if it could not be.
    again: Option<Instant>,
}

impl Lists {
    fn is_known(&self, kind: Abilities) -> bool {
        let is_current = |it: &Special| match it.again {
            Some(again) => Instant::now() < again,
            None => it.age == self.age,
        };
        self.special.get(&kind).is_some_and(is_current)
    }
}

impl Kinds {
    /// Notes the usual list; what is listed for others may have changed with it.
    pub(super) fn set_usual(&self, list: ListKind, items: Vec<Arc<Definition>>) {
        let mut all = self.lock();
        let lists = all.entry(list).or_default();
        lists.usual = items;
        lists.age += 1;
    }

    /// Notes what is listed for one kind of client, as it was when the usual list was of this age.
    fn set(&self, list: ListKind, kind: Abilities, items: Vec<Arc<Definition>>, age: u64) {
        let special = Special { items: Some(items), age, again: None };
        self.lock().entry(list).or_default().special.insert(kind, special);
    }

    /// Notes that a list could not be fetched. What was known before is shown for a while.
    fn set_failed(&self, list: ListKind, kind: Abilities) {
        let mut all = self.lock();
        let special = all.entry(list).or_default().special.entry(kind).or_default();
        special.again = Some(Instant::now() + PAUSE);
    }

    /// Whether it is known what is listed for a kind of client. Of a list that the server has not, all is known.
    fn is_known(&self, list: ListKind, kind: Abilities) -> bool {
        self.lock().get(&list).is_none_or(|lists| lists.is_known(kind))
    }

    /// Whether something was listed for a kind of client, be it long ago.
    fn has(&self, list: ListKind, kind: Abilities) -> bool {
        let all = self.lock();
        let special = all.get(&list).and_then(|lists| lists.special.get(&kind));
        special.is_some_and(|special| special.items.is_some())
    }

    /// The number of items in the usual list.
    pub(super) fn count(&self, list: ListKind) -> usize {
        self.lock().get(&list).map_or(0, |lists| lists.usual.len())
    }

    /// Whether the usual list was fetched at least once.
    pub(super) fn was_fetched(&self, list: ListKind) -> bool {
        self.age(list) > 0
    }

    fn age(&self, list: ListKind) -> u64 {
        self.lock().get(&list).map_or(0, |lists| lists.age)
    }

    /// All that is listed for anybody, and for whom. An item is worded as the first who saw it did.
    pub(super) fn all(&self, list: ListKind) -> Vec<(Arc<Definition>, Audience)> {
        let all = self.lock();
        let Some(lists) = all.get(&list) else { return Vec::new() };
        let usual = lists.usual.iter();
        let mut found: Vec<_> = usual.map(|item| (Arc::clone(item), Audience::EVERYBODY)).collect();
        let special = lists.special.iter();
        for (kind, items) in special.filter_map(|(kind, it)| Some((*kind, it.items.as_ref()?))) {
            let mut places: HashMap<String, usize> = HashMap::new();
            for (place, (item, audience)) in found.iter_mut().enumerate() {
                places.insert(address(list, item), place);
                *audience = audience.but(kind);
            }
            for item in items {
                match places.get(&address(list, item)) {
                    Some(place) => found[*place].1 = found[*place].1.and(kind),
                    None => found.push((Arc::clone(item), Audience::NOBODY.and(kind))),
                }
            }
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ListKind, Lists>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upstream {
    /// Whether the server may list something else for this caller, and nobody has looked yet.
    pub(crate) fn is_unseen(&self, list: ListKind, context: &Context) -> bool {
        self.kind_of(context).is_some_and(|kind| !self.kinds.is_known(list, kind))
    }

    /// Looks what the server lists for this caller. Whoever asks for the list waits for that; if it cannot be seen,
    /// the usual list is shown.
    pub(crate) async fn look_for(self: &Arc<Self>, list: ListKind, context: &Context) {
        let Some(kind) = self.kind_of(context) else { return };
        let look = async {
            let _alone = self.refreshing.lock().await;
            if self.kinds.is_known(list, kind) {
                return Ok(());
            }
            let age = self.kinds.age(list);
            let items = self.listed_for(list, kind).await?;
            self.kinds.set(list, kind, items, age);
            self.publish(list);
            Ok(())
        };
        // An old list is better than none; if there is none, a server may have to be started first.
        let wait = if self.kinds.has(list, kind) { REFRESH } else { self.settings.startup };
        match timeout(wait, look).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => {
                self.stale(&fault);
                self.kinds.set_failed(list, kind);
            }
            Err(_) => self.kinds.set_failed(list, kind),
        }
    }

    /// The kind of client that a caller is, where the server may list something else for that kind. Requests that
    /// stand alone are listed the same for everybody (2026-07-28 server/tools, listing tools).
    fn kind_of(&self, context: &Context) -> Option<Abilities> {
        let kind = Abilities::of(context.caller());
        let is_told = self.settings.interactive && self.settings.affinity != Affinity::Shared;
        let usual = || self.asks.get().map_or(Abilities::NONE, |asks| Abilities::from(&**asks));
        let varies = kind != Abilities::NONE && is_told && kind != usual();
        (varies && self.era_of(context) == Era::Handshake).then_some(kind)
    }

    async fn listed_for(
        &self,
        list: ListKind,
        kind: Abilities,
    ) -> Result<Vec<Arc<Definition>>, Fault> {
        let capabilities = Arc::new(kind.capabilities());
        // No call is under way in it, so questions are refused at once.
        let (era, asks) = (Era::Handshake, Asks::of(&capabilities));
        let key = Key { owner: Owner::Lists, era, asks, exclusive: true, lane: 0 };
        let lease = Box::pin(self.pool.lease_again(key, &capabilities, None)).await?;
        let listed = Box::pin(catalogue::fetch(&lease.connection, list)).await?;
        self.left_out.say_more(self.name(), list, Reason::Definition, listed.excluded);
        Ok(self.usable(list, listed.items, &lease.connection))
    }
}

#[cfg(test)]
mod tests {
    use creole::proto::model::ClientCapabilities;

    use super::*;

    fn tool(name: &str) -> Arc<Definition> {
        let text = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        Arc::new(Definition::relayed(ListKind::Tools, &text, None).unwrap())
    }

    fn seen(kinds: &Kinds, kind: Abilities) -> Vec<String> {
        let all = kinds.all(ListKind::Tools).into_iter();
        let seen = all.filter(|(_, audience)| audience.has(kind));
        seen.map(|(item, _)| item.name().to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_kind_of_client_sees_its_own_list_or_else_the_usual_one() {
        let form = ClientCapabilities { elicitation_form: true, ..Default::default() };
        let (form, none) = (Abilities::from(&form), Abilities::NONE);
        let roots = ClientCapabilities { roots: true, ..Default::default() };
        let (roots, kinds) = (Abilities::from(&roots), Kinds::default());
        assert!(kinds.is_known(ListKind::Tools, form), "a list that is not there");
        kinds.set_usual(ListKind::Tools, vec![tool("echo"), tool("plain")]);
        assert!(!kinds.is_known(ListKind::Tools, form));
        kinds.set(ListKind::Tools, form, vec![tool("echo"), tool("ask")], 1);
        assert!(kinds.is_known(ListKind::Tools, form));
        assert_eq!(seen(&kinds, none), ["echo", "plain"]);
        assert_eq!(seen(&kinds, form), ["echo", "ask"]);
        assert_eq!(seen(&kinds, roots), ["echo", "plain"]);
        kinds.set_usual(ListKind::Tools, vec![tool("echo")]);
        assert!(!kinds.is_known(ListKind::Tools, form), "it may have changed too");
        assert_eq!(seen(&kinds, form), ["echo", "ask"], "until it is fetched again");
        kinds.set_failed(ListKind::Tools, roots);
        assert!(kinds.is_known(ListKind::Tools, roots));
        assert_eq!(seen(&kinds, roots), ["echo"]);
        tokio::time::advance(PAUSE).await;
        assert!(!kinds.is_known(ListKind::Tools, roots));
    }
}
