//! Timestamps, durations and time zones of expressions.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A point in time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) i128);

const SECOND: i128 = 1_000_000_000;
/// The range of timestamps in CEL: the years 1 to 9999.
const EARLIEST: i128 = -62_135_596_800 * SECOND;
const LATEST: i128 = 253_402_300_800 * SECOND - 1;
/// The longest duration, in either direction: about 10,000 years.
pub(super) const MAX_DURATION: i128 = 315_576_000_000 * SECOND;

impl Moment {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self(0);

    /// The current time.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(i128::try_from(since.as_nanos()).unwrap_or(LATEST))
    }

    /// A time in RFC 3339, such as `2026-11-18T12:00:00Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp: Timestamp = text.parse().ok()?;
        Self::new(timestamp.as_nanosecond())
    }

    /// The time since the beginning of 1970, unless it is earlier.
    pub fn since_epoch(self) -> Option<Duration> {
        let (seconds, nanoseconds) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let nanoseconds = u32::try_from(nanoseconds).ok()?;
        Some(Duration::new(u64::try_from(seconds).ok()?, nanoseconds))
    }

    /// The moment with this number of nanoseconds, if it is in range.
    pub(super) fn new(nanoseconds: i128) -> Option<Self> {
        (EARLIEST..=LATEST).contains(&nanoseconds).then_some(Self(nanoseconds))
    }

    pub(super) fn seconds(self) -> i64 {
        i64::try_from(self.0.div_euclid(SECOND)).unwrap_or_default()
    }

    /// The text in RFC 3339.
    pub(super) fn text(self) -> String {
        Timestamp::from_nanosecond(self.0).map(|it| it.to_string()).unwrap_or_default()
    }
}

/// A time zone.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// A fixed offset from UTC in seconds.
    Offset(i32),
    Named(TimeZone),
}

impl Zone {
    pub(super) const UTC: Self = Self::Offset(0);

    /// The zone of this name, or of an offset such as `+02:00`.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if matches!(name, "" | "UTC" | "Z" | "GMT") {
            return Ok(Self::UTC);
        }
        if let Some(offset) = offset(name) {
            return Ok(Self::Offset(offset));
        }
        TimeZone::get(name).map(Self::Named).map_err(|_| {
            format!(
                "the time zone `{name}` is not installed; check its name, install the package \
                 `tzdata`, or write an offset such as \"+02:00\""
            )
        })
    }

    fn offset_at(&self, moment: Moment) -> i128 {
        let seconds = match self {
            Self::Offset(seconds) => *seconds,
            Self::Named(zone) => Timestamp::from_nanosecond(moment.0)
                .map_or(0, |timestamp| zone.to_offset(timestamp).seconds()),
        };
        i128::from(seconds) * SECOND
    }
}

/// `+02:00` or `-05:30` in seconds.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |digits: &str, limit: i32| {
        let is_plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i32>().ok().filter(|value| is_plain && *value < limit)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

/// A part of a timestamp or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimePart {
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

impl TimePart {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "getFullYear" => Self::FullYear,
            "getMonth" => Self::Month,
            "getDate" => Self::Date,
            "getDayOfMonth" => Self::DayOfMonth,
            "getDayOfWeek" => Self::DayOfWeek,
            "getDayOfYear" => Self::DayOfYear,
            "getHours" => Self::Hours,
            "getMinutes" => Self::Minutes,
            "getSeconds" => Self::Seconds,
            "getMilliseconds" => Self::Milliseconds,
            _ => return None,
        })
    }

    /// This part of a timestamp. Months, days of the month by `getDayOfMonth` and days of the year count from 0, and
    /// weeks begin on Sunday, as CEL defines.
    pub(super) fn of_moment(self, moment: Moment, zone: &Zone) -> i64 {
        let local = moment.0 + zone.offset_at(moment);
        let day = i64::try_from(local.div_euclid(86_400 * SECOND)).unwrap_or_default();
        let within = local.rem_euclid(86_400 * SECOND);
        let (year, month, date) = civil(day);
        let clock =
            |unit: i128, modulus: i128| i64::try_from(within / unit % modulus).unwrap_or_default();
        match self {
            Self::FullYear => year,
            Self::Month => month - 1,
            Self::Date => date,
            Self::DayOfMonth => date - 1,
            Self::DayOfWeek => (day + 4).rem_euclid(7),
            Self::DayOfYear => day - days_before(year),
            Self::Hours => clock(3600 * SECOND, 24),
            Self::Minutes => clock(60 * SECOND, 60),
            Self::Seconds => clock(SECOND, 60),
            Self::Milliseconds => clock(1_000_000, 1000),
        }
    }

    /// This part of a duration: the whole of it in that unit, except for milliseconds.
    pub(super) fn of_duration(self, nanoseconds: i128) -> Option<i64> {
        let value = match self {
            Self::Hours => nanoseconds / (3600 * SECOND),
            Self::Minutes => nanoseconds / (60 * SECOND),
            Self::Seconds => nanoseconds / SECOND,
            Self::Milliseconds => nanoseconds / 1_000_000 % 1000,
            _ => return None,
        };
        i64::try_from(value).ok()
    }
}

/// Year, month and day of a day since 1970 (the algorithm `civil_from_days` of Howard Hinnant).
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// The number of days from 1970 to the first day of a year.
fn days_before(year: i64) -> i64 {
    let before = year - 1;
    let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    365 * before + leap_days - 719_162
}

/// A duration such as `1h30m`, `-2.5s` or `300ms`, in nanoseconds.
pub(super) fn parse_duration(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_length = after.find(|letter: char| letter.is_ascii_digit() || letter == '.');
        let (unit, after) = after.split_at(unit_length.unwrap_or(after.len()));
        let unit = match unit {
            "h" => 3600 * SECOND,
            "m" => 60 * SECOND,
            "s" => SECOND,
            "ms" => 1_000_000,
            "us" | "µs" => 1000,
            "ns" => 1,
            _ => return None,
        };
        total = total.checked_add(scaled(number, unit)?)?;
        rest = after;
    }
    (total <= MAX_DURATION).then_some(sign * total)
}

/// A decimal number of units.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 15 || fraction.len() > 15 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let parts: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let divisor = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_mul(unit)?.checked_add(parts * unit / divisor)
}
