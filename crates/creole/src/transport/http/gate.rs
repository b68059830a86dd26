//! Asks callers who they are before anything of their request is read.

use http::request::Parts;

use super::answer::{Gate, Peer, Refusal};
use crate::auth::{Authenticator, Verdict, authorization};
use crate::chain::BoxFuture;

impl Gate for Authenticator {
    fn admit<'a>(&'a self, head: &'a mut Parts) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let address = head.extensions.get::<Peer>().map(|peer| peer.0.ip());
            match self.authenticate(authorization(&head.headers), address).await {
                Verdict::Granted(principal) => {
                    // Nobody behind this needs the secret.
                    head.headers.remove(http::header::AUTHORIZATION);
                    head.extensions.insert(principal);
                    Ok(())
                }
                Verdict::Refused(challenge) => {
                    let headers = challenge.headers.iter();
                    let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
                    let (status, text) = (challenge.status, challenge.body.to_owned());
                    Err(Refusal { status, headers: headers.collect(), text })
                }
            }
        })
    }
}
