//! The login of a program.

use creole_proto::model::{CLIENT_CREDENTIALS_EXTENSION, ENTERPRISE_AUTHORIZATION_EXTENSION};

use crate::discovery::Discovered;
use crate::error::OAuthError;
use crate::flow::attempt::{LoginAttempt, LoginTarget, configured_client};
use crate::http::exchange::{Exchange, Reach};
use crate::secret::SecretText;
use crate::settings::LoginSettings;
use crate::tokens::client::OAuthClient;
use crate::tokens::endpoint::{Grant, ID_JAG, TokenEndpoint};
use crate::tokens::login::Login;
use crate::web_url::WebUrl;

/// A grant that needs no person.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProgramGrant {
    /// The client's own credentials.
    ClientCredentials,
    /// An assertion of another issuer, such as a workload's identity.
    JwtBearer(SecretText),
    /// An ID token of a company's identity provider (enterprise-managed authorization).
    Enterprise(EnterpriseGrant),
}

impl ProgramGrant {
    /// The extension of the protocol that defines the grant, if one does.
    pub fn extension(&self) -> Option<&'static str> {
        match self {
            Self::ClientCredentials => Some(CLIENT_CREDENTIALS_EXTENSION),
            Self::Enterprise(_) => Some(ENTERPRISE_AUTHORIZATION_EXTENSION),
            Self::JwtBearer(_) => None,
        }
    }
}

/// The identity provider of a company, and the person's ID token.
#[derive(Clone, Debug)]
pub struct EnterpriseGrant {
    /// The ID token.
    pub id_token: SecretText,
    /// The provider's token endpoint.
    pub token_endpoint: WebUrl,
    /// The provider, for messages.
    pub issuer: String,
    /// The client at the provider.
    pub client: OAuthClient,
}

/// Gets tokens for a program.
///
/// # Errors
/// When a document is wrong, or a server refuses. A refusal is final: no other grant is tried.
pub async fn log_in_program(
    exchange: &impl Exchange,
    settings: &LoginSettings,
    target: LoginTarget<'_>,
    found: &Discovered,
    grant: &ProgramGrant,
) -> Result<Login, OAuthError> {
    let attempt = LoginAttempt::new(settings, target, found)?;
    let client = match (&settings.client_id, grant) {
        (Some(id), _) => configured_client(settings, id, found),
        // The assertion names the program.
        (None, ProgramGrant::JwtBearer(_)) => OAuthClient::unnamed(),
        (None, _) => {
            let reason = "a login of a program needs a `client_id`".to_owned();
            return Err(OAuthError::Key { reason });
        }
    };
    let (resource, scopes) = (attempt.resource(), attempt.scopes.clone());
    let grant = match grant {
        ProgramGrant::ClientCredentials => Grant::client_credentials(resource, scopes),
        ProgramGrant::JwtBearer(assertion) => Grant::jwt_bearer(assertion, resource, scopes),
        ProgramGrant::Enterprise(enterprise) => {
            let assertion = enterprise.assertion(exchange, &attempt).await?;
            Grant::jwt_bearer(&assertion, resource, scopes)
        }
    };
    attempt.redeem(exchange, client, grant).await
}

impl EnterpriseGrant {
    /// Exchanges the ID token for an assertion to the authorization server. The assertion is used once and never stored.
    async fn assertion(
        &self,
        exchange: &impl Exchange,
        attempt: &LoginAttempt<'_>,
    ) -> Result<SecretText, OAuthError> {
        if !self.token_endpoint.is_https() && !self.token_endpoint.is_loopback() {
            return Err(OAuthError::NotEncrypted { member: "token_endpoint" });
        }
        let endpoint = TokenEndpoint {
            url: self.token_endpoint.clone(),
            // The configuration names the provider.
            reach: Reach::Anywhere,
            issuer: self.issuer.clone(),
            client: self.client.clone(),
            assertion: None,
            dpop: None,
        };
        let found = attempt.found;
        let grant = Grant::id_assertion(
            &self.id_token,
            &found.server.issuer,
            &found.resource,
            attempt.scopes.clone(),
        );
        let tokens = endpoint.request_assertion(exchange, grant).await?;
        match tokens.issued_token_type.as_deref() {
            Some(ID_JAG) => Ok(tokens.access_token),
            _ => Err(OAuthError::Document {
                url: self.token_endpoint.as_str().into(),
                reason: "it has no identity assertion".into(),
            }),
        }
    }
}
