//! Logs in as the scenarios of the suite demand. The suite's authorization servers approve at once, so the browser is a
//! request whose redirect is the response.

use std::env;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use creole::BoxFuture;
use creole::client::oauth::{
    Algorithm, AuthorizationRequest, ClientAuthMethod, ClientSource, EnterpriseGrant, LoginMethod,
    LoginPage, LoginPrompt, OAuthClient, OAuthCredentials, OAuthError, OAuthOptions, ProgramGrant,
    SecretText, SigningKey, WebUrl,
};
use creole_acceptance::http::Request;
use serde_json::Value;

/// The document about this client. The suite never reads it.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// The page that the browser would return to. Nothing listens there.
const REDIRECT_URI: &str = "http://127.0.0.1:33418/callback";

/// The credentials of the client in a scenario.
pub(super) fn credentials(url: &str, scenario: &str) -> Result<OAuthCredentials, String> {
    let context = Context::read()?;
    let mut options = OAuthOptions::new(match scenario {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => {
            LoginMethod::Program(Arc::new(ProgramGrant::ClientCredentials))
        }
        "auth/wif-jwt-bearer" => {
            let assertion = SecretText::new(context.text("valid_jwt")?);
            LoginMethod::Program(Arc::new(ProgramGrant::JwtBearer(assertion)))
        }
        "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow" => {
            let enterprise = enterprise(&context).map_err(|error| error.to_string())?;
            LoginMethod::Program(Arc::new(ProgramGrant::Enterprise(enterprise)))
        }
        _ => LoginMethod::Person(Arc::new(Approval)),
    });
    let settings = &mut options.settings;
    settings.client_metadata_url = Some(CLIENT_METADATA.to_owned());
    settings.client_id = context.text("client_id").ok();
    settings.client_secret = context.text("client_secret").ok().map(SecretText::new);
    if let Ok(pem) = context.text("private_key_pem") {
        let algorithm = Algorithm::from_name(&context.text("signing_algorithm")?);
        let key = SigningKey::from_pem(&pem, algorithm).map_err(|error| error.to_string())?;
        settings.private_key = Some(key);
    }
    OAuthCredentials::new("suite", url, options).map_err(|error| error.to_string())
}

fn enterprise(context: &Context) -> Result<EnterpriseGrant, String> {
    let endpoint = context.text("idp_token_endpoint")?;
    Ok(EnterpriseGrant {
        id_token: SecretText::new(context.text("idp_id_token")?),
        token_endpoint: WebUrl::parse(&endpoint).map_err(|error| error.to_string())?,
        issuer: context.text("idp_issuer")?,
        client: OAuthClient {
            id: context.text("idp_client_id")?,
            secret: None,
            method: ClientAuthMethod::None,
            source: ClientSource::Configured,
            redirect_uri: None,
            expires_at: None,
        },
    })
}

/// What the suite tells the client about a scenario.
struct Context(Value);

impl Context {
    fn read() -> Result<Self, String> {
        let text = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
        serde_json::from_str(&text).map(Self).map_err(|error| error.to_string())
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let text = self.0[name].as_str();
        text.map(str::to_owned).ok_or_else(|| format!("the context has no `{name}`"))
    }
}

/// A person who approves every login, and the page that the browser returns to.
struct Approval;

impl LoginPrompt for Approval {
    fn open(
        &self,
        _: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>> {
        Box::pin(async { Ok(Box::new(Self) as Box<dyn LoginPage>) })
    }
}

impl LoginPage for Approval {
    fn redirect_uri(&self) -> &str {
        REDIRECT_URI
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<String, OAuthError>> {
        Box::pin(async move {
            let location = redirect(request.url()).await;
            let location = location.map_err(|reason| OAuthError::Prompt { reason })?;
            request.copied_response(&location).map(str::to_owned)
        })
    }
}

/// Where a page sends the browser.
async fn redirect(url: String) -> Result<String, String> {
    let getting = tokio::task::spawn_blocking(move || {
        let (host, target) = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .ok_or("the authorization URL is not one of the suite")?;
        let addresses = host.to_socket_addrs().map_err(|error| error.to_string())?;
        let address = addresses.into_iter().find(SocketAddr::is_ipv4).ok_or("no address")?;
        let response = Request::new("GET", &format!("/{target}")).send(address)?;
        let location = response.head.field("location").map(str::to_owned);
        location.ok_or_else(|| format!("no redirect, but {}", response.head.status))
    });
    getting.await.map_err(|error| error.to_string())?
}
