//! The login of a person with a browser.

use std::future::Future;

use crate::discovery::Discovered;
use crate::error::OAuthError;
use crate::flow::attempt::{LoginAttempt, LoginTarget};
use crate::flow::authorization::{AuthorizationParameters, AuthorizationRequest};
use crate::http::document::Document;
use crate::http::exchange::{Exchange, Form};
use crate::settings::LoginSettings;
use crate::tokens::client::{ClientAuthMethod, ClientSource, OAuthClient, refusal};
use crate::tokens::endpoint::Grant;
use crate::tokens::login::Login;
use crate::web_url::WebUrl;

/// How often a login begins anew because the server does not know the client any more.
const MAX_ATTEMPTS: usize = 2;

/// Opens the page that a browser is sent back to.
pub trait Browser: Send + Sync {
    /// The page.
    type Page: RedirectPage;

    /// Prepares the page. `registered` is the redirect address of an earlier registration at this issuer, which is used
    /// again if it can be.
    fn open(
        &self,
        registered: Option<&str>,
    ) -> impl Future<Output = Result<Self::Page, OAuthError>> + Send;
}

/// The page that a browser is sent back to.
pub trait RedirectPage: Send + Sync {
    /// Its address.
    fn redirect_uri(&self) -> &str;

    /// Opens the address of the request, and returns the query of the response: the first one for which
    /// [`AuthorizationRequest::is_response`] holds.
    fn authorize(
        &self,
        request: &AuthorizationRequest,
    ) -> impl Future<Output = Result<String, OAuthError>> + Send;
}

/// Logs a person in with a browser.
///
/// # Errors
/// When a document, a response or the person prevents it.
pub async fn log_in(
    exchange: &impl Exchange,
    browser: &impl Browser,
    settings: &LoginSettings,
    target: LoginTarget<'_>,
    found: &Discovered,
) -> Result<Login, OAuthError> {
    let attempt = LoginAttempt::new(settings, target, found)?;
    let registered = attempt.registered_client(exchange.now());
    // A server that cannot be used is found before anything is opened.
    AuthorizationRequest::check(&found.server)?;
    let page = browser.open(registered.and_then(|client| client.redirect_uri.as_deref())).await?;
    let redirect_uri = page.redirect_uri();
    let is_same = |client: &&OAuthClient| client.redirect_uri.as_deref() == Some(redirect_uri);
    let mut client = attempt.known_client().or_else(|| registered.filter(is_same).cloned());
    for remaining in (0..MAX_ATTEMPTS).rev() {
        let current = match client.take() {
            Some(client) => client,
            None => attempt.register(exchange, Some(redirect_uri)).await?,
        };
        let is_own = current.source != ClientSource::Configured;
        match authorize(&attempt, exchange, &page, current).await {
            // The server has forgotten the client, or does not read its document.
            Err(OAuthError::Refused { error, .. })
                if is_own && remaining > 0 && error.is("invalid_client") => {}
            finished => return finished,
        }
    }
    Err(OAuthError::NoRegistration { issuer: found.server.issuer.clone() })
}

async fn authorize(
    attempt: &LoginAttempt<'_>,
    exchange: &impl Exchange,
    page: &impl RedirectPage,
    client: OAuthClient,
) -> Result<Login, OAuthError> {
    let (redirect_uri, resource) = (page.redirect_uri(), attempt.resource());
    let wanted = AuthorizationParameters {
        client_id: &client.id,
        redirect_uri,
        resource,
        scopes: &attempt.scopes,
    };
    let mut request = AuthorizationRequest::new(&attempt.found.server, wanted)?;
    if let Some(endpoint) = &attempt.found.server.required_par_endpoint {
        push(attempt, exchange, endpoint, &mut request, &client).await?;
    }
    let query = page.authorize(&request).await?;
    let code = request.code(&query)?;
    let scopes = attempt.scopes.clone();
    let grant = Grant::code(&code, request.verifier(), redirect_uri, resource, scopes);
    attempt.redeem(exchange, client, grant).await
}

/// Sends the parameters of an authorization request ahead (RFC 9126).
async fn push(
    attempt: &LoginAttempt<'_>,
    exchange: &impl Exchange,
    endpoint: &WebUrl,
    request: &mut AuthorizationRequest,
    client: &OAuthClient,
) -> Result<(), OAuthError> {
    // The client's authentication names it in the form, if nothing else does.
    let is_named = matches!(client.method, ClientAuthMethod::None | ClientAuthMethod::Post);
    let form = match is_named {
        true => request.form().clone(),
        false => Form::default().with("client_id", &client.id).and(request.form()),
    };
    let response = attempt.endpoint(endpoint, client.clone()).post(exchange, form).await?;
    let document = Document::parse(&response.body);
    let success = document.as_ref().filter(|_| response.is_success());
    match success.and_then(|document| document.text("request_uri")) {
        Some(uri) => {
            request.set_pushed(uri);
            Ok(())
        }
        None => Err(OAuthError::Refused {
            request: "the pushed request",
            issuer: attempt.found.server.issuer.clone(),
            error: refusal(document.as_ref(), response.status),
        }),
    }
}
