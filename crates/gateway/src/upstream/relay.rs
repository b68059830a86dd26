//! One call passed on, for a caller who can be asked while it waits, or who cannot be asked at all.

use std::collections::HashMap;

use creole::call::Context;
use creole::client::{Asked, Calling, News, Notice, Step};
use creole::proto::client::{QuestionKey, Refusal};
use creole::proto::model::Question;
use creole::proto::op::{Event, Outcome};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{AbortHandle, JoinSet};

use super::callers::Aside;
use super::pool::Lease;
use super::unmet::Unmet;

/// Follows a call to its end. What happens on the way is told to the caller, and what is asked is asked there.
/// Dropping this cancels the call.
pub(super) async fn follow(mut calling: Calling, lease: &mut Lease, context: &Context) -> Outcome {
    // Most calls ask nothing.
    let mut asking: Option<Asking> = None;
    let mut unmet = Unmet::default();
    loop {
        tokio::select! {
            biased;
            step = calling.next() => match step {
                Step::News(News::Event(event)) => context.event(event).await,
                Step::News(News::Asked(asked)) => {
                    asking.get_or_insert_default().ask(asked, context, lease, &mut unmet);
                }
                Step::News(News::NotOffered(question)) => unmet.note(question),
                Step::News(News::Withdrawn(question)) => {
                    asking.get_or_insert_default().withdraw(question);
                }
                Step::Done(outcome) => {
                    lease.joined.answered();
                    // What was said before the answer is told before it.
                    while let Some(Aside::Logged(event)) = lease.joined.asides.try_recv() {
                        context.event(event).await;
                    }
                    return unmet.judge(outcome, context);
                }
                Step::Ended(_) => return super::broken("the call ended without an answer").into(),
            },
            Some(aside) = lease.joined.asides.recv() => match aside {
                Aside::Asked(asked) => {
                    asking.get_or_insert_default().ask(asked, context, lease, &mut unmet);
                }
                Aside::Logged(event) => context.event(event).await,
            },
            () = Asking::settle(&mut asking, context), if asking.is_some() => {}
        }
    }
}

/// Questions that the caller is being asked.
#[derive(Default)]
struct Asking {
    running: JoinSet<()>,
    open: HashMap<QuestionKey, AbortHandle>,
    /// The names of pages that were asked to be visited, and who tells that one has done its part.
    visits: Vec<String>,
    notices: Option<broadcast::Receiver<Notice>>,
}

impl Asking {
    /// Waits until one of the questions is answered, or a visit is over, of which the caller is told.
    async fn settle(asking: &mut Option<Self>, context: &Context) {
        let Some(Self { running, visits, notices, .. }) = asking else {
            return std::future::pending().await;
        };
        tokio::select! {
            Some(_) = running.join_next() => {}
            id = next_visited(notices) => {
                if let Some(place) = visits.iter().position(|asked| *asked == id) {
                    context.event(Event::Visited(visits.swap_remove(place))).await;
                }
            }
        }
    }

    fn ask(&mut self, asked: Asked, context: &Context, lease: &Lease, unmet: &mut Unmet) {
        spoil_if_rooted(&asked, context, lease);
        let Some(Asked { question, reply, .. }) = unmet.pass(asked, context) else { return };
        if let Question::Url { id, .. } = &question {
            self.notices.get_or_insert_with(|| lease.connection.notices());
            self.visits.push(id.clone());
        }
        let (context, key) = (context.clone(), reply.key());
        let handle = self.running.spawn(async move {
            let answer = context.ask(question).await;
            reply.answer(answer.map_err(Refusal::declined));
        });
        self.open.insert(key, handle);
    }

    fn withdraw(&mut self, question: QuestionKey) {
        if let Some(asking) = self.open.remove(&question) {
            asking.abort();
        }
    }
}

/// The name of the next visit that is over.
async fn next_visited(notices: &mut Option<broadcast::Receiver<Notice>>) -> String {
    let Some(notices) = notices else { return std::future::pending().await };
    loop {
        match notices.recv().await {
            Ok(Notice::Visited(id)) => return id,
            // What was missed may be missed: it is only told where it is known.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// A session whose server knows somebody's folders serves nobody else, unless it belongs to one client alone.
pub(super) fn spoil_if_rooted(asked: &Asked, context: &Context, lease: &Lease) {
    if asked.question == Question::Roots && context.conversation().is_none() {
        lease.spoil();
    }
}
