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
use creole_gateway::federation::Federation;
use creole_gateway::upstream::Upstream;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{ASKED, AskedLogin, ClientLogin, LoginState, NO_PERSON};

/// The time between two attempts of a held call.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long a call waits until the person can be asked.
const ASKABLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a repeated call of the stateless era waits for the login before it shows the address again.
const REPEAT_WAIT: Duration = Duration::from_secs(20);

/// The key of the input request.
const KEY: &str = "creole-login";

/// The layer that lets calls wait for a login. It belongs outside of all other layers.
pub(crate) struct LoginLayer {
    pub(crate) login: Arc<ClientLogin>,
    pub(crate) federation: Federation,
    /// How long the first responses of a client wait for a login.
    pub(crate) hold: Duration,
}

impl Middleware for LoginLayer {
    fn kind(&self) -> &'static str {
        "login"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let login = &*self.login;
        let style = call.context.caller().rules.input_request_style;
        let is_inline = style == InputRequestStyle::Inline;
        let is_list = matches!(call.operation, Operation::List(..));
        let shows = shows(&call);
        login.can_show_urls.fetch_or(shows, Ordering::Relaxed);
        login.releases_requests.store(!is_inline && !login.has_browser, Ordering::Relaxed);
        if shows || login.has_browser {
            login.is_wanted.store(true, Ordering::Relaxed);
        }
        self.note_ready();
        let is_ready = self.upstream().is_none_or(Upstream::is_ready);
        let is_held = is_list
            || matches!(call.operation, Operation::Discover)
            || (!is_ready && needs_upstream(&call.operation));
        let context = call.context.clone();
        match (is_held, shows) {
            (_, true) if !is_inline => Box::pin(self.show_first(call, next)),
            (true, true) => Box::pin(run_and_show(login, context, Box::pin(self.hold(call, next)))),
            (false, true) => {
                let running = Box::pin(async move { self.attempt(&call, next).await.outcome });
                Box::pin(run_and_show(login, context, running))
            }
            (true, false) => Box::pin(self.hold(call, next)),
            (false, false) => next.call(call),
        }
    }
}

/// Whether a client can be asked in the session that it opens, although the server has refused its first request.
pub(crate) fn can_ask_later(fault: &Fault, context: &Context) -> bool {
    let style = context.caller().rules.input_request_style;
    style == InputRequestStyle::Inline && is_login_fault(fault) && can_show(context)
}

/// Whether the client can be asked in this call. One that opens a session cannot be asked yet, and one of the stateless
/// era can only be asked in some calls.
fn shows(call: &Call) -> bool {
    let is_inline = call.context.caller().rules.input_request_style == InputRequestStyle::Inline;
    let is_list = matches!(call.operation, Operation::List(..));
    let is_askable = (is_inline && is_list) || call.operation.may_require_input();
    is_askable && can_show(&call.context)
}

/// Whether the client can open an address.
fn can_show(context: &Context) -> bool {
    let request = url_elicitation("", "");
    let caller = context.caller();
    request.is_allowed_by(&caller.capabilities) && request.is_supported_by(caller.rules)
}

/// Whether an operation fails without the upstream.
fn needs_upstream(operation: &Operation) -> bool {
    operation.may_require_input() || matches!(operation, Operation::Complete(_))
}

/// Whether a request failed for lack of a login. It was not sent then.
fn is_login_fault(fault: &Fault) -> bool {
    fault.detail.contains(NO_PERSON) || fault.detail.contains(ASKED)
}

/// The outcome of a call, and whether the call can be passed on again.
struct Attempt {
    outcome: Outcome,
    is_repeatable: bool,
}

impl Attempt {
    fn fault(&self) -> Option<&Fault> {
        match &self.outcome {
            Outcome::Fail(fault) => Some(fault),
            _ => None,
        }
    }
}

impl LoginLayer {
    /// The only upstream.
    fn upstream(&self) -> Option<&Upstream> {
        self.federation.upstreams().first().map(|upstream| &**upstream)
    }

    /// Whether the server has been available before.
    fn was_ready(&self) -> bool {
        self.login.was_ready.load(Ordering::Relaxed)
    }

    fn note_ready(&self) {
        if self.upstream().is_some_and(Upstream::is_ready) {
            self.login.was_ready.store(true, Ordering::Relaxed);
        }
    }

    /// Waits a moment for the next attempt to connect. Earlier failures do not delay it.
    async fn wait_for_attempt(&self) {
        if let Some(upstream) = self.upstream().filter(|_| self.login.asked().is_none()) {
            upstream.end_backoff();
        }
        sleep(POLL_INTERVAL).await;
    }

