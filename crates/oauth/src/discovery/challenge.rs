//! The challenges of `WWW-Authenticate` headers (RFC 9110, section 11.6.1).

/// The maximum length of all headers together, in bytes.
const MAX_BYTES: usize = 8_192;

/// The maximum number of challenges.
const MAX_CHALLENGES: usize = 16;

/// One challenge: a scheme with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// In lower case.
    scheme: String,
    /// The names are in lower case.
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Reads the challenges of all `WWW-Authenticate` headers of a response. A text that is not a challenge ends its
    /// header. A challenge with a repeated parameter is left out.
    pub fn parse_all<'a>(headers: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut challenges = Vec::new();
        let mut bytes = 0;
        for header in headers {
            bytes += header.len();
            if bytes > MAX_BYTES {
                break;
            }
            let mut parser = Parser(header);
            while challenges.len() < MAX_CHALLENGES {
                match parser.challenge() {
                    Some(challenge) => challenges.push(challenge),
                    None => break,
                }
            }
        }
        challenges.retain(|challenge| !challenge.has_repeated_parameter());
        challenges
    }

    /// A parameter that an OAuth client follows: the first one of this name in a challenge with the scheme `DPoP` or
    /// `Bearer`.
    pub fn oauth_parameter<'a>(challenges: &'a [Self], name: &str) -> Option<&'a str> {
        let is_oauth = |it: &&Self| ["bearer", "dpop"].contains(&it.scheme.as_str());
        challenges.iter().filter(is_oauth).find_map(|challenge| challenge.parameter(name))
    }

    /// Whether the challenge has this scheme.
    pub fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn has_repeated_parameter(&self) -> bool {
        let names = self.parameters.iter().enumerate();
        names
            .into_iter()
            .any(|(at, (name, _))| self.parameters[..at].iter().any(|(known, _)| known == name))
    }
}

/// The text that is not read yet.
struct Parser<'a>(&'a str);

impl<'a> Parser<'a> {
    /// The next challenge of the list.
    fn challenge(&mut self) -> Option<Challenge> {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        let scheme = self.token()?.to_ascii_lowercase();
        let mut parameters = Vec::new();
        if !self.0.starts_with([' ', '\t']) {
            let is_end = self.0.is_empty() || self.0.starts_with(',');
            return is_end.then_some(Challenge { scheme, parameters });
        }
        self.skip_space();
        if self.token68() {
            return Some(Challenge { scheme, parameters });
        }
        while let Some(parameter) = self.next_parameter()? {
            parameters.push(parameter);
        }
        Some(Challenge { scheme, parameters })
    }

    /// The next parameter; `Some(None)` before the next challenge and at the end, `None` for a text that is neither.
    #[expect(
        clippy::option_option,
        reason = "the outer option ends the header, the inner one the challenge"
    )]
    fn next_parameter(&mut self) -> Option<Option<(String, String)>> {
        let before = self.0;
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        if self.0.is_empty() {
            return Some(None);
        }
        let name = self.token()?.to_ascii_lowercase();
        self.skip_space();
        let Some(rest) = self.0.strip_prefix('=') else {
            // A token without a value is the scheme of the next challenge.
            self.0 = before;
            return Some(None);
        };
        self.0 = rest;
        self.skip_space();
        let value = match self.0.starts_with('"') {
            true => self.quoted()?,
            false => self.token()?.to_owned(),
        };
        self.skip_space();
        let is_separated = self.0.is_empty() || self.0.starts_with(',');
        is_separated.then_some(Some((name, value)))
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let end = self.0.bytes().position(|byte| !is_token(byte)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Skips a `token68`, if the text before the next comma is one. No scheme that is followed has one.
    fn token68(&mut self) -> bool {
        let end = self.0.find(',').unwrap_or(self.0.len());
        let text = self.0[..end].trim_end_matches([' ', '\t']);
        let is_base = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
        let is_token68 = !text.is_empty() && text.trim_end_matches('=').bytes().all(is_base);
        if is_token68 {
            self.0 = &self.0[end..];
        }
        is_token68
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut characters = self.0.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                other => value.push(other),
            }
        }
        None
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Challenge, MAX_CHALLENGES};

    fn parse(header: &str) -> Vec<Challenge> {
        Challenge::parse_all([header])
    }

    proptest! {
        #[test]
        fn any_header_is_read_within_limits(headers in any::<Vec<String>>()) {
            prop_assert!(Challenge::parse_all(headers.iter().map(String::as_str)).len() <= MAX_CHALLENGES);
        }

        #[test]
        fn a_parameter_comes_back_from_its_quotes(value in "[ -~]{0,40}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let found = parse(&format!("Basic x=y, Bearer scope=\"{quoted}\", a=b, DPoP"));
            prop_assert_eq!(Challenge::oauth_parameter(&found, "scope"), Some(value.as_str()));
        }
    }

    #[test]
    fn several_challenges_stand_in_one_header() {
        let found = parse(
            "Basic realm=\"a, b\" , Negotiate abc==, BEARER Realm=\"q\\\"x\", scope = \"a b\",error=invalid_token, Digest",
        );
        let schemes: Vec<_> = found.iter().map(|it| it.scheme.as_str()).collect();
        assert_eq!(schemes, ["basic", "negotiate", "bearer", "digest"]);
        assert_eq!(found[0].parameter("realm"), Some("a, b"));
        assert_eq!(found[2].parameter("realm"), Some("q\"x"));
        assert_eq!(found[2].parameter("scope"), Some("a b"));
        assert_eq!(found[2].parameter("error"), Some("invalid_token"));
        assert_eq!(Challenge::oauth_parameter(&found, "realm"), Some("q\"x"));
    }

    #[test]
    fn several_headers_are_one_list() {
        let found = Challenge::parse_all(["Bearer", "DPoP algs=\"ES256\""]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].parameter("algs"), Some("ES256"));
    }

    #[test]
    fn a_text_that_is_no_challenge_ends_its_header() {
        assert_eq!(parse("Bearer realm=\"open").len(), 0);
        assert_eq!(parse("Bearer a=b c=d").len(), 0);
        assert_eq!(parse("Basic realm=x, =y, Bearer").len(), 0);
        assert_eq!(parse("").len(), 0);
        assert_eq!(parse(", ,").len(), 0);
    }

    #[test]
    fn a_repeated_parameter_voids_its_challenge() {
        let found = parse("Bearer scope=a, Scope=b, Basic realm=x");
        assert_eq!(found.len(), 1);
        assert!(found[0].has_scheme("basic"));
    }

    #[test]
    fn long_headers_and_many_challenges_are_cut() {
        assert_eq!(Challenge::parse_all(["x".repeat(8_193).as_str(), "Bearer"]).len(), 0);
        assert_eq!(parse(&"Bearer,".repeat(40)).len(), 16);
    }
}
