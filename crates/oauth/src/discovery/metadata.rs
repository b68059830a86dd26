//! The documents in which a protected resource and an authorization server describe themselves.

use crate::error::OAuthError;
use crate::http::document::Document;
use crate::web_url::WebUrl;

/// The maximum number of authorization servers of one resource that are looked at.
const MAX_ISSUERS: usize = 8;

/// The metadata of a protected resource (RFC 9728).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceMetadata {
    /// The resource, as the document writes it.
    pub resource: String,
    /// The issuers of the authorization servers, as the document writes them.
    pub issuers: Vec<String>,
    /// The scopes that the resource knows.
    pub scopes: Vec<String>,
    /// Whether tokens must be bound to a key.
    pub requires_dpop: bool,
}

impl ResourceMetadata {
    /// Reads the metadata of the MCP server at `server`.
    ///
    /// # Errors
    /// When the document is about another resource, or names no authorization server.
    pub fn read(document: &Document, url: &WebUrl, server: &WebUrl) -> Result<Self, OAuthError> {
        let wrong =
            |reason: &str| OAuthError::Document { url: url.as_str().into(), reason: reason.into() };
        let resource = document.text("resource").ok_or_else(|| wrong("it has no `resource`"))?;
        if !covers(resource, server) {
            let (server, published) = (server.as_str().to_owned(), resource.to_owned());
            return Err(OAuthError::ResourceMismatch { server, published });
        }
        let mut issuers = document.texts("authorization_servers").unwrap_or_default();
        issuers.truncate(MAX_ISSUERS);
        if issuers.is_empty() {
            return Err(wrong("it names no authorization server"));
        }
        Ok(Self {
            resource: resource.to_owned(),
            issuers,
            scopes: document.texts("scopes_supported").unwrap_or_default(),
            requires_dpop: document.is_true("dpop_bound_access_tokens_required"),
        })
    }
}

/// Whether the resource is the server or contains it: the origins are equal, and the path of the resource is that of the
/// server or a parent of it (2025-11-25 basic/authorization, canonical server URI).
fn covers(resource: &str, server: &WebUrl) -> bool {
    let Ok(resource) = WebUrl::parse(resource) else { return false };
    let parent = resource.path().strip_suffix('/').unwrap_or(resource.path());
    let rest = server.path().strip_prefix(parent);
    resource.is_same_origin(server)
        && resource.query().is_empty()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a document says about PKCE (RFC 7636).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pkce {
    /// The server has the method S256.
    S256,
    /// The server has other methods only.
    Others,
    /// Nothing.
    NotSaid,
}

impl Pkce {
    fn read(document: &Document) -> Self {
        const MEMBER: &str = "code_challenge_methods_supported";
        match document.texts(MEMBER) {
            Some(methods) if methods.iter().any(|method| method == "S256") => Self::S256,
            None if !document.has(MEMBER) => Self::NotSaid,
            _ => Self::Others,
        }
    }
}

/// The metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMetadata {
    /// The issuer, as the document writes it.
    pub issuer: String,
    /// The address that is opened in a browser.
    pub authorization_endpoint: Option<WebUrl>,
    /// The address that gives tokens.
    pub token_endpoint: WebUrl,
    /// The address at which clients register (RFC 7591).
    pub registration_endpoint: Option<WebUrl>,
    /// The address at which tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<WebUrl>,
    /// The address at which the device flow begins (RFC 8628).
    pub device_endpoint: Option<WebUrl>,
    /// The address for pushed authorization requests (RFC 9126), if they are required.
    pub required_par_endpoint: Option<WebUrl>,
    /// What the document says about PKCE.
    pub pkce: Pkce,
    /// The scopes that the server knows.
    pub scopes: Vec<String>,
    /// How clients may authenticate at the token endpoint; `None` if the document does not say it.
    pub client_auth_methods: Option<Vec<String>>,
    /// Whether a client id may be the address of a document.
    pub takes_client_metadata_documents: bool,
    /// Whether authorization responses name their issuer (RFC 9207).
    pub sends_issuer: bool,
    /// The algorithms of DPoP proofs.
    pub dpop_algorithms: Vec<String>,
    /// Whether the document is one of OpenID Connect.
    pub is_openid: bool,
}

