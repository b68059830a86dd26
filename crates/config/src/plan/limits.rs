//! Resolves `[server.limits]`: timeouts and limits of calls.

use std::time::Duration;

use creole::TaskLimits;

use crate::plan::{LimitsPlan, count, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Ranged, Spanned};
use crate::tables::LimitsTable;

/// Resolves the table. Missing keys get their defaults.
pub(crate) fn resolve(table: &LimitsTable) -> Result<LimitsPlan, ConfigProblem> {
    let defaults = LimitsPlan::default();
    let (call_timeout, call_timeout_max) = ordered_timeouts(
        ("call_timeout_seconds", table.call_timeout_seconds.as_ref(), defaults.call_timeout),
        (
            "call_timeout_max_seconds",
            table.call_timeout_max_seconds.as_ref(),
            defaults.call_timeout_max,
        ),
        "`call_timeout_seconds` must not exceed `call_timeout_max_seconds`",
    )?;
    Ok(LimitsPlan {
        call_timeout,
        call_timeout_max,
        calls_in_flight: table
            .calls_in_flight
            .map_or(defaults.calls_in_flight, |calls| count(calls.get())),
        input_timeout: table
            .input_timeout_seconds
            .map_or(defaults.input_timeout, |time| seconds(time.get())),
        list_wait: table.list_wait_seconds.map_or(defaults.list_wait, |time| seconds(time.get())),
        tasks: tasks(table, defaults.tasks)?,
    })
}

fn tasks(table: &LimitsTable, defaults: TaskLimits) -> Result<TaskLimits, ConfigProblem> {
    let (ttl, max_ttl) = ordered_timeouts(
        ("task_lifetime_seconds", table.task_lifetime_seconds.as_ref(), defaults.ttl),
        ("task_lifetime_max_seconds", table.task_lifetime_max_seconds.as_ref(), defaults.max_ttl),
        "`task_lifetime_seconds` must not exceed `task_lifetime_max_seconds`",
    )?;
    let mut limits = defaults;
    limits.per_principal =
        table.max_tasks_per_principal.map_or(defaults.per_principal, |tasks| count(tasks.get()));
    limits.total = table.max_tasks.map_or(defaults.total, |tasks| count(tasks.get()));
    limits.ttl = ttl;
    limits.max_ttl = max_ttl;
    Ok(limits)
}

/// A configured time: the name of its key, its value, and its default.
type TimeoutKey<'a, const MOST: i64> =
    (&'static str, Option<&'a Spanned<Ranged<1, MOST>>>, Duration);

/// Two times, of which the first must not be longer than the second.
fn ordered_timeouts<const MOST: i64>(
    shorter: TimeoutKey<'_, MOST>,
    longer: TimeoutKey<'_, MOST>,
    reason: &str,
) -> Result<(Duration, Duration), ConfigProblem> {
    let time = |(_, value, default_value): &TimeoutKey<'_, MOST>| {
        value.map_or(*default_value, |time| seconds(time.value.get()))
    };
    let (short, long) = (time(&shorter), time(&longer));
    if short <= long {
        return Ok((short, long));
    }
    let (short, long) = (short.as_secs(), long.as_secs());
    let problem =
        ConfigProblem::new(format!("`{}` is {short}, but `{}` is {long}", shorter.0, longer.0))
            .help(reason);
    Err(match shorter.1.or(longer.1) {
        Some(value) => problem.at(value.span.clone()),
        None => problem,
    })
}
