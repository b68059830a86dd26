//! Affinity: decides which upstream session a call uses.

use std::borrow::Cow;
use std::sync::Arc;

use creole::internal::client::Connection;
use creole::internal::seal;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{ClientCapabilities, Level};
use creole::proto::revision::{Era, Rules};
use creole::proto::wire::{Raw, hex, unquote};
use creole::{Call, Context};

use crate::upstream::connections::UpstreamSessions;
use crate::upstream::connections::capabilities;
use crate::upstream::connections::capabilities::DeclaredInputs;
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::connections::session_client::SessionClient;
use crate::upstream::connections::session_key::{SESSION_ERA, SessionKey, SessionOwner};
use crate::upstream::settings::Affinity;

impl UpstreamSessions {
    /// The gateway's own connection, for lists and notifications.
    pub(crate) async fn gateway_connection(&self) -> Result<Connection, Fault> {
        let capabilities = self.gateway_capabilities.get().cloned().unwrap_or_default();
        let client = |slot| {
            let session = self.only_session.get().filter(|_| self.settings.interactive)?;
            Some(SessionClient::new(session.clone(), &self.settings, slot))
        };
        Box::pin(self.pool.open_session(self.gateway_session_key(), &capabilities, client)).await
    }

    fn gateway_session_key(&self) -> SessionKey {
        let declared = self
            .gateway_capabilities
            .get()
            .map(|capabilities| DeclaredInputs::of(capabilities))
            .unwrap_or_default();
        let era = self.gateway_session_era();
        SessionKey {
            owner: SessionOwner::Gateway,
            era,
            inputs: declared,
            exclusive: false,
            lane: 0,
        }
    }

    /// The preferred era of the gateway's own session: that of the only caller, else the newest.
    fn gateway_session_era(&self) -> Era {
        self.only_era.get().copied().unwrap_or(Rules::CANONICAL.era)
    }

    /// The key of the gateway's own session of this era: the main one, if it has that era.
    fn gateway_session_key_in(&self, era: Era) -> SessionKey {
        let (main, main_era) = (self.gateway_session_key(), self.gateway_session_era());
        match main_era == era || self.connector.era_for(main_era) == era {
            true => main,
            false => SessionKey { era, ..main },
        }
    }

    /// The era that the gateway uses for a caller, as far as it is known: the caller's own, unless the upstream lacks
    /// it.
    pub(crate) fn serving_era(&self, context: &Context) -> Era {
        self.connector.era_for(context.caller().rules.era)
    }

