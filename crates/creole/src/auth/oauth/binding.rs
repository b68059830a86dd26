//! Whether the caller has the key or the certificate that its token is bound to.

use std::time::Duration;

use creole_oauth::resource::confirmation::Confirmation;
use creole_oauth::resource::proof::{CheckedProof, ProvenCall};
use creole_oauth::resource::refusal::TokenRefusal;
use creole_oauth::web_url::WebUrl;
use subtle::ConstantTimeEq;

use super::call::{TokenCall, TokenDecision, TokenScheme};
use super::replay::{ProofUse, UsedProofs};
use crate::auth::resource::DpopMode;
use crate::principal::Principal;

/// When callers may return if the state fails or is full.
const RETRY: Duration = Duration::from_secs(1);

/// The proof that a token needs, after what can be checked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeededProof<'a> {
    /// None.
    Nothing,
    /// A proof by the key with this thumbprint.
    Key(&'a str),
}

/// Checks the scheme and the certificate.
pub(super) fn check<'a>(
    confirmation: &'a Confirmation,
    call: TokenCall<'_>,
) -> Result<NeededProof<'a>, TokenRefusal> {
    if let Some(wanted) = &confirmation.certificate {
        let is_right = call.certificate.is_some_and(|it| bool::from(it.ct_eq(wanted)));
        if !is_right {
            return Err(TokenRefusal::Binding);
        }
    }
    match (&confirmation.key, call.scheme, call.resource.dpop()) {
        // A stolen token is presented like this, or by a client that does not know DPoP.
        (Some(_), TokenScheme::Bearer, _) | (None, TokenScheme::Dpop, _) => {
            Err(TokenRefusal::Binding)
        }
        (Some(_), TokenScheme::Dpop, DpopMode::Off) | (None, _, DpopMode::Require) => {
            Err(TokenRefusal::Binding)
        }
        (Some(key), TokenScheme::Dpop, _) => Ok(NeededProof::Key(key)),
        (None, TokenScheme::Bearer, _) => Ok(NeededProof::Nothing),
    }
}

/// Checks a proof by a key. `Ok` if it is right and was not used before.
pub(super) async fn check_proof(
    key: &str,
    call: TokenCall<'_>,
    principal: &Principal,
    proofs: &UsedProofs,
    now: u64,
) -> Result<(), TokenDecision> {
    let invalid = TokenDecision::InvalidProof;
    let proof = call.proof.ok_or(invalid(TokenRefusal::Malformed))?;
    let url = WebUrl::parse(call.url).map_err(|_| invalid(TokenRefusal::Binding))?;
    let proven = ProvenCall { method: call.method, urls: &[url], token: call.token, key, now };
    let proof = CheckedProof::check(proof, proven).map_err(invalid)?;
    let unavailable = |_| TokenDecision::Unavailable(RETRY);
    if call.resource.dpop_nonce() {
        let nonces = proofs.nonces().await.map_err(unavailable)?;
        let is_right = proof.nonce.as_deref().is_some_and(|nonce| nonces.accepts(nonce, now));
        if !is_right {
            return Err(TokenDecision::UseNonce(nonces.nonce(now)));
        }
    }
    // Last, so that only right proofs are remembered.
    match proofs.record(&proof, principal.identity(), now).await.map_err(unavailable)? {
        ProofUse::First => Ok(()),
        ProofUse::Repeated => Err(invalid(TokenRefusal::Replay)),
        ProofUse::TooMany => Err(TokenDecision::Throttled(RETRY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::oauth::tests::{call, resource};

    #[test]
    fn scheme_and_certificate_fit_the_token() {
        let (off, accept, require) =
            (resource(DpopMode::Off), resource(DpopMode::Accept), resource(DpopMode::Require));
        let bearer = |resource| TokenCall { resource, ..call("t") };
        let dpop = |resource| TokenCall { scheme: TokenScheme::Dpop, ..bearer(resource) };
        let with = |certificate| TokenCall { certificate: Some(certificate), ..bearer(&accept) };
        let plain = Confirmation::default();
        let bound = Confirmation { key: Some("k".to_owned()), certificate: None };
        let certified = Confirmation { key: None, certificate: Some([1; 32]) };
        let refused = Err(TokenRefusal::Binding);
        let cases: [(&Confirmation, TokenCall<'_>, _); 10] = [
            (&plain, bearer(&accept), Ok(NeededProof::Nothing)),
            (&plain, dpop(&accept), refused),
            (&plain, bearer(&require), refused),
            (&bound, bearer(&accept), refused),
            (&bound, dpop(&accept), Ok(NeededProof::Key("k"))),
            (&bound, dpop(&off), refused),
            (&bound, dpop(&require), Ok(NeededProof::Key("k"))),
            (&certified, bearer(&accept), refused),
            (&certified, with([1; 32]), Ok(NeededProof::Nothing)),
            (&certified, with([2; 32]), refused),
        ];
        for (number, (confirmation, call, expected)) in cases.into_iter().enumerate() {
            assert_eq!(check(confirmation, call), expected, "{number}");
        }
    }
}
