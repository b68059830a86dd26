//! Lists as the session of a caller has them: tools come and go during a session, and some servers have tools only for
//! clients that declare a capability or an extension.

use std::sync::Arc;

use creole::call::Context;
use creole::client::Connection;
use creole::proto::client::CallRequest;
use creole::proto::fault::Fault;
use creole::proto::model::{ClientCapabilities, Definition, ListKind};
use creole::proto::operation::Outcome;
use creole::proto::revision::Era;
use creole::{SessionList, SessionLists, UnlistedItem};
use tokio::time::timeout;

use super::catalogue;
use super::keeper::REFRESH;
use super::left_out::Reason;
use super::pool::{Asks, Key, Lease, Owner};
use super::views::Fetched;
use super::{Affinity, Upstream, relay, terms};

/// Fetches lists in one session.
pub(super) struct Asker<'a> {
    connection: &'a Connection,
    /// What the server is told of the caller, where each request says that.
    capabilities: Option<Arc<ClientCapabilities>>,
    /// The caller, where it answers what the server asks meanwhile.
    caller: Option<(&'a mut Lease, &'a Context)>,
}

impl<'a> Asker<'a> {
    /// Fetches lists for the gateway itself.
    pub(super) fn gateway(connection: &'a Connection) -> Self {
        Self { connection, capabilities: None, caller: None }
    }

    pub(super) async fn ask(&mut self, mut request: CallRequest) -> Outcome {
        if let Some(capabilities) = &self.capabilities {
            request.options.capabilities = Arc::clone(capabilities);
        }
        match &mut self.caller {
            None => self.connection.call_without_input(request).await,
            Some((lease, context)) => {
                let mut calling = self.connection.start_call(request);
                relay::follow(&mut calling, lease, context).await
            }
        }
    }
}

/// The session that a caller's lists come from.
pub(super) struct OwnSession {
    pub(super) key: Key,
    /// What the server is told of the caller there.
    pub(super) capabilities: Arc<ClientCapabilities>,
    /// Whether the server keeps no sessions: each request says what the caller can do.
    is_stateless: bool,
}

impl OwnSession {
    /// Whether the server keeps a session for the caller.
    pub(super) fn has_session(&self) -> bool {
        !self.is_stateless
    }

    /// Whether only a call of the caller opens the session. A server asks for roots when a session is opened. Who is
    /// only asked in answers to its calls could not answer otherwise, and the session would do without.
    pub(super) fn opens_with_calls(&self, context: &Context) -> bool {
        self.capabilities.roots && context.caller().rules.era == Era::Stateless
    }
}

impl Upstream {
    /// The session that the calls of this caller use, if it is not the gateway's own one. It need not be open.
    pub(super) fn own_session(&self, context: &Context) -> Option<OwnSession> {
        let capabilities = terms::capabilities(context);
        if self.era_of(context) == Era::Stateless {
            return self.own_capabilities(&capabilities);
        }
        let (key, capabilities) = self.session_key(context, &capabilities);
        let is_own = key.owner != Owner::Gateway;
        is_own.then_some(OwnSession { key, capabilities, is_stateless: false })
    }

    /// What a server without sessions lists by, where a caller can do something.
    fn own_capabilities(&self, capabilities: &Arc<ClientCapabilities>) -> Option<OwnSession> {
        let told = match self.settings.interactive && capabilities.accepts_input_requests() {
            true => Arc::clone(capabilities),
            false => terms::extensions(capabilities)?,
        };
        let (era, asks) = (Era::Stateless, Asks::of(&told));
        let key = Key { owner: Owner::Lists, era, asks, exclusive: false, lane: 0 };
        Some(OwnSession { key, capabilities: told, is_stateless: true })
    }

    /// The session that the lists of this caller come from, if they are not the shared ones. A caller that has not
    /// called yet sees the shared lists, unless it can do something that the server may have tools for.
    fn listing_session(&self, context: &Context) -> Option<OwnSession> {
        let own = self.own_session(context)?;
        if own.is_stateless || self.pool.opened(&own.key).is_some() {
            return Some(own);
        }
        if own.key.asks == Asks::default() {
            return None;
        }
        if own.opens_with_calls(context) {
            let capabilities = Arc::new(ClientCapabilities {
                raw: None,
                tasks: false,
                ..ClientCapabilities::clone(&own.capabilities)
            });
            let (era, asks) = (Era::Handshake, Asks::of(&capabilities));
            let key = Key { owner: Owner::Lists, era, asks, exclusive: true, lane: 0 };
            return Some(OwnSession { key, capabilities, is_stateless: false });
        }
        Some(own)
    }

    /// Whether this caller sees the shared lists.
    pub(crate) fn shares_lists(&self, context: &Context) -> bool {
        self.listing_session(context).is_none()
    }

    /// Whether the list of this caller's session has to be fetched.
    pub(crate) fn is_unseen(&self, kind: ListKind, context: &Context) -> bool {
        let own = self.listing_session(context).filter(|_| self.facts.declares(kind));
        own.is_some_and(|own| !self.views.is_current(kind, &own.key))
    }

