//! How the logins of a server are made and kept.

use std::sync::Arc;
use std::time::Duration;

use creole_oauth::error::OAuthError;
use creole_oauth::flow::program::ProgramGrant;
use creole_oauth::settings::LoginSettings;

use super::prompt::{DevicePrompt, LoginPrompt};
use super::store::LoginStore;
use crate::chain::BoxFuture;

/// How long a person may take by default.
const PERSON_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a fetch without a person may take: waiting for another process, and a few requests.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

/// How a login is made.
#[derive(Clone)]
#[non_exhaustive]
pub enum LoginMethod {
    /// A person logs in with a browser.
    Person(Arc<dyn LoginPrompt>),
    /// A person logs in at another device.
    Device(Arc<dyn DevicePrompt>),
    /// No person is there: only stored logins are used and refreshed.
    Stored,
    /// A program logs in.
    Program(Arc<dyn GrantSource>),
}

impl LoginMethod {
    /// Whether a person is asked.
    pub(super) fn asks_person(&self) -> bool {
        matches!(self, Self::Person(_) | Self::Device(_))
    }
}

/// The source of a program's grant. It is asked for each login, because assertions in files change.
pub trait GrantSource: Send + Sync {
    /// The grant.
    fn grant(&self) -> BoxFuture<'static, Result<ProgramGrant, OAuthError>>;

    /// The extension of the protocol that defines the grant ([`ProgramGrant::extension`]). The client's capabilities
    /// declare it.
    fn extension(&self) -> Option<&'static str> {
        None
    }
}

impl GrantSource for ProgramGrant {
    fn grant(&self) -> BoxFuture<'static, Result<ProgramGrant, OAuthError>> {
        let grant = self.clone();
        Box::pin(async move { Ok(grant) })
    }

    fn extension(&self) -> Option<&'static str> {
        Self::extension(self)
    }
}

/// How the logins of a server are made and kept.
#[derive(Clone)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// How a login is made.
    pub method: LoginMethod,
    /// What the login asks for, and as which client.
    pub settings: LoginSettings,
    /// Where logins are kept. Without a store, and for programs, they are forgotten with the credentials.
    pub store: Option<LoginStore>,
    /// How long a fetch may take, with the time of a person. A person who is late has to begin again.
    pub timeout: Duration,
    /// The root certificates of the authorization server in PEM form, instead of the system's.
    pub certificates: Option<Arc<[u8]>>,
    /// The command that logs in, for messages. Without it `creole login` and the address is named.
    pub login_command: Option<String>,
    /// Whether faults leave out why a login failed, because callers of a gateway see them. The reason is logged.
    pub hides_reasons: bool,
}

impl OAuthOptions {
    /// The options for a kind of login, with defaults for everything else.
    pub fn new(method: LoginMethod) -> Self {
        let timeout = if method.asks_person() { PERSON_TIMEOUT } else { PROGRAM_TIMEOUT };
        Self {
            method,
            settings: LoginSettings::default(),
            store: None,
            timeout,
            certificates: None,
            login_command: None,
            hides_reasons: false,
        }
    }
}
