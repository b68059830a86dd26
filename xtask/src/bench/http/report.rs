//! The report on HTTP.

use std::fmt::Write as _;
use std::time::Duration;

use super::super::report::{NOISY, grouped, machine, or_dash, write_cores};
use super::super::sample::{Driver, Era};
use super::super::statistics::{Spread, median};
use super::contenders::{BARE, CREOLE, Contender};
use super::sample::{CONNECTIONS, Figures, HttpMeasurements, Measure, TOOLS_IN_LIST};
use super::{HttpBenchPlan, targets};

/// The explanation of the tables.
const NOTES: &str = "\
bare      hyper and serde_json: reads a body, parses it, writes the response; checks no version, session or header
rmcp      JSON: no sessions, JSON responses; default: sessions for legacy clients, event streams as responses
lists     creole's list is that of bench/creole-many-tools, which uses the library; the others have the option --tools";

/// The whole report of `bench http`.
pub(super) fn write(
    plan: &HttpBenchPlan,
    contenders: &[Contender],
    driver: &Driver,
    measurements: &HttpMeasurements,
    took: Duration,
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = write_head(&mut text, plan, driver, measurements, took);
    let _ = write_servers(&mut text, contenders);
    let _ = write_calls(&mut text, contenders, measurements);
    let _ = write_additions(&mut text, measurements);
    let _ = write_lists(&mut text, contenders, measurements);
    let _ = write_idle(&mut text, plan, contenders, measurements);
    let _ = write_ratios(&mut text, contenders, measurements);
    let _ = write_noise(&mut text, measurements);
    let _ = write_targets(&mut text, measurements);
    text
}

fn write_head(
    text: &mut String,
    plan: &HttpBenchPlan,
    driver: &Driver,
    measurements: &HttpMeasurements,
    took: Duration,
) -> std::fmt::Result {
    writeln!(text, "HTTP/1.1 on the loopback: tools/call of `echo` with a 16-byte message\n")?;
    writeln!(text, "machine   {}", machine())?;
    write_cores(text, driver, "server", "load generator, one thread,", "")?;
    writeln!(
        text,
        "method    medians of {} interleaved repetitions, a fresh process for each figure, {:.2} s \
         after {:.2} s\n          of warm-up; a request counts when it ends within that time; memory \
         of idle clients {} x",
        plan.repetitions,
        plan.measure.as_secs_f64(),
        plan.warmup.as_secs_f64(),
        plan.idle_repetitions,
    )?;
    writeln!(
        text,
        "measured  {} requests in {:.0} s, every response checked: correct id, correct text",
        grouped(measurements.messages()),
        took.as_secs_f64(),
    )
}

fn write_servers(text: &mut String, contenders: &[Contender]) -> std::fmt::Result {
    for (index, contender) in contenders.iter().enumerate() {
        let title = if index == 0 { "servers" } else { "" };
        writeln!(text, "{title:10}{:22}{}", contender.name, contender.server.command())?;
    }
    writeln!(text, "{NOTES}\n")
}

fn write_calls(
    text: &mut String,
    contenders: &[Contender],
    measurements: &HttpMeasurements,
) -> std::fmt::Result {
    writeln!(
        text,
        "{:22}{:8}{:>17}{:>16}{:>15}{:>15}{:>14}",
        "", "", "requests/s", "CPU µs/request", "c=1 µs", "c=32 µs", "RSS MB"
    )?;
    writeln!(
        text,
        "{:22}{:8}{:>8}{:>9}{:>8}{:>8}{:>7}{:>8}{:>7}{:>8}{:>7}{:>7}",
        "tools/call",
        "era",
        "c=1",
        "c=32",
        "c=1",
        "c=32",
        "p50",
        "p99",
        "p50",
        "p99",
        "idle",
        "peak"
    )?;
    for contender in contenders {
        for era in Era::ALL {
            let of = |measure, figure| {
                median(measurements.figures(contender.name, era, measure, figure))
            };
            let (one, many) = (Measure::OneConnection, Measure::Connections);
            let peaks = measurements.figures(contender.name, era, many, Figures::peak_memory);
            writeln!(
                text,
                "{:22}{:8}{:>8}{:>9}{:>8}{:>8}{:>7}{:>8}{:>7}{:>8}{:>7}{:>7}",
                contender.name,
                era.name(),
                or_dash(of(one, Figures::per_second), grouped),
                or_dash(of(many, Figures::per_second), grouped),
                tenths(of(one, Figures::processor)),
                tenths(of(many, Figures::processor)),
                or_dash(of(one, Figures::middle), grouped),
                or_dash(of(one, Figures::slow), grouped),
                or_dash(of(many, Figures::middle), grouped),
                or_dash(of(many, Figures::slow), grouped),
                tenths(of(many, Figures::idle_memory)),
                tenths(Spread::of(peaks).highest),
            )?;
        }
    }
    writeln!(text)
}

/// Writes the cost of a call with additional work, or with more tools and sessions.
fn write_additions(text: &mut String, measurements: &HttpMeasurements) -> std::fmt::Result {
    writeln!(
        text,
        "{:22}{:8}{:>16}{:>24}",
        "creole, c=32", "era", "CPU µs/request", "ratio to without"
    )?;
    let plain = Measure::Connections;
    let additions = [
        ("with bearer keys", Measure::Keyed, plain),
        ("with access tokens", Measure::Token, Measure::Keyed),
        ("with a log of calls", Measure::Logged, plain),
        ("among many sessions", Measure::Crowded, plain),
        ("among 10,000 tools", Measure::ManyTools, Measure::FewTools),
    ];
    for (name, with, without) in additions {
        for era in Era::ALL {
            let Spread { lowest, median: ratio, highest } =
                targets::growth(measurements, era, with, without);
            if !ratio.is_nan() {
                let cost = measurements.figures(CREOLE, era, with, Figures::processor);
                let ratio = format!("{ratio:.3} ({lowest:.3}-{highest:.3})");
                let cost = tenths(median(cost));
                writeln!(text, "{name:22}{:8}{cost:>16}{ratio:>24}", era.name())?;
            }
        }
    }
    writeln!(text)
}

