//! Decides whether an access token is valid, and whom it names.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use creole_oauth::resource::TokenShape;
use creole_oauth::resource::compact::CompactToken;
use creole_oauth::resource::confirmation::Confirmation;
use creole_oauth::resource::refusal::TokenRefusal;
use serde_json::{Map, Value};
use sha2::Digest as _;
use tokio::time::Instant;

use super::binding::{self, NeededProof};
use super::call::{TokenCall, TokenDecision};
use super::decision_cache::DecisionCache;
use super::issuer::{Failure, Issuer, ValidToken};
use super::refusal_log::{RefusalLog, RefusedToken};
use super::replay::UsedProofs;
use super::settings::IssuerSettings;
use super::throttle::TokenThrottle;
use crate::auth::resource::ProtectedResource;
use crate::auth::single_flight::SingleFlight;
use crate::auth::{Digest, random};
use crate::principal::{Principal, TokenIdentity, TokenMethod};
use crate::secrets::digest;
use crate::state::State;

/// How long a refused token is refused without being verified.
const REFUSED_CACHE: Duration = Duration::from_secs(10);

/// The maximum size of the kept claims, in bytes of JSON.
const MAX_CLAIMS: usize = 8_192;

/// What outlives a reload of the configuration: throttled networks stay throttled, and used proofs stay used.
pub(crate) struct VerifierParts {
    /// The key of the fingerprints, so that they are meaningless elsewhere.
    key: Digest,
    throttle: TokenThrottle,
    log: RefusalLog,
    proofs: OnceLock<UsedProofs>,
}

impl Default for VerifierParts {
    fn default() -> Self {
        Self {
            key: random(),
            throttle: TokenThrottle::default(),
            log: RefusalLog::default(),
            proofs: OnceLock::new(),
        }
    }
}

impl VerifierParts {
    /// Keeps used proofs in this state. The first call counts.
    pub(crate) fn set_state(&self, state: &State) {
        let _ = self.proofs.set(UsedProofs::new(state));
    }

    fn proofs(&self) -> &UsedProofs {
        self.proofs.get_or_init(|| UsedProofs::new(&State::default()))
    }
}

/// Decides about access tokens.
pub(crate) struct TokenVerifier {
    issuers: Vec<Arc<Issuer>>,
    /// The names of the claims that are kept for policies.
    kept_claims: Vec<String>,
    parts: Arc<VerifierParts>,
    verified: DecisionCache<Arc<VerifiedToken>>,
    refused: DecisionCache<TokenRefusal>,
    flights: SingleFlight<Result<Arc<VerifiedToken>, Failure>>,
}

/// A token that was valid a moment ago.
struct VerifiedToken {
    principal: Principal,
    confirmation: Confirmation,
    issuer: Arc<Issuer>,
    /// The version of the issuer's keys.
    keys: u64,
}

impl VerifiedToken {
    fn is_current(&self) -> bool {
        self.keys == self.issuer.keys.version()
    }
}

impl TokenVerifier {
    /// A verifier for these issuers. It continues with the keys of an earlier one.
    pub(crate) fn new(
        issuers: Vec<IssuerSettings>,
        earlier: Option<&Self>,
        parts: Arc<VerifierParts>,
    ) -> Self {
        let known = |settings: &IssuerSettings| {
            let mut all = earlier.into_iter().flat_map(|it| &it.issuers);
            all.find(|it| it.settings.has_same_keys(settings))
        };
        let issuers = issuers.into_iter().map(|settings| {
            let earlier = known(&settings);
            Arc::new(Issuer::new(settings, earlier.map(|it| &**it)))
        });
        Self::with_issuers(issuers.collect(), parts)
    }

    pub(super) fn with_issuers(issuers: Vec<Arc<Issuer>>, parts: Arc<VerifierParts>) -> Self {
        Self {
            issuers,
            kept_claims: Vec::new(),
            parts,
            verified: DecisionCache::new(),
            refused: DecisionCache::new(),
            flights: SingleFlight::new(),
        }
    }

    /// The metadata of the only issuer, as it was fetched.
    pub(crate) async fn issuer_metadata(&self) -> Option<Bytes> {
        let [issuer] = &self.issuers[..] else { return None };
        let metadata = issuer.keys.metadata().await?;
        Some(Bytes::copy_from_slice(&metadata.document))
    }

    /// Keeps these claims of each token.
    #[must_use]
    pub(crate) fn keep_claims(mut self, names: Vec<String>) -> Self {
        self.kept_claims = names;
        self
    }

