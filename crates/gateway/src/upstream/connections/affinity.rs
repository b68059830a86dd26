//! Which conversation with a server a call belongs into.

use std::borrow::Cow;
use std::sync::Arc;

use creole::call::{Call, Context};
use creole::client::Connection;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{ClientCapabilities, Level};
use creole::proto::revision::Era;
use creole::proto::wire::{Raw, hex, unquote};
use creole::seal;

use crate::upstream::Upstream;
use crate::upstream::connections::pool::{DeclaredInputs, SessionKey, SessionOwner, UpstreamLease};
use crate::upstream::forward::upstream_request;

/// Which callers share a conversation with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Each has its own.
    #[default]
    Principal,
    /// There is one caller, so there is one conversation, in which it can be asked.
    Single,
    /// All share one: for servers that keep nothing of those who call.
    Shared,
    /// Each session of a client has its own: that of the handshake era, or the one that a call [names](session). A call
    /// in none has one for itself.
    Session,
    /// Each call has its own: for servers that must not remember the call before. A server of the stateless era is
    /// believed to do so by itself.
    Request,
}

impl Upstream {
    /// The gateway's own conversation: for lists and notifications.
    pub(crate) async fn gateway_connection(&self) -> Result<Connection, Fault> {
        let capabilities = self.gateway_capabilities.get().cloned().unwrap_or_default();
        let client = |slot| self.gateway_session_client(slot);
        Box::pin(self.pool.open_session(self.gateway_session_key(), &capabilities, client)).await
    }

    fn gateway_session_key(&self) -> SessionKey {
        let asks = self
            .gateway_capabilities
            .get()
            .map(|asks| DeclaredInputs::of(asks))
            .unwrap_or_default();
        let era = self.gateway_session_era();
        SessionKey { owner: SessionOwner::Gateway, era, inputs: asks, exclusive: false, lane: 0 }
    }

    /// The era that is wanted for the gateway's own conversation: that of its only caller, else the newest.
    fn gateway_session_era(&self) -> Era {
        self.only_era.get().copied().unwrap_or(Era::Stateless)
    }

    /// The gateway's own conversation of this era: the main one, if that is of it.
    fn gateway_session_key_in(&self, era: Era) -> SessionKey {
        let main = self.gateway_session_key();
        match main.era == era || self.connector.era_for(main.era) == era {
            true => main,
            false => SessionKey { era, ..main },
        }
    }

    /// The era that a caller is served in, as far as that is known: its own, unless the server lacks it.
    pub(crate) fn serving_era(&self, context: &Context) -> Era {
        self.connector.era_for(context.caller().rules.era)
    }

