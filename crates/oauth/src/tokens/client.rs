//! The client's identity at an authorization server: its id, how it authenticates, and how it registers.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::crypto::jose::SigningKey;
use crate::discovery::metadata::ServerMetadata;
use crate::error::{OAuthError, RefusalReason};
use crate::http::document::Document;
use crate::http::exchange::{Body, Exchange, Form, Reach, Request, form_encode};
use crate::secret::SecretText;
use crate::settings::LoginSettings;

/// The maximum length of a client id, in bytes.
const MAX_CLIENT_ID: usize = 2_048;

/// The grant of a login at another device (RFC 8628, section 3.4).
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// How long a signed assertion is valid, in seconds.
const ASSERTION_SECONDS: u64 = 300;

/// How a client authenticates at the token endpoint (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientAuthMethod {
    /// It does not.
    #[serde(rename = "none")]
    None,
    /// By a secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// By a secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// By a signed assertion (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl ClientAuthMethod {
    const ALL: [Self; 4] = [Self::None, Self::Basic, Self::Post, Self::PrivateKeyJwt];

    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The method with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The method for a client with or without a secret, from those that the server lists. A server that lists nothing
    /// takes Basic (RFC 8414, section 2).
    fn choose(listed: Option<&[String]>, has_secret: bool) -> Self {
        if !has_secret {
            return Self::None;
        }
        let has =
            |method: Self| listed.is_none_or(|listed| listed.iter().any(|it| it == method.name()));
        match has(Self::Basic) || !has(Self::Post) {
            true => Self::Basic,
            false => Self::Post,
        }
    }
}

/// How a client got its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientSource {
    /// The configuration names it.
    Configured,
    /// It is the address of a document about the client.
    MetadataDocument,
    /// The server gave it at the registration.
    Registered,
}

/// A client at one authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthClient {
    /// The id.
    pub id: String,
    /// The secret, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretText>,
    /// How it authenticates.
    pub method: ClientAuthMethod,
    /// How it got its id.
    pub source: ClientSource,
    /// The redirect address of its registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// When its secret expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

impl OAuthClient {
    /// A client whose id the configuration names.
    pub fn configured(id: &str, secret: Option<SecretText>, server: &ServerMetadata) -> Self {
        let method =
            ClientAuthMethod::choose(server.client_auth_methods.as_deref(), secret.is_some());
        let source = ClientSource::Configured;
        Self { id: id.to_owned(), secret, method, source, redirect_uri: None, expires_at: None }
    }

    /// A client whose id is the address of its metadata document.
    pub fn with_metadata_document(url: &str) -> Self {
        Self {
            id: url.to_owned(),
            secret: None,
            method: ClientAuthMethod::None,
            source: ClientSource::MetadataDocument,
            redirect_uri: None,
            expires_at: None,
        }
    }

    /// No client, for a grant that names the program by itself.
    pub(crate) fn unnamed() -> Self {
        Self { source: ClientSource::Configured, ..Self::with_metadata_document("") }
    }

