//! Logins at servers that want OAuth.
//!
//! [`OAuthCredentials`] are the credentials of one server. A login begins only after the server has refused a request.
//! It finds the authorization server, gets a client id, and asks a person through a [`LoginPrompt`], shows a code through
//! a [`DevicePrompt`], or uses a [`ProgramGrant`]. A [`LoginStore`] keeps logins in files, which several processes share.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use creole::client::oauth::{LoginMethod, OAuthCredentials, OAuthOptions, ProgramGrant, SecretText};
//! use creole::client::{Address, Client, HttpAddress};
//!
//! # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "https://mcp.example.com/mcp";
//! let grant = Arc::new(ProgramGrant::ClientCredentials);
//! let mut options = OAuthOptions::new(LoginMethod::Program(grant));
//! options.settings.client_id = Some("nightly-report".to_owned());
//! options.settings.client_secret = Some(SecretText::new(std::env::var("REPORT_SECRET")?));
//! let credentials = OAuthCredentials::new("wiki", url, options)?;
//! let address = HttpAddress::new("wiki", url)?.credentials(Arc::new(credentials));
//! let client = Client::connect(Address::Http(address)).await?;
//! # drop(client);
//! # Ok(())
//! # }
//! ```

pub(crate) mod client_credentials;
mod credentials;
pub(crate) mod exchange;
mod fault;
mod limits;
mod logins;
mod logout;
mod options;
mod prompt;
mod requirement;
mod store;
mod store_access;

pub use credentials::OAuthCredentials;
pub use logout::{LogoutOutcome, RevocationOptions, log_out};
pub use options::{GrantSource, LoginMethod, OAuthOptions};
pub use prompt::{DevicePrompt, LoginPage, LoginPrompt};
pub use requirement::{LoginRequirement, login_requirement};
pub use store::{LockedLogin, LoginKey, LoginStore, StoreError};

pub use creole_oauth::crypto::jose::{Algorithm, SigningKey};
pub use creole_oauth::discovery::Discovered;
pub use creole_oauth::discovery::metadata::{Pkce, ServerMetadata};
pub use creole_oauth::error::{OAuthError, RefusalReason};
pub use creole_oauth::flow::authorization::AuthorizationRequest;
pub use creole_oauth::flow::device::DeviceCode;
pub use creole_oauth::flow::program::{EnterpriseGrant, ProgramGrant};
pub use creole_oauth::scopes::Scopes;
pub use creole_oauth::secret::SecretText;
pub use creole_oauth::settings::{DpopMode, LoginSettings};
pub use creole_oauth::tokens::client::{ClientAuthMethod, ClientSource, OAuthClient};
pub use creole_oauth::tokens::endpoint::TokenType;
pub use creole_oauth::tokens::login::Login;
pub use creole_oauth::web_url::{UrlError, WebUrl};
