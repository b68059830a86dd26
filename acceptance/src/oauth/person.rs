//! A person who approves every login.

use std::sync::{Arc, Mutex, PoisonError};

use creole::BoxFuture;
use creole::client::oauth::{
    AuthorizationRequest, DeviceCode, DevicePrompt, LoginPage, LoginPrompt, OAuthError,
};

use super::browser::Browser;

/// The page that the browser would return to. Nothing listens there.
const REDIRECT_URI: &str = "http://127.0.0.1:33418/callback";

/// A person with a browser, who approves every login. Clones are the same person.
#[derive(Clone, Debug)]
pub struct AutomaticPerson {
    redirect_uri: String,
    visited: Arc<Mutex<Vec<String>>>,
}

impl Default for AutomaticPerson {
    fn default() -> Self {
        Self::at(REDIRECT_URI)
    }
}

impl AutomaticPerson {
    /// A person whose browser returns to this address.
    #[must_use]
    pub fn at(redirect_uri: &str) -> Self {
        Self { redirect_uri: redirect_uri.to_owned(), visited: Arc::default() }
    }

    /// The addresses that the browser was asked to open.
    #[must_use]
    pub fn visited(&self) -> Vec<String> {
        self.visited.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often the person was asked.
    #[must_use]
    pub fn logins(&self) -> usize {
        self.visited().len()
    }
}

impl LoginPrompt for AutomaticPerson {
    fn open(
        &self,
        _: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>> {
        let own = self.clone();
        Box::pin(async move { Ok(Box::new(own) as Box<dyn LoginPage>) })
    }
}

impl LoginPage for AutomaticPerson {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<String, OAuthError>> {
        Box::pin(async move {
            let url = request.url();
            self.visited.lock().unwrap_or_else(PoisonError::into_inner).push(url.clone());
            let returned = in_thread(move || Browser::default().open(&url)).await?;
            request.copied_response(&returned).map(str::to_owned)
        })
    }
}

/// A person at another device, who types every code and approves.
#[derive(Clone, Debug, Default)]
pub struct AutomaticDevice;

impl DevicePrompt for AutomaticDevice {
    fn show(&self, code: DeviceCode) -> BoxFuture<'static, Result<(), OAuthError>> {
        let url = code.verification_uri.as_str().to_owned();
        Box::pin(in_thread(move || Browser::default().confirm_device(&url, &code.user_code)))
    }
}

/// Does what blocks in a thread of its own.
async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, OAuthError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string());
    done.and_then(|done| done).map_err(|reason| OAuthError::Prompt { reason })
}
