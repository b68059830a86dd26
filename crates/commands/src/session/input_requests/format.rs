//! The text formats of form fields: dates, times, e-mail addresses and URIs.

/// A text format (2025-06-18 elicitation, `format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// RFC 3339 `full-date`.
    Date,
    /// RFC 3339 `date-time`.
    DateTime,
    /// An e-mail address.
    Email,
    /// RFC 3986, with its scheme.
    Uri,
}

impl TextFormat {
    /// The format of this name. `None` if it is unknown.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            _ => None,
        }
    }

    /// A description of the expected text.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Date => "a date such as 2027-01-31",
            Self::DateTime => "a date and time such as 2027-01-31T12:00:00Z",
            Self::Email => "an email address such as ann@example.com",
            Self::Uri => "a URI such as https://example.com/",
        }
    }

    /// Whether a text has the format.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
        }
    }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let numbers = (number(year, 4), number(month, 2), number(day, 2), parts.next());
    let (Some(year), Some(month), Some(day), None) = numbers else { return false };
    (1..=days_in(year, month)).contains(&day)
}

/// The number of days of a month. 0 if there is no such month.
fn days_in(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_at_checked(10) else { return false };
    let Some(rest) = rest.strip_prefix(['T', 't']) else { return false };
    let Some((clock, rest)) = rest.split_at_checked(8) else { return false };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
            if offset.len() == fraction.len() {
                return false;
            }
            offset
        }
        None => rest,
    };
    is_date(date) && is_clock(clock) && is_offset(rest)
}

/// Hours, minutes and seconds; a minute may have a leap second.
fn is_clock(text: &str) -> bool {
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
    let numbers = (number(hour, 2), number(minute, 2), number(second, 2), parts.next());
    matches!(numbers, (Some(0..24), Some(0..60), Some(0..=60), None))
}

fn is_offset(text: &str) -> bool {
    if ["Z", "z"].contains(&text) {
        return true;
    }
    let Some((hour, minute)) = text.strip_prefix(['+', '-']).and_then(|rest| rest.split_once(':'))
    else {
        return false;
    };
    matches!((number(Some(hour), 2), number(Some(minute), 2)), (Some(0..24), Some(0..60)))
}

/// A number with exactly this many digits.
fn number(text: Option<&str>, digits: usize) -> Option<u32> {
    let text =
        text.filter(|text| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

/// A local part, an at sign and a host. Further checks are left to mail servers.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let is_word = |text: &str| {
        !text.is_empty()
            && !text.chars().any(|character| character.is_whitespace() || character.is_control())
    };
    let is_label = |label: &str| {
        let is_allowed = |character: char| character.is_alphanumeric() || character == '-';
        !label.is_empty()
            && label.chars().all(is_allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    is_word(name) && !name.starts_with('.') && !name.ends_with('.') && host.split('.').all(is_label)
}

/// A scheme, a colon and a rest, in the characters of URIs.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|character: char| character.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    is_scheme
        && !rest.trim_start_matches('/').is_empty()
        && rest.bytes().all(is_allowed)
        && has_whole_escapes(rest)
}

/// Whether two hexadecimal digits follow each percent sign.
fn has_whole_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        part.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_accepts_its_own_values_only() {
        let rows: [(&str, &[&str], &[&str]); 4] = [
            (
                "date",
                &["2026-11-17", "2024-02-29", "0001-01-01"],
                &[
                    "notadate",
                    "",
                    "2026-02-29",
                    "2026-13-01",
                    "2026-00-10",
                    "2026-1-1",
                    "17.11.2026",
                    "2026-11-17T",
                    "２026-11-17",
                ],
            ),
            (
                "date-time",
                &["2026-11-17T12:30:00Z", "2026-11-17t12:30:00.123z", "2026-12-31T23:59:60-05:30"],
                &[
                    "2026-11-17",
                    "2026-11-17 12:30:00Z",
                    "2026-11-17T12:30Z",
                    "2026-11-17T24:00:00Z",
                    "2026-11-17T12:30:00",
                    "2026-11-17T12:30:00.Z",
                    "2026-11-17T12:30:00+2",
                ],
            ),
            (
                "email",
                &["ann@example.com", "ann.o'neil+x@mail.example.co", "ann@localhost"],
                &[
                    "ann",
                    "@example.com",
                    "ann@",
                    "ann@ex ample.com",
                    "an n@example.com",
                    "ann@example..com",
                    "ann@-x.com",
                ],
            ),
            (
                "uri",
                &[
                    "https://example.com/a?b=c#d",
                    "mailto:ann@example.com",
                    "urn:isbn:1",
                    "file:///etc/hosts",
                    "a:%20",
                ],
                &[
                    "example.com",
                    "/a",
                    "https://",
                    "http://a b",
                    "1a:b",
                    "a:%2",
                    "a:%zz",
                    "http://{x}",
                    ":b",
                ],
            ),
        ];
        for (name, right, invalid) in rows {
            let format = TextFormat::by_name(name).unwrap();
            for text in right {
                assert!(format.matches(text), "{name} {text}");
            }
            for text in invalid {
                assert!(!format.matches(text), "{name} {text}");
            }
        }
        assert_eq!(TextFormat::by_name("colour"), None);
    }
}
