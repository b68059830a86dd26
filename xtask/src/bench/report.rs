//! The report on stdio: what was measured, how, on which machine, and the verdicts.

use std::fmt::Write as _;
use std::fs;
use std::thread::available_parallelism;
use std::time::Duration;

use super::sample::{Contender, Driver, Era, EraRow, Measurements};
use super::statistics::{Spread, median};
use super::targets::{BARE, BARE_CHUNKS, CREOLE, RMCP, RMCP_TUNED, RUST_MCP_SDK};
use super::{BenchPlan, WINDOWS, targets};

/// Above this ratio between repetitions of the same server, the machine was busy with other work.
pub(super) const NOISY: f64 = 1.3;

/// The explanation of the two bare rows.
const ANCHORS: &str = "\
bare      line echo: reads a line, parses it, writes the response: the bare server of the targets; chunk \
echo: borrowed text, one write per read: the lower bound";

/// Why some rows are missing.
const EXCEPTIONS: &str = "\
missing   rust-mcp-sdk 2 supports the modern era only; the preset everything has no `echo`, so only \
its start is measured";

/// The whole report of `bench stdio`.
pub(super) fn stdio(
    plan: &BenchPlan,
    contenders: &[Contender],
    driver: &Driver,
    measurements: &Measurements,
    took: Duration,
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = write_head(&mut text, plan, driver, measurements, took);
    let _ = write_servers(&mut text, contenders);
    let _ = write_table(&mut text, measurements);
    let _ = write_ratios(&mut text, measurements);
    let _ = write_noise(&mut text, measurements);
    let _ = write_targets(&mut text, measurements);
    text
}

/// Writes the cores of the measured process and the load generator, with further notes.
pub(super) fn write_cores(
    text: &mut String,
    driver: &Driver,
    measured: &str,
    generator: &str,
    besides: &str,
) -> std::fmt::Result {
    match &driver.cores {
        Some(cores) => {
            let (theirs, ours) = (&cores.server, &cores.driver);
            writeln!(
                text,
                "cores     {measured} bound to core {theirs}, {generator} to core {ours}{besides}"
            )
        }
        None => writeln!(text, "cores     unbound (one core, or no taskset): expect more noise"),
    }
}

fn write_head(
    text: &mut String,
    plan: &BenchPlan,
    driver: &Driver,
    measurements: &Measurements,
    took: Duration,
) -> std::fmt::Result {
    writeln!(text, "stdio: tools/call of `echo` with a 16-byte message over pipes\n")?;
    writeln!(text, "machine   {}", machine())?;
    write_cores(text, driver, "server", "load generator", "; cold starts unbound")?;
    writeln!(
        text,
        "method    medians of {} interleaved repetitions, a fresh process for each figure, {:.2} s \
         after {:.2} s\n          of warm-up; {} cold starts each, from spawn to the first answer \
         (initialize, or a modern call)",
        plan.repetitions,
        plan.measure.as_secs_f64(),
        plan.warmup.as_secs_f64(),
        plan.starts,
    )?;
    writeln!(
        text,
        "measured  {} messages in {:.0} s, every response checked: correct id, correct text",
        grouped(measurements.messages()),
        took.as_secs_f64(),
    )
}

fn write_servers(text: &mut String, contenders: &[Contender]) -> std::fmt::Result {
    for (index, contender) in contenders.iter().enumerate() {
        let title = if index == 0 { "servers" } else { "" };
        writeln!(text, "{title:10}{:26}{}", contender.name, contender.command())?;
    }
    writeln!(text, "{ANCHORS}\n{EXCEPTIONS}\n")
}

