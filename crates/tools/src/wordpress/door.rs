//! The door of a server whose callers are those of a site: each shows an Application Password, which the site checks.

use std::time::Duration;

use creole::auth::Principal;
use creole::transport::http::{Head, HeaderValue, Peer, Refusal, StatusCode};
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::json;

use super::proof::Proof;
use super::site::Site;
use super::visitors::Verdict;
use crate::ordered_value::OrderedValue;

const CHALLENGE: &str = "Basic realm=\"WordPress Application Password\", charset=\"UTF-8\"";

impl Site {
    /// Whose request it is, or why it may not pass.
    ///
    /// # Errors
    /// What its sender is told.
    pub async fn identified(&self, head: &mut Head, peer: Peer) -> Result<Principal, Refusal> {
        let proof = head.headers.only(AUTHORIZATION.as_str()).as_ref().and_then(Proof::of);
        // Nobody behind this needs the secret in the request.
        head.headers.remove(AUTHORIZATION.as_str());
        let proof = proof.ok_or_else(unauthorized)?;
        let address = peer.0.ip();
        let is_known = self.shared.visitors.knows(&proof);
        if let Some(wait) = self.shared.strikes.wait(address).filter(|_| !is_known) {
            return Err(too_many(wait));
        }
        match self.identify(&proof).await {
            Ok(Verdict::Welcome(visitor)) => {
                Ok(Principal { id: visitor.principal.clone(), ..Principal::local() })
            }
            Ok(Verdict::Unknown) => {
                if !is_known {
                    self.shared.strikes.strike(address);
                }
                Err(unauthorized())
            }
            Ok(Verdict::Forbidden) => {
                let status = StatusCode::FORBIDDEN;
                Err(refusal(status, "rest_forbidden", "Insufficient permissions."))
            }
            Err(trouble) => {
                let why = trouble.told(false);
                tracing::warn!(%why, "a caller could not be looked up at the site");
                Err(refusal(StatusCode::BAD_GATEWAY, "site_unreachable", &why))
            }
        }
    }
}

fn unauthorized() -> Refusal {
    refusal(StatusCode::UNAUTHORIZED, "rest_forbidden", "Authentication required.")
        .header(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE))
}

fn too_many(wait: Duration) -> Refusal {
    let seconds = wait.as_secs() + 1;
    let said = "There were too many wrong passwords; wait as long as Retry-After says.";
    refusal(StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", said)
        .header(RETRY_AFTER, HeaderValue::from(seconds))
}

/// A refusal in the form of WordPress's own.
fn refusal(status: StatusCode, code: &str, message: &str) -> Refusal {
    let mut body = OrderedValue::from(json!({"code": code}));
    body.insert("message", json!(message).into());
    body.insert("data", json!({"status": status.as_u16()}).into());
    let json = HeaderValue::from_static("application/json; charset=UTF-8");
    Refusal::new(status, body.to_string()).header(CONTENT_TYPE, json)
}
