//! Asks callers who they are before anything of their request is read.

use http::header::AUTHORIZATION;
use http::request::Parts;

use super::answer::{Admission, Gate, Peer, Refusal};
use crate::auth::{Authenticator, Principal, Verdict, authorization};

impl Gate for Authenticator {
    fn admit<'a>(&'a self, head: &'a mut Parts, peer: Peer) -> Admission<'a> {
        let address = Some(peer.0.ip());
        match self.authenticate_now(authorization(&head.headers), address) {
            Some(verdict) => Admission::Now(pass(head, verdict)),
            None => Admission::Later(Box::pin(async move {
                let verdict = self.authenticate(authorization(&head.headers), address).await;
                pass(head, verdict)
            })),
        }
    }
}

fn pass(head: &mut Parts, verdict: Verdict) -> Result<Principal, Refusal> {
    match verdict {
        Verdict::Granted(principal) => {
            // Nobody behind this needs the secret.
            head.headers.remove(AUTHORIZATION);
            Ok(principal)
        }
        Verdict::Refused(challenge) => {
            let headers = challenge.headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
            let (status, text) = (challenge.status, challenge.body.to_owned());
            Err(Refusal { status, headers: headers.collect(), text })
        }
    }
}
