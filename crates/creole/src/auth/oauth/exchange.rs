//! Sends the requests to issuers.

use creole_oauth::error::OAuthError;
use creole_oauth::http::exchange::{Exchange, Request, Response};

use crate::client::oauth::exchange::HttpExchange;

#[cfg(test)]
type Script = std::sync::Arc<
    dyn Fn(Request) -> crate::BoxFuture<'static, Result<Response, OAuthError>> + Send + Sync,
>;

/// Requests over HTTP. Tests answer them by a function, and move the clock.
#[derive(Clone)]
pub(super) enum IssuerExchange {
    Http(HttpExchange),
    #[cfg(test)]
    Script(Script, super::tests::TestClock),
}

impl Exchange for IssuerExchange {
    async fn send(&self, request: Request) -> Result<Response, OAuthError> {
        match self {
            Self::Http(exchange) => exchange.send(request).await,
            #[cfg(test)]
            Self::Script(script, _) => script(request).await,
        }
    }

    fn now(&self) -> u64 {
        match self {
            Self::Http(exchange) => exchange.now(),
            #[cfg(test)]
            Self::Script(_, clock) => clock.now(),
        }
    }

    async fn wait(&self, seconds: u64) {
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    }
}