    /// A lease for a call, and the era of its session. Opening a session may show that the upstream lacks the caller's
    /// era. That session is then left, and one of the other era is leased.
    pub(crate) async fn lease(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<UpstreamLease, Fault> {
        let era = self.serving_era(&call.context);
        let lease = self.lease_in_era(call, capabilities, era).await?;
        let rules = lease.connection.greeting().rules;
        if rules.is_of(era) {
            return Ok(lease);
        }
        self.connector.note_missing_era(era);
        if self.call_session_key(call, capabilities, era).0 != self.gateway_session_key() {
            lease.retire_connection();
        }
        drop(lease);
        Box::pin(self.lease_in_era(call, capabilities, rules.era)).await
    }

    async fn lease_in_era(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> Result<UpstreamLease, Fault> {
        let (key, asks) = self.call_session_key(call, capabilities, era);
        let session = call.context.session_name().cloned();
        self.pool.lease(key, &asks, session).await
    }

    /// Routes log messages that belong to no call to the caller's own session from now on. Sessions that several
    /// callers share are exempt, since their messages may reveal another caller's data.
    pub(crate) fn route_logs(&self, lease: &UpstreamLease, context: &Context) {
        let is_own = self.settings.affinity == Affinity::Single || !lease.is_shared();
        if is_own && lease.connection.greeting().server_info.capabilities.logging {
            lease.active_call.route_logs(context);
        }
    }

    /// Rejects a call with an invalid session name.
    pub(crate) fn check_session_name(&self, context: &Context) -> Result<(), Fault> {
        match self.settings.affinity {
            Affinity::Session => requested_session_name(context).map(drop),
            _ => Ok(()),
        }
    }

    /// The affinity that applies to this caller.
    pub(crate) fn affinity(&self, context: &Context) -> Affinity {
        match self.settings.affinity {
            Affinity::Session if session_name(context).is_none() => Affinity::Request,
            affinity => affinity,
        }
    }

    /// The key of the session for a call, and the capabilities to declare there.
    pub(crate) fn call_session_key(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> (SessionKey, Arc<ClientCapabilities>) {
        self.session_key_for(&call.context, call.operation.may_require_input(), capabilities, era)
    }

    /// The key of the session that a caller's calls use. If it has two, the one that allows input requests.
    pub(crate) fn caller_session_key(
        &self,
        context: &Context,
        capabilities: &Arc<ClientCapabilities>,
    ) -> (SessionKey, Arc<ClientCapabilities>) {
        self.session_key_for(context, true, capabilities, SESSION_ERA)
    }

    fn session_key_for(
        &self,
        context: &Context,
        may_ask: bool,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> (SessionKey, Arc<ClientCapabilities>) {
        let nothing = || Arc::clone(&self.no_capabilities);
        let main = || {
            (
                self.gateway_session_key_in(era),
                self.gateway_capabilities.get().cloned().unwrap_or_else(nothing),
            )
        };
        let affinity = self.affinity(context);
        if !era.rules().has_sessions || affinity == Affinity::Shared {
            return main();
        }
        let principal = || SessionOwner::Principal(Arc::clone(context.principal().binding()));
        let named = |name| {
            let principal = Arc::clone(context.principal().binding());
            SessionOwner::ClientSession { principal, name }
        };
        let own = || match affinity {
            Affinity::Session => session_name(context).map_or_else(principal, named),
            _ => principal(),
        };
        let may_request_input =
            self.settings.interactive && may_ask && capabilities.accepts_input_requests();
        // A caller that accepts no input requests may still support extensions, for which some upstreams have tools.
        let told = match may_request_input {
            true => Some(Arc::clone(capabilities)),
            false => capabilities::extensions_only(capabilities),
        };
        let is_single = affinity == Affinity::Single;
        let is_main = |told| DeclaredInputs::of(told) == self.gateway_session_key().inputs;
        if is_single && told.as_deref().is_none_or(is_main) {
            return main();
        }
        if affinity == Affinity::Request {
            let declared = told.as_deref().map(DeclaredInputs::of).unwrap_or_default();
            let key =
                SessionKey { owner: principal(), era, inputs: declared, exclusive: true, lane: 0 };
            return (key, told.unwrap_or_else(nothing));
        }
        if !may_request_input {
            let declared = told.as_deref().map(DeclaredInputs::of).unwrap_or_default();
            let key = SessionKey { owner: own(), era, inputs: declared, exclusive: false, lane: 0 };
            return (key, told.unwrap_or_else(nothing));
        }
        let (owner, exclusive) = match context.session_name() {
            Some(name) => (named(Arc::clone(name)), false),
            None => {
                let own = if capabilities.roots { owner_of_roots(own(), context) } else { own() };
                (own, !self.connector.attributes_input_requests())
            }
        };
        let declared = DeclaredInputs::of(capabilities);
        (SessionKey { owner, era, inputs: declared, exclusive, lane: 0 }, Arc::clone(capabilities))
    }
}

/// The owner of a session whose upstream may request roots: the roots are those of one client. Stateless clients of one
/// principal are distinguished only by their client information.
fn owner_of_roots(owner: SessionOwner, context: &Context) -> SessionOwner {
    match owner {
        SessionOwner::Principal(principal) => {
            let client = context.caller().client.as_ref().map_or("", Raw::as_str);
            let digest = hex(&seal::digest(client.as_bytes())[..16]);
            SessionOwner::ClientSession {
                principal,
                name: format!("{CLIENT_PREFIX}{digest}").into(),
            }
        }
        other => other,
    }
}

/// The `_meta` member by which a stateless call names its session.
const SESSION_META_KEY: &str = "creole/session";

/// The maximum length of a session name.
const MAX_SESSION_NAME: usize = 128;

/// The client session that a call belongs to. The specification lets servers of the stateless era issue their own
/// identifiers for state between calls. Here the client supplies one for an upstream that has none.
fn session_name(context: &Context) -> Option<Arc<str>> {
    let own = || {
        requested_session_name(context)
            .ok()
            .flatten()
            .map(|name| format!("{NAMED_PREFIX}{name}").into())
    };
    context.session_name().cloned().or_else(own)
}

/// The session name in a call's `_meta`.
fn requested_session_name(context: &Context) -> Result<Option<Cow<'_, str>>, Fault> {
    let extra = context.caller().extra.as_ref();
    let meta = extra.and_then(|extra| extra.meta.as_ref()).and_then(Raw::as_object);
    let Some(text) = meta.and_then(|meta| meta.get(SESSION_META_KEY)) else { return Ok(None) };
    let is_name = |name: &Cow<'_, str>| (1..=MAX_SESSION_NAME).contains(&name.len());
    let name = unquote(text).filter(is_name).ok_or_else(|| {
        let detail =
            format!("`_meta.{SESSION_META_KEY}` must be a string of 1 to {MAX_SESSION_NAME} bytes");
        Fault::new(FaultKind::InvalidParams, detail)
    })?;
    Ok(Some(name))
}

/// The prefix of session names that calls supply.
const NAMED_PREFIX: &str = "named ";

/// The prefix of session names that stand for one stateless client.
const CLIENT_PREFIX: &str = "client ";

/// Whether a session of this name belongs to a principal and not to a connection or session of a client.
pub(crate) fn has_no_connection(name: &str) -> bool {
    name.starts_with(NAMED_PREFIX) || name.starts_with(CLIENT_PREFIX)
}

/// Sets the log level of a session so that it covers the caller's level. Additional messages are harmless.
pub(crate) async fn set_level(lease: &UpstreamLease, context: &Context) {
    let greeting = lease.connection.greeting();
    let Some(level) = context.caller().log else { return };
    let sets = greeting.rules.session_log_level && greeting.server_info.capabilities.logging;
    // Without the gateway, the client would receive messages of the session's default level.
    let is_usual = context.caller().rules.session_log_level && level == Level::Info;
    if sets && !is_usual && lease.claim_lower_level(level) {
        // An upstream that refuses keeps its level.
        _ = Box::pin(lease.connection.set_level(level)).await;
    }
}
