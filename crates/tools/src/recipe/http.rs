//! Tools that ask a service over HTTP: every value is encoded for the place where it stands.

pub mod body;
pub(crate) mod encode;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod send;

use bytes::Bytes;
use creole::client::transport::http::fetch::{AllowedAddresses, Fetcher};

use super::secret::SecretSource;
use super::template::Template;
pub use body::JsonTemplate;
pub use response::check_template;

/// A tool that asks a service over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRecipe {
    /// The method.
    pub method: RequestMethod,
    /// The address. What comes before the path holds no placeholder.
    pub url: Template,
    /// Parameters behind it.
    pub query: Vec<(String, Template)>,
    /// Headers.
    pub headers: Vec<(String, Template)>,
    /// The body, as JSON.
    pub body: Option<JsonTemplate>,
    /// What is shown at the door.
    pub auth: Option<Auth>,
    /// How often it is tried again.
    pub retries: u32,
    /// Whether the name of the host may lead to addresses that are not public.
    pub allow_private: bool,
    /// What becomes of the answer.
    pub response: ResponseOptions,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMethod {
    /// Reads.
    Get,
    /// Does anything.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Takes away.
    Delete,
}

impl RequestMethod {
    /// Whether doing it twice is the same as once (RFC 9110, section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        matches!(self, Self::Get | Self::Put | Self::Delete)
    }
}

/// What is shown at the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// A token.
    Bearer(SecretSource),
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: SecretSource,
    },
    /// A header of the service's own.
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: SecretSource,
    },
}

/// What becomes of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The part of the JSON that counts, as a JSON pointer.
    pub pick: Option<String>,
    /// The template of a text that is made of it.
    pub template: Option<String>,
    /// What the result is, whatever the service says.
    pub format: ResponseFormat,
}

/// What the result of an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseFormat {
    /// What the service says that it is.
    #[default]
    Auto,
    /// Text.
    Text,
    /// Data.
    Json,
}

/// A service that is ready to be asked.
pub(super) struct HttpRunner {
    recipe: HttpRecipe,
    fetcher: Fetcher,
}

impl HttpRunner {
    pub(super) fn new(recipe: &HttpRecipe) -> Result<Self, String> {
        let reach = if recipe.allow_private {
            AllowedAddresses::Anywhere
        } else {
            AllowedAddresses::Public
        };
        let is_encrypted = recipe.url.literal_prefix().starts_with("https:");
        let sample = recipe.url.fill(|_| Some("x".to_owned())).unwrap_or_default();
        let parsed = sample.parse::<::http::Uri>().ok();
        if parsed.and_then(|url| url.authority().cloned()).is_none() {
            return Err("its address cannot be read".to_owned());
        }
        Ok(Self { recipe: recipe.clone(), fetcher: Fetcher::new(reach, is_encrypted) })
    }
}

/// The body of a request that has none.
const EMPTY_BODY: Bytes = Bytes::new();

#[cfg(test)]
mod tests;
