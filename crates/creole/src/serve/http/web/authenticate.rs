//! Authenticates callers before their request's body is read.

use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Method, StatusCode};

use crate::auth::challenge::Challenge;
use crate::auth::{AuthDecision, AuthRequest, Authenticator, Principal, RequestDetails};
use crate::serve::http::web::handler::{Admission, Authenticate, ErrorResponse, PeerAddress};
use crate::serve::http::web::request::RequestHead;

/// The header with the proof of the key that a token is bound to.
const DPOP: &str = "dpop";
/// What the keys of this program begin with.
const KEY_PREFIX: &[u8] = b"Bearer creole_";

/// The gate of one path.
#[derive(Clone, Debug)]
pub struct ResourceGate {
    authenticator: Authenticator,
    /// The number of the path among the resources of the authenticator.
    resource: usize,
}

impl ResourceGate {
    /// The gate of the path with this number.
    #[must_use]
    pub fn new(authenticator: Authenticator, resource: usize) -> Self {
        Self { authenticator, resource }
    }

    /// Lets the handler check the scopes of a token.
    fn check_decision(
        &self,
        head: &mut RequestHead,
        decision: AuthDecision,
    ) -> Result<Principal, ErrorResponse> {
        let principal = check_decision(head, decision)?;
        if principal.token().is_some() {
            head.resource = self.authenticator.resource(self.resource);
            head.headers.remove(DPOP);
        }
        Ok(principal)
    }
}

impl Authenticate for ResourceGate {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a> {
        let address = Some(peer.0.ip());
        let proof = head.headers.get_unique(AUTHORIZATION.as_str());
        let is_key = proof.as_ref().is_some_and(|it| it.as_bytes().starts_with(KEY_PREFIX));
        if !is_key && head.headers.get_all(DPOP).nth(1).is_some() {
            let text = "the request has more than one `DPoP` header; send one";
            return Admission::Now(Err(ErrorResponse::new(StatusCode::BAD_REQUEST, text)));
        }
        let request = AuthRequest::new(proof.as_ref(), address).with_details(self.resource, head);
        match self.authenticator.try_authenticate(&request) {
            Some(decision) => Admission::Now(self.check_decision(head, decision)),
            None => Admission::Later(Box::pin(async move {
                let request =
                    AuthRequest::new(proof.as_ref(), address).with_details(self.resource, head);
                let decision = self.authenticator.authenticate_request(&request).await;
                self.check_decision(head, decision)
            })),
        }
    }
}

impl Authenticate for Authenticator {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a> {
        let address = Some(peer.0.ip());
        let proof = head.headers.get_unique(AUTHORIZATION.as_str());
        match self.try_authenticate(&AuthRequest::new(proof.as_ref(), address)) {
            Some(decision) => Admission::Now(check_decision(head, decision)),
            None => Admission::Later(Box::pin(async move {
                let decision = self.authenticate(proof.as_ref(), address).await;
                check_decision(head, decision)
            })),
        }
    }
}

fn check_decision(
    head: &mut RequestHead,
    decision: AuthDecision,
) -> Result<Principal, ErrorResponse> {
    match decision {
        AuthDecision::Granted(principal) => {
            // No later handler needs the secret.
            head.headers.remove(AUTHORIZATION.as_str());
            Ok(principal)
        }
        AuthDecision::Refused(challenge) => Err(challenge.into()),
    }
}

impl From<Challenge> for ErrorResponse {
    fn from(challenge: Challenge) -> Self {
        let headers = challenge.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
        let (status, text) = (challenge.status, challenge.body.to_owned());
        Self { status, headers: headers.collect(), text, refused: challenge.refused }
    }
}

impl RequestDetails for RequestHead {
    fn dpop(&self) -> Option<HeaderValue> {
        self.headers.get_unique(DPOP)
    }

    fn method(&self) -> &Method {
        &self.method
    }

    fn host(&self) -> Option<&str> {
        match self.uri.authority() {
            Some(authority) => Some(authority.as_str()),
            None => std::str::from_utf8(self.headers.get(HOST.as_str())?).ok(),
        }
    }

    fn certificate(&self) -> Option<[u8; 32]> {
        self.certificate
    }
}
