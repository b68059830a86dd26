//! The protected resources of a server: one for each path, with its issuers and the scopes that it requires.

use std::borrow::Cow;
use std::sync::Arc;

use creole_oauth::resource::algorithm::SignatureAlgorithm;
use serde_json::{Value, json};

use super::requirement::Requirement;
use crate::scopes::ScopeRules;

/// The path under which the metadata of resources is served (RFC 9728, 3).
pub(crate) const METADATA_PREFIX: &str = "/.well-known/oauth-protected-resource";

/// Whether access tokens are bound to a key of the client (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DpopMode {
    /// Bound tokens are refused.
    Off,
    /// Bound tokens need a proof, and other tokens are accepted.
    #[default]
    Accept,
    /// Only bound tokens are accepted.
    Require,
}

/// One path of a server, which access tokens are issued for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceSettings {
    /// The path.
    pub path: String,
    /// The scheme, host and port that clients use. Without it, those of each request.
    pub public_url: Option<String>,
    /// Whether the listener uses TLS.
    pub is_tls: bool,
    /// The issuers whose tokens are accepted: their labels and identifiers.
    pub issuers: Vec<(Arc<str>, Arc<str>)>,
    /// The scopes that every request requires.
    pub required_scopes: Vec<Arc<str>>,
    /// The scopes that the metadata names.
    pub scopes_supported: Vec<Arc<str>>,
    /// What every caller must have besides.
    pub requirement: Requirement,
    /// Whether access tokens are bound to a key.
    pub dpop: DpopMode,
    /// Whether proofs must have a nonce of the server.
    pub dpop_nonce: bool,
    /// The maximum length of a token, in bytes.
    pub max_token: usize,
    /// The name of the resource for people.
    pub name: String,
    /// The address of its documentation.
    pub documentation: Option<String>,
}

/// A protected resource.
#[derive(Debug)]
pub struct ProtectedResource {
    settings: ResourceSettings,
    scopes: Arc<ScopeRules>,
}

impl ProtectedResource {
    /// A resource with these settings, whose operations require these scopes.
    #[must_use]
    pub fn new(settings: ResourceSettings, scopes: Arc<ScopeRules>) -> Self {
        Self { settings, scopes }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.settings.path
    }

    /// Whether access tokens are accepted at all.
    #[must_use]
    pub fn accepts_tokens(&self) -> bool {
        !self.settings.issuers.is_empty()
    }

    /// Whether tokens of the issuer with this label are accepted.
    #[must_use]
    pub fn accepts_issuer(&self, label: &str) -> bool {
        self.settings.issuers.iter().any(|(accepted, _)| &**accepted == label)
    }

    /// Whether access tokens are bound to a key.
    #[must_use]
    pub fn dpop(&self) -> DpopMode {
        self.settings.dpop
    }

    /// Whether proofs must have a nonce of the server.
    #[must_use]
    pub fn dpop_nonce(&self) -> bool {
        self.settings.dpop_nonce
    }

    /// The maximum length of a token, in bytes.
    #[must_use]
    pub fn max_token(&self) -> usize {
        self.settings.max_token
    }

    /// The scopes that every request requires.
    #[must_use]
    pub fn required_scopes(&self) -> &[Arc<str>] {
        &self.settings.required_scopes
    }

    /// What every caller must have besides scopes.
    pub(crate) fn requirement(&self) -> &Requirement {
        &self.settings.requirement
    }

    /// The scopes that operations require.
    pub fn scopes(&self) -> &Arc<ScopeRules> {
        &self.scopes
    }

    /// The identifier of the resource, which tokens name as their audience. `host` is the checked host of a request. It
    /// is used only if no public URL is configured.
    #[must_use]
    pub fn url(&self, host: Option<&str>) -> String {
        format!("{}{}", self.base_url(host), self.settings.path)
    }

    /// The address of the metadata.
    #[must_use]
    pub fn metadata_url(&self, host: Option<&str>) -> String {
        format!("{}{METADATA_PREFIX}{}", self.base_url(host), self.settings.path)
    }

