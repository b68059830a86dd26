//! Lists of callers' sessions: tools may change during a session, and some upstreams have tools only for clients that
//! declare a capability or an extension.

use std::sync::Arc;

use creole::Context;
use creole::internal::registry::{SessionList, SessionLists, UnlistedItem};
use creole::proto::fault::Fault;
use creole::proto::model::{ClientCapabilities, Definition, ListKind};
use creole::proto::revision::{InputRequestStyle, Rules};
use tokio::time::timeout;

use crate::upstream::connections::capabilities;
use crate::upstream::connections::capabilities::DeclaredInputs;
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::connections::session_key::{SESSION_ERA, SessionKey, SessionOwner};
use crate::upstream::lists::UpstreamLists;
use crate::upstream::lists::excluded_items::ExclusionReason;
use crate::upstream::lists::list_fetch::{self, FetchPurpose, ListFetcher};
use crate::upstream::lists::list_store::FetchedSessionList;
use crate::upstream::lists::list_sync::REFRESH_TIMEOUT;
use crate::upstream::observed_start::record_starts;
use crate::upstream::relay;
use crate::upstream::settings::Affinity;

/// The session that a caller's lists come from.
pub(crate) struct CallerSession {
    pub(crate) key: SessionKey,
    /// The capabilities that are declared there.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// Whether the upstream keeps no sessions, so that each request declares the capabilities.
    is_stateless: bool,
}

impl CallerSession {
    /// Whether the upstream keeps a session for the caller.
    pub(crate) fn has_session(&self) -> bool {
        !self.is_stateless
    }

    /// Whether only a call of the caller opens the session. An upstream requests roots when a session opens. A caller
    /// that gets input requests only as outcomes of its calls could not respond, and the session would have no roots.
    pub(crate) fn is_opened_by_calls(&self, context: &Context) -> bool {
        let style = context.caller().rules.input_request_style;
        self.capabilities.roots && style == InputRequestStyle::MultiRoundTrip
    }
}

impl UpstreamLists {
    /// The session that the calls of this caller use, if it is not the gateway's own one. It may not be open.
    pub(crate) fn caller_session(&self, context: &Context) -> Option<CallerSession> {
        let capabilities = capabilities::caller_capabilities(context);
        if !self.sessions.serving_era(context).rules().has_sessions {
            return self.stateless_session(&capabilities);
        }
        let (key, capabilities) = self.sessions.caller_session_key(context, &capabilities);
        let is_own = key.owner != SessionOwner::Gateway;
        is_own.then_some(CallerSession { key, capabilities, is_stateless: false })
    }

    /// The session of a caller with capabilities at an upstream without sessions.
    fn stateless_session(&self, capabilities: &Arc<ClientCapabilities>) -> Option<CallerSession> {
        let told = match self.settings.interactive && capabilities.accepts_input_requests() {
            true => Arc::clone(capabilities),
            false => capabilities::extensions_only(capabilities)?,
        };
        let (era, declared) = (Rules::CANONICAL.era, DeclaredInputs::of(&told));
        let key = SessionKey {
            owner: SessionOwner::ListsOnly,
            era,
            inputs: declared,
            exclusive: false,
            lane: 0,
        };
        Some(CallerSession { key, capabilities: told, is_stateless: true })
    }

    /// The session that the lists of this caller come from, if they are not the shared ones. A caller that has made no
    /// call yet sees the shared lists, unless it has a capability that the upstream may have tools for.
    fn listing_session(&self, context: &Context) -> Option<CallerSession> {
        let own = self.caller_session(context)?;
        if own.is_stateless || self.sessions.pool.connection_if_open(&own.key).is_some() {
            return Some(own);
        }
        if own.key.inputs == DeclaredInputs::default() {
            return None;
        }
        if own.is_opened_by_calls(context) {
            let capabilities = Arc::new(ClientCapabilities {
                raw: None,
                tasks: false,
                ..ClientCapabilities::clone(&own.capabilities)
            });
            let (era, declared) = (SESSION_ERA, DeclaredInputs::of(&capabilities));
            let key = SessionKey {
                owner: SessionOwner::ListsOnly,
                era,
                inputs: declared,
                exclusive: true,
                lane: 0,
            };
            return Some(CallerSession { key, capabilities, is_stateless: false });
        }
        Some(own)
    }

    /// Whether this caller sees the shared lists.
    pub(crate) fn shares_lists(&self, context: &Context) -> bool {
        self.listing_session(context).is_none()
    }

    /// Whether the list of this caller's session must be fetched.
    pub(crate) fn needs_list_fetch(&self, kind: ListKind, context: &Context) -> bool {
        let own = self.listing_session(context).filter(|_| self.status_record.declares(kind));
        own.is_some_and(|own| !self.store.is_current(kind, &own.key))
    }

    /// Fetches the list of this caller's session, if needed. The caller waits for it. After a failure the previous list
    /// or the shared one is shown.
    pub(crate) async fn fetch_list_for(&self, kind: ListKind, context: &Context) {
        let Some(own) = self.listing_session(context) else { return };
        let look = async {
            let Some(fetched) = self.fetch_session_list(kind, &own, context).await? else {
                return Ok(());
            };
            self.store
                .set_session_list(kind, &own.key, fetched, |items| self.visible_list(kind, items));
            self.index_tools(kind);
            Ok::<_, Fault>(())
        };
        // A stale list is better than none. Without one, a program may have to start first.
        let wait = if self.store.has_session_list(kind, &own.key) {
            REFRESH_TIMEOUT
        } else {
            self.settings.startup_timeout
        };
        match timeout(wait, look).await {
            Ok(Ok(())) => return,
            Ok(Err(fault)) => _ = self.log_refetch_failure(&fault),
            Err(_) => {}
        }
        self.store.set_failed(kind, &own.key);
    }