    /// Whether an issuer is asked about opaque tokens here.
    pub(crate) fn introspects(&self, resource: &ProtectedResource) -> bool {
        self.introspecting_issuer(resource).is_some()
    }

    /// The decision, if it is cached and needs no proof by a key.
    pub(crate) fn try_verify(&self, call: TokenCall<'_>) -> Option<TokenDecision> {
        if call.token.len() > call.resource.max_token() {
            return Some(self.refuse(call, Instant::now(), None, TokenRefusal::Malformed));
        }
        let key = self.fingerprint(call);
        if let Some(known) = self.verified.find(&key).filter(|known| known.is_current()) {
            return match binding::check(&known.confirmation, call) {
                Ok(NeededProof::Nothing) => Some(TokenDecision::Granted(known.principal.clone())),
                Ok(NeededProof::Key(_)) => None,
                Err(refusal) => Some(self.refuse(call, Instant::now(), Some(&known), refusal)),
            };
        }
        let refusal = self.refused.find(&key)?;
        Some(self.refuse(call, Instant::now(), None, refusal))
    }

    /// The decision.
    pub(crate) async fn verify(&self, call: TokenCall<'_>) -> TokenDecision {
        if let Some(decision) = self.try_verify(call) {
            return decision;
        }
        let begin = Instant::now();
        let key = self.fingerprint(call);
        let known = self.verified.find(&key).filter(|known| known.is_current());
        let found = match known {
            Some(known) => Ok(known),
            None => match self.parts.throttle.wait(call.peer) {
                Some(wait) => return TokenDecision::Throttled(wait),
                None => self.flights.run(key, || self.decide(key, call)).await,
            },
        };
        let token = match found {
            Ok(token) => token,
            Err(Failure::Refused(refusal)) => return self.refuse(call, begin, None, refusal),
            Err(Failure::Unavailable(wait)) => return TokenDecision::Unavailable(wait),
        };
        let needed = match binding::check(&token.confirmation, call) {
            Ok(NeededProof::Nothing) => return TokenDecision::Granted(token.principal.clone()),
            Ok(NeededProof::Key(key)) => key,
            Err(refusal) => return self.refuse(call, begin, Some(&token), refusal),
        };
        let (principal, now) = (&token.principal, token.issuer.now());
        let proofs = self.parts.proofs();
        match binding::check_proof(needed, call, principal, proofs, now).await {
            Ok(()) => TokenDecision::Granted(principal.clone()),
            Err(decision) => {
                if let TokenDecision::InvalidProof(refusal) = &decision {
                    self.log(call, begin, Some(&token), *refusal);
                }
                decision
            }
        }
    }

    /// Verifies a token that is not cached, and caches the result.
    async fn decide(
        &self,
        key: Digest,
        call: TokenCall<'_>,
    ) -> Result<Arc<VerifiedToken>, Failure> {
        let found = self.check(call).await;
        match &found {
            Ok((token, until)) => self.verified.insert(key, Arc::clone(token), *until),
            Err(Failure::Refused(refusal)) => {
                self.parts.throttle.count(call.peer);
                self.refused.insert(key, *refusal, Instant::now() + REFUSED_CACHE);
            }
            Err(Failure::Unavailable(_)) => {}
        }
        found.map(|(token, _)| token)
    }

    /// Verifies a token by its shape, never by trying.
    async fn check(&self, call: TokenCall<'_>) -> Result<(Arc<VerifiedToken>, Instant), Failure> {
        let (issuer, version, valid) = match TokenShape::of(call.token) {
            TokenShape::Jwt => {
                let token = CompactToken::parse(call.token)?;
                let issuer = self.issuer(token.payload(), call).ok_or(TokenRefusal::Issuer)?;
                let version = issuer.keys.version();
                let valid = issuer.verify_jwt(call.token, token, call.url).await?;
                // The first fetch of the keys changes the version. Which keys were used is not known then.
                let version = if version == 0 { issuer.keys.version() } else { version };
                (issuer, version, valid)
            }
            TokenShape::Opaque => {
                let issuer =
                    self.introspecting_issuer(call.resource).ok_or(TokenRefusal::Issuer)?;
                let valid = issuer.introspect(call.token, call.url).await?;
                (issuer, issuer.keys.version(), valid)
            }
            TokenShape::Encrypted | TokenShape::Malformed => {
                return Err(TokenRefusal::Malformed.into());
            }
        };
        let until = Instant::now() + valid.lifetime(issuer);
        let principal = self.principal(issuer, &valid, call)?;
        let confirmation = valid.token.confirmation;
        let issuer = Arc::clone(issuer);
        Ok((Arc::new(VerifiedToken { principal, confirmation, issuer, keys: version }), until))
    }

