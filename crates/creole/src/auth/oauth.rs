//! Access tokens of OAuth issuers.
//!
//! `TokenVerifier` decides whether a token is valid and whom it names. Signed tokens are verified with the keys of
//! their issuer (`key_cache`); the issuer is asked about opaque ones (`introspector`). The decision is cached for at
//! most a minute (`decision_cache`), but for the proof that the caller has the key of the token (`binding`).

mod binding;
mod call;
mod decision_cache;
mod exchange;
mod introspector;
mod issuer;
mod key_cache;
mod refusal_log;
mod replay;
mod settings;
mod throttle;
mod verifier;

#[cfg(test)]
mod tests;

pub use creole_oauth::resource::access_token::TokenRules;
pub use creole_oauth::resource::algorithm::SignatureAlgorithm;
pub use creole_oauth::resource::claim_path::ClaimPath;
pub use creole_oauth::resource::key_set::KeySet;

pub(crate) use call::{TokenCall, TokenDecision, TokenScheme};
pub use settings::{IntrospectionSettings, IssuerSettings, KeySource};
pub(crate) use verifier::{TokenVerifier, VerifierParts};
