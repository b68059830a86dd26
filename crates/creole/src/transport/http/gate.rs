//! Asks callers who they are before anything of their request is read.

use http::header::AUTHORIZATION;

use super::answer::{Admission, Gate, Peer, Refusal};
use super::request::Head;
use crate::auth::{AuthDecision, Authenticator, Principal};

impl Gate for Authenticator {
    fn admit<'a>(&'a self, head: &'a mut Head, peer: Peer) -> Admission<'a> {
        let address = Some(peer.0.ip());
        let proof = head.headers.only(AUTHORIZATION.as_str());
        match self.try_authenticate(proof.as_ref(), address) {
            Some(verdict) => Admission::Now(pass(head, verdict)),
            None => Admission::Later(Box::pin(async move {
                let verdict = self.authenticate(proof.as_ref(), address).await;
                pass(head, verdict)
            })),
        }
    }
}

fn pass(head: &mut Head, verdict: AuthDecision) -> Result<Principal, Refusal> {
    match verdict {
        AuthDecision::Granted(principal) => {
            // Nobody behind this needs the secret.
            head.headers.remove(AUTHORIZATION.as_str());
            Ok(principal)
        }
        AuthDecision::Refused(challenge) => {
            let headers = challenge.headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
            let (status, text) = (challenge.status, challenge.body.to_owned());
            Err(Refusal { status, headers: headers.collect(), text })
        }
    }
}
