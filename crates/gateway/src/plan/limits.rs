//! What `[server.limits]` means: how long and how many.

use std::time::Duration;

use creole::TaskLimits;

use super::{Limits, count, seconds};
use crate::config::LimitsTable;
use crate::config::error::Problem;
use crate::config::value::{Placed, Within};

/// Resolves the table; what it does not say is as usual.
pub(super) fn resolve(table: &LimitsTable) -> Result<Limits, Problem> {
    let usual = Limits::default();
    let (call_timeout, call_timeout_max) = pair(
        ("call_timeout_seconds", table.call_timeout_seconds.as_ref(), usual.call_timeout),
        (
            "call_timeout_max_seconds",
            table.call_timeout_max_seconds.as_ref(),
            usual.call_timeout_max,
        ),
        "a call cannot be silent for longer than it may take in all",
    )?;
    Ok(Limits {
        call_timeout,
        call_timeout_max,
        calls_in_flight: table
            .calls_in_flight
            .map_or(usual.calls_in_flight, |calls| count(calls.get())),
        question_timeout: table
            .question_timeout_seconds
            .map_or(usual.question_timeout, |time| seconds(time.get())),
        list_wait: table.list_wait_seconds.map_or(usual.list_wait, |time| seconds(time.get())),
        tasks: tasks(table, usual.tasks)?,
    })
}

fn tasks(table: &LimitsTable, usual: TaskLimits) -> Result<TaskLimits, Problem> {
    let (ttl, longest_ttl) = pair(
        ("task_lifetime_seconds", table.task_lifetime_seconds.as_ref(), usual.ttl),
        ("task_lifetime_max_seconds", table.task_lifetime_max_seconds.as_ref(), usual.max_ttl),
        "a task is not kept for longer than a client may have it kept",
    )?;
    Ok(TaskLimits {
        per_principal: table
            .tasks_per_caller
            .map_or(usual.per_principal, |tasks| count(tasks.get())),
        total: table.tasks.map_or(usual.total, |tasks| count(tasks.get())),
        ttl,
        max_ttl: longest_ttl,
        ..usual
    })
}

/// A time as it is written: the name of its key, what stands there, and what holds otherwise.
type Time<'a, const MOST: i64> = (&'static str, Option<&'a Placed<Within<1, MOST>>>, Duration);

/// Two times, of which the first may not be longer than the second.
fn pair<const MOST: i64>(
    shorter: Time<'_, MOST>,
    longer: Time<'_, MOST>,
    why: &str,
) -> Result<(Duration, Duration), Problem> {
    let time = |(_, written, usual): &Time<'_, MOST>| {
        written.map_or(*usual, |time| seconds(time.value.get()))
    };
    let (short, long) = (time(&shorter), time(&longer));
    if short <= long {
        return Ok((short, long));
    }
    let (short, long) = (short.as_secs(), long.as_secs());
    let problem =
        Problem::new(format!("`{}` is {short}, but `{}` is {long}", shorter.0, longer.0)).help(why);
    Err(match shorter.1.or(longer.1) {
        Some(written) => problem.at(written.span.clone()),
        None => problem,
    })
}
