//! Authenticates callers as users of a site: each presents an Application Password, which the site checks.

use std::time::Duration;

use creole::auth::Principal;
use creole::internal::http::{ErrorResponse, HeaderValue, RequestHead, StatusCode};
use creole::serve::http::PeerAddress;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::json;

use crate::login::basic_credentials::BasicCredentials;
use crate::login::users::UserLookup;
use crate::site::Site;
use creole_tools::ordered_value::OrderedValue;

const CHALLENGE: &str = "Basic realm=\"WordPress Application Password\", charset=\"UTF-8\"";

impl Site {
    /// The principal of a request, or the reason for rejecting it.
    ///
    /// # Errors
    /// The error response.
    pub async fn authenticate(
        &self,
        head: &mut RequestHead,
        peer: PeerAddress,
    ) -> Result<Principal, ErrorResponse> {
        let proof = head
            .headers
            .get_unique(AUTHORIZATION.as_str())
            .as_ref()
            .and_then(BasicCredentials::from_header);
        // Later handlers do not need the secret in the request.
        head.headers.remove(AUTHORIZATION.as_str());
        let proof = proof.ok_or_else(unauthorized_response)?;
        let address = peer.0.ip();
        let is_known = self.inner.users.has_recent_lookup(&proof);
        if let Some(wait) = self.inner.login_throttle.retry_delay(address).filter(|_| !is_known) {
            return Err(too_many_response(wait));
        }
        match self.identify(&proof).await {
            Ok(UserLookup::Admitted(user)) => Ok(user.principal.clone()),
            Ok(UserLookup::Unknown) => {
                if !is_known {
                    self.inner.login_throttle.record_failure(address);
                }
                Err(unauthorized_response())
            }
            Ok(UserLookup::Forbidden) => {
                let status = StatusCode::FORBIDDEN;
                Err(error_response(status, "rest_forbidden", "Insufficient permissions."))
            }
            Err(error) => {
                let reason = error.to_message(false);
                tracing::warn!(%reason, "cannot authenticate a caller at the site");
                Err(error_response(StatusCode::BAD_GATEWAY, "site_unreachable", &reason))
            }
        }
    }
}

fn unauthorized_response() -> ErrorResponse {
    error_response(StatusCode::UNAUTHORIZED, "rest_forbidden", "Authentication required.")
        .header(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE))
}

fn too_many_response(wait: Duration) -> ErrorResponse {
    let seconds = wait.as_secs() + 1;
    let text = "Too many failed logins. Wait for the time in the header `Retry-After`.";
    error_response(StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", text)
        .header(RETRY_AFTER, HeaderValue::from(seconds))
}

/// An error response in the format of WordPress.
fn error_response(status: StatusCode, code: &str, message: &str) -> ErrorResponse {
    let mut body = OrderedValue::from(json!({"code": code}));
    body.insert("message", json!(message).into());
    body.insert("data", json!({"status": status.as_u16()}).into());
    let json = HeaderValue::from_static("application/json; charset=UTF-8");
    ErrorResponse::new(status, body.to_string()).header(CONTENT_TYPE, json)
}