    /// Fetches the list of this caller's session, if that is needed. The caller waits for it; if it cannot be fetched,
    /// the list before or the shared one is shown.
    pub(crate) async fn look_for(self: &Arc<Self>, kind: ListKind, context: &Context) {
        let Some(own) = self.listing_session(context) else { return };
        let look = async {
            let Some(fetched) = self.fetch_own(kind, &own, context).await? else {
                return Ok(());
            };
            self.views.set(kind, &own.key, fetched, |items| self.shown(kind, items));
            self.learn_callable(kind);
            Ok::<_, Fault>(())
        };
        // An old list is better than none; if there is none, a server may have to be started first.
        let wait = if self.views.has(kind, &own.key) { REFRESH } else { self.settings.startup };
        match timeout(wait, look).await {
            Ok(Ok(())) => return,
            Ok(Err(fault)) => _ = self.stale(&fault),
            Err(_) => {}
        }
        self.views.set_failed(kind, &own.key);
    }

    /// Fetches a list of a session. Nothing if the server turns out not to speak the era of the session.
    async fn fetch_own(
        &self,
        kind: ListKind,
        own: &OwnSession,
        context: &Context,
    ) -> Result<Option<Fetched>, Fault> {
        let mut lease = None;
        let connection = match own.is_stateless {
            true => self.main().await?,
            false => match self.pool.opened(&own.key) {
                Some(connection) => connection,
                None => match self.lease_own(own, context).await? {
                    Some(opened) => lease.insert(opened).connection.clone(),
                    None => return Ok(None),
                },
            },
        };
        let capabilities = own.is_stateless.then(|| Arc::clone(&own.capabilities));
        // No call is under way in a session that only lists.
        let lists_only = own.key.owner == Owner::Lists;
        let caller = lease.as_mut().filter(|_| !lists_only).map(|lease| (lease, context));
        let mut asker = Asker { connection: &connection, capabilities, caller };
        let listed = Box::pin(catalogue::fetch(&mut asker, kind)).await?;
        let is_announced = connection.greeting().server_info.capabilities.list_changed
            && *connection.notifications_available().borrow()
            && !own.is_stateless;
        // No session stays that could announce a change: the list is fetched again with the shared one.
        let is_announced = is_announced || self.is_for_one_call(&own.key);
        self.left_out.say_more(self.name(), kind, Reason::Definition, listed.excluded);
        let items = self.usable(kind, listed.items, &connection);
        Ok(Some(Fetched { items, cache: listed.cache, is_announced }))
    }

    /// Whether a session ends with the call that it was opened for.
    pub(super) fn is_for_one_call(&self, key: &Key) -> bool {
        let is_of_principal = matches!(key.owner, Owner::Principal(_)) && key.exclusive;
        match self.settings.affinity {
            Affinity::Request => is_of_principal,
            // Of a caller that names no session.
            Affinity::Session => is_of_principal,
            _ => false,
        }
    }

    /// Opens the session of a caller. Nothing if the server turns out not to speak the era of the session.
    pub(super) async fn lease_own(
        &self,
        own: &OwnSession,
        context: &Context,
    ) -> Result<Option<Lease>, Fault> {
        let (key, capabilities) = (own.key.clone(), &own.capabilities);
        let mut lease = match own.key.owner {
            Owner::Lists => Box::pin(self.pool.lease_again(key, capabilities, None)).await?,
            _ => {
                let conversation = context.session_name().cloned();
                let lease = self.pool.lease(key, capabilities, conversation, &self.parking);
                Box::pin(lease).await?
            }
        };
        if lease.connection.greeting().rules.era != own.key.era {
            self.dialer.lacks(own.key.era);
            lease.spoil();
            return Ok(None);
        }
        if self.affinity(context) == Affinity::Request {
            lease.spoil();
        }
        Box::pin(self.prepare(&mut lease, context)).await;
        self.watch_in_new(&lease).await;
        Ok(Some(lease))
    }

    /// A session list as callers see it.
    fn shown(&self, kind: ListKind, items: &[Arc<Definition>]) -> SessionList {
        let chain = &self.settings.chain;
        let shaped = items.iter().filter_map(|item| chain.shape(kind, Arc::clone(item)));
        let shaped: Vec<_> = shaped.collect();
        // Before anybody sees them.
        chain.settle();
        let named = shaped
            .into_iter()
            .filter_map(|item| catalogue::named(kind, &item, &self.settings.naming));
        named.collect()
    }
}

impl SessionLists for Upstream {
    fn list(&self, kind: ListKind, context: &Context) -> Option<SessionList> {
        self.views.list(kind, &self.listing_session(context)?.key)
    }

    fn find(&self, kind: ListKind, name: &str, context: &Context) -> Option<UnlistedItem> {
        if !self.facts.declares(kind) {
            return None;
        }
        let there = self.settings.naming.there(name)?;
        // What is kept out of lists is not called either.
        let is_left_out = self.left_out.has(kind, there) || self.left_out.has(kind, name);
        let list = self.list(kind, context);
        let is_listed = list.is_some_and(|list| list.iter().any(|item| item.name() == name));
        let may_pass = is_listed || self.settings.chain.admits_unlisted(kind, there);
        let is_refused = is_left_out || !may_pass;
        Some(UnlistedItem { name: there.to_owned(), is_listed, is_refused })
    }
}