fn write_table(text: &mut String, measurements: &Measurements) -> std::fmt::Result {
    writeln!(
        text,
        "{:26}{:8}{:>19}{:>17}{:>11}{:>16}",
        "", "", "messages/s", "CPU µs/message", "cold", "RSS MB"
    )?;
    writeln!(
        text,
        "{:26}{:8}{:>9}{:>10}{:>8}{:>9}{:>11}{:>8}{:>8}",
        "server", "era", "w=1", "w=64", "w=1", "w=64", "start ms", "idle", "peak"
    )?;
    for row in &measurements.rows {
        write!(text, "{:26}{:8}", row.name, row.era.name())?;
        for (window, width) in WINDOWS.into_iter().zip([9, 10]) {
            let speed = median(row.figures(window, |load| load.per_second));
            write!(text, "{:>width$}", or_dash(speed, grouped))?;
        }
        for (window, width) in WINDOWS.into_iter().zip([8, 9]) {
            let cost = median(row.figures(window, |load| load.processor_microseconds));
            write!(text, "{:>width$}", or_dash(cost, |cost| format!("{cost:.2}")))?;
        }
        let megabytes = |size| or_dash(size, |size| format!("{size:.1}"));
        writeln!(
            text,
            "{:>11.2}{:>8}{:>8}",
            median(row.starts.iter().copied()),
            megabytes(median(row.all_figures(|load| load.idle_megabytes))),
            megabytes(Spread::of(row.all_figures(|load| load.peak_megabytes)).highest),
        )?;
    }
    writeln!(text)
}

fn write_ratios(text: &mut String, measurements: &Measurements) -> std::fmt::Result {
    writeln!(
        text,
        "CPU per message as a ratio, paired within a repetition: median (lowest-highest)"
    )?;
    for other in [BARE, BARE_CHUNKS, RMCP, RMCP_TUNED, RUST_MCP_SDK] {
        for era in Era::ALL {
            let ours = measurements.row(CREOLE, era);
            let theirs = measurements.row(other, era);
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                write_ratio(text, ours, theirs)?;
            }
        }
    }
    writeln!(text)
}

fn write_ratio(text: &mut String, ours: &EraRow, theirs: &EraRow) -> std::fmt::Result {
    write!(text, "{:34}{:8}", format!("creole / {}", theirs.name), ours.era.name())?;
    for window in WINDOWS {
        let Spread { lowest, median, highest } = targets::processor_ratio(ours, theirs, window);
        write!(text, "  w={window:<3}{median:.3} ({lowest:.3}-{highest:.3})")?;
    }
    writeln!(text)
}

/// Writes how much the machine's speed varied, as a limit of the ratios' precision.
fn write_noise(text: &mut String, measurements: &Measurements) -> std::fmt::Result {
    let factors = Era::ALL.into_iter().flat_map(|era| {
        WINDOWS.map(|window| {
            let bare = measurements.row(BARE, era);
            let costs = bare.map(|row| row.figures(window, |load| load.processor_microseconds));
            let spread = Spread::of(costs.unwrap_or_default());
            spread.highest / spread.lowest
        })
    });
    let factor = Spread::of(factors).highest;
    let advice = if factor > NOISY { ": the machine was busy; repeat the benchmark" } else { "" };
    writeln!(text, "noise     the bare line echo's own CPU varied by up to x{factor:.2}{advice}\n")
}

fn write_targets(text: &mut String, measurements: &Measurements) -> std::fmt::Result {
    writeln!(
        text,
        "targets (rmcp as documented; a missed target is only reported, because machines are noisy)"
    )?;
    for result in targets::verdicts(measurements) {
        let word = if result.met { "met" } else { "MISSED" };
        writeln!(
            text,
            "{word:8}{:8}{:55}{:>12}",
            result.era.name(),
            result.wording,
            result.measured
        )?;
    }
    Ok(())
}

/// Cores, processor and kernel.
pub(super) fn machine() -> String {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, {model}, Linux {}", kernel.trim())
}

/// A number as `write` formats it, or a dash if nothing was measured.
pub(super) fn or_dash(number: f64, write: fn(f64) -> String) -> String {
    if number.is_nan() { "-".to_owned() } else { write(number) }
}

/// An integer with thousands separators.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{grouped, or_dash};

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(0.4), "0");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_000.0), "1,000");
        assert_eq!(grouped(12_345_678.0), "12,345,678");
    }

    #[test]
    fn a_missing_measurement_is_a_dash() {
        assert_eq!(or_dash(f64::NAN, grouped), "-");
        assert_eq!(or_dash(1_000.0, grouped), "1,000");
    }
}
