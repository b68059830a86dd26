//! Authenticates callers before their request's body is read.

use http::header::AUTHORIZATION;

use crate::auth::{AuthDecision, Authenticator, Principal};
use crate::serve::http::web::handler::{Admission, Authenticate, ErrorResponse, PeerAddress};
use crate::serve::http::web::request::RequestHead;

impl Authenticate for Authenticator {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a> {
        let address = Some(peer.0.ip());
        let proof = head.headers.get_unique(AUTHORIZATION.as_str());
        match self.try_authenticate(proof.as_ref(), address) {
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
        AuthDecision::Refused(challenge) => {
            let headers = challenge.headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
            let (status, text) = (challenge.status, challenge.body.to_owned());
            Err(ErrorResponse { status, headers: headers.collect(), text })
        }
    }
}
