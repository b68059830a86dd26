//! Resources that are in no list: they are requested from the upstreams.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::fault::FaultKind;
use creole_proto::operation::{Operation, Outcome};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Registry;
use crate::call::{Call, Context};
use crate::chain::Endpoint;

/// How long an upstream may take before the next one is tried too. The first one that has a resource provides it,
/// unless it is too slow.
const HEAD_START: Duration = Duration::from_millis(500);

impl Registry {
    /// Requests a resource that is in no list from the upstreams; `None` if none has it. An upstream that fails does
    /// not stop the others: its fault is returned only if no other one has the resource.
    pub(super) async fn read_unlisted(
        &self,
        operation: &Operation,
        context: &Context,
    ) -> Option<Outcome> {
        let mut next = self.resource_endpoints().into_iter().peekable();
        let (mut asked, mut fault) = (JoinSet::new(), None);
        loop {
            if let Some(endpoint) = next.next() {
                let call = Call { operation: operation.clone(), context: context.clone() };
                asked.spawn(async move { endpoint.call(call).await });
            }
            let answer = match next.peek() {
                // After the head start, the next one is tried too.
                Some(_) => timeout(HEAD_START, asked.join_next()).await.ok().flatten(),
                None if asked.is_empty() => return fault,
                None => asked.join_next().await,
            };
            match answer {
                Some(Ok(Outcome::Fail(it))) if is_not_found(it.kind) => {}
                Some(Ok(Outcome::Fail(it))) => _ = fault.get_or_insert(Outcome::Fail(it)),
                Some(Ok(outcome)) => return Some(outcome),
                Some(Err(broken)) => _ = broken.try_into_panic().map(resume_unwind),
                // It is slow.
                None => {}
            }
        }
    }

    /// The endpoints of the upstreams that have resources, in the order of their lists.
    fn resource_endpoints(&self) -> Vec<Arc<dyn Endpoint>> {
        let state = self.read();
        let with_resources =
            state.remote_servers.values().filter(|offer| offer.capabilities.resources);
        with_resources.map(|offer| Arc::clone(&offer.endpoint)).collect()
    }
}

/// Whether an upstream reports that the resource does not exist. One without the method has no resources either.
fn is_not_found(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::ResourceNotFound | FaultKind::MethodNotFound)
}
