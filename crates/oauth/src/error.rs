//! Why a login failed, in words for the person at the terminal.

use std::fmt;

use crate::web_url::UrlError;

/// The maximum length of another server's description, in characters.
const MAX_DESCRIPTION: usize = 200;

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OAuthError {
    /// A request got no response.
    Unreachable {
        /// The address.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A document cannot be used.
    Document {
        /// Its address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A document names an address that is not used.
    Address {
        /// The name of the member.
        member: &'static str,
        /// What is wrong with the address.
        error: UrlError,
    },
    /// A document names an address that must be encrypted.
    NotEncrypted {
        /// The name of the member.
        member: &'static str,
    },
    /// The metadata of the protected resource is about another resource.
    ResourceMismatch {
        /// The address of the MCP server.
        server: String,
        /// The resource in the document.
        published: String,
    },
    /// The metadata of an authorization server is about another issuer.
    IssuerMismatch {
        /// The issuer that was looked for.
        expected: String,
        /// The issuer in the document.
        found: String,
    },
    /// The server publishes no resource metadata, and the configuration demands it.
    NoResourceMetadata {
        /// The address of the MCP server.
        server: String,
    },
    /// No document describes the authorization server.
    NoMetadata {
        /// The issuer.
        issuer: String,
    },
    /// The server uses another issuer than the configured one.
    OtherIssuer {
        /// The configured issuer.
        expected: String,
        /// The issuers of the server.
        found: String,
    },
    /// The authorization server does not advertise PKCE with S256.
    NoPkce {
        /// The issuer.
        issuer: String,
    },
    /// The authorization server lacks something that the login needs.
    Unsupported {
        /// The issuer.
        issuer: String,
        /// What it lacks.
        feature: &'static str,
    },
    /// There is no client id, and no way to get one.
    NoRegistration {
        /// The issuer.
        issuer: String,
    },
    /// The requested scope is not allowed by the configuration.
    ScopeNotAllowed {
        /// The scope.
        scope: String,
    },
    /// The response to the authorization request does not come from the expected issuer.
    ResponseIssuer {
        /// The expected issuer.
        expected: String,
    },
    /// The response to the authorization request cannot be used.
    Response {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The person declined.
    Declined {
        /// The issuer.
        issuer: String,
    },
    /// An endpoint of the authorization server refused a request.
    Refused {
        /// What was requested.
        request: &'static str,
        /// The issuer.
        issuer: String,
        /// The error code, with the description if there is one.
        error: RefusalReason,
    },
    /// The person did not log in within the time.
    TimedOut {
        /// The time, in seconds.
        seconds: u64,
    },
    /// The person cannot be asked.
    Prompt {
        /// Why not.
        reason: String,
    },
    /// A key or an assertion of the configuration cannot be used.
    Key {
        /// What is wrong with it.
        reason: String,
    },
    /// The system has no random bytes.
    NoRandomBytes,
}

/// The error code of a refusal (RFC 6749, section 5.2), and what the server says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalReason {
    /// The error code, or the HTTP status if there is none.
    pub code: String,
    /// The description, shortened and escaped.
    pub description: Option<String>,
    /// The HTTP status.
    pub status: u16,
}

impl RefusalReason {
    /// The reason with its texts made fit to be shown.
    pub fn new(code: &str, description: Option<&str>, status: u16) -> Self {
        Self { code: shown(code), description: description.map(shown), status }
    }

    /// Whether this is the error code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }
}

/// A text of another server that is fit to be shown: short, and without characters that control a terminal.
fn shown(text: &str) -> String {
    let is_control = |it: char| it.is_control() || ('\u{200b}'..='\u{202e}').contains(&it);
    let visible = text.chars().take(MAX_DESCRIPTION);
    visible.map(|it| if is_control(it) { ' ' } else { it }).collect()
}

impl OAuthError {
    /// Whether the same request may succeed later: there was no response, or the server has a problem of its own.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { error, .. } => error.status == 429 || error.status >= 500,
            _ => false,
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(description) => write!(formatter, "{} ({description})", self.code),
            None => formatter.write_str(&self.code),
        }
    }
}

impl fmt::Display for OAuthError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { url, reason } => write!(formatter, "cannot reach {url}: {reason}"),
            Self::Document { url, reason } => {
                write!(formatter, "the document at {url} cannot be used: {reason}")
            }
            Self::Address { member, error } => {
                write!(formatter, "the address in `{member}` {error}")
            }
            Self::NotEncrypted { member } => {
                write!(formatter, "the address in `{member}` must begin with https://")
            }
            Self::ResourceMismatch { server, published } => {
                let published = shown(published);
                write!(formatter, "resource mismatch: {server} publishes {published}")
            }
            Self::IssuerMismatch { expected, found } => {
                let (expected, found) = (shown(expected), shown(found));
                write!(formatter, "issuer mismatch: the metadata of {expected} names {found}")
            }
            Self::NoResourceMetadata { server } => write!(
                formatter,
                "{server} publishes no protected resource metadata, and `legacy_oauth` is false"
            ),
            Self::NoMetadata { issuer } => {
                write!(formatter, "{issuer} publishes no authorization server metadata")
            }
            Self::OtherIssuer { expected, found } => write!(
                formatter,
                "the login is configured for the issuer {expected}, but the server now uses {}",
                shown(found)
            ),
            Self::NoPkce { issuer } => {
                write!(formatter, "{issuer} does not advertise PKCE S256; refusing to log in")
            }
            Self::Unsupported { issuer, feature } => {
                write!(formatter, "{issuer} does not support {feature}")
            }
            Self::NoRegistration { issuer } => write!(
                formatter,
                "{issuer} supports neither client metadata documents nor dynamic registration; pass --client-id"
            ),
            Self::ScopeNotAllowed { scope } => {
                write!(
                    formatter,
                    "the server requests the scope `{scope}`, which is not in `max_scopes`"
                )
            }
            Self::ResponseIssuer { expected } => write!(
                formatter,
                "issuer mismatch in the authorization response (expected {expected}); no token was requested"
            ),
            Self::Response { reason } => {
                write!(formatter, "the authorization response cannot be used: {reason}")
            }
            Self::Declined { issuer } => write!(formatter, "login declined at {issuer}"),
            Self::Refused { request, issuer, error } => {
                write!(formatter, "{issuer} refused {request}: {error}")
            }
            Self::TimedOut { seconds } => write!(formatter, "login timed out after {seconds} s"),
            Self::Key { reason } | Self::Prompt { reason } => formatter.write_str(reason),
            Self::NoRandomBytes => formatter.write_str("the system has no random bytes"),
        }
    }
}

impl std::error::Error for OAuthError {}

#[cfg(test)]
mod tests {
    use super::{OAuthError, RefusalReason};

    #[test]
    fn texts_of_other_servers_cannot_control_a_terminal() {
        let evil = "\u{1b}[2J\n\u{202e}x".repeat(100);
        let errors = [
            OAuthError::ResourceMismatch {
                server: "https://a.example".into(),
                published: evil.clone(),
            },
            OAuthError::IssuerMismatch { expected: evil.clone(), found: evil.clone() },
            OAuthError::OtherIssuer { expected: "https://a.example".into(), found: evil.clone() },
            OAuthError::Refused {
                request: "the code",
                issuer: "https://a.example".into(),
                error: RefusalReason::new(&evil, Some(&evil), 400),
            },
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.len() < 1_000 && !text.contains(['\u{1b}', '\n', '\u{202e}']), "{text:?}");
        }
    }
}
