//! Asks a server without a token which login it requires.

use std::sync::Arc;
use std::time::Duration;

use creole_oauth::discovery::Discovered;
use creole_oauth::discovery::challenge::Challenge;
use creole_oauth::error::OAuthError;
use creole_oauth::flow::attempt::{LoginTarget, find_server};
use creole_oauth::settings::LoginSettings;
use creole_oauth::web_url::WebUrl;
use creole_proto::client::{ClientLimits, Profile};
use creole_proto::dialect::builtin;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::Implementation;
use creole_proto::wire::Raw;
use tokio::time::timeout;

use super::exchange::HttpExchange;
use crate::chain::BoxFuture;
use crate::client::credentials::{Authorization, Credentials, Refusal};
use crate::client::negotiation::probe;
use crate::client::transport::http::HttpAddress;
use crate::sync::Mutex;

/// How long all documents of one discovery may take.
pub(super) const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// The login that a server requires.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginRequirement {
    /// The server takes requests without a login.
    NotRequired,
    /// The authorization server at which a login is made.
    Required(Box<Discovered>),
    /// The server requires a login, but its authorization server cannot be found or used.
    Unusable(OAuthError),
}

/// Asks a server which login it requires: sends one request without credentials, and finds the authorization server if it
/// is refused. The certificates are the root certificates of the authorization server in PEM form.
///
/// # Errors
/// When the server cannot be reached.
pub async fn login_requirement(
    address: &HttpAddress,
    settings: &LoginSettings,
    certificates: Option<Arc<[u8]>>,
) -> Result<LoginRequirement, Fault> {
    let recorder = Arc::<ChallengeRecorder>::default();
    let target = address.clone().credentials(Arc::clone(&recorder) as Arc<dyn Credentials>);
    probe::log_in(&target, &profile()?).await?;
    let Some(challenges) = recorder.0.lock().take() else {
        return Ok(LoginRequirement::NotRequired);
    };
    let challenges = Challenge::parse_all(challenges.iter().map(String::as_str));
    let found = discover(&address.url().to_string(), settings, certificates, &challenges).await;
    Ok(match found {
        Ok(found) => LoginRequirement::Required(Box::new(found)),
        Err(error) => LoginRequirement::Unusable(error),
    })
}

async fn discover(
    url: &str,
    settings: &LoginSettings,
    certificates: Option<Arc<[u8]>>,
    challenges: &[Challenge],
) -> Result<Discovered, OAuthError> {
    let member = "the server's address";
    let server = WebUrl::parse(url).map_err(|error| OAuthError::Address { member, error })?;
    let target = LoginTarget { server: &server, challenges, previous: None, registrations: &[] };
    let exchange = HttpExchange::new(certificates);
    let finding = find_server(&exchange, settings, target);
    timeout(DISCOVERY_TIMEOUT, finding).await.unwrap_or_else(|_| Err(late_documents(&server)))
}

/// The error for documents that take too long.
pub(super) fn late_documents(server: &WebUrl) -> OAuthError {
    let (url, seconds) = (server.without_query().to_owned(), DISCOVERY_TIMEOUT.as_secs());
    let reason = format!("the documents for the login did not arrive within {seconds} s");
    OAuthError::Unreachable { url, reason }
}

fn profile() -> Result<Arc<Profile>, Fault> {
    let dialect = builtin("spec");
    let missing = || Fault::new(FaultKind::Internal, "the dialect `spec` is built in");
    let identity = Implementation {
        name: "creole".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Implementation::default()
    };
    Ok(Arc::new(Profile {
        dialect: dialect.ok_or_else(missing)?,
        identity: Raw::from_value(&identity),
        limits: ClientLimits::default(),
        extensions: Vec::new(),
    }))
}

/// Credentials that have nothing, and record the challenges of a refusal.
#[derive(Default)]
struct ChallengeRecorder(Mutex<Option<Vec<String>>>);

impl Credentials for ChallengeRecorder {
    fn fetch(
        &self,
        refusal: Option<Refusal>,
    ) -> BoxFuture<'static, Result<Option<Authorization>, Fault>> {
        if let Some(refusal) = refusal {
            *self.0.lock() = Some(refusal.challenges);
        }
        Box::pin(async { Ok(None) })
    }
}