    /// Fetches a list of a session. `None` if the upstream lacks the era of the session.
    async fn fetch_session_list(
        &self,
        kind: ListKind,
        own: &CallerSession,
        context: &Context,
    ) -> Result<Option<FetchedSessionList>, Fault> {
        let mut lease = None;
        let connection = match own.is_stateless {
            true => self.sessions.gateway_connection().await?,
            false => match self.sessions.pool.connection_if_open(&own.key) {
                Some(connection) => connection,
                None => match self.lease_recorded_session(own, context).await? {
                    Some(opened) => lease.insert(opened).connection.clone(),
                    None => return Ok(None),
                },
            },
        };
        let capabilities = own.is_stateless.then(|| Arc::clone(&own.capabilities));
        // No call is active in a session that only lists.
        let lists_only = own.key.owner == SessionOwner::ListsOnly;
        let caller = lease.as_mut().filter(|_| !lists_only).map(|lease| (lease, context));
        let mut fetcher = ListFetcher {
            connection: &connection,
            capabilities,
            caller,
            settings: &self.settings,
            metrics: self.sessions.metrics.as_deref(),
            purpose: FetchPurpose::Caller(context),
        };
        let listed = Box::pin(list_fetch::fetch(&mut fetcher, kind)).await?;
        let is_announced = connection.greeting().server_info.capabilities.list_changed
            && *connection.notifications_available().borrow()
            && !own.is_stateless;
        // No open session could announce a change: the list is fetched again together with the shared one.
        let is_announced = is_announced || self.is_for_one_call(&own.key);
        self.excluded_items.extend(self.name(), kind, ExclusionReason::Definition, listed.excluded);
        let items = self.exclude_invalid_headers(kind, listed.items, &connection);
        Ok(Some(FetchedSessionList { items, cache: listed.cache, is_announced }))
    }

    /// Whether a session ends with the call that it was opened for.
    pub(crate) fn is_for_one_call(&self, key: &SessionKey) -> bool {
        let is_of_principal = matches!(key.owner, SessionOwner::Principal(_)) && key.exclusive;
        match self.settings.affinity {
            Affinity::Request => is_of_principal,
            // The session of a caller that names none.
            Affinity::Session => is_of_principal,
            _ => false,
        }
    }

    /// The same as [`Self::lease_caller_session`]. A start of the upstream is a step of the caller's request.
    async fn lease_recorded_session(
        &self,
        own: &CallerSession,
        context: &Context,
    ) -> Result<Option<UpstreamLease>, Fault> {
        let leasing = self.lease_caller_session(own, context);
        match context.recorded_step() {
            Some((record, parent)) => record_starts(record, parent, leasing).await,
            None => leasing.await,
        }
    }

    /// Opens the session of a caller. `None` if the upstream lacks the era of the session.
    pub(crate) async fn lease_caller_session(
        &self,
        own: &CallerSession,
        context: &Context,
    ) -> Result<Option<UpstreamLease>, Fault> {
        let (key, capabilities) = (own.key.clone(), &own.capabilities);
        let mut lease = match own.key.owner {
            SessionOwner::ListsOnly => {
                Box::pin(self.sessions.pool.lease_for_task(key, capabilities, None)).await?
            }
            _ => {
                let session = context.session_name().cloned();
                let lease = self.sessions.pool.lease(key, capabilities, session);
                Box::pin(lease).await?
            }
        };
        if !lease.connection.greeting().rules.is_of(own.key.era) {
            self.sessions.connector.note_missing_era(own.key.era);
            lease.retire_connection();
            return Ok(None);
        }
        if self.sessions.affinity(context) == Affinity::Request {
            lease.retire_connection();
        }
        relay::prepare_session(&self.settings, &mut lease, context).await;
        self.resubscribe_in_new(&lease).await;
        Ok(Some(lease))
    }

    /// A session list as callers see it.
    fn visible_list(&self, kind: ListKind, items: &[Arc<Definition>]) -> SessionList {
        let chain = &self.settings.chain;
        let shaped =
            items.iter().filter_map(|item| chain.rewrite_definition(kind, Arc::clone(item)));
        let shaped: Vec<_> = shaped.collect();
        // Saved before a client sees the definitions.
        chain.save_definitions();
        let named = shaped
            .into_iter()
            .filter_map(|item| list_fetch::named_definition(kind, &item, &self.settings.naming));
        named.collect()
    }
}

impl SessionLists for UpstreamLists {
    fn list(&self, kind: ListKind, context: &Context) -> Option<SessionList> {
        self.store.session_list(kind, &self.listing_session(context)?.key)
    }

    fn find(&self, kind: ListKind, name: &str, context: &Context) -> Option<UnlistedItem> {
        if !self.status_record.declares(kind) {
            return None;
        }
        let there = self.settings.naming.upstream_name(name)?;
        // Items that are excluded from lists cannot be called either.
        let is_left_out =
            self.excluded_items.contains(kind, there) || self.excluded_items.contains(kind, name);
        let list = self.list(kind, context);
        let is_listed = list.is_some_and(|list| list.iter().any(|item| item.name() == name));
        let may_pass = is_listed || self.settings.chain.admits_unlisted(kind, there);
        let is_refused = is_left_out || !may_pass;
        Some(UnlistedItem { name: there.to_owned(), is_listed, is_refused })
    }
}
