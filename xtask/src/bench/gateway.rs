//! `cargo xtask bench gateway`: measures the cost of a call through a gateway.
//!
//! Every gateway has the same upstream, `creole serve` with the packs of its default preset, which supports one era and
//! is started anew for each sample. Figures that are compared are taken right after each other, in every repetition,
//! and ratios are taken within a repetition.

mod contenders;
mod lanes;
mod memory;
mod peers;
mod report;
mod sample;
mod targets;
mod upstream_process;

use std::time::{Duration, Instant};

use contenders::Contender;
use lanes::{LANES, Lane};
use sample::{GatewayMeasurements, SampleContext};

use super::Options;
use super::build::{BuildFolder, print_line};
use super::sample::Driver;

pub(super) const USAGE: &str = "\
usage: cargo xtask bench gateway [--quick] [--repetitions N] [--creole PATH]
  --quick           about 5 minutes instead of about 12, with more noise
  --repetitions N   take the medians of N repetitions, 1 to 100 (11, with --quick 5)
  --creole PATH     measure this binary as `PATH serve` instead of building creole";

/// The extent of a measurement.
pub(super) struct GatewayBenchPlan {
    repetitions: usize,
    /// Peers differ strongly from us and start slowly, so fewer samples of them suffice.
    peer_repetitions: usize,
    warmup: Duration,
    /// Peers with a just-in-time compiler need a longer warm-up.
    peer_warmup: Duration,
    measure: Duration,
}

impl GatewayBenchPlan {
    fn of(options: &Options) -> Self {
        let (repetitions, peer_repetitions, measure) =
            if options.quick { (5, 2, 300) } else { (11, 3, 400) };
        let repetitions = options.repetitions.unwrap_or(repetitions);
        Self {
            repetitions,
            peer_repetitions: peer_repetitions.min(repetitions),
            warmup: Duration::from_millis(100),
            peer_warmup: Duration::from_millis(500),
            measure: Duration::from_millis(measure),
        }
    }

    /// Whether a gateway is measured in this repetition.
    fn wants(&self, contender: &Contender, repetition: usize) -> bool {
        !contender.is_peer() || repetition < self.peer_repetitions
    }

    /// How long a gateway is called before it is measured.
    fn warmup(&self, contender: &Contender) -> Duration {
        if contender.is_peer() { self.peer_warmup } else { self.warmup }
    }
}

/// Measures everything and returns the report.
pub(super) fn measure(options: &Options) -> Result<String, String> {
    let plan = GatewayBenchPlan::of(options);
    let folder = BuildFolder::find()?;
    let (contenders, mut missing) = contenders::build(&folder, options.creole.as_deref())?;
    for peer in &missing {
        print_line(&format!("NOT MEASURED: {peer}"))?;
    }
    let generator = folder.build_driver()?;
    let driver = Driver::new(generator.clone(), folder.empty_folder()?)?;
    let creole = folder.creole(options.creole.as_deref())?;
    let workplace = SampleContext { plan: &plan, driver: &driver, creole: &creole };

    let started = Instant::now();
    let mut measurements = take_samples(&workplace, &contenders, &mut missing)?;
    print_line("a large result")?;
    measurements.held = memory::take(&contenders, &driver, &generator)?;
    let took = started.elapsed();
    Ok(report::write(&plan, &driver, &contenders, &missing, &measurements, took))
}

/// Takes all samples. Each repetition begins with another gateway, so that a change of the machine's speed affects all
/// of them equally. A peer that fails is skipped from then on and reported as `missing`.
fn take_samples(
    workplace: &SampleContext<'_>,
    contenders: &[Contender],
    missing: &mut Vec<String>,
) -> Result<GatewayMeasurements, String> {
    let mut measurements = GatewayMeasurements::default();
    let mut failed: Vec<(&str, Lane)> = Vec::new();
    for repetition in 0..workplace.plan.repetitions {
        print_line(&format!("repetition {} of {}", repetition + 1, workplace.plan.repetitions))?;
        for lane in &LANES {
            for width in lane.front.widths() {
                for turn in 0..contenders.len() {
                    let contender = &contenders[(turn + repetition) % contenders.len()];
                    let is_wanted = workplace.plan.wants(contender, repetition)
                        && contender.takes(lane)
                        && !failed.contains(&(contender.name, *lane));
                    if !is_wanted {
                        continue;
                    }
                    match workplace.take(contender, lane, width) {
                        Ok(figures) => measurements.add(contender.name, *lane, width, figures),
                        Err(error) if contender.is_peer() => {
                            print_line(&format!("NOT MEASURED: {error}"))?;
                            failed.push((contender.name, *lane));
                            missing.push(error);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }
    Ok(measurements)
}