    /// Lets a request wait while the only server is not available because of a login.
    async fn hold(&self, call: Call, next: Next<'_>) -> Outcome {
        let login = &*self.login;
        let until = Instant::now() + self.hold;
        loop {
            let attempt = tokio::select! {
                attempt = self.attempt(&call, next) => attempt,
                () = self.wait_in_vain(until) => return Outcome::Fail(login.required_fault()),
            };
            match attempt.fault() {
                Some(fault) if fault.detail.contains(NO_PERSON) => {
                    return Outcome::Fail(login.required_fault());
                }
                Some(_) if attempt.is_repeatable && login.may_end_soon() => {}
                Some(fault) if is_login_fault(fault) => {
                    return Outcome::Fail(login.required_fault());
                }
                _ => return attempt.outcome,
            }
            if Instant::now() >= until {
                return Outcome::Fail(login.required_fault());
            }
            self.wait_for_attempt().await;
        }
    }

    /// Waits until this time, and then until a person is asked: the call was not passed on then.
    async fn wait_in_vain(&self, until: Instant) {
        sleep_until(until).await;
        while self.login.asked().is_none() {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Passes a call on. An earlier request may have failed because no person could be asked, and the upstream remembers
    /// such a failure. The call is passed on again if a person can be asked now, or has logged in with another command.
    async fn attempt(&self, call: &Call, next: Next<'_>) -> Attempt {
        let login = &*self.login;
        let until = Instant::now() + ASKABLE_TIMEOUT;
        let refusals = login.refusals.load(Ordering::Relaxed);
        loop {
            let attempt = self.attempt_once(call.clone(), next).await;
            let is_unasked = attempt.fault().is_some_and(|it| it.detail.contains(NO_PERSON));
            if !is_unasked || Instant::now() >= until {
                return attempt;
            }
            let is_old = login.refusals.load(Ordering::Relaxed) == refusals;
            if login.has_browser || shows(call) {
                login.is_wanted.store(true, Ordering::Relaxed);
            } else if is_old && login.is_stored().await {
                login.is_stored_meanwhile.store(true, Ordering::Relaxed);
            } else {
                return attempt;
            }
            self.wait_for_attempt().await;
        }
    }

    /// Passes a call on, unless the server is not available because of a login or has never been available: its lists
    /// would be empty and its tools unknown.
    async fn attempt_once(&self, call: Call, next: Next<'_>) -> Attempt {
        let is_read = matches!(call.operation, Operation::List(..) | Operation::Discover);
        if let Some(upstream) = self.upstream().filter(|upstream| !upstream.is_ready())
            && !matches!(call.operation, Operation::Discover)
            && let Err(fault) = upstream.wait_until_ready(&call.context).await
            && (is_login_fault(&fault) || self.login.may_end_soon() || !self.was_ready())
        {
            return Attempt { outcome: Outcome::Fail(fault), is_repeatable: true };
        }
        self.note_ready();
        let outcome = next.call(call).await;
        let is_repeatable = match &outcome {
            Outcome::Fail(fault) => {
                is_login_fault(fault) || (is_read && fault.kind == FaultKind::BackendUnavailable)
            }
            _ => false,
        };
        Attempt { outcome, is_repeatable }
    }

    /// Shows the address to a client that repeats its call after the login, or passes the call on.
    async fn show_first(&self, call: Call, next: Next<'_>) -> Outcome {
        let login = &*self.login;
        if let Some(asked) = login.asked() {
            let responses = call.context.input_responses();
            let response = responses.into_iter().find(|(key, _)| *key == KEY);
            match response.map(|(_, response)| action(response)).as_deref() {
                Some("decline" | "cancel") => {
                    asked.declined.notify_one();
                    return Outcome::Fail(login.declined_fault());
                }
                Some(_) => {
                    let _ = timeout(REPEAT_WAIT, login.wait_for_answer()).await;
                }
                None => {}
            }
        }
        loop {
            if let Some(asked) = login.asked() {
                asked.is_shown.store(true, Ordering::Release);
                let question = login.input_request(&asked);
                let requests = vec![KeyedInputRequest { key: KEY.to_owned(), question }];
                return Outcome::InputRequired { requests, request_state: None };
            }
            let attempt = self.attempt(&call, next).await;
            match attempt.fault() {
                Some(_) if attempt.is_repeatable && login.may_end_soon() => {}
                Some(fault) if is_login_fault(fault) => {
                    return Outcome::Fail(login.required_fault());
                }
                _ => return attempt.outcome,
            }
            if login.asked().is_none() {
                self.wait_for_attempt().await;
            }
        }
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

    /// The fault for a client whose user declined.
    fn declined_fault(&self) -> Fault {
        let detail = format!("the login to `{}` was declined; {}", self.server, self.advice());
        Fault::new(FaultKind::InputRefused, detail)
    }

    /// The input request that shows the address.
    fn input_request(&self, asked: &AskedLogin) -> InputRequest {
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

    /// Waits until no person is asked.
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
    let question = login.input_request(&asked);
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
            match running.await {
                Outcome::Fail(_) => Outcome::Fail(login.declined_fault()),
                outcome => outcome,
            }
        }
        // The client could not be asked, but a browser may be open.
        _ => running.await,
    }
}

/// What the person did with the address.
fn action(response: &Raw) -> String {
    let response: Value = response.decode().unwrap_or_default();
    response["action"].as_str().unwrap_or_default().to_owned()
}