fn write_lists(
    text: &mut String,
    contenders: &[Contender],
    measurements: &HttpMeasurements,
) -> std::fmt::Result {
    writeln!(
        text,
        "{:22}{:8}{:>12}{:>17}{:>10}{:>10}",
        format!("list of {} tools", grouped_count(TOOLS_IN_LIST)),
        "era",
        "requests/s",
        "CPU µs/request",
        "p50 µs",
        "p99 µs"
    )?;
    for contender in contenders.iter().filter(|contender| contender.lister.is_some()) {
        for era in Era::ALL {
            let of =
                |figure| median(measurements.figures(contender.name, era, Measure::List, figure));
            writeln!(
                text,
                "{:22}{:8}{:>12}{:>17}{:>10}{:>10}",
                contender.name,
                era.name(),
                or_dash(of(Figures::per_second), grouped),
                tenths(of(Figures::processor)),
                or_dash(of(Figures::middle), grouped),
                or_dash(of(Figures::slow), grouped),
            )?;
        }
    }
    writeln!(text)
}

fn write_idle(
    text: &mut String,
    plan: &HttpBenchPlan,
    contenders: &[Contender],
    measurements: &HttpMeasurements,
) -> std::fmt::Result {
    writeln!(
        text,
        "{:22}{:8}{:10}{:>9}{:>10}{:>9}{:>17}",
        "idle clients", "era", "", "number", "KB each", "RSS MB", "CPU ms/idle s"
    )?;
    let mut is_short = false;
    for contender in contenders {
        for measure in [Measure::Streams, Measure::Sessions] {
            for era in Era::ALL {
                let of =
                    |figure| median(measurements.figures(contender.name, era, measure, figure));
                let count = of(Figures::count);
                if count.is_nan() {
                    continue;
                }
                is_short |= format!("{count:.0}") != plan.idle.to_string();
                writeln!(
                    text,
                    "{:22}{:8}{:10}{:>9}{:>10}{:>9}{:>17}",
                    contender.name,
                    era.name(),
                    if measure == Measure::Streams { "streams" } else { "sessions" },
                    grouped(count),
                    tenths(of(Figures::each)),
                    tenths(of(Figures::crowded_memory)),
                    tenths(of(Figures::idle_processor)),
                )?;
            }
        }
    }
    if is_short {
        writeln!(
            text,
            "FEWER STREAMS THAN THE {} WANTED: the limit of open files (ulimit -Hn) is too low",
            grouped_count(plan.idle)
        )?;
    }
    writeln!(text)
}

fn write_ratios(
    text: &mut String,
    contenders: &[Contender],
    measurements: &HttpMeasurements,
) -> std::fmt::Result {
    writeln!(
        text,
        "CPU per request as a ratio, paired within a repetition: median (lowest-highest)"
    )?;
    let measures =
        [(Measure::OneConnection, "c=1"), (Measure::Connections, "c=32"), (Measure::List, "list")];
    for other in contenders.iter().filter(|contender| contender.name != CREOLE) {
        for era in Era::ALL {
            write!(text, "{:30}{:8}", format!("creole / {}", other.name), era.name())?;
            for (measure, title) in measures {
                let ratio = targets::processor_ratio(measurements, other.name, era, measure);
                let Spread { lowest, median, highest } = ratio;
                if !median.is_nan() {
                    write!(text, "  {title} {median:.3} ({lowest:.3}-{highest:.3})")?;
                }
            }
            writeln!(text)?;
        }
    }
    writeln!(text)
}

/// Writes how much the machine's speed varied, as a limit of the ratios' precision.
fn write_noise(text: &mut String, measurements: &HttpMeasurements) -> std::fmt::Result {
    let measures = [Measure::OneConnection, Measure::Connections, Measure::List];
    let factors = Era::ALL.into_iter().flat_map(|era| {
        measures.map(|measure| {
            let costs = measurements.figures(BARE, era, measure, Figures::processor);
            let spread = Spread::of(costs);
            spread.highest / spread.lowest
        })
    });
    let factor = Spread::of(factors).highest;
    let advice = if factor > NOISY { ": the machine was busy; repeat the benchmark" } else { "" };
    writeln!(text, "noise     the bare responder's own CPU varied by up to x{factor:.2}{advice}\n")
}

fn write_targets(text: &mut String, measurements: &HttpMeasurements) -> std::fmt::Result {
    writeln!(
        text,
        "targets at {CONNECTIONS} connections (a missed target is only reported, because machines are noisy)"
    )?;
    for target in targets::verdicts(measurements) {
        let word = if target.met { "met" } else { "MISSED" };
        writeln!(
            text,
            "{word:8}{:8}{:55}{:>12}",
            target.era.name(),
            target.wording,
            target.measured
        )?;
    }
    writeln!(text, "not checked here: {}", targets::UNCHECKED)
}

fn tenths(number: f64) -> String {
    or_dash(number, |number| format!("{number:.1}"))
}

fn grouped_count(count: usize) -> String {
    grouped(f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
}
