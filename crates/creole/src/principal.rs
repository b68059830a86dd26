//! The principal of a call: the caller, and what its state is bound to.

#[cfg(feature = "http")]
mod record;
mod token;

use std::fmt;
use std::sync::{Arc, LazyLock};

pub use token::{TokenIdentity, TokenMethod};

/// The id of callers of a server without authentication.
const LOCAL: &str = "local";

/// The principal of a call. Clones are cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Principal {
    shared: Arc<PrincipalParts>,
}

#[derive(PartialEq, Eq)]
struct PrincipalParts {
    id: Arc<str>,
    identity: Arc<str>,
    binding: Arc<str>,
    roles: Arc<[Arc<str>]>,
    token: Option<TokenIdentity>,
    /// The scopes of the token and those that they imply.
    scopes: Vec<Arc<str>>,
}

impl Principal {
    /// The principal of a server without authentication, such as on stdio.
    #[must_use]
    pub fn local() -> Self {
        static PRINCIPAL: LazyLock<Principal> = LazyLock::new(|| Principal::new(LOCAL, &[]));
        PRINCIPAL.clone()
    }

    /// A principal that did not present an access token, such as a user or a program with a key.
    #[must_use]
    pub fn new(id: &str, roles: &[Arc<str>]) -> Self {
        let id: Arc<str> = id.into();
        let parts = PrincipalParts {
            identity: Arc::clone(&id),
            binding: Arc::clone(&id),
            id,
            roles: roles.into(),
            token: None,
            scopes: Vec::new(),
        };
        Self { shared: Arc::new(parts) }
    }

    /// The principal of a verified access token.
    ///
    /// `implied` are the scopes that those of the token include.
    #[must_use]
    pub fn from_token(token: TokenIdentity, roles: &[Arc<str>], implied: &[Arc<str>]) -> Self {
        let mut scopes = token.scopes.clone();
        scopes.extend(implied.iter().filter(|scope| !token.scopes.contains(scope)).cloned());
        let identity = token.identity();
        let parts = PrincipalParts {
            id: token.id().into(),
            binding: token.binding(&identity).into(),
            identity: identity.into(),
            roles: roles.into(),
            token: Some(token),
            scopes,
        };
        Self { shared: Arc::new(parts) }
    }

    /// The name for logs and people: `user:alice`, `key:ci`, `local`, `oauth:LABEL:SUBJECT` for a person with an access
    /// token and `oauth-client:LABEL:CLIENT` for a program with one. It is stable over restarts and new passwords.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// The person or program, whatever client it uses: of an access token its issuer and subject, else the id. Rate
    /// limits and quotas are counted for it.
    #[must_use]
    pub fn identity(&self) -> &Arc<str> {
        &self.shared.identity
    }

    /// What sessions, streams, tasks, cursors and request states are bound to: of an access token its issuer, subject
    /// and client, else the id. So a client with few scopes does not reach what another client of the same person made.
    #[must_use]
    pub fn binding(&self) -> &Arc<str> {
        &self.shared.binding
    }

    /// The roles that the operator or the issuer of the access token assigned.
    #[must_use]
    pub fn roles(&self) -> &[Arc<str>] {
        &self.shared.roles
    }

    /// Whether the principal has this role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.shared.roles.iter().any(|each| &**each == role)
    }

    /// The access token of the call. `None` for users, keys and callers without authentication.
    #[must_use]
    pub fn token(&self) -> Option<&TokenIdentity> {
        self.shared.token.as_ref()
    }

    /// The scopes of the access token and those that they imply. Empty without a token.
    #[must_use]
    pub fn scopes(&self) -> &[Arc<str>] {
        &self.shared.scopes
    }

    /// Whether the principal has this scope, by itself or implied by another one. Scopes limit only access tokens.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.shared.token.is_none() || self.shared.scopes.iter().any(|each| &**each == scope)
    }

    /// Whether this is the principal of callers without authentication.
    pub(crate) fn is_local(&self) -> bool {
        &*self.shared.id == LOCAL
    }
}

impl From<&str> for Principal {
    /// A principal with this id and no roles.
    fn from(id: &str) -> Self {
        Self::new(id, &[])
    }
}

