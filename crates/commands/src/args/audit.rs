//! The command lines of `creole audit`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args as Group, Subcommand};
use creole_policy::cel::Moment;

/// `creole audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the hash chain of audit logs.
    ///
    /// Exit code 0: the chain is whole. 1: it is not; the first break is named. 2: a file cannot be read.
    Verify(AuditVerifyArgs),
    /// Search audit logs, the newest lines first.
    Search(AuditSearchArgs),
    /// Print the JSON Schema of the lines of audit logs.
    #[command(after_help = "Example:\n  creole audit schema > audit.schema.json")]
    Schema,
}

/// `creole audit verify`.
#[derive(Debug, Group)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct AuditVerifyArgs {
    /// The files, with the rotated ones in any order. `-` reads stdin.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Also check that a line has this hash, such as the newest one in the log of the server.
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub(crate) contains: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  creole audit verify audit.log*
  creole audit verify audit.log* --contains 5f2b…
  kubectl logs deploy/creole | creole audit verify -

The layer `audit` writes the chain:
  [[server.chain]]
  kind = \"audit\"
  file = \"audit.log\"
  chain = true

A removed end is found only with --contains.";

/// `creole audit search`.
#[derive(Debug, Group)]
#[command(after_help = SEARCH_EXAMPLES)]
pub(crate) struct AuditSearchArgs {
    /// The files, with the rotated ones in any order.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The principal. `*` matches any characters.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// The called tool. `*` matches any characters.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// The outcome.
    #[arg(long, value_name = "OUTCOME", value_parser = OUTCOMES)]
    pub(crate) outcome: Option<String>,
    /// The earliest start of a call: a time, or how long ago, such as `2h`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) since: Option<SystemTime>,
    /// The latest start of a call.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) until: Option<SystemTime>,
    /// The trace id.
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// A text anywhere in the line, as it is written there.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// The maximum number of lines.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
    /// Continue an earlier search of the same files.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The outcomes of lines.
const OUTCOMES: [&str; 7] = ["ok", "error", "fault", "asked", "detached", "cancelled", "started"];

const SEARCH_EXAMPLES: &str = "\
Examples:
  creole audit search audit.log* --principal user:ada --since 2h
  creole audit search audit.log* --tool 'files__*' --outcome fault --json
  creole audit search audit.log* --since 2026-11-18 --until 2026-11-18T12:00:00Z

A search takes at most 5 seconds. If there may be more lines, it prints a cursor, and --cursor continues there.";

/// Reads a hash.
fn hash(text: &str) -> Result<String, String> {
    match text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("write the 64 hexadecimal digits of a hash".to_owned()),
    }
}

/// Reads a time: a timestamp, a date, or a duration before now.
fn time(text: &str) -> Result<SystemTime, String> {
    let invalid = || "write a time such as 2026-11-18T12:00:00Z, 2026-11-18, 90s, 15m, 2h or 7d";
    if let Some(ago) = duration(text) {
        return SystemTime::now().checked_sub(ago).ok_or_else(|| invalid().to_owned());
    }
    let moment = Moment::parse(text).or_else(|| Moment::parse(&format!("{text}T00:00:00Z")));
    let since = moment.and_then(Moment::since_epoch);
    since.map(|since| SystemTime::UNIX_EPOCH + since).ok_or_else(|| invalid().to_owned())
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_before_now() {
        let at = |text: &str| {
            let since = time(text).unwrap().duration_since(SystemTime::UNIX_EPOCH);
            since.unwrap().as_millis()
        };
        assert_eq!(at("1970-01-02"), 86_400_000);
        assert_eq!(at("1970-01-02T01:00:00.250+01:00"), 86_400_250);
        let ago = |text: &str| SystemTime::now().duration_since(time(text).unwrap()).unwrap();
        for (text, seconds) in [("90s", 90), ("2m", 120), ("3h", 10_800), ("1d", 86_400)] {
            let difference = ago(text).abs_diff(Duration::from_secs(seconds));
            assert!(difference < Duration::from_secs(60), "{text}");
        }
        for text in ["", "2", "h", "-1h", "1w", "yesterday", "1970-01-02T", "99999999999999999999s"]
        {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_hash_has_64_digits() {
        assert_eq!(hash(&"A".repeat(64)).unwrap(), "a".repeat(64));
        assert!(hash("a").is_err() && hash(&"g".repeat(64)).is_err());
    }
}
