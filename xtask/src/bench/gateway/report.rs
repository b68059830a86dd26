//! The report on gateways.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use super::super::figures::Figures;
use super::super::report::{NOISY, grouped, machine, or_dash, write_cores};
use super::super::sample::Driver;
use super::super::statistics::{Spread, median, paired};
use super::contenders::{BARE, CREOLE, Contender, DIRECT};
use super::lanes::{LANES, Lane};
use super::memory::SIZE;
use super::sample::GatewayMeasurements;
use super::{GatewayBenchPlan, targets};

/// The explanation of the tables.
const NOTES: &str = "\
server    the upstream of every gateway: `creole serve`, default preset; a new process for each sample
direct    the client uses that server without a gateway; the CPU is the server's
bare      hyper as a server and as a client with a pool: forwards headers and body, reads no JSON
added     the additional latency over direct at the 50th and 99th percentile, one call at a time
kept      calls per second as a share of direct, at 32 connections (64 calls in flight on stdio)
CPU, RSS  of the gateway's own process; its server shares the core, which lowers `kept`";

/// The whole report of `bench gateway`.
pub(super) fn write(
    plan: &GatewayBenchPlan,
    driver: &Driver,
    contenders: &[Contender],
    missing: &[String],
    measurements: &GatewayMeasurements,
    took: Duration,
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = write_head(&mut text, plan, driver, measurements, took);
    for peer in missing {
        let _ = writeln!(text, "MISSING   {peer}");
    }
    let _ = write_table(&mut text, contenders, measurements);
    let _ = write_memory(&mut text, measurements);
    let _ = write_ratios(&mut text, contenders, measurements);
    let _ = write_noise(&mut text, measurements);
    let _ = write_targets(&mut text, measurements);
    text
}

fn write_head(
    text: &mut String,
    plan: &GatewayBenchPlan,
    driver: &Driver,
    measurements: &GatewayMeasurements,
    took: Duration,
) -> std::fmt::Result {
    writeln!(text, "gateways: tools/call of `echo` with a 16-byte message\n")?;
    writeln!(text, "machine   {}", machine())?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    writeln!(text, "load      {} when it ended, of which about 2 its own", load.trim())?;
    write_cores(text, driver, "gateway and server", "load generator", "")?;
    writeln!(
        text,
        "method    medians of {} interleaved repetitions, of peers {}; fresh processes for each \
         figure, {:.2} s\n          after {:.2} s of warm-up, of peers {:.2} s; a request counts when \
         it ends within that time",
        plan.repetitions,
        plan.peer_repetitions,
        plan.measure.as_secs_f64(),
        plan.warmup.as_secs_f64(),
        plan.peer_warmup.as_secs_f64(),
    )?;
    writeln!(
        text,
        "measured  {} requests in {:.0} s, every response checked: correct id, correct text\n{NOTES}\n",
        grouped(measurements.messages()),
        took.as_secs_f64(),
    )
}