    /// Whether the secret is still valid.
    pub fn is_valid(&self, now: u64) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// Adds the authentication to the form and headers of a token request.
    ///
    /// # Errors
    /// When an assertion cannot be signed.
    pub fn authenticate(
        &self,
        form: Form,
        headers: &mut Vec<(&'static str, String)>,
        assertion: Option<&AssertionKey>,
        now: u64,
    ) -> Result<Form, OAuthError> {
        let secret = self.secret.as_ref().map_or("", SecretText::expose);
        Ok(match self.method {
            ClientAuthMethod::None if self.id.is_empty() => form,
            ClientAuthMethod::None => form.with("client_id", &self.id),
            ClientAuthMethod::Post => {
                form.with("client_id", &self.id).with("client_secret", secret)
            }
            ClientAuthMethod::Basic => {
                headers.push(("authorization", basic(&self.id, secret)));
                form
            }
            ClientAuthMethod::PrivateKeyJwt => {
                let key = assertion.ok_or_else(|| OAuthError::Key {
                    reason: "no private key is configured".into(),
                })?;
                const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                form.with("client_assertion_type", TYPE)
                    .with("client_assertion", &key.assertion(&self.id, now)?)
            }
        })
    }
}

/// The header of RFC 6749, section 2.3.1: id and secret are encoded as in a form first.
fn basic(id: &str, secret: &str) -> String {
    let mut text = String::new();
    form_encode(id, &mut text);
    text.push(':');
    form_encode(secret, &mut text);
    format!("Basic {}", BASE64_STANDARD.encode(text))
}

/// The key that signs a client's assertions, and the audience of these.
#[derive(Clone, Debug)]
pub struct AssertionKey {
    /// The key.
    pub key: SigningKey,
    /// The issuer, or for older servers the token endpoint.
    pub audience: String,
}

impl AssertionKey {
    /// The key of the settings, if there is one.
    pub(crate) fn configured(
        settings: &LoginSettings,
        issuer: &str,
        token_endpoint: &str,
    ) -> Option<Self> {
        let audience = if settings.has_endpoint_audience { token_endpoint } else { issuer };
        settings.private_key.clone().map(|key| Self { key, audience: audience.to_owned() })
    }

    /// An assertion that this is the client (RFC 7523, section 3).
    fn assertion(&self, client_id: &str, now: u64) -> Result<String, OAuthError> {
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": self.audience,
            "jti": crate::crypto::random::token()?,
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        });
        self.key.sign(&json!({ "typ": "JWT", "kid": self.key.id() }), &claims)
    }
}

/// What a registration asks for.
#[derive(Clone, Copy, Debug)]
pub struct RegistrationRequest<'a> {
    /// The redirect address that the login uses; a login at another device has none.
    pub redirect_uri: Option<&'a str>,
    /// Whether tokens will be bound to a key.
    pub has_dpop: bool,
    /// The token that the registration needs, if the server demands one.
    pub access_token: Option<&'a SecretText>,
    /// Which addresses the endpoint may have.
    pub reach: Reach,
}

/// Registers a client (RFC 7591).
///
/// # Errors
/// When the server has no registration, or refuses it.
pub async fn register(
    exchange: &impl Exchange,
    server: &ServerMetadata,
    wanted: RegistrationRequest<'_>,
) -> Result<OAuthClient, OAuthError> {
    let issuer = &server.issuer;
    let Some(url) = server.registration_endpoint.clone() else {
        return Err(OAuthError::NoRegistration { issuer: issuer.clone() });
    };
    let listed = server.client_auth_methods.as_deref();
    let takes_public = listed.is_none_or(|listed| listed.iter().any(|it| it == "none"));
    let method = match takes_public {
        true => ClientAuthMethod::None,
        false => ClientAuthMethod::choose(listed, true),
    };
    let token = wanted.access_token.map(|token| format!("Bearer {}", token.expose()));
    let request = Request {
        url: url.clone(),
        reach: wanted.reach,
        headers: token.map(|token| ("authorization", token)).into_iter().collect(),
        body: Some(Body::Json(registration_body(wanted, method).to_string())),
    };
    let response = exchange.send(request).await?;
    let document = Document::parse(&response.body);
    if !response.is_success() {
        let error = refusal(document.as_ref(), response.status);
        return Err(OAuthError::Refused {
            request: "the registration",
            issuer: issuer.clone(),
            error,
        });
    }
    let registered =
        document.and_then(|document| registered(&document, wanted.redirect_uri, method));
    registered.ok_or_else(|| OAuthError::Document {
        url: url.as_str().into(),
        reason: "it is not the response to a registration".into(),
    })
}