    fn issuer(&self, claims: &Map<String, Value>, call: TokenCall<'_>) -> Option<&Arc<Issuer>> {
        let named = claims.get("iss")?.as_str()?;
        let is_right = |it: &&Arc<Issuer>| {
            it.settings.rules.issuer == named && call.resource.accepts_issuer(it.label())
        };
        self.issuers.iter().find(is_right)
    }

    fn introspecting_issuer(&self, resource: &ProtectedResource) -> Option<&Arc<Issuer>> {
        self.issuers.iter().find(|it| it.introspects() && resource.accepts_issuer(it.label()))
    }

    fn principal(
        &self,
        issuer: &Issuer,
        valid: &ValidToken,
        call: TokenCall<'_>,
    ) -> Result<Principal, TokenRefusal> {
        let token = &valid.token;
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let scopes: Vec<Arc<str>> = token.scopes.iter().map(Arc::from).collect();
        let expanded = call.resource.scopes().expand(&scopes);
        let mut roles: Vec<Arc<str>> = token.roles.iter().map(|it| Arc::from(&**it)).collect();
        roles.extend(expanded.roles);
        let [a, b, c, d, ..] = digest(call.token.as_bytes());
        let claim = &issuer.settings.rules.subject_claim;
        let identity = TokenIdentity {
            issuer: Arc::from(&*issuer.settings.rules.issuer),
            label: Arc::clone(issuer.label()),
            subject: text(&token.subject),
            subject_claim: claim.as_ref().map_or("sub", |path| path.as_str()).into(),
            client: text(&token.client),
            is_program: token.is_program,
            scopes,
            claims: self.claims(&token.claims)?,
            expires_at: UNIX_EPOCH
                .checked_add(Duration::from_secs(token.expires_at))
                .unwrap_or_else(|| SystemTime::now() + Duration::from_secs(86_400)),
            method: match valid.is_introspected {
                true => TokenMethod::Introspection,
                false => TokenMethod::Jwt,
            },
            is_dpop: token.confirmation.key.is_some(),
            fingerprint: [a, b, c, d],
        };
        Ok(Principal::from_token(identity, &roles, &expanded.implied))
    }

    /// The claims that are kept. A policy must not decide on a part of them.
    fn claims(&self, claims: &Map<String, Value>) -> Result<Map<String, Value>, TokenRefusal> {
        let named = claims.iter().filter(|(name, _)| self.kept_claims.contains(name));
        let kept: Map<String, Value> =
            named.map(|(name, value)| (name.clone(), value.clone())).collect();
        let size = || serde_json::to_vec(&kept).map_or(usize::MAX, |text| text.len());
        match kept.is_empty() || size() <= MAX_CLAIMS {
            true => Ok(kept),
            false => Err(TokenRefusal::Claims),
        }
    }

    /// The key of a token in the caches: it has another one at each resource.
    fn fingerprint(&self, call: TokenCall<'_>) -> Digest {
        let mut hasher = sha2::Sha256::new();
        hasher.update(self.parts.key);
        hasher.update((call.url.len() as u64).to_be_bytes());
        hasher.update(call.url.as_bytes());
        hasher.update(call.token.as_bytes());
        hasher.finalize().into()
    }

    fn refuse(
        &self,
        call: TokenCall<'_>,
        begin: Instant,
        token: Option<&VerifiedToken>,
        refusal: TokenRefusal,
    ) -> TokenDecision {
        self.log(call, begin, token, refusal);
        TokenDecision::Invalid(refusal)
    }

    fn log(
        &self,
        call: TokenCall<'_>,
        begin: Instant,
        token: Option<&VerifiedToken>,
        refusal: TokenRefusal,
    ) {
        self.parts.log.write(RefusedToken {
            reason: refusal.word(),
            issuer: token.map(|token| &**token.issuer.label()),
            principal: token.map(|token| token.principal.id()),
            resource: call.url,
            peer: call.peer,
            duration: begin.elapsed(),
        });
    }
}

impl ValidToken {
    /// How long the token may be cached: not beyond its end.
    fn lifetime(&self, issuer: &Issuer) -> Duration {
        let end = self.token.expires_at.saturating_add(issuer.settings.rules.skew);
        Duration::from_secs(end.saturating_sub(issuer.now())).min(self.cache)
    }
}

impl std::fmt::Debug for TokenVerifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenVerifier").finish_non_exhaustive()
    }
}
