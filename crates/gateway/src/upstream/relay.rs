//! One call passed on, for a caller who can be asked while it waits, or who cannot be asked at all.

use std::collections::HashMap;

use creole::call::Context;
use creole::client::{CallEvent, CallStep, PendingCall, ServerInputRequest, ServerNotification};
use creole::proto::client::{InputRequestError, InputRequestKey};
use creole::proto::model::InputRequest;
use creole::proto::operation::{Event, Outcome};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{AbortHandle, JoinSet};

use super::callers::{Aside, Asides, Callers};
use super::outside::{AskedRoots, apply_roots};
use super::pool::Lease;
use super::unmet::Unmet;

/// What happens next to a call.
enum Turn {
    Step(CallStep),
    Aside(Aside),
    /// One of the questions is answered.
    Settled,
    /// A page that was asked to be visited has done its part.
    Visited(String),
}

/// Follows a call to its end. What happens on the way is told to the caller, and what is asked is asked there.
/// Dropping the call cancels it.
pub(super) async fn follow(
    calling: &mut PendingCall,
    lease: &mut Lease,
    context: &Context,
) -> Outcome {
    // Most calls ask nothing and tell nothing: what is needed for that is on the heap.
    let mut asking: Option<Box<Asking>> = None;
    let mut unmet = Unmet::default();
    loop {
        let turn = match &mut asking {
            None => next(calling, &mut lease.joined.asides).await,
            Some(asking) => Box::pin(asking.next(calling, &mut lease.joined.asides)).await,
        };
        match turn {
            Turn::Step(CallStep::Event(CallEvent::Event(event)))
            | Turn::Aside(Aside::Logged(event)) => {
                Box::pin(context.send_event(event)).await;
            }
            Turn::Step(CallStep::Event(CallEvent::InputRequested(asked)))
            | Turn::Aside(Aside::Asked(asked)) => {
                asking.get_or_insert_default().ask(asked, context, lease, &mut unmet);
            }
            Turn::Step(CallStep::Event(CallEvent::InputNotOffered(question))) => {
                unmet.note(question)
            }
            Turn::Step(CallStep::Event(CallEvent::InputWithdrawn(question))) => {
                asking.get_or_insert_default().withdraw(question);
            }
            Turn::Step(CallStep::Done(outcome)) => {
                lease.joined.answered();
                return match lease.joined.asides.try_recv() {
                    None => unmet.judge(outcome, context),
                    Some(aside) => Box::pin(end(outcome, aside, unmet, lease, context)).await,
                };
            }
            Turn::Step(CallStep::Ended(_)) => {
                return super::broken("the call ended without an answer").into();
            }
            Turn::Settled => {}
            Turn::Visited(id) => {
                Box::pin(context.send_event(Event::ElicitationCompleted(id))).await
            }
        }
    }
}

/// Answers what a server asks before it is called, by asking the caller.
pub(super) async fn settle(lease: &mut Lease, context: &Context) {
    lease.heed().await;
    let mut was_asked = false;
    while let Some(aside) = lease.joined.asides.try_recv() {
        match aside {
            Aside::Logged(event) => context.send_event(event).await,
            Aside::Asked(asked) => {
                was_asked = true;
                let Some(asked) = Unmet::default().pass(asked, context) else { continue };
                answer(asked, lease.joined.callers(), context).await;
            }
        }
    }
    if was_asked {
        apply_roots().await;
    }
}

/// Asks the caller, and tells the server the answer.
fn answer(
    asked: ServerInputRequest,
    callers: Callers,
    context: &Context,
) -> impl Future<Output = ()> + Send + use<> {
    let (ServerInputRequest { request: question, responder: reply, .. }, context) =
        (asked, context.clone());
    let roots = AskedRoots::of(&question, callers);
    async move {
        let answer = context.request_input(question).await;
        roots.into_iter().for_each(|roots| roots.settle(&reply));
        reply.respond(answer.map_err(InputRequestError::declined));
    }
}

/// What the call itself says, or else the server aside of it.
async fn next(calling: &mut PendingCall, asides: &mut Asides) -> Turn {
    tokio::select! {
        biased;
        step = calling.next() => Turn::Step(step),
        Some(aside) = asides.recv() => Turn::Aside(aside),
    }
}

/// Ends a call of which something was said before the answer, and is told before it.
async fn end(
    outcome: Outcome,
    first: Aside,
    unmet: Unmet,
    lease: &mut Lease,
    context: &Context,
) -> Outcome {
    let mut next = Some(first);
    while let Some(Aside::Logged(event)) = next {
        context.send_event(event).await;
        next = lease.joined.asides.try_recv();
    }
    unmet.judge(outcome, context)
}

/// Questions that the caller is being asked.
#[derive(Default)]
struct Asking {
    running: JoinSet<()>,
    open: HashMap<InputRequestKey, AbortHandle>,
    /// The names of pages that were asked to be visited, and who tells that one has done its part.
    visits: Vec<String>,
    notices: Option<broadcast::Receiver<ServerNotification>>,
}

impl Asking {
    /// The same as [`next`], while questions wait for answers.
    async fn next(&mut self, calling: &mut PendingCall, asides: &mut Asides) -> Turn {
        let Self { running, visits, notices, .. } = self;
        tokio::select! {
            biased;
            turn = next(calling, asides) => turn,
            Some(_) = running.join_next() => Turn::Settled,
            id = next_visited(notices) => match visits.iter().position(|asked| *asked == id) {
                Some(place) => Turn::Visited(visits.swap_remove(place)),
                None => Turn::Settled,
            },
        }
    }

    fn ask(
        &mut self,
        asked: ServerInputRequest,
        context: &Context,
        lease: &Lease,
        unmet: &mut Unmet,
    ) {
        let Some(asked) = unmet.pass(asked, context) else { return };
        if let InputRequest::Url { id, .. } = &asked.request {
            self.notices.get_or_insert_with(|| lease.connection.notifications());
            self.visits.push(id.clone());
        }
        let key = asked.responder.key();
        let handle = self.running.spawn(answer(asked, lease.joined.callers(), context));
        self.open.insert(key, handle);
    }

    fn withdraw(&mut self, question: InputRequestKey) {
        if let Some(asking) = self.open.remove(&question) {
            asking.abort();
        }
    }
}

/// The name of the next visit that is over.
async fn next_visited(notices: &mut Option<broadcast::Receiver<ServerNotification>>) -> String {
    let Some(notices) = notices else { return std::future::pending().await };
    loop {
        match notices.recv().await {
            Ok(ServerNotification::ElicitationComplete(id)) => return id,
            // What was missed may be missed: it is only told where it is known.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}
