//! Going on with a call of a process that is gone, where the server lets its stream be taken up again: the answers are
//! posted in the session of the other process, and what follows is read from where that one left off. The call is not
//! made again.

use std::sync::Arc;

use creole::call::Call;
use creole::client::Address;
use creole::client::http::ResumedServer;
use creole::proto::model::TaskPreference;
use creole::proto::operation::Outcome;
use creole::proto::revision::Revision;

use super::callers::Callers;
use super::kept::Parked;
use super::park::Beginning;
use super::passing::finish;
use super::pool::Lease;
use super::{Upstream, terms};

impl Upstream {
    /// What comes of a call whose process is gone; nothing if it cannot be gone on with.
    pub(super) async fn take_over(&self, parked: &Parked, call: &Call) -> Option<Outcome> {
        let Address::Http(target) = &self.settings.way else { return None };
        let context = &call.context;
        let trace = self.parking.claim(parked, context.principal()).await?;
        let rules = Revision::from_name(&trace.version)?.rules();
        let resumed =
            ResumedServer::new(target.clone(), rules, trace.whereabouts(), trace.messages());
        let capabilities = terms::capabilities(context);
        let callers = Callers::default();
        // Joined first: it asks as soon as it goes on.
        let joined = callers.join(context.session_name().cloned());
        let offer = callers.offer(&capabilities);
        let opened = self.dialer.adopt(resumed, rules, trace.number, &offer).await;
        let connection = opened.ok()?;
        let lease = Lease::alone(connection.clone(), joined);
        let operation = call.operation.clone();
        let request =
            terms::request(operation, context, &capabilities, TaskPreference::Never, rules);
        let answered = trace.answers(context);
        let may_repeat = self.may_repeat(&call.operation);
        let beginning = Beginning { request, mirrors: Arc::default(), answered, may_repeat };
        let outcome = self.parking.follow(beginning, lease, context).await;
        Some(finish(outcome, call, &connection))
    }
}
