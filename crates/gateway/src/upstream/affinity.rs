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

use super::pool::{Asks, Key, Lease, Owner};
use super::{Upstream, terms};

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
    pub(super) async fn main(&self) -> Result<Connection, Fault> {
        let capabilities = self.asks.get().cloned().unwrap_or_default();
        let client = |slot| self.only_client(slot);
        Box::pin(self.pool.connect(self.main_key(), &capabilities, client)).await
    }

    fn main_key(&self) -> Key {
        let asks = self.asks.get().map(|asks| Asks::of(asks)).unwrap_or_default();
        let era = self.main_era();
        Key { owner: Owner::Gateway, era, asks, exclusive: false, lane: 0 }
    }

    /// The era that is wanted for the gateway's own conversation: that of its only caller, else the newest.
    fn main_era(&self) -> Era {
        self.only_era.get().copied().unwrap_or(Era::Stateless)
    }

    /// The gateway's own conversation of this era: the main one, if that is of it.
    fn shared_key(&self, era: Era) -> Key {
        let main = self.main_key();
        match main.era == era || self.dialer.era_for(main.era) == era {
            true => main,
            false => Key { era, ..main },
        }
    }

    /// The era that a caller is served in, as far as that is known: its own, unless the server lacks it.
    pub(super) fn era_of(&self, context: &Context) -> Era {
        self.dialer.era_for(context.caller().rules.era)
    }

    /// The conversation of a call, and the era that it is of. Whether the server speaks the caller's era may turn out
    /// only now; what was opened to find that out is left then.
    pub(super) async fn lease(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<Lease, Fault> {
        let era = self.era_of(&call.context);
        let lease = self.lease_in(call, capabilities, era).await?;
        let spoken = lease.connection.greeting().rules.era;
        if spoken == era {
            return Ok(lease);
        }
        self.dialer.lacks(era);
        if self.key(call, capabilities, era).0 != self.main_key() {
            lease.spoil();
        }
        drop(lease);
        Box::pin(self.lease_in(call, capabilities, spoken)).await
    }

    async fn lease_in(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> Result<Lease, Fault> {
        let (key, asks) = self.key(call, capabilities, era);
        let conversation = call.context.session_name().cloned();
        self.pool.lease(key, &asks, conversation, &self.parking).await
    }

    /// Sends log messages that belong to no call to the caller's own session from now on. A session that several callers
    /// share may say something of another caller.
    pub(super) fn hear_logs(&self, lease: &Lease, context: &Context) {
        let is_own = self.settings.affinity == Affinity::Single || !lease.is_shared();
        if is_own && lease.connection.greeting().server_info.capabilities.logging {
            lease.joined.hear_logs(context);
        }
    }

    /// Refuses a call that gives its session a name that is none.
    pub(super) fn check_session(&self, context: &Context) -> Result<(), Fault> {
        match self.settings.affinity {
            Affinity::Session => named(context).map(drop),
            _ => Ok(()),
        }
    }

    /// Which callers share a conversation with this one.
    pub(super) fn affinity(&self, context: &Context) -> Affinity {
        match self.settings.affinity {
            Affinity::Session if session(context).is_none() => Affinity::Request,
            affinity => affinity,
        }
    }

    /// The conversation that a call belongs into, and what may be asked there.
    pub(super) fn key(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> (Key, Arc<ClientCapabilities>) {
        self.key_for(&call.context, call.operation.may_require_input(), capabilities, era)
    }

    /// The session that the calls of a caller use: of those that may ask something, where it has two.
    pub(super) fn session_key(
        &self,
        context: &Context,
        capabilities: &Arc<ClientCapabilities>,
    ) -> (Key, Arc<ClientCapabilities>) {
        self.key_for(context, true, capabilities, Era::Handshake)
    }

    fn key_for(
        &self,
        context: &Context,
        may_ask: bool,
        capabilities: &Arc<ClientCapabilities>,
        era: Era,
    ) -> (Key, Arc<ClientCapabilities>) {
        let nothing = || Arc::clone(&self.nothing);
        let main = || (self.shared_key(era), self.asks.get().cloned().unwrap_or_else(nothing));
        let affinity = self.affinity(context);
        if era == Era::Stateless || affinity == Affinity::Shared {
            return main();
        }
        let principal = || Owner::Principal(context.principal().into());
        let named = |name| Owner::Conversation { principal: context.principal().into(), name };
        let own = || match affinity {
            Affinity::Session => session(context).map_or_else(principal, named),
            _ => principal(),
        };
        let asks = self.settings.interactive && may_ask && capabilities.accepts_input_requests();
        // Who cannot be asked may still know extensions, for which some servers have tools.
        let told = match asks {
            true => Some(Arc::clone(capabilities)),
            false => terms::extensions(capabilities),
        };
        let is_single = affinity == Affinity::Single;
        let is_main = |told| Asks::of(told) == self.main_key().asks;
        if is_single && told.as_deref().is_none_or(is_main) {
            return main();
        }
        if affinity == Affinity::Request {
            let asks = told.as_deref().map(Asks::of).unwrap_or_default();
            let key = Key { owner: principal(), era, asks, exclusive: true, lane: 0 };
            return (key, told.unwrap_or_else(nothing));
        }
        if !asks {
            let asks = told.as_deref().map(Asks::of).unwrap_or_default();
            let key = Key { owner: own(), era, asks, exclusive: false, lane: 0 };
            return (key, told.unwrap_or_else(nothing));
        }
        let (owner, exclusive) = match context.session_name() {
            Some(name) => (named(Arc::clone(name)), false),
            None => {
                let own = if capabilities.roots { rooted(own(), context) } else { own() };
                (own, !self.dialer.attributes_questions())
            }
        };
        let asks = Asks::of(capabilities);
        (Key { owner, era, asks, exclusive, lane: 0 }, Arc::clone(capabilities))
    }
}

/// The owner of a conversation whose server may be told folders: they are those of one client. Of the clients of one
/// principal that stand alone, nothing but their self-descriptions tells them apart.
fn rooted(owner: Owner, context: &Context) -> Owner {
    match owner {
        Owner::Principal(principal) => {
            let client = context.caller().client.as_ref().map_or("", Raw::as_str);
            let digest = hex(&seal::digest(client.as_bytes())[..16]);
            Owner::Conversation { principal, name: format!("{CLIENT}{digest}").into() }
        }
        other => other,
    }
}

/// The member of `_meta` by which a call that stands alone names the session that it belongs to.
const SESSION: &str = "creole/session";

/// The longest name of a session.
const LONGEST_NAME: usize = 128;

/// The session of its client that a call belongs to. The specification has servers of its stateless era give out
/// identifiers of their own for what they keep between calls; here the client gives one to a server that has none.
fn session(context: &Context) -> Option<Arc<str>> {
    let own = || named(context).ok().flatten().map(|name| format!("{NAMED}{name}").into());
    context.session_name().cloned().or_else(own)
}

/// The name of a session that a call gives.
fn named(context: &Context) -> Result<Option<Cow<'_, str>>, Fault> {
    let beyond = context.caller().extra.as_ref();
    let meta = beyond.and_then(|beyond| beyond.meta.as_ref()).and_then(Raw::as_object);
    let Some(given) = meta.and_then(|meta| meta.get(SESSION)) else { return Ok(None) };
    let is_name = |name: &Cow<'_, str>| (1..=LONGEST_NAME).contains(&name.len());
    let name = unquote(given).filter(is_name).ok_or_else(|| {
        let detail = format!("`_meta.{SESSION}` must be a text of 1 to {LONGEST_NAME} bytes");
        Fault::new(FaultKind::InvalidParams, detail)
    })?;
    Ok(Some(name))
}

/// The prefix of the names of sessions that calls give.
const NAMED: &str = "named ";

/// The prefix of the names of sessions that belong to one client whose requests stand alone.
const CLIENT: &str = "client ";

/// Whether a session of this name belongs to a principal and to no connection or session of a client.
pub(super) fn has_no_connection(name: &str) -> bool {
    name.starts_with(NAMED) || name.starts_with(CLIENT)
}

/// Has a session send the messages that its caller wants to hear; more harm nobody.
pub(super) async fn set_level(lease: &Lease, context: &Context) {
    let greeting = lease.connection.greeting();
    let Some(wanted) = context.caller().log else { return };
    let sets = greeting.rules.session_log_level && greeting.server_info.capabilities.logging;
    // A session's own default is what its client would hear without us.
    let is_usual = context.caller().rules.session_log_level && wanted == Level::Info;
    if sets && !is_usual && lease.lowers_level(wanted) {
        // A server that refuses goes on as it is.
        _ = Box::pin(lease.connection.set_level(wanted)).await;
    }
}