/// Shows no claims: they may be personal data.
impl fmt::Debug for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Principal")
            .field("id", &self.shared.id)
            .field("roles", &self.shared.roles)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn token(subject: &str, client: &str) -> TokenIdentity {
        TokenIdentity {
            issuer: "https://id.example.com".into(),
            label: "corp".into(),
            subject: Some(subject.into()),
            subject_claim: "sub".into(),
            client: Some(client.into()),
            is_program: subject == client,
            scopes: vec!["mcp".into(), "files:write".into()],
            claims: serde_json::Map::default(),
            expires_at: SystemTime::UNIX_EPOCH,
            method: TokenMethod::Jwt,
            is_dpop: false,
            fingerprint: [0; 4],
        }
    }

    pub(super) fn principal(subject: &str, client: &str) -> Principal {
        Principal::from_token(token(subject, client), &[], &[])
    }

    #[test]
    fn a_principal_without_a_token_is_bound_to_its_id_and_has_every_scope() {
        for principal in [Principal::local(), Principal::new("key:ci", &["mcp".into()])] {
            assert_eq!(&**principal.identity(), principal.id());
            assert_eq!(&**principal.binding(), principal.id());
            assert!(principal.token().is_none() && principal.has_scope("anything"));
        }
        let ci = Principal::new("key:ci", &["mcp".into()]);
        assert!(ci.has_role("mcp") && !ci.has_role("admin") && !ci.is_local());
        assert!(Principal::local().is_local());
    }

    #[test]
    fn two_clients_of_a_person_share_the_identity_and_not_the_binding() {
        let (one, other) = (principal("ada", "editor"), principal("ada", "phone"));
        assert_eq!(one.id(), "oauth:corp:ada");
        assert_eq!((one.id(), one.identity()), (other.id(), other.identity()));
        assert_ne!(one.binding(), other.binding());
        assert_eq!(one.binding(), principal("ada", "editor").binding(), "of a refreshed token");
    }

    #[test]
    fn a_person_and_a_program_of_the_same_name_are_two_principals() {
        let (person, program) = (principal("ci", "app"), principal("ci", "ci"));
        assert_eq!(program.id(), "oauth-client:corp:ci");
        assert_ne!(person.identity(), program.identity());
        assert_ne!(person.binding(), program.binding());
    }

    #[test]
    fn bindings_depend_on_the_issuer_and_the_claim_and_not_on_the_label() {
        let binding = |change: fn(&mut TokenIdentity)| {
            let mut token = token("ada", "editor");
            change(&mut token);
            Principal::from_token(token, &[], &[]).binding().to_string()
        };
        let same = binding(|_| {});
        assert_eq!(binding(|token| token.label = "other".into()), same);
        assert_ne!(binding(|token| token.issuer = "https://id.example.com/".into()), same);
        assert_ne!(binding(|token| token.subject_claim = "oid".into()), same);
        assert_ne!(binding(|token| token.client = None), same);
        assert_ne!(binding(|token| token.client = Some("".into())), same);
    }

    #[test]
    fn a_token_limits_the_scopes_to_its_own_and_the_implied_ones() {
        let token = token("ada", "editor");
        let principal = Principal::from_token(token, &["writer".into()], &["files:read".into()]);
        assert!(["mcp", "files:write", "files:read"].iter().all(|it| principal.has_scope(it)));
        assert!(!principal.has_scope("admin") && principal.has_role("writer"));
    }

    #[test]
    fn an_id_is_plain_text_of_bounded_length() {
        let id = |subject: &str| principal(subject, "editor").id().to_owned();
        assert_eq!(id("a.b_c-d+e@f"), "oauth:corp:a.b_c-d+e@f");
        assert_eq!(id("a:b c"), "oauth:corp:a%3Ab%20c");
        assert_eq!(id("\u{202e}x"), "oauth:corp:%E2%80%AEx");
        let long = id(&"x".repeat(400));
        assert!(long.starts_with("oauth:corp:~") && long.len() == "oauth:corp:~".len() + 43);
        assert_ne!(long, id(&"x".repeat(401)));
    }
}
