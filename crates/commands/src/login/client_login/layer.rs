//! The layer that lets calls wait for a login, and shows its address to clients that can open it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use creole::input::url_elicitation;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::proto::operation::{Event, Operation, Outcome};
use creole::proto::revision::InputRequestStyle;
use creole::proto::wire::Raw;
use creole::{BoxFuture, Call, Context, Middleware, Next};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{AskedLogin, ClientLogin, LoginState, NOBODY};

/// How long the first responses of a client wait for a login. Clients give up after 60 seconds.
const HOLD: Duration = Duration::from_secs(50);

/// How often a held response looks whether the server is ready.
const LOOK: Duration = Duration::from_millis(200);

/// How long a call waits until the person can be asked.
const ASKABLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server may take to be ready after the login.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a repeated call of the stateless era waits for the login before it shows the address again.
const REPEAT_WAIT: Duration = Duration::from_secs(20);

/// The key of the input request.
const KEY: &str = "creole-login";

/// The layer that lets calls wait for a login. It belongs outside of all other layers.
pub(crate) struct LoginLayer(pub(crate) Arc<ClientLogin>);

impl Middleware for LoginLayer {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let login = &*self.0;
        let style = call.context.caller().rules.input_request_style;
        let is_list = matches!(call.operation, Operation::List(..));
        // A client that opens a session cannot be asked yet. One of the stateless era can only be asked in some calls.
        let is_askable = match style {
            InputRequestStyle::Inline => is_list || call.operation.may_require_input(),
            InputRequestStyle::MultiRoundTrip => call.operation.may_require_input(),
        };
        let shows = is_askable && can_show(&call.context);
        login.can_show_urls.fetch_or(shows, Ordering::Relaxed);
        login.is_wanted.store(true, Ordering::Relaxed);
        let is_held = is_list || matches!(call.operation, Operation::Discover);
        match (is_held, shows) {
            (false, false) => next.call(call),
            (true, false) => Box::pin(hold(login, call, next)),
            (true, true) => {
                let context = call.context.clone();
                Box::pin(run_and_show(login, context, Box::pin(hold(login, call, next))))
            }
            (false, true) if style == InputRequestStyle::Inline => {
                let context = call.context.clone();
                let running = Box::pin(call_when_askable(login, call, next));
                Box::pin(run_and_show(login, context, running))
            }
            (false, true) => Box::pin(show_first(login, call, next)),
        }
    }
}

/// Whether the client can open an address.
fn can_show(context: &Context) -> bool {
    let question = url_elicitation("", "");
    let caller = context.caller();
    question.is_allowed_by(&caller.capabilities) && question.is_supported_by(caller.rules)
}

/// Lets a request wait while the only server is not available because of a login.
async fn hold(login: &ClientLogin, call: Call, next: Next<'_>) -> Outcome {
    let until = Instant::now() + HOLD;
    loop {
        let outcome = call_when_askable(login, call.clone(), next).await;
        match &outcome {
            Outcome::Fail(fault) if fault.detail.contains(NOBODY) => {
                return Outcome::Fail(login.required_fault());
            }
            Outcome::Fail(fault) if fault.kind == FaultKind::BackendUnavailable => {}
            _ => return outcome,
        }
        let state = login.state.borrow().clone();
        let waits = match &state {
            LoginState::Idle => false,
            LoginState::Asked(_) => true,
            // The server gets the token now, or a moment later says why there is none.
            LoginState::Ended { at, is_answered } => {
                *is_answered && at.elapsed() < READY_TIMEOUT || at.elapsed() < LOOK
            }
        };
        if !waits {
            return outcome;
        }
        if Instant::now() >= until {
            return Outcome::Fail(login.required_fault());
        }
        sleep(LOOK).await;
    }
}

