//! How a person is asked to log in.

use std::sync::Arc;

use creole_oauth::error::OAuthError;
use creole_oauth::flow::authorization::AuthorizationRequest;
use creole_oauth::flow::device::{DeviceCode, DeviceScreen};
use creole_oauth::flow::person::{Browser, RedirectPage};

use crate::chain::BoxFuture;

/// Asks a person to log in with a browser. A command opens the browser; another program may show the address.
pub trait LoginPrompt: Send + Sync {
    /// Prepares the page that the browser returns to. `registered` is the redirect address of an earlier registration,
    /// which is used again if it can be: some servers compare the port.
    fn open(
        &self,
        registered: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>>;

    /// Whether a person who could not be asked a moment ago can be asked now, or may have logged in elsewhere.
    fn can_ask_now(&self) -> bool {
        false
    }

    /// Ends when requests must not wait for the person any longer, with their error: they were not sent, and can be
    /// repeated after the login, which goes on. By default requests wait for the person.
    fn until_released(&self) -> BoxFuture<'static, OAuthError> {
        Box::pin(std::future::pending())
    }
}

/// The page that the browser returns to.
pub trait LoginPage: Send + Sync {
    /// Its address.
    fn redirect_uri(&self) -> &str;

    /// Opens [`AuthorizationRequest::url`], and returns the query with which the browser returns: the first one for
    /// which [`AuthorizationRequest::is_response`] holds. A person may instead copy the address of the page:
    /// [`AuthorizationRequest::copied_response`] reads it.
    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<String, OAuthError>>;
}

/// Shows a code that a person types at another device.
pub trait DevicePrompt: Send + Sync {
    /// Shows the code, and returns at once.
    fn show(&self, code: DeviceCode) -> BoxFuture<'static, Result<(), OAuthError>>;
}

/// A prompt as the protocol wants it.
pub(super) struct PromptBrowser(pub(super) Arc<dyn LoginPrompt>);

impl Browser for PromptBrowser {
    type Page = PromptPage;

    async fn open(&self, registered: Option<&str>) -> Result<PromptPage, OAuthError> {
        self.0.open(registered.map(str::to_owned)).await.map(PromptPage)
    }
}

/// A page as the protocol wants it.
pub(super) struct PromptPage(Box<dyn LoginPage>);

impl RedirectPage for PromptPage {
    fn redirect_uri(&self) -> &str {
        self.0.redirect_uri()
    }

    async fn authorize(&self, request: &AuthorizationRequest) -> Result<String, OAuthError> {
        self.0.authorize(request).await
    }
}

/// A screen as the protocol wants it.
pub(super) struct PromptScreen(pub(super) Arc<dyn DevicePrompt>);

impl DeviceScreen for PromptScreen {
    async fn show(&self, code: &DeviceCode) -> Result<(), OAuthError> {
        self.0.show(code.clone()).await
    }
}
