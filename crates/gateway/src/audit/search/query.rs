//! What a search looks for.

use std::borrow::Cow;
use std::fs::File;
use std::time::{Duration, SystemTime};

use creole::internal::name_patterns::NamePatterns;
use creole_proto::model::format_timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;

use crate::audit::search::time_text::TimeTexts;

/// The maximum number of lines of one page.
pub const MAX_PAGE: usize = 10_000;

/// How much older than the earliest time a line is that is certainly before it: several processes with clocks of their
/// own may write to one log.
const TIME_TOLERANCE: Duration = Duration::from_mins(10);

/// The maximum time of a call. A line has the start of its call and is written at its end, so a line is at most this
/// much older than one that was written before it. A configured call ends after a day, and a request for the result of
/// a task after 25 hours.
const MAX_CALL_TIME: Duration = Duration::from_hours(25);

/// What a search looks for. Without a member, it finds every line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// The principal. `*` matches any characters.
    pub principal: Option<String>,
    /// The called tool. `*` matches any characters.
    pub tool: Option<String>,
    /// The outcome.
    pub outcome: Option<String>,
    /// The earliest time of a call's start.
    pub since: Option<SystemTime>,
    /// The latest time of a call's start.
    pub until: Option<SystemTime>,
    /// The trace id.
    pub trace: Option<String>,
    /// A text anywhere in the line, as it is written there.
    pub text: Option<String>,
    /// The maximum number of lines, at most [`MAX_PAGE`].
    pub limit: usize,
    /// Continues an earlier search with the same files.
    pub cursor: Option<String>,
}

/// The members of a line that decide.
#[derive(Debug, Deserialize)]
pub(super) struct LineFields<'a> {
    #[serde(borrow)]
    pub(super) time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    principal: Option<Cow<'a, str>>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    target: Option<Cow<'a, str>>,
    #[serde(borrow)]
    outcome: Option<Cow<'a, str>>,
    #[serde(borrow)]
    trace: Option<Cow<'a, str>>,
}

impl<'a> LineFields<'a> {
    /// The members of a line, if it is one of an audit log.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// A query that is ready to be compared.
pub(super) struct QueryFilter {
    /// Texts that every matching line contains. They are found faster than a line is parsed.
    needles: Vec<Finder<'static>>,
    principal: Option<NamePatterns>,
    tool: Option<NamePatterns>,
    outcome: Option<String>,
    since: Option<String>,
    surely_before: Option<(String, SystemTime)>,
    until: Option<String>,
    surely_after: Option<String>,
    times: TimeTexts,
    trace: Option<String>,
}

impl QueryFilter {
    pub(super) fn new(query: &AuditQuery) -> Self {
        let trace = query.trace.as_ref().map(|trace| trace.to_ascii_lowercase());
        let words = [&query.principal, &query.tool, &query.outcome, &trace];
        let words = words.into_iter().flatten().filter(|word| is_plain(word));
        let words = words.chain(&query.text).map(|word| Finder::new(word.as_bytes()).into_owned());
        let patterns =
            |word: &Option<String>| word.as_deref().map(|word| NamePatterns::new([word]));
        let surely_before = query.since.and_then(|since| since.checked_sub(TIME_TOLERANCE));
        let surely_after =
            query.until.and_then(|until| until.checked_add(MAX_CALL_TIME + TIME_TOLERANCE));
        Self {
            needles: words.collect(),
            principal: patterns(&query.principal),
            tool: patterns(&query.tool),
            outcome: query.outcome.clone(),
            since: query.since.map(timestamp),
            surely_before: surely_before.map(|time| (timestamp(time), time)),
            until: query.until.map(timestamp),
            surely_after: surely_after.map(timestamp),
            times: TimeTexts::new(),
            trace,
        }
    }

    /// Whether a line may match.
    pub(super) fn may_match(&self, line: &[u8]) -> bool {
        let is_within = |time: &[u8]| self.is_within_period(time);
        self.needles.iter().all(|needle| needle.find(line).is_some())
            && (!self.has_period() || self.times.may_include(line, is_within))
    }

    /// Whether a line is certainly older than what is searched for.
    pub(super) fn is_old(&self, line: &[u8]) -> bool {
        let earliest = self.surely_before.as_ref().map(|(earliest, _)| earliest.as_bytes());
        earliest.is_some_and(|earliest| self.times.last(line).is_some_and(|time| time < earliest))
    }

    /// Whether a file was last written before the earliest time.
    pub(super) fn is_before(&self, file: &File) -> bool {
        let changed = file.metadata().and_then(|about| about.modified());
        match (&self.surely_before, changed) {
            (Some((_, earliest)), Ok(changed)) => changed < *earliest,
            _ => false,
        }
    }

    /// The time after which a line shows that no line behind it belongs to the period.
    pub(super) fn surely_after(&self) -> Option<&str> {
        self.surely_after.as_deref()
    }

    fn has_period(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    fn is_within_period(&self, time: &[u8]) -> bool {
        self.since.as_ref().is_none_or(|since| time >= since.as_bytes())
            && self.until.as_ref().is_none_or(|until| !time.is_empty() && time <= until.as_bytes())
    }

    pub(super) fn matches(&self, line: &LineFields<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &Option<Cow<'_, str>>| {
            wanted.as_ref().is_none_or(|wanted| found.as_ref().is_some_and(|it| *it == **wanted))
        };
        let fits = |patterns: &Option<NamePatterns>, found: &Option<Cow<'_, str>>| {
            let patterns = patterns.as_ref();
            patterns.is_none_or(|it| found.as_ref().is_some_and(|name| it.contains(name)))
        };
        let is_tool = || line.method.as_deref() == Some("tools/call");
        let time = line.time.as_deref().unwrap_or_default();
        fits(&self.principal, &line.principal)
            && fits(&self.tool, &line.target)
            && (self.tool.is_none() || is_tool())
            && is(&self.outcome, &line.outcome)
            && is(&self.trace, &line.trace)
            && self.is_within_period(time.as_bytes())
    }
}

/// Whether a text is written in JSON as it is, and is no pattern.
fn is_plain(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-.:@+".contains(&byte);
    !word.is_empty() && word.bytes().all(is_plain)
}

/// A time as lines have it. Texts of times are in the order of the times.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format_timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
