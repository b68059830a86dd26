//! The expiry of a key, in RFC 3339 form.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: i64 = 86_400;

/// The time from which a key is no longer accepted.
///
/// It is written `2027-01-31T12:00:00Z`, with `Z` or an offset such as `+02:00`. A date alone means its start in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry {
    /// Seconds since 1970.
    seconds: u64,
}

/// The text is not a valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseExpiryError;

impl Expiry {
    /// The time at this number of seconds since 1970.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self { seconds }
    }

    /// Whether the time has passed.
    #[must_use]
    pub fn has_passed(self, now: SystemTime) -> bool {
        // A clock before 1970 cannot be right: it must not extend the life of a key.
        now.duration_since(UNIX_EPOCH)
            .map_or(true, |time| time >= Duration::from_secs(self.seconds))
    }
}

impl FromStr for Expiry {
    type Err = ParseExpiryError;

    fn from_str(text: &str) -> Result<Self, ParseExpiryError> {
        parse(text)
            .and_then(|seconds| seconds.try_into().ok())
            .map_or(Err(ParseExpiryError), |seconds| Ok(Self { seconds }))
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_from_days(self.seconds / 86_400);
        let rest = self.seconds % 86_400;
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl fmt::Display for ParseExpiryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a time such as 2027-01-31T12:00:00Z")
    }
}

impl std::error::Error for ParseExpiryError {}

fn parse(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let day = days_since_epoch(date)? * SECONDS_PER_DAY;
    if rest.is_empty() {
        return Some(day);
    }
    let (clock, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let time = parse_time_of_day(clock)?;
    Some(day + time - parse_utc_offset(skip_fraction(rest)?)?)
}

/// The number of the day since 1970-01-01 (Gregorian calendar, with years that start in March).
fn days_since_epoch(date: &str) -> Option<i64> {
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let (year, month, day) =
        (parse_digits(year, 4)?, parse_digits(month, 2)?, parse_digits(day, 2)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (century, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(century * 146_097 + of_era - 719_468)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The inverse of [`days_since_epoch`].
fn date_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

fn parse_time_of_day(clock: &str) -> Option<i64> {
    let (hour, rest) = clock.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let (hour, minute, second) =
        (parse_digits(hour, 2)?, parse_digits(minute, 2)?, parse_digits(second, 2)?);
    // A second 60 is a leap second.
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Skips the fraction of a second, if there is one.
fn skip_fraction(text: &str) -> Option<&str> {
    let Some(fraction) = text.strip_prefix('.') else { return Some(text) };
    let rest = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
    (rest.len() < fraction.len()).then_some(rest)
}

fn parse_utc_offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let (hours, minutes) = (parse_digits(hours, 2)?, parse_digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A number of exactly this many digits.
fn parse_digits(text: &str, digits: usize) -> Option<i64> {
    let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        text.parse().ok().map(|expiry: Expiry| expiry.seconds)
    }

    #[test]
    fn moments_are_read_as_rfc_3339_says() {
        let right = [
            ("1970-01-01T00:00:00Z", 0),
            ("1985-04-12T23:20:50.52Z", 482_196_050),
            ("1996-12-19T16:39:57-08:00", 851_042_397),
            ("1990-12-31T23:59:60Z", 662_688_000),
            ("2024-02-29", 1_709_164_800),
            ("2027-01-31t12:00:00z", 1_801_396_800),
            ("9999-12-31T23:59:59+00:00", 253_402_300_799),
        ];
        for (text, expected) in right {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_invalid_time_is_refused() {
        let invalid = [
            "",
            "tomorrow",
            "2027-01-31T12:00:00",
            "2027-02-29",
            "2100-02-29",
            "2027-13-01",
            "2027-00-10",
            "2027-01-32",
            "27-01-31",
            "2027-1-31",
            "1969-12-31",
            "1970-01-01T00:00:00+01:00",
            "2027-01-31T24:00:00Z",
            "2027-01-31T12:60:00Z",
            "2027-01-31T12:00:61Z",
            "2027-01-31T12:00:00.Z",
            "2027-01-31T12:00:00+0200",
            "2027-01-31T12:00:00+é",
            "2027-01-31T12:00:00Zz",
            "2027-01-3é",
            "+027-01-31",
        ];
        for text in invalid {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_written_as_it_is_read() {
        for day in 0..400 * 366 {
            let (year, month, date) = date_from_days(day);
            let text = format!("{year:04}-{month:02}-{date:02}");
            assert_eq!(seconds(&text), Some(day * 86_400), "{text}");
            assert_eq!(Expiry { seconds: day * 86_400 }.to_string(), format!("{text}T00:00:00Z"));
        }
    }

    #[test]
    fn the_moment_itself_is_too_late() {
        let end: Expiry = "2027-01-31T12:00:00Z".parse().unwrap();
        let moment = UNIX_EPOCH + Duration::from_secs(1_801_396_800);
        assert!(end.has_passed(moment) && !end.has_passed(moment - Duration::from_nanos(1)));
        assert!(end.has_passed(UNIX_EPOCH - Duration::from_secs(1)));
    }
}