    /// The conversation of a call, and the era that it is of. Whether the server speaks the caller's era may turn out
    /// only now; what was opened to find that out is left then.
    pub(crate) async fn lease(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<UpstreamLease, Fault> {
        let era = self.serving_era(&call.context);
        let lease = self.lease_in_era(call, capabilities, era).await?;
        let spoken = lease.connection.greeting().rules.era;
        if spoken == era {
            return Ok(lease);
        }
        self.connector.note_missing_era(era);
        if self.call_session_key(call, capabilities, era).0 != self.gateway_session_key() {
            lease.retire_connection();
        }
        drop(lease);
        Box::pin(self.lease_in_era(call, capabilities, spoken)).await
    }

    async fn lease_in_era(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> Result<UpstreamLease, Fault> {
        let (key, asks) = self.call_session_key(call, capabilities, era);
        let conversation = call.context.session_name().cloned();
        self.pool.lease(key, &asks, conversation, &self.parked_calls).await
    }

    /// Sends log messages that belong to no call to the caller's own session from now on. A session that several callers
    /// share may say something of another caller.
    pub(crate) fn route_logs(&self, lease: &UpstreamLease, context: &Context) {
        let is_own = self.settings.affinity == Affinity::Single || !lease.is_shared();
        if is_own && lease.connection.greeting().server_info.capabilities.logging {
            lease.active_call.route_logs(context);
        }
    }

    /// Refuses a call that gives its session a name that is none.
    pub(crate) fn check_session_name(&self, context: &Context) -> Result<(), Fault> {
        match self.settings.affinity {
            Affinity::Session => requested_session_name(context).map(drop),
            _ => Ok(()),
        }
    }

    /// Which callers share a conversation with this one.
    pub(crate) fn affinity(&self, context: &Context) -> Affinity {
        match self.settings.affinity {
            Affinity::Session if session_name(context).is_none() => Affinity::Request,
            affinity => affinity,
        }
    }

    /// The conversation that a call belongs into, and what may be asked there.
    pub(crate) fn call_session_key(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> (SessionKey, Arc<ClientCapabilities>) {
        self.session_key_for(&call.context, call.operation.may_require_input(), capabilities, era)
    }

    /// The session that the calls of a caller use: of those that may ask something, where it has two.
    pub(crate) fn caller_session_key(
        &self,
        context: &Context,
        capabilities: &Arc<ClientCapabilities>,
    ) -> (SessionKey, Arc<ClientCapabilities>) {
        self.session_key_for(context, true, capabilities, Era::Handshake)
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
        if era == Era::Stateless || affinity == Affinity::Shared {
            return main();
        }
        let principal = || SessionOwner::Principal(context.principal().into());
        let named =
            |name| SessionOwner::ClientSession { principal: context.principal().into(), name };
        let own = || match affinity {
            Affinity::Session => session_name(context).map_or_else(principal, named),
            _ => principal(),
        };
        let asks = self.settings.interactive && may_ask && capabilities.accepts_input_requests();
        // Who cannot be asked may still know extensions, for which some servers have tools.
        let told = match asks {
            true => Some(Arc::clone(capabilities)),
            false => upstream_request::extensions_only(capabilities),
        };
        let is_single = affinity == Affinity::Single;
        let is_main = |told| DeclaredInputs::of(told) == self.gateway_session_key().inputs;
        if is_single && told.as_deref().is_none_or(is_main) {
            return main();
        }
        if affinity == Affinity::Request {
            let asks = told.as_deref().map(DeclaredInputs::of).unwrap_or_default();
            let key =
                SessionKey { owner: principal(), era, inputs: asks, exclusive: true, lane: 0 };
            return (key, told.unwrap_or_else(nothing));
        }
        if !asks {
            let asks = told.as_deref().map(DeclaredInputs::of).unwrap_or_default();
            let key = SessionKey { owner: own(), era, inputs: asks, exclusive: false, lane: 0 };
            return (key, told.unwrap_or_else(nothing));
        }
        let (owner, exclusive) = match context.session_name() {
            Some(name) => (named(Arc::clone(name)), false),
            None => {
                let own = if capabilities.roots { owner_of_roots(own(), context) } else { own() };
                (own, !self.connector.attributes_input_requests())
            }
        };
        let asks = DeclaredInputs::of(capabilities);
        (SessionKey { owner, era, inputs: asks, exclusive, lane: 0 }, Arc::clone(capabilities))
    }
}

/// The owner of a conversation whose server may be told folders: they are those of one client. Of the clients of one
/// principal that stand alone, nothing but their self-descriptions tells them apart.
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

/// The member of `_meta` by which a call that stands alone names the session that it belongs to.
const SESSION_META_KEY: &str = "creole/session";

/// The longest name of a session.
const MAX_SESSION_NAME: usize = 128;

/// The session of its client that a call belongs to. The specification has servers of its stateless era give out
/// identifiers of their own for what they keep between calls; here the client gives one to a server that has none.
fn session_name(context: &Context) -> Option<Arc<str>> {
    let own = || {
        requested_session_name(context)
            .ok()
            .flatten()
            .map(|name| format!("{NAMED_PREFIX}{name}").into())
    };
    context.session_name().cloned().or_else(own)
}

/// The name of a session that a call gives.
fn requested_session_name(context: &Context) -> Result<Option<Cow<'_, str>>, Fault> {
    let beyond = context.caller().extra.as_ref();
    let meta = beyond.and_then(|beyond| beyond.meta.as_ref()).and_then(Raw::as_object);
    let Some(given) = meta.and_then(|meta| meta.get(SESSION_META_KEY)) else { return Ok(None) };
    let is_name = |name: &Cow<'_, str>| (1..=MAX_SESSION_NAME).contains(&name.len());
    let name = unquote(given).filter(is_name).ok_or_else(|| {
        let detail =
            format!("`_meta.{SESSION_META_KEY}` must be a text of 1 to {MAX_SESSION_NAME} bytes");
        Fault::new(FaultKind::InvalidParams, detail)
    })?;
    Ok(Some(name))
}

/// The prefix of the names of sessions that calls give.
const NAMED_PREFIX: &str = "named ";

/// The prefix of the names of sessions that belong to one client whose requests stand alone.
const CLIENT_PREFIX: &str = "client ";

/// Whether a session of this name belongs to a principal and to no connection or session of a client.
pub(crate) fn has_no_connection(name: &str) -> bool {
    name.starts_with(NAMED_PREFIX) || name.starts_with(CLIENT_PREFIX)
}

/// Has a session send the messages that its caller wants to hear; more harm nobody.
pub(crate) async fn set_level(lease: &UpstreamLease, context: &Context) {
    let greeting = lease.connection.greeting();
    let Some(wanted) = context.caller().log else { return };
    let sets = greeting.rules.session_log_level && greeting.server_info.capabilities.logging;
    // A session's own default is what its client would hear without us.
    let is_usual = context.caller().rules.session_log_level && wanted == Level::Info;
    if sets && !is_usual && lease.claim_lower_level(wanted) {
        // A server that refuses goes on as it is.
        _ = Box::pin(lease.connection.set_level(wanted)).await;
    }
}