fn write_table(
    text: &mut String,
    contenders: &[Contender],
    measurements: &GatewayMeasurements,
) -> std::fmt::Result {
    for lane in LANES {
        let [one, many] = lane.front.widths();
        writeln!(
            text,
            "{:54}{:>16}{:>7}{:>16}{:>14}\n{:54}{:>8}{:>8}{:>7}{:>8}{:>8}{:>7}{:>7}",
            lane.title(),
            "added µs",
            "kept",
            "CPU µs/call",
            "RSS MB",
            "",
            "p50",
            "p99",
            many,
            one,
            many,
            "idle",
            "peak",
        )?;
        for contender in contenders.iter().filter(|it| it.takes(&lane)) {
            write_row(text, contender.name, lane, measurements)?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn write_row(
    text: &mut String,
    name: &str,
    lane: Lane,
    measurements: &GatewayMeasurements,
) -> std::fmt::Result {
    let [one, many] = lane.front.widths();
    let of = |width, figure| median(measurements.figures(name, lane, width, figure));
    let added = |figure| match name {
        DIRECT => f64::NAN,
        _ => targets::added(measurements, name, lane, figure).median,
    };
    writeln!(
        text,
        "  {name:52}{:>8}{:>8}{:>7}{:>8}{:>8}{:>7}{:>7}",
        or_dash(added(Figures::middle), grouped),
        or_dash(added(Figures::slow), grouped),
        or_dash(throughput_share(measurements, name, lane), |kept| format!("{kept:.3}")),
        tenths(of(one, Figures::processor)),
        tenths(of(many, Figures::processor)),
        tenths(of(many, Figures::idle_memory)),
        tenths(Spread::of(measurements.figures(name, lane, many, Figures::peak_memory)).highest),
    )
}

/// Calls per second as a share of those without a gateway.
fn throughput_share(measurements: &GatewayMeasurements, name: &str, lane: Lane) -> f64 {
    let through = targets::widest(measurements, name, lane, Figures::per_second);
    let direct = targets::widest(measurements, DIRECT, lane.within_era(), Figures::per_second);
    paired(&through, &direct, |through, direct| through / direct).median
}

fn write_memory(text: &mut String, measurements: &GatewayMeasurements) -> std::fmt::Result {
    let megabytes = SIZE as f64 / 1e6;
    writeln!(
        text,
        "peak memory while a result of {megabytes} MB is forwarded, beyond the idle memory"
    )?;
    for usage in &measurements.held {
        let (title, sizes) = (usage.lane.title(), usage.sizes());
        let (more, idle) = (sizes * megabytes, usage.idle());
        writeln!(
            text,
            "  {:12}{title:52}{sizes:>6.2} x {more:>8.1} MB, idle {idle:.1}",
            usage.name
        )?;
    }
    writeln!(text)
}

fn write_ratios(
    text: &mut String,
    contenders: &[Contender],
    measurements: &GatewayMeasurements,
) -> std::fmt::Result {
    writeln!(text, "CPU per call as a ratio, paired within a repetition: median (lowest-highest)")?;
    for lane in LANES {
        let others =
            contenders.iter().filter(|contender| ![CREOLE, DIRECT].contains(&contender.name));
        for other in others {
            let Spread { lowest, median, highest } =
                targets::processor_ratio(measurements, other.name, lane);
            if !median.is_nan() {
                let title = format!("creole / {}", other.name);
                let spread = format!("{median:.3} ({lowest:.3}-{highest:.3})");
                writeln!(text, "{title:32}{:54}{spread}", lane.title())?;
            }
        }
    }
    writeln!(text)
}

/// Writes how much the machine's speed varied, as a limit of the ratios' precision.
fn write_noise(text: &mut String, measurements: &GatewayMeasurements) -> std::fmt::Result {
    let factors = LANES.map(|lane| {
        let spread = Spread::of(targets::widest(measurements, BARE, lane, Figures::processor));
        spread.highest / spread.lowest
    });
    let factor = Spread::of(factors.into_iter().filter(|factor| !factor.is_nan())).highest;
    let advice = if factor > NOISY { ": the machine was busy; repeat the benchmark" } else { "" };
    writeln!(text, "noise     the bare relay's own CPU varied by up to x{factor:.2}{advice}\n")
}

fn write_targets(text: &mut String, measurements: &GatewayMeasurements) -> std::fmt::Result {
    writeln!(text, "targets (a missed target is only reported, because machines are noisy)")?;
    for target in targets::verdicts(measurements) {
        let word = if target.met { "met" } else { "MISSED" };
        writeln!(
            text,
            "{word:8}{:52}{:50}{:>10}",
            target.lane.title(),
            target.wording,
            target.measured
        )?;
    }
    Ok(())
}

fn tenths(number: f64) -> String {
    or_dash(number, |number| format!("{number:.1}"))
}
