//! On what terms a call is passed on: what its caller can be asked for and wants to hear.

use std::sync::Arc;

use creole::call::Context;
use creole::proto::client::{Request, Terms};
use creole::proto::model::{ClientCapabilities, Tasking};
use creole::proto::op::{Operation, Reentry};
use creole::proto::wire::Raw;

use super::kept::Kept;

/// What a caller can be asked for by another server: what it can do, in words of its revision.
pub(super) fn capabilities(context: &Context) -> Arc<ClientCapabilities> {
    let caller = context.caller();
    let knows = caller.rules.elicitation != creole::proto::revision::Elicitation::Absent;
    let mut capabilities = ClientCapabilities::clone(&caller.capabilities);
    capabilities.elicitation_form &= knows;
    capabilities.elicitation_url &= knows;
    Arc::new(capabilities)
}

/// Whether the caller can be asked anything.
pub(super) fn can_be_asked(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation_form
        || capabilities.elicitation_url
        || capabilities.sampling
        || capabilities.roots
}

/// The call as another server is asked it.
pub(super) fn request(
    operation: Operation,
    context: &Context,
    capabilities: &Arc<ClientCapabilities>,
    tasking: Tasking,
) -> Request {
    let caller = context.caller();
    let terms = Terms {
        capabilities: Arc::clone(capabilities),
        client: caller.client.as_deref().map(Raw::of),
        log: caller.log,
        progress: caller.progress,
        reentry: reentry(context),
        tasking,
        ..Terms::default()
    };
    Request { operation, terms }
}

/// What a server that keeps nothing is called again with.
fn reentry(context: &Context) -> Option<Reentry> {
    let Kept::Relay(state) = Kept::read(context.state()?)? else { return None };
    let answers: std::collections::BTreeMap<_, _> = context.answers().collect();
    let answers = (!answers.is_empty()).then(|| Raw::of(&answers));
    Some(Reentry { answers, state })
}
