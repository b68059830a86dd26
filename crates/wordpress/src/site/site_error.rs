//! Errors of requests to a site, with messages for the model.

use std::time::Duration;

use serde_json::Value;

/// Maximum size of a site's message. Longer ones are truncated.
const MAX_MESSAGE_BYTES: usize = 2000;

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SiteError {
    /// The connection failed, so nothing was sent; with the reason.
    NotConnected(String),
    /// The connection broke, or the response is not readable; with the reason.
    Unreachable(String),
    /// The request exceeded its timeout.
    TimedOut(Duration),
    /// The response is not JSON.
    NotJson {
        /// The status.
        status: u16,
        /// The media type of the response.
        media_type: String,
    },
    /// The site refused the request.
    Refused(WordPressError),
}

/// An error response of WordPress.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WordPressError {
    /// The status.
    pub(crate) status: u16,
    /// The error code of WordPress, such as `rest_invalid_param`.
    pub(crate) code: String,
    /// The message, without markup.
    pub(crate) message: String,
    /// The errors of the parameters.
    pub(crate) parameters: Vec<String>,
    /// The number of seconds to wait, if stated.
    pub(crate) retry_after: Option<u64>,
}

impl WordPressError {
    /// Reads the body of an error response.
    pub(crate) fn read(status: u16, body: &Value) -> Option<Self> {
        let code = body["code"].as_str()?.to_owned();
        let message = strip_markup(body["message"].as_str().unwrap_or_default());
        let parameters = match &body["data"]["params"] {
            Value::Object(all) => {
                let line = |(name, what): (&String, &Value)| {
                    format!("{name}: {}", strip_markup(what.as_str().unwrap_or_default()))
                };
                all.iter().map(line).collect()
            }
            Value::Array(names) => {
                names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        Some(Self { status, code, message, parameters, retry_after: None })
    }

    /// Whether the route does not exist.
    pub(crate) fn is_missing_route(&self) -> bool {
        self.code == "rest_no_route"
    }

    /// Whether no item has this id.
    pub(crate) fn is_unknown_id(&self) -> bool {
        self.status == 404 && self.code.ends_with("_invalid_id")
    }
}

impl SiteError {
    /// The message for the model. A write without a response may have been performed.
    pub(crate) fn to_message(&self, is_write: bool) -> String {
        let doubt = if is_write { "; it may or may not have been done" } else { "" };
        match self {
            Self::NotConnected(reason) => format!("could not reach WordPress: {reason}"),
            Self::Unreachable(reason) => format!("could not reach WordPress: {reason}{doubt}"),
            Self::TimedOut(timeout) => {
                let seconds = timeout.as_secs();
                format!("could not reach WordPress: timed out after {seconds} s{doubt}")
            }
            Self::NotJson { status: 300..400, .. } => {
                "WordPress responded with a redirect, which is not followed; use the URL that the site itself uses"
                    .to_owned()
            }
            Self::NotJson { status, media_type } => {
                // A 4xx page, such as one of a firewall, is a refusal. Another page may follow a performed write.
                let doubt = if (400..500).contains(status) { "" } else { doubt };
                format!("WordPress responded with HTTP {status} and {media_type}, not JSON{doubt}")
            }
            Self::Refused(refusal) => refusal.to_message(),
        }
    }
}

impl WordPressError {
    fn to_message(&self) -> String {
        // The failure is reported as an error anyway.
        let message = self.message.strip_prefix("Error:").unwrap_or(&self.message);
        let message = message.trim_start().trim_end_matches('.');
        let mut text = match message.is_empty() {
            true => format!("WordPress refused ({}, HTTP {})", self.code, self.status),
            false => format!("{message} ({}, HTTP {})", self.code, self.status),
        };
        if !self.parameters.is_empty() {
            text.push_str(": ");
            text.push_str(&self.parameters.join("; "));
        }
        if let Some(seconds) = self.retry_after {
            text.push_str(&format!("; try again in {seconds} s"));
        }
        text
    }
}

/// A text of WordPress without its markup.
pub(crate) fn strip_markup(text: &str) -> String {
    let mut out = String::new();
    let mut is_tag = false;
    for character in text.chars().take(MAX_MESSAGE_BYTES) {
        match character {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            character if !is_tag => out.push(character),
            _ => {}
        }
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#039;", "'"),
        ("&#8217;", "’"),
        ("&amp;", "&"),
    ];
    entities
        .iter()
        .fold(out, |text, (entity, letter)| text.replace(entity, letter))
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_reported_without_markup_and_with_its_parameters() {
        let body = json!({"code": "rest_invalid_param", "message": "Invalid parameter(s): per_page",
            "data": {"status": 400, "params": {"per_page": "per_page must be between 1 and 100"}}});
        let message =
            SiteError::Refused(WordPressError::read(400, &body).unwrap()).to_message(false);
        let expected = "Invalid parameter(s): per_page (rest_invalid_param, HTTP 400): per_page: per_page must \
                        be between 1 and 100";
        assert_eq!(message, expected);
        let body = json!({"code": "existing_user_login", "data": null,
            "message": "<strong>Error:</strong> Sorry, that username already exists &amp; more!"});
        let message =
            SiteError::Refused(WordPressError::read(500, &body).unwrap()).to_message(true);
        let expected =
            "Sorry, that username already exists & more! (existing_user_login, HTTP 500)";
        assert_eq!(message, expected);
        assert_eq!(WordPressError::read(200, &json!([])), None);
    }

    #[test]
    fn the_effect_of_a_write_without_a_response_is_unknown() {
        let late = SiteError::TimedOut(Duration::from_secs(30));
        assert_eq!(late.to_message(false), "could not reach WordPress: timed out after 30 s");
        let is_doubted =
            |error: SiteError| error.to_message(true).ends_with("it may or may not have been done");
        assert!(
            is_doubted(late)
                && is_doubted(SiteError::Unreachable("the response ended early".to_owned()))
        );
        assert!(!is_doubted(SiteError::NotConnected("the connection was refused".to_owned())));
        let page = |status| SiteError::NotJson { status, media_type: "text/html".to_owned() };
        assert!(is_doubted(page(500)) && is_doubted(page(503)) && is_doubted(page(200)));
        assert!(!is_doubted(page(403)) && !is_doubted(page(302)));
    }
}
