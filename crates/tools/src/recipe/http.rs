//! Tools that call a service over HTTP. Each value is encoded for its position.

pub mod body;
pub(crate) mod encode;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod send;

use bytes::Bytes;
use creole::internal::fetch::{AllowedAddresses, Fetcher};

use super::secret::SecretSource;
use super::template::Template;
pub use body::JsonTemplate;
pub use response::check_template;

/// A tool that calls a service over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRecipe {
    /// The method.
    pub method: RequestMethod,
    /// The URL. The part before the path has no placeholders.
    pub url: Template,
    /// Query parameters.
    pub query: Vec<(String, Template)>,
    /// Headers.
    pub headers: Vec<(String, Template)>,
    /// The body, as JSON.
    pub body: Option<JsonTemplate>,
    /// The credentials.
    pub auth: Option<Auth>,
    /// Maximum number of retries.
    pub retries: u32,
    /// Whether the host name may resolve to non-public addresses.
    pub allow_private: bool,
    /// The conversion of the response.
    pub response: ResponseOptions,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMethod {
    /// Reads a resource.
    Get,
    /// Performs any action.
    Post,
    /// Replaces a resource.
    Put,
    /// Changes a part of a resource.
    Patch,
    /// Deletes a resource.
    Delete,
}

impl RequestMethod {
    /// Whether a repetition has no further effect (RFC 9110, section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        matches!(self, Self::Get | Self::Put | Self::Delete)
    }
}

/// The credentials of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// A token.
    Bearer(SecretSource),
    /// A user name and a password.
    Basic {
        /// The user name.
        user: String,
        /// The password.
        password: SecretSource,
    },
    /// A custom header.
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: SecretSource,
    },
}

/// The conversion of a response to a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The selected part of the JSON, as a JSON pointer.
    pub pick: Option<String>,
    /// The template of a text result.
    pub template: Option<String>,
    /// The format of the result.
    pub format: ResponseFormat,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseFormat {
    /// According to the media type of the response.
    #[default]
    Auto,
    /// Text.
    Text,
    /// Structured data.
    Json,
}

/// A service that is ready for calls.
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
            return Err("its URL is invalid".to_owned());
        }
        Ok(Self { recipe: recipe.clone(), fetcher: Fetcher::new(reach, is_encrypted) })
    }
}

/// The empty body.
const EMPTY_BODY: Bytes = Bytes::new();

#[cfg(test)]
mod tests;
