//! The authorization request that a browser opens, and the response that it brings back.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::crypto::random;
use crate::discovery::metadata::{Pkce, ServerMetadata};
use crate::error::{OAuthError, RefusalReason};
use crate::http::exchange::{Form, form_decode};
use crate::scopes::Scopes;
use crate::secret::SecretText;
use crate::web_url::WebUrl;

/// The maximum length of a code, in bytes.
const MAX_CODE: usize = 4_096;

/// What an authorization request asks for.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationParameters<'a> {
    /// The client's id.
    pub client_id: &'a str,
    /// The address that the browser is sent back to.
    pub redirect_uri: &'a str,
    /// The resource, unless the issuer refuses the parameter.
    pub resource: Option<&'a str>,
    /// The scopes.
    pub scopes: &'a Scopes,
}

/// An authorization request with the secrets that belong to it. It is used once.
#[derive(Clone, Debug)]
pub struct AuthorizationRequest {
    endpoint: WebUrl,
    client_id: String,
    redirect_uri: String,
    /// The other parameters.
    parameters: Form,
    /// The URI of a pushed request (RFC 9126).
    pushed: Option<String>,
    issuer: String,
    sends_issuer: bool,
    state: SecretText,
    verifier: SecretText,
}

impl AuthorizationRequest {
    /// Checks that a person can log in at this server.
    ///
    /// # Errors
    /// When the server has no authorization endpoint, or does not advertise PKCE with S256.
    pub(crate) fn check(server: &ServerMetadata) -> Result<&WebUrl, OAuthError> {
        let issuer = server.issuer.clone();
        match &server.authorization_endpoint {
            None => Err(OAuthError::Unsupported { issuer, feature: "logins with a browser" }),
            Some(_) if server.pkce != Pkce::S256 => Err(OAuthError::NoPkce { issuer }),
            Some(endpoint) => Ok(endpoint),
        }
    }

    /// Makes a request with a new state and a new PKCE verifier.
    ///
    /// # Errors
    /// When the server has no authorization endpoint or does not advertise PKCE with S256, and when random bytes are
    /// missing.
    pub fn new(
        server: &ServerMetadata,
        wanted: AuthorizationParameters<'_>,
    ) -> Result<Self, OAuthError> {
        let endpoint = Self::check(server)?.clone();
        let (state, verifier) = (random::token()?, random::token()?);
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let asks_consent = server.is_openid && wanted.scopes.contains("offline_access");
        let parameters = Form::default()
            .with("response_type", "code")
            .with("redirect_uri", wanted.redirect_uri)
            .with("state", &state)
            .with("code_challenge", &challenge)
            .with("code_challenge_method", "S256")
            .with_option("resource", wanted.resource)
            .with_option("scope", wanted.scopes.to_parameter().as_deref())
            .with_option("prompt", asks_consent.then_some("consent"));
        Ok(Self {
            endpoint,
            client_id: wanted.client_id.to_owned(),
            redirect_uri: wanted.redirect_uri.to_owned(),
            parameters,
            pushed: None,
            issuer: server.issuer.clone(),
            sends_issuer: server.sends_issuer,
            state: SecretText::new(state),
            verifier: SecretText::new(verifier),
        })
    }

    /// The parameters besides the client's id, for a pushed request (RFC 9126).
    pub(crate) fn form(&self) -> &Form {
        &self.parameters
    }

    /// Uses the URI that a pushed request got.
    pub(crate) fn set_pushed(&mut self, request_uri: &str) {
        self.pushed = Some(request_uri.to_owned());
    }

    /// The issuer that the person logs in at.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The address that the browser opens. Parameters of the endpoint itself stay, except those that the request sets.
    pub fn url(&self) -> String {
        let client = Form::default().with("client_id", &self.client_id);
        let own = match &self.pushed {
            Some(uri) => client.with("request_uri", uri),
            None => client.and(&self.parameters),
        };
        let own = own.into_text();
        let names: Vec<_> =
            form_decode(&own).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        let is_ours = |pair: &&str| {
            let name = form_decode(pair).and_then(|mut it| it.pop()).map(|(name, _)| name);
            name.is_none_or(|name| names.contains(&name))
        };
        let kept = self
            .endpoint
            .query()
            .trim_start_matches('?')
            .split('&')
            .filter(|pair| !pair.is_empty());
        let mut pairs: Vec<&str> = kept.filter(|pair| !is_ours(pair)).collect();
        pairs.push(&own);
        format!("{}?{}", self.endpoint.without_query(), pairs.join("&"))
    }