/// The metadata of this client. It has no `scope`: a server would refuse the scopes of resources, or limit later logins to
/// them.
fn registration_body(wanted: RegistrationRequest<'_>, method: ClientAuthMethod) -> Value {
    let redirect_uris: Vec<_> = wanted.redirect_uri.into_iter().collect();
    let (grant, response_types) = match wanted.redirect_uri {
        Some(_) => ("authorization_code", vec!["code"]),
        None => (DEVICE_GRANT, Vec::new()),
    };
    let mut body = json!({
        "client_name": "Creole",
        "redirect_uris": redirect_uris,
        "grant_types": [grant, "refresh_token"],
        "response_types": response_types,
        "token_endpoint_auth_method": method.name(),
        "application_type": "native",
    });
    if wanted.has_dpop {
        body["dpop_bound_access_tokens"] = true.into();
    }
    body
}

fn registered(
    document: &Document,
    redirect_uri: Option<&str>,
    requested: ClientAuthMethod,
) -> Option<OAuthClient> {
    let id = document.text("client_id").filter(|id| id.len() <= MAX_CLIENT_ID)?;
    let secret = document.text("client_secret").map(SecretText::new);
    let granted = document.text("token_endpoint_auth_method").and_then(ClientAuthMethod::from_name);
    let method = match granted.unwrap_or(requested) {
        ClientAuthMethod::Basic | ClientAuthMethod::Post if secret.is_none() => {
            ClientAuthMethod::None
        }
        method => method,
    };
    Some(OAuthClient {
        id: id.to_owned(),
        secret,
        method,
        source: ClientSource::Registered,
        redirect_uri: redirect_uri.map(str::to_owned),
        expires_at: document.seconds("client_secret_expires_at").filter(|end| *end != 0),
    })
}

/// The reason in an error response (RFC 6749, section 5.2).
pub(crate) fn refusal(document: Option<&Document>, status: u16) -> RefusalReason {
    match document.and_then(|document| {
        document.text("error").map(|code| (code, document.text("error_description")))
    }) {
        Some((code, description)) => RefusalReason::new(code, description, status),
        None => RefusalReason::new(&format!("status {status}"), None, status),
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientAuthMethod, OAuthClient, basic, registered};
    use crate::http::document::Document;
    use crate::http::exchange::Form;

    #[test]
    fn id_and_secret_are_encoded_before_they_are_joined() {
        assert_eq!(basic("a:b", "c d"), "Basic YSUzQWI6Yytk");
    }

    #[test]
    fn the_method_is_one_that_the_server_lists() {
        let listed = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let choose =
            |names: &[&str], has_secret| ClientAuthMethod::choose(Some(&listed(names)), has_secret);
        assert_eq!(ClientAuthMethod::choose(None, true), ClientAuthMethod::Basic);
        assert_eq!(choose(&["client_secret_post"], true), ClientAuthMethod::Post);
        assert_eq!(
            choose(&["client_secret_post", "client_secret_basic"], true),
            ClientAuthMethod::Basic
        );
        assert_eq!(choose(&["private_key_jwt"], true), ClientAuthMethod::Basic);
        assert_eq!(choose(&["client_secret_post"], false), ClientAuthMethod::None);
    }

    #[test]
    fn the_registration_of_the_server_wins() {
        let read = |text: &str| {
            registered(
                &Document::parse(text.as_bytes()).unwrap(),
                Some("r"),
                ClientAuthMethod::None,
            )
        };
        let client = read(
            r#"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"client_secret_post","client_secret_expires_at":5}"#,
        );
        let client = client.unwrap();
        assert_eq!((client.method, client.expires_at), (ClientAuthMethod::Post, Some(5)));
        assert!(client.is_valid(4) && !client.is_valid(5));
        let public =
            read(r#"{"client_id":"a","token_endpoint_auth_method":"client_secret_basic"}"#)
                .unwrap();
        assert_eq!(public.method, ClientAuthMethod::None);
        assert_eq!(read(r#"{"client_secret":"s"}"#), None);
    }

    #[test]
    fn a_public_client_names_itself_in_the_form() {
        let mut headers = Vec::new();
        let client = OAuthClient::with_metadata_document("https://c.example/x");
        let form = client.authenticate(Form::default(), &mut headers, None, 0).unwrap();
        assert_eq!(form.into_text(), "client_id=https%3A%2F%2Fc.example%2Fx");
        assert!(headers.is_empty());
    }
}
