//! Asks the user of a command to log in: with a browser, by a copied address, or at another device.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use creole::BoxFuture;
use creole::client::oauth::{
    AuthorizationRequest, DeviceCode, DevicePrompt, LoginPage, LoginPrompt, OAuthError, WebUrl,
};
use tokio::time::timeout;

use super::activity::LoginWait;
use super::browser;
use super::copied_address::CopiedAddresses;
use super::listener::RedirectListener;
use crate::output;
use crate::output::printable;

/// How often a wrong address may be copied.
const MAX_COPIES: usize = 10;

/// How the user opens the address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OpenedBy {
    /// The command opens the browser.
    Command,
    /// The user opens it, perhaps on another machine, and copies the address that the browser ended at.
    User,
}

/// Asks the user to log in.
#[derive(Clone, Debug)]
pub(crate) struct TerminalPrompt {
    /// The name of the server in messages.
    pub(crate) server: String,
    pub(crate) opened_by: OpenedBy,
    /// The only port that the browser may return to.
    pub(crate) port: Option<u16>,
    pub(crate) timeout: Duration,
}

impl TerminalPrompt {
    /// Opens the page that the browser returns to.
    async fn listen(self, registered: Option<String>) -> Result<TerminalPage, OAuthError> {
        let listener = listen(self.port, registered.as_deref()).await?;
        Ok(TerminalPage { listener, prompt: self })
    }
}

/// Listens on the wanted port, or where the registered client listened before.
pub(crate) async fn listen(
    port: Option<u16>,
    registered: Option<&str>,
) -> Result<RedirectListener, OAuthError> {
    let (bound, what) = match port {
        Some(port) => (RedirectListener::bind(port).await, format!("127.0.0.1:{port}")),
        None => (RedirectListener::bind_again(registered).await, "127.0.0.1".to_owned()),
    };
    bound.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; end the other program or choose another port",
            _ => "",
        };
        OAuthError::Prompt {
            reason: format!("cannot listen on {what} for the browser: {error}{hint}"),
        }
    })
}

/// Checks that the address of a request can be opened.
pub(crate) fn openable_url(request: &AuthorizationRequest) -> Result<String, OAuthError> {
    let url = request.url();
    match browser::is_openable(&url) {
        true => Ok(url),
        false => Err(OAuthError::Prompt {
            reason: format!(
                "the authorization endpoint of {} is not an address that a browser may be given; nothing was opened",
                printable(request.issuer())
            ),
        }),
    }
}

impl LoginPrompt for TerminalPrompt {
    fn open(
        &self,
        registered: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>> {
        let prompt = self.clone();
        Box::pin(async move {
            let page = prompt.listen(registered).await?;
            Ok(Box::new(page) as Box<dyn LoginPage>)
        })
    }
}

/// The page that the browser returns to.
struct TerminalPage {
    listener: RedirectListener,
    prompt: TerminalPrompt,
}

impl LoginPage for TerminalPage {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<String, OAuthError>> {
        Box::pin(async move {
            let _wait = LoginWait::begin();
            let limit = self.prompt.timeout;
            let asked = timeout(limit, self.ask(request)).await;
            asked.unwrap_or(Err(OAuthError::TimedOut { seconds: limit.as_secs() }))
        })
    }
}

impl TerminalPage {
    async fn ask(&self, request: &AuthorizationRequest) -> Result<String, OAuthError> {
        let url = openable_url(request)?;
        let (server, issuer) = (printable(&self.prompt.server), printable(request.issuer()));
        let arrived = self.listener.wait_for_query(|query| request.is_response(query));
        match self.prompt.opened_by {
            OpenedBy::Command => {
                output::write_message(&format!(
                    "creole: to log in to {server} at {issuer}, the browser opens this address:\n  {url}"
                ));
                if let Err(error) = browser::open(&url) {
                    output::write_message(&format!(
                        "creole: cannot open a browser: {error}; open the address yourself on this machine"
                    ));
                }
                Ok(arrived.await)
            }
            OpenedBy::User => {
                output::write_message(&format!(
                    "creole: to log in to {server} at {issuer}, open this address in a browser:\n  {url}\n\
                    creole: if the browser is on another machine, its last page cannot be shown; paste its whole \
                    address here, which begins with {}",
                    self.redirect_uri()
                ));
                tokio::select! {
                    query = arrived => Ok(query),
                    query = read_copied(request) => query,
                }
            }
        }
    }
}

/// Reads copied addresses until one is the response. After the end of the input, only the browser can bring it.
async fn read_copied(request: &AuthorizationRequest) -> Result<String, OAuthError> {
    let copied = Arc::new(CopiedAddresses::default());
    for remaining in (0..MAX_COPIES).rev() {
        let Some(line) = copied.next().await else { break };
        match request.copied_response(&line) {
            Ok(query) => return Ok(query.to_owned()),
            Err(error) if remaining == 0 => return Err(error),
            Err(_) if line.is_empty() => {}
            Err(_) => output::write_message(
                "creole: paste the complete redirect URL of this login; the code alone cannot be verified",
            ),
        }
    }
    std::future::pending().await
}

/// Shows a code that the user enters at another device.
#[derive(Clone, Debug)]
pub(crate) struct TerminalCode {
    /// The name of the server in messages.
    pub(crate) server: String,
}

impl DevicePrompt for TerminalCode {
    fn show(&self, code: DeviceCode) -> BoxFuture<'static, Result<(), OAuthError>> {
        let direct = code.complete_uri.as_ref().map(WebUrl::as_str);
        let address = code.verification_uri.as_str();
        output::write_message(&code_text(
            &self.server,
            address,
            direct,
            &code.user_code,
            code.lifetime,
        ));
        Box::pin(async { Ok(()) })
    }
}

/// Says which code is entered at which address. The second address has the code.
fn code_text(
    server: &str,
    address: &str,
    direct: Option<&str>,
    code: &str,
    lifetime: u64,
) -> String {
    let (server, code) = (printable(server), printable(code));
    let minutes = lifetime.div_ceil(60);
    let direct = direct.map(|address| format!("\n  or open {address}")).unwrap_or_default();
    format!(
        "creole: to log in to {server}, open this address on any device within {minutes} min and enter the code:\n  \
        {address}\n  {code}{direct}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_shown_with_its_address() {
        let address = "https://id.example.com/device";
        let expected = "creole: to log in to h, open this address on any device within 10 min and enter the code:\n  \
                        https://id.example.com/device\n  AB\\u{1b}CD";
        assert_eq!(code_text("h", address, None, "AB\u{1b}CD", 600), expected);
        let direct = code_text("h", address, Some("https://id.example.com/device?c=1"), "A", 600);
        assert!(direct.ends_with("\n  or open https://id.example.com/device?c=1"));
    }

    #[tokio::test]
    async fn a_wanted_port_that_is_taken_is_named() {
        let taken = listen(None, None).await.unwrap();
        let port = taken.redirect_uri().split([':', '/']).nth(4).unwrap().parse().unwrap();
        let refused = listen(Some(port), None).await.unwrap_err().to_string();
        assert!(refused.starts_with(&format!("cannot listen on 127.0.0.1:{port} for the browser")));
        assert!(refused.ends_with("choose another port"), "{refused}");
    }
}