    /// The PKCE verifier for the token request.
    pub(crate) fn verifier(&self) -> &SecretText {
        &self.verifier
    }

    /// Whether a query belongs to this request. A query that does not must not end the login: anybody can send one.
    pub fn is_response(&self, query: &str) -> bool {
        let parameters = form_decode(query).unwrap_or_default();
        let mut states = parameters.iter().filter(|(name, _)| name == "state");
        let state = states.next().map(|(_, state)| state);
        state
            .is_some_and(|state| bool::from(state.as_bytes().ct_eq(self.state.expose().as_bytes())))
    }

    /// The query in the address that a browser ended at, for a person who copies that address.
    ///
    /// # Errors
    /// When the text is not that address, or does not belong to this request. The code alone is not enough: it could be
    /// another's.
    pub fn copied_response<'a>(&self, address: &'a str) -> Result<&'a str, OAuthError> {
        let wrong = |reason| OAuthError::Response { reason };
        let rest = address.trim().strip_prefix(&self.redirect_uri);
        let query = rest.and_then(|rest| rest.strip_prefix('?'));
        let query = query.ok_or_else(|| {
            wrong("it is not the complete redirect URL; the code alone cannot be verified")
        })?;
        let query = query.split_once('#').map_or(query, |(query, _)| query);
        let is_own = self.is_response(query);
        is_own.then_some(query).ok_or_else(|| wrong("its state is that of another request"))
    }

    /// The code of a response, after all checks: state, repeated parameters, issuer, and only then the error.
    ///
    /// # Errors
    /// When a check fails, or the person declined.
    pub fn code(&self, query: &str) -> Result<SecretText, OAuthError> {
        let wrong = |reason| OAuthError::Response { reason };
        let parameters = form_decode(query).ok_or_else(|| wrong("its query cannot be read"))?;
        let is_repeated = |(at, (name, _)): (usize, &(String, String))| {
            parameters[..at].iter().any(|it| it.0 == *name)
        };
        if parameters.iter().enumerate().any(is_repeated) {
            return Err(wrong("it repeats a parameter"));
        }
        if !self.is_response(query) {
            return Err(wrong("its state is that of another request"));
        }
        let value = |wanted: &str| {
            parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        self.check_issuer(value("iss"))?;
        if let Some(error) = value("error") {
            let issuer = self.issuer.clone();
            return Err(match error {
                "access_denied" => OAuthError::Declined { issuer },
                _ => {
                    let error = RefusalReason::new(error, value("error_description"), 302);
                    OAuthError::Refused { request: "the login", issuer, error }
                }
            });
        }
        let code = value("code").filter(|code| !code.is_empty() && code.len() <= MAX_CODE);
        code.map(SecretText::new).ok_or_else(|| wrong("it has no code"))
    }

    /// Compares the issuer of the response byte by byte (RFC 9207, section 2.4).
    fn check_issuer(&self, found: Option<&str>) -> Result<(), OAuthError> {
        let is_right = match found {
            Some(found) => found == self.issuer,
            None => !self.sends_issuer,
        };
        is_right
            .then_some(())
            .ok_or_else(|| OAuthError::ResponseIssuer { expected: self.issuer.clone() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{AuthorizationParameters, AuthorizationRequest};
    use crate::discovery::metadata::{Pkce, ServerMetadata};
    use crate::error::OAuthError;
    use crate::http::exchange::form_decode;
    use crate::scopes::Scopes;
    use crate::web_url::WebUrl;

    const ISSUER: &str = "https://id.example.com";

    fn server() -> ServerMetadata {
        ServerMetadata::fixed_paths(&WebUrl::parse(ISSUER).unwrap()).unwrap()
    }

    fn request(server: &ServerMetadata) -> AuthorizationRequest {
        let scopes = Scopes::parse("a b");
        let wanted = AuthorizationParameters {
            client_id: "c",
            redirect_uri: "http://127.0.0.1:1/callback",
            resource: Some("https://mcp.example.com"),
            scopes: &scopes,
        };
        AuthorizationRequest::new(server, wanted).unwrap()
    }

    fn query(request: &AuthorizationRequest, rest: &str) -> String {
        format!("state={}&{rest}", request.state.expose())
    }

    #[test]
    fn the_request_keeps_the_endpoints_own_parameters() {
        let mut server = server();
        server.authorization_endpoint =
            WebUrl::parse("https://id.example.com/a?tenant=1&scope=evil").ok();
        let url = request(&server).url();
        let (address, query) = url.split_once('?').unwrap();
        assert_eq!(address, "https://id.example.com/a");
        let parameters = form_decode(query).unwrap();
        let values = |name: &str| {
            parameters.iter().filter(|it| it.0 == name).map(|it| it.1.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((values("tenant"), values("scope")), (vec!["1"], vec!["a b"]));
        assert_eq!(values("resource"), ["https://mcp.example.com"]);
        assert_eq!(values("code_challenge_method"), ["S256"]);
        assert_eq!((values("code_challenge")[0].len(), values("state")[0].len()), (43, 43));
        assert!(values("prompt").is_empty());
    }

    proptest! {
        #[test]
        fn no_query_without_the_state_gives_a_code(query in any::<String>(), code in "[a-z]{1,9}") {
            let request = request(&server());
            prop_assert!(request.code(&query).is_err());
            let foreign = format!("{query}&code={code}&state={code}");
            prop_assert!(request.code(&foreign).is_err());
            prop_assert!(request.copied_response(&query).is_err());
        }
    }

    #[test]
    fn two_requests_share_no_secret() {
        let (left, right) = (request(&server()), request(&server()));
        assert_ne!(left.state, right.state);
        assert_ne!(left.verifier, right.verifier);
        assert!(!left.is_response(&query(&right, "code=x")));
    }

    #[test]
    fn a_server_without_pkce_is_refused() {
        for pkce in [Pkce::Others, Pkce::NotSaid] {
            let server = ServerMetadata { pkce, ..server() };
            let wanted = AuthorizationParameters {
                client_id: "c",
                redirect_uri: "r",
                resource: None,
                scopes: &Scopes::default(),
            };
            let error = AuthorizationRequest::new(&server, wanted).unwrap_err();
            assert_eq!(
                error.to_string(),
                "https://id.example.com does not advertise PKCE S256; refusing to log in"
            );
        }
    }

    #[test]
    fn the_issuer_of_the_response_is_compared_byte_by_byte() {
        let encoded = "iss=https%3A%2F%2Fid.example.com";
        for (sends_issuer, rest, is_right) in [
            (true, format!("code=x&{encoded}"), true),
            (true, "code=x".to_owned(), false),
            (true, format!("code=x&{encoded}%2F"), false),
            (false, "code=x".to_owned(), true),
            (false, "code=x&iss=https%3A%2F%2Fevil.example".to_owned(), false),
            (false, format!("code=x&{encoded}"), true),
        ] {
            let server = ServerMetadata { sends_issuer, ..server() };
            let request = request(&server);
            let code = request.code(&query(&request, &rest));
            assert_eq!(code.is_ok(), is_right, "{sends_issuer} {rest}");
            assert!(is_right || matches!(code, Err(OAuthError::ResponseIssuer { .. })), "{code:?}");
        }
    }

    #[test]
    fn an_error_is_shown_only_after_the_issuer_is_checked() {
        let server = ServerMetadata { sends_issuer: true, ..server() };
        let request = request(&server);
        let code = |rest: &str| request.code(&query(&request, rest)).unwrap_err();
        assert!(matches!(
            code("error=x&error_description=evil"),
            OAuthError::ResponseIssuer { .. }
        ));
        let own = "iss=https%3A%2F%2Fid.example.com";
        assert_eq!(
            code(&format!("error=access_denied&{own}")).to_string(),
            "login declined at https://id.example.com"
        );
        let long =
            code(&format!("error=server_error&error_description=a%0Ab{}&{own}", "x".repeat(900)))
                .to_string();
        assert!(long.len() < 300 && !long.contains('\n'), "{long}");
    }

    #[test]
    fn only_a_complete_address_is_taken_from_a_person() {
        let request = request(&server());
        let query = query(&request, "code=x");
        let address = format!(" http://127.0.0.1:1/callback?{query}#\n");
        assert_eq!(request.copied_response(&address).unwrap(), query);
        for wrong in [
            "x".to_owned(),
            query.clone(),
            format!("http://127.0.0.1:2/callback?{query}"),
            format!("http://127.0.0.1:1/callback/?{query}"),
            "http://127.0.0.1:1/callback?state=x&code=x".to_owned(),
        ] {
            assert!(request.copied_response(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_response_that_is_not_exact_is_refused() {
        let request = request(&server());
        assert!(matches!(request.code("state=other&code=x"), Err(OAuthError::Response { .. })));
        for rest in ["code=a&code=b", "state=z&code=a", "code=", "", "code=%zz"] {
            let code = request.code(&query(&request, rest));
            assert!(matches!(code, Err(OAuthError::Response { .. })), "{rest}: {code:?}");
        }
        let code = format!("code={}", "x".repeat(4_097));
        assert!(request.code(&query(&request, &code)).is_err());
    }
}