/// Passes a call on. An earlier request may have failed because nobody could be asked, and credentials keep such a failure
/// for some seconds. A call that fails for this reason was not sent, so it is passed on again.
async fn call_when_askable(login: &ClientLogin, call: Call, next: Next<'_>) -> Outcome {
    let until = Instant::now() + ASKABLE_TIMEOUT;
    loop {
        let outcome = next.call(call.clone()).await;
        let is_unasked = matches!(&outcome, Outcome::Fail(fault) if fault.detail.contains(NOBODY));
        if !is_unasked || !login.can_ask() || Instant::now() >= until {
            return outcome;
        }
        login.is_wanted.store(true, Ordering::Relaxed);
        sleep(LOOK).await;
    }
}

impl ClientLogin {
    /// The fault for a client that has waited long enough.
    fn required_fault(&self) -> Fault {
        let Self { server, .. } = self;
        let detail = format!("`{server}` requires a login; {}", self.advice());
        let data = json!({"reason": "login_required", "upstream": server});
        Fault::new(FaultKind::BackendUnavailable, detail).with_data(Raw::from_value(&data))
    }

    /// The input request that shows the address.
    fn question(&self, asked: &AskedLogin) -> InputRequest {
        let (server, issuer) = (&self.server, &asked.issuer);
        let message = format!("Log in to {server} at {issuer}. The call goes on after the login.");
        url_elicitation(&message, &asked.url)
    }

    /// Waits until a person is asked whom no call has asked yet.
    async fn next_unshown(&self) -> Arc<AskedLogin> {
        let mut states = self.state.subscribe();
        loop {
            if let Some(asked) = self.asked().filter(|it| !it.is_shown.swap(true, Ordering::AcqRel))
            {
                return asked;
            }
            if states.changed().await.is_err() {
                // The sender is in `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until nobody is asked.
    async fn wait_for_answer(&self) {
        let mut states = self.state.subscribe();
        // The sender is in `self`.
        let _ = states.wait_for(|state| !matches!(state, LoginState::Asked(_))).await;
    }
}

/// Runs a call. If it waits for a login meanwhile, the client shows the address.
async fn run_and_show(
    login: &ClientLogin,
    context: Context,
    mut running: BoxFuture<'_, Outcome>,
) -> Outcome {
    let asked = tokio::select! {
        outcome = &mut running => return outcome,
        asked = login.next_unshown() => asked,
    };
    let question = login.question(&asked);
    let id = match &question {
        InputRequest::Url { id, .. } => id.clone(),
        _ => String::new(),
    };
    let response = tokio::select! {
        outcome = &mut running => return outcome,
        response = context.request_input(question) => response,
    };
    match response.as_ref().ok().map(action).as_deref() {
        Some("accept") => {
            let outcome = running.await;
            context.send_event(Event::ElicitationCompleted(id)).await;
            outcome
        }
        Some("decline" | "cancel") => {
            asked.declined.notify_one();
            running.await
        }
        // The client could not be asked, but a browser may be open.
        _ => running.await,
    }
}

/// Shows the address to a client that repeats its call afterwards, or passes the call on.
async fn show_first(login: &ClientLogin, call: Call, next: Next<'_>) -> Outcome {
    let Some(asked) = login.asked() else { return next.call(call).await };
    let responses = call.context.input_responses();
    let response = responses.into_iter().find(|(key, _)| *key == KEY).map(|(_, it)| action(it));
    match response.as_deref() {
        Some("decline" | "cancel") => {
            asked.declined.notify_one();
            let detail =
                format!("the login to `{}` was declined; {}", login.server, login.advice());
            return Outcome::Fail(Fault::new(FaultKind::InputRefused, detail));
        }
        Some(_) => {
            let _ = timeout(REPEAT_WAIT, login.wait_for_answer()).await;
        }
        None => {}
    }
    match login.asked() {
        None => next.call(call).await,
        Some(asked) => {
            asked.is_shown.store(true, Ordering::Release);
            let question = login.question(&asked);
            let requests = vec![KeyedInputRequest { key: KEY.to_owned(), question }];
            Outcome::InputRequired { requests, request_state: None }
        }
    }
}

/// What the person did with the address.
fn action(response: &Raw) -> String {
    let response: Value = response.decode().unwrap_or_default();
    response["action"].as_str().unwrap_or_default().to_owned()
}
