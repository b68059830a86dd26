//! The callers of the admin API: one-time links, sessions with a bearer, users and keys, and how often they may call.

mod link;
mod rate;
mod sessions;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use creole::Principal;
use creole::auth::Authenticator;
use creole::internal::http::AuthDecision;
use creole::internal::seal::digest;
use http::{HeaderValue, StatusCode};

pub(crate) use link::LinkFile;
pub use link::{AdminLink, read_links};
pub(crate) use sessions::{BearerSession, IDLE};

use crate::http::problem::{Problem, ProblemCode};
use crate::settings::Role;
use link::OneTimeLinks;
use rate::RequestRate;
use sessions::Sessions;

/// The principal of somebody who signed in with the one-time link.
const LINK_PRINCIPAL: &str = "admin";

/// An authenticated caller.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Who it is, for logs and people.
    pub(crate) principal: Principal,
    /// What it may do.
    pub(crate) roles: Vec<Role>,
    /// Its session, if it signed in.
    pub(crate) session: Option<Arc<BearerSession>>,
}

impl Caller {
    fn new(principal: Principal, session: Option<Arc<BearerSession>>) -> Self {
        let has = |role: &Role| principal.has_role(role.name());
        let roles = Role::ALL.into_iter().filter(has).collect();
        Self { principal, roles, session }
    }

    /// The name for people.
    pub(crate) fn name(&self) -> &str {
        self.principal.id()
    }

    /// Refuses a caller without this role.
    pub(crate) fn check(&self, role: Role) -> Result<(), Problem> {
        match role.is_among(&self.roles) {
            true => Ok(()),
            false => Err(Problem::missing_role(role, self.name(), &self.roles)),
        }
    }
}

/// A new session.
pub(crate) struct SignedIn {
    /// The secret that the client sends with each request.
    pub(crate) bearer: String,
    /// Who signed in.
    pub(crate) caller: Caller,
    /// When the session ends at the latest.
    pub(crate) expires: SystemTime,
}

/// Authenticates callers and counts their requests.
pub(crate) struct Access {
    authenticator: Option<Authenticator>,
    links: OneTimeLinks,
    sessions: Sessions,
    rate: RequestRate,
}

impl Access {
    /// The access with these users and keys. Without them, one-time links sign in, which this file tells.
    pub(crate) fn new(authenticator: Option<Authenticator>, link_file: Option<LinkFile>) -> Self {
        let links = OneTimeLinks::new(link_file.filter(|_| authenticator.is_none()));
        Self { authenticator, links, sessions: Sessions::default(), rate: RequestRate::default() }
    }

    /// Writes a new one-time link in place of an old one, for ever. Without links there is nothing to do.
    pub(crate) async fn renew_links(&self) {
        self.links.renew().await;
    }

    /// Authenticates a request by its header `Authorization`.
    pub(crate) async fn authenticate(
        &self,
        authorization: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Problem> {
        let Some(header) = authorization else {
            return Err(Problem::new(ProblemCode::Unauthenticated, "This needs a credential")
                .detail("sign in with `POST /api/v1/login` and send `Authorization: Bearer`"));
        };
        // A browser sends a password that it remembers also for pages of others.
        let Some(token) = bearer_token(header) else {
            self.rate.count(b"unknown")?;
            return Err(not_accepted());
        };
        let caller = match self.session(token)? {
            Some(caller) => caller,
            None => self.key(header, peer).await?,
        };
        self.rate.count(&digest(header.as_bytes()))?;
        Ok(caller)
    }

    /// The caller of a session; `None` if the token does not look like one of a session.
    fn session(&self, token: &str) -> Result<Option<Caller>, Problem> {
        if !token.starts_with(sessions::PREFIX) {
            return Ok(None);
        }
        match self.sessions.find(token) {
            Some(session) => Ok(Some(Caller::new(session.principal.clone(), Some(session)))),
            None => Err(Problem::new(ProblemCode::SessionEnded, "The session has ended")
                .detail("sign in again")),
        }
    }

    /// The caller with a key.
    async fn key(&self, header: &HeaderValue, peer: Option<IpAddr>) -> Result<Caller, Problem> {
        let Some(authenticator) = &self.authenticator else {
            self.rate.count(b"unknown")?;
            return Err(not_accepted());
        };
        match authenticator.authenticate(Some(header), peer).await {
            AuthDecision::Granted(principal) => Ok(Caller::new(principal, None)),
            AuthDecision::Refused(challenge) => {
                Err(throttled(&challenge.headers, challenge.status).unwrap_or_else(not_accepted))
            }
        }
    }

    /// Signs in with a one-time token.
    pub(crate) fn sign_in_by_link(&self, token: &str) -> Result<SignedIn, Problem> {
        self.rate.count(b"links")?;
        if !self.links.take(token) {
            return Err(Problem::new(ProblemCode::LinkUsed, "This link was used, or is too old")
                .detail("run `creole console` for a new link"));
        }
        let roles = Role::ALL.map(|role| role.name().into());
        self.sign_in(Principal::new(LINK_PRINCIPAL, &roles))
    }

    /// Signs in with a name and a password.
    pub(crate) async fn sign_in_by_password(
        &self,
        user: &str,
        password: &str,
        peer: Option<IpAddr>,
    ) -> Result<SignedIn, Problem> {
        let wrong =
            || Problem::new(ProblemCode::WrongPassword, "The name or the password is wrong");
        let Some(authenticator) = &self.authenticator else {
            return Err(wrong().detail("this server has no users; run `creole console` for a link"));
        };
        let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let header = HeaderValue::try_from(basic).map_err(|_| wrong())?;
        match authenticator.authenticate(Some(&header), peer).await {
            AuthDecision::Granted(principal) => {
                let caller = Caller::new(principal.clone(), None);
                caller.check(Role::Read)?;
                self.sign_in(principal)
            }
            AuthDecision::Refused(challenge) => {
                Err(throttled(&challenge.headers, challenge.status).unwrap_or_else(wrong))
            }
        }
    }

    fn sign_in(&self, principal: Principal) -> Result<SignedIn, Problem> {
        let no_random = |_| Problem::new(ProblemCode::Internal, "The system has no random bytes");
        let (bearer, session) = self.sessions.open(principal.clone()).map_err(no_random)?;
        let expires = session.expires();
        Ok(SignedIn { bearer, caller: Caller::new(principal, Some(session)), expires })
    }

    /// Ends a session.
    pub(crate) fn sign_out(&self, session: &BearerSession) {
        self.sessions.close(session);
    }
}

/// The token in a header `Authorization: Bearer`.
fn bearer_token(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn not_accepted() -> Problem {
    Problem::new(ProblemCode::Unauthenticated, "The credential is not accepted")
        .detail("sign in, or send a key of the file of keys, as `Authorization: Bearer`")
}

/// The problem of a caller that must wait, if it is that.
fn throttled(headers: &http::HeaderMap, status: StatusCode) -> Option<Problem> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let wait = headers.get(http::header::RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
    let problem = Problem::new(ProblemCode::Throttled, "There were too many attempts");
    Some(problem.retry_after(wait.unwrap_or(1)))
}