impl ServerMetadata {
    /// Reads the metadata of an issuer.
    ///
    /// # Errors
    /// When the document is about another issuer, lacks an endpoint, or names an address that is not used.
    pub fn read(document: &Document, issuer: &str, server: &WebUrl) -> Result<Self, OAuthError> {
        let found = document.text("issuer").unwrap_or_default();
        if found != issuer {
            return Err(OAuthError::IssuerMismatch {
                expected: issuer.to_owned(),
                found: found.to_owned(),
            });
        }
        let endpoint = |member| document.endpoint(member, server);
        let lacks = |feature| OAuthError::Unsupported { issuer: issuer.to_owned(), feature };
        let response_types = document.texts("response_types_supported");
        let has_code = response_types.is_none_or(|types| types.iter().any(|it| it == "code"));
        let requires_par = document.is_true("require_pushed_authorization_requests");
        let par_endpoint = endpoint("pushed_authorization_request_endpoint")?;
        Ok(Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: endpoint("authorization_endpoint")?.filter(|_| has_code),
            token_endpoint: endpoint("token_endpoint")?.ok_or_else(|| lacks("token requests"))?,
            registration_endpoint: endpoint("registration_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            device_endpoint: endpoint("device_authorization_endpoint")?,
            required_par_endpoint: par_endpoint.filter(|_| requires_par),
            pkce: Pkce::read(document),
            scopes: document.texts("scopes_supported").unwrap_or_default(),
            client_auth_methods: document.texts("token_endpoint_auth_methods_supported"),
            takes_client_metadata_documents: document
                .is_true("client_id_metadata_document_supported"),
            sends_issuer: document.is_true("authorization_response_iss_parameter_supported"),
            dpop_algorithms: document
                .texts("dpop_signing_alg_values_supported")
                .unwrap_or_default(),
            is_openid: document.texts("subject_types_supported").is_some(),
        })
    }

    /// The fixed paths of 2025-03-26, for a server that publishes no document (2025-03-26 basic/authorization, fallbacks
    /// for servers without metadata discovery).
    ///
    /// # Errors
    /// When the server's address cannot carry them.
    pub fn fixed_paths(server: &WebUrl) -> Result<Self, OAuthError> {
        let at = |path: &str| {
            let url = WebUrl::parse(&format!("{}{path}", server.origin()));
            url.map_err(|error| OAuthError::Address { member: "the server's address", error })
        };
        Ok(Self {
            issuer: server.origin().to_owned(),
            authorization_endpoint: Some(at("/authorize")?),
            token_endpoint: at("/token")?,
            registration_endpoint: Some(at("/register")?),
            revocation_endpoint: None,
            device_endpoint: None,
            required_par_endpoint: None,
            pkce: Pkce::S256,
            scopes: Vec::new(),
            client_auth_methods: None,
            takes_client_metadata_documents: false,
            sends_issuer: false,
            dpop_algorithms: Vec::new(),
            is_openid: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ResourceMetadata, ServerMetadata, covers};
    use crate::error::OAuthError;
    use crate::http::document::Document;
    use crate::web_url::WebUrl;

    fn url(text: &str) -> WebUrl {
        WebUrl::parse(text).unwrap()
    }

    #[test]
    fn a_resource_covers_its_path_and_what_is_below() {
        let server = url("https://mcp.example.com/a/mcp");
        for resource in [
            "https://mcp.example.com",
            "https://MCP.example.com:443/",
            "https://mcp.example.com/a/mcp",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://evil.example.com/a/mcp",
            "http://mcp.example.com",
            "https://mcp.example.com/a/mc",
            "https://mcp.example.com/a/mcp/b",
            "https://mcp.example.com/a/mcp?x",
            "https://mcp.example.com/a/mcp#x",
            "mcp",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }

    #[test]
    fn the_resource_stays_as_it_was_written() {
        let text = br#"{"resource":"https://mcp.example.com","authorization_servers":["https://id.example.com/"],"scopes_supported":7}"#;
        let server = url("https://mcp.example.com/mcp");
        let read =
            ResourceMetadata::read(&Document::parse(text).unwrap(), &server, &server).unwrap();
        assert_eq!(
            (read.resource.as_str(), read.issuers[0].as_str()),
            ("https://mcp.example.com", "https://id.example.com/")
        );
        assert!(read.scopes.is_empty());
    }

    #[test]
    fn metadata_of_another_issuer_is_refused() {
        let document = Document::parse(
            br#"{"issuer":"https://id.example.com/","token_endpoint":"https://id.example.com/t"}"#,
        );
        let read = ServerMetadata::read(
            &document.unwrap(),
            "https://id.example.com",
            &url("https://a.example"),
        );
        assert!(matches!(read, Err(OAuthError::IssuerMismatch { .. })), "{read:?}");
    }

    #[test]
    fn endpoints_must_be_encrypted_except_on_this_machine() {
        let read = |endpoint: &str, server: &str| {
            let text = format!(r#"{{"issuer":"i","token_endpoint":"{endpoint}"}}"#);
            ServerMetadata::read(&Document::parse(text.as_bytes()).unwrap(), "i", &url(server))
                .map(|_| ())
        };
        assert_eq!(read("https://x/t", "https://a.example"), Ok(()));
        assert_eq!(read("http://127.0.0.1:1/t", "http://localhost:2"), Ok(()));
        assert!(matches!(
            read("http://127.0.0.1:1/t", "https://a.example"),
            Err(OAuthError::NotEncrypted { .. })
        ));
        assert!(matches!(
            read("http://x/t", "http://localhost:2"),
            Err(OAuthError::NotEncrypted { .. })
        ));
        for endpoint in ["ftp://x/t", "https://user:pw@x/t", "javascript:1"] {
            assert!(
                matches!(read(endpoint, "https://a.example"), Err(OAuthError::Address { .. })),
                "{endpoint}"
            );
        }
    }
}
