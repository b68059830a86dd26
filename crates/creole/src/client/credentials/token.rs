//! Parses tokens from files and program output, and redacts them.

use creole_proto::fault::Fault;

use super::Authorization;
use crate::process::unavailable_fault;

/// Maximum length of a text that holds a token, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Maximum length of quoted program output, in bytes.
const MAX_QUOTED_BYTES: usize = 512;

/// Shorter texts are not redacted: they would match everywhere.
const MIN_SECRET_BYTES: usize = 6;

/// The first line of a text as a bearer token. An error repeats nothing of the text.
pub(super) fn parse_token(text: &[u8]) -> Result<Authorization, &'static str> {
    if text.len() > MAX_TEXT_BYTES {
        return Err("is longer than 16 KiB");
    }
    match first_line(text) {
        [] => Err("begins with an empty line"),
        line => {
            let line = str::from_utf8(line).ok().and_then(Authorization::bearer);
            line.ok_or("contains a character that is not allowed in a header")
        }
    }
}

/// The first line, trimmed.
pub(super) fn first_line(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

/// The end of a program's output, with these secrets redacted.
pub(super) fn redact(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
        text = text.replace(secret, "[secret]");
    }
    let begin = text.ceil_char_boundary(text.len().saturating_sub(MAX_QUOTED_BYTES));
    text.split_off(begin)
}

/// The fault for a server without a token.
pub(super) fn missing_token(server: &str, reason: &str) -> Fault {
    unavailable_fault(server, format!("cannot get a token for `{server}`: {reason}"), "credentials")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_token_and_an_invalid_token_is_not_repeated() {
        let token = |text: &str| {
            parse_token(text.as_bytes()).map(|authorization| authorization.secret().to_owned())
        };
        for text in ["a.b-c", "a.b-c\n", "  a.b-c \r\nmore\n"] {
            assert_eq!(token(text).as_deref(), Ok("a.b-c"));
        }
        let long = "x".repeat(MAX_TEXT_BYTES + 1);
        for (text, reason) in
            [("", "empty"), ("\nabc", "empty"), ("a\u{7f}b", "not allowed"), ("ä", "not allowed")]
        {
            assert!(token(text).unwrap_err().contains(reason), "{text:?}");
        }
        assert!(token(&long).unwrap_err().contains("16 KiB"));
        assert!(!format!("{:?}", parse_token(b"canary")).contains("canary"));
    }

    #[test]
    fn the_output_of_a_program_is_reported_without_secrets() {
        assert_eq!(redact("no canary for me", &["canary", "me"]), "no [secret] for me");
        assert_eq!(redact(&"ä".repeat(1000), &[]).len(), MAX_QUOTED_BYTES);
    }
}