    fn base_url(&self, host: Option<&str>) -> Cow<'_, str> {
        match (&self.settings.public_url, self.settings.is_tls) {
            (Some(url), _) => Cow::Borrowed(url),
            (None, true) => Cow::Owned(format!("https://{}", host.unwrap_or("localhost"))),
            (None, false) => Cow::Owned(format!("http://{}", host.unwrap_or("localhost"))),
        }
    }

    /// The metadata (RFC 9728, 2).
    pub(crate) fn metadata(&self, host: Option<&str>) -> Value {
        let settings = &self.settings;
        let issuers: Vec<&str> = settings.issuers.iter().map(|(_, issuer)| &**issuer).collect();
        let mut document = json!({
            "resource": self.url(host),
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": settings.name,
        });
        if !settings.scopes_supported.is_empty() {
            let scopes: Vec<&str> =
                settings.scopes_supported.iter().map(|scope| &**scope).collect();
            document["scopes_supported"] = json!(scopes);
        }
        if let Some(documentation) = &settings.documentation {
            document["resource_documentation"] = json!(documentation);
        }
        if settings.dpop != DpopMode::Off {
            document["dpop_signing_alg_values_supported"] =
                json!(SignatureAlgorithm::DEFAULT.map(SignatureAlgorithm::name));
        }
        if settings.dpop == DpopMode::Require {
            document["dpop_bound_access_tokens_required"] = json!(true);
        }
        document
    }

    /// The scopes of a challenge: those that every request requires and those that the operation needs; for clients that
    /// ask for exactly these (`granted`), also the known ones that their token has.
    pub(crate) fn challenge_scopes<'a>(
        &'a self,
        granted: Option<&'a [Arc<str>]>,
        needed: &'a [Arc<str>],
    ) -> Vec<&'a str> {
        let settings = &self.settings;
        let is_known = |scope: &&Arc<str>| {
            settings.scopes_supported.contains(scope) || self.scopes.names().any(|it| it == *scope)
        };
        let granted = granted.into_iter().flatten().filter(is_known);
        let mut scopes: Vec<&str> = Vec::new();
        for scope in settings.required_scopes.iter().chain(granted).chain(needed) {
            if !scopes.contains(&&**scope) {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// The algorithms of DPoP proofs, as a challenge names them.
    #[must_use]
    pub fn dpop_algorithms() -> String {
        SignatureAlgorithm::DEFAULT.map(SignatureAlgorithm::name).join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(change: impl FnOnce(&mut ResourceSettings)) -> ProtectedResource {
        let mut settings = ResourceSettings {
            path: "/mcp".to_owned(),
            public_url: Some("https://mcp.example.com".to_owned()),
            issuers: vec![("corp".into(), "https://id.example.com/".into())],
            required_scopes: vec!["mcp".into()],
            scopes_supported: vec!["mcp".into(), "files:read".into()],
            name: "Acme".to_owned(),
            ..ResourceSettings::default()
        };
        change(&mut settings);
        ProtectedResource::new(settings, Arc::default())
    }

    #[test]
    fn the_metadata_names_the_resource_its_issuers_and_its_scopes() {
        let expected = json!({
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["https://id.example.com/"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Acme",
            "scopes_supported": ["mcp", "files:read"],
            "dpop_signing_alg_values_supported": ["ES256", "EdDSA", "Ed25519", "RS256", "PS256"],
        });
        assert_eq!(resource(|_| {}).metadata(Some("evil.example")), expected);
        let plain = resource(|settings| {
            settings.dpop = DpopMode::Off;
            settings.scopes_supported.clear();
            settings.documentation = Some("https://example.com/docs".to_owned());
        });
        let document = plain.metadata(None);
        assert_eq!(document["resource_documentation"], "https://example.com/docs");
        assert_eq!(document.get("scopes_supported"), None);
        assert_eq!(document.get("dpop_signing_alg_values_supported"), None);
        let strict = resource(|settings| settings.dpop = DpopMode::Require).metadata(None);
        assert_eq!(strict["dpop_bound_access_tokens_required"], true);
    }

    #[test]
    fn without_a_public_url_the_resource_has_the_host_of_the_request() {
        let local = resource(|settings| settings.public_url = None);
        assert_eq!(local.url(Some("localhost:8080")), "http://localhost:8080/mcp");
        let encrypted = resource(|settings| {
            (settings.public_url, settings.is_tls) = (None, true);
        });
        let address = "https://127.0.0.1:8443/.well-known/oauth-protected-resource/mcp";
        assert_eq!(encrypted.metadata_url(Some("127.0.0.1:8443")), address);
    }

    #[test]
    fn a_challenge_names_the_required_then_the_granted_and_then_the_needed_scopes() {
        let (resource, needed) = (resource(|_| {}), ["files:write".into()]);
        assert_eq!(resource.challenge_scopes(None, &needed), ["mcp", "files:write"]);
        let granted = ["openid".into(), "files:read".into(), "mcp".into()];
        let scopes = resource.challenge_scopes(Some(&granted), &needed);
        assert_eq!(scopes, ["mcp", "files:read", "files:write"]);
    }
}
