//! Which conversation with a server a call belongs into.

use std::sync::Arc;

use creole::call::{Call, Context};
use creole::client::Connection;
use creole::proto::fault::Fault;
use creole::proto::model::{ClientCapabilities, Level};

use super::Upstream;
use super::pool::{Asks, Key, Lease, Owner};

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
    /// Each call has its own: for servers that must not remember the call before. A server of the stateless era is
    /// believed to do so by itself.
    Request,
}

impl Upstream {
    /// The gateway's own conversation: for lists and notifications.
    pub(super) async fn main(&self) -> Result<Connection, Fault> {
        let capabilities = self.asks.get().cloned().unwrap_or_default();
        let lease = self.pool.lease(self.main_key(), &capabilities, None, &self.parking);
        let lease = Box::pin(lease).await?;
        Ok(lease.connection.clone())
    }

    fn main_key(&self) -> Key {
        let asks = self.asks.get().map(|asks| Asks::of(asks)).unwrap_or_default();
        Key { owner: Owner::Gateway, asks, exclusive: false, lane: 0 }
    }

    /// The conversation that a call belongs into, and what may be asked there.
    pub(super) fn key(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
        is_stateless: bool,
    ) -> (Key, Arc<ClientCapabilities>) {
        let context = &call.context;
        let nothing = || Arc::clone(&self.nothing);
        let main = || (self.main_key(), self.asks.get().cloned().unwrap_or_else(nothing));
        if is_stateless || self.settings.affinity == Affinity::Shared {
            return main();
        }
        let principal = || Owner::Principal(context.principal().into());
        let asks =
            self.settings.interactive && call.operation.may_ask() && capabilities.can_be_asked();
        let is_single = self.settings.affinity == Affinity::Single;
        if is_single && (!asks || Asks::of(capabilities) == self.main_key().asks) {
            return main();
        }
        if self.settings.affinity == Affinity::Request {
            let (asks, told) = match asks {
                true => (Asks::of(capabilities), Arc::clone(capabilities)),
                false => (Asks::default(), nothing()),
            };
            return (Key { owner: principal(), asks, exclusive: true, lane: 0 }, told);
        }
        if !asks {
            return (
                Key { owner: principal(), asks: Asks::default(), exclusive: false, lane: 0 },
                nothing(),
            );
        }
        let (owner, exclusive) = match context.conversation() {
            Some(name) => {
                let (principal, name) = (context.principal().into(), Arc::clone(name));
                (Owner::Conversation { principal, name }, false)
            }
            None => (principal(), !self.dialer.attributes_questions()),
        };
        (Key { owner, asks: Asks::of(capabilities), exclusive, lane: 0 }, Arc::clone(capabilities))
    }
}

/// Has a session send the messages that its caller wants to hear; more harm nobody.
pub(super) async fn set_level(lease: &Lease, context: &Context) {
    let greeting = lease.connection.greeting();
    let Some(wanted) = context.caller().log else { return };
    let sets = greeting.rules.session_log_level && greeting.card.capabilities.logging;
    // A session's own default is what its client would hear without us.
    let is_usual = context.caller().rules.session_log_level && wanted == Level::Info;
    if sets && !is_usual && lease.lowers_level(wanted) {
        // A server that refuses goes on as it is.
        _ = Box::pin(lease.connection.set_level(wanted)).await;
    }
}
