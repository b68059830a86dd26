//! Renews the resource subscriptions of a session that continues in this process.

use std::sync::{Arc, Weak};

use creole_proto::model::InputRequest;
use creole_proto::operation::{Event, Operation};
use creole_proto::server::{Call as Started, CallKey, InputResponse};
use creole_proto::wire::Raw;

use crate::call::{ClientChannel, ConnectionId};
use crate::chain::BoxFuture;
use crate::host::{FrameSink, MachineHost};

/// Subscribes again to the resources that the session's client watches. Must be called within a tokio runtime.
pub(crate) fn resubscribe<S: FrameSink>(host: &Arc<MachineHost<S>>) {
    let (uris, caller) = {
        let state = host.lock();
        let uris: Vec<String> = state.machine.subscribed_uris().map(str::to_owned).collect();
        (uris, state.machine.session_caller())
    };
    if uris.is_empty() {
        return;
    }
    let (service, origin) = (host.service.clone(), host.origin.clone());
    let (watching, id) = (Arc::downgrade(host), host.id());
    tokio::spawn(async move {
        for uri in uris {
            let operation = Operation::Subscribe { uri: uri.clone() };
            let started = Started { key: CallKey(0), operation, caller: caller.clone() };
            // An upstream that no longer exists sends no updates, so a failure is ignored.
            service.start_call(started, Arc::new(DetachedChannel(id)), origin.clone()).0.await;
            if !is_watched(&watching, &uri) {
                service.registry().subscription_ended(&uri, id);
            }
        }
    });
}

/// Whether the client is still subscribed: it may have disconnected or unsubscribed meanwhile.
fn is_watched<S: FrameSink>(host: &Weak<MachineHost<S>>, uri: &str) -> bool {
    let host = host.upgrade();
    host.is_some_and(|host| host.lock().machine.subscribed_uris().any(|watched| watched == uri))
}

/// A channel of which nothing is read, for calls that are repeated on behalf of a connection.
struct DetachedChannel(ConnectionId);

impl ClientChannel for DetachedChannel {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        _: CallKey,
        _: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(std::future::ready(Err("a subscription cannot request input".to_owned())))
    }

    fn connection_id(&self) -> ConnectionId {
        self.0
    }
}
