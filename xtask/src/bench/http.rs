//! `cargo xtask bench http`: measures calls, lists, idle streams and idle sessions over HTTP.
//!
//! As on stdio, figures that are compared are taken right after each other, in every repetition, from new processes.
//! Ratios are taken within a repetition.

mod contenders;
mod report;
mod sample;
mod targets;

use std::time::{Duration, Instant};

use contenders::Contender;
use sample::{HttpMeasurements, Measure};

use super::Options;
use super::build::{BuildFolder, print_line};
use super::sample::{Driver, Era};

pub(super) const USAGE: &str = "\
usage: cargo xtask bench http [--quick] [--repetitions N] [--creole PATH]
  --quick           about 2 minutes instead of about 9, with more noise and fewer idle clients
  --repetitions N   take the medians of N repetitions, 1 to 100 (15, with --quick 3)
  --creole PATH     measure this binary as `PATH serve --http` instead of building creole";

/// The extent of a measurement.
pub(super) struct HttpBenchPlan {
    repetitions: usize,
    /// Memory hardly varies, so fewer repetitions open idle clients.
    idle_repetitions: usize,
    /// The number of idle streams and sessions.
    idle: usize,
    warmup: Duration,
    measure: Duration,
}

impl HttpBenchPlan {
    fn of(options: &Options) -> Self {
        let (repetitions, idle_repetitions, idle, warmup, measure) =
            if options.quick { (3, 1, 2_000, 50, 250) } else { (15, 2, 10_000, 100, 300) };
        let repetitions = options.repetitions.unwrap_or(repetitions);
        Self {
            repetitions,
            idle_repetitions: idle_repetitions.min(repetitions),
            idle,
            warmup: Duration::from_millis(warmup),
            measure: Duration::from_millis(measure),
        }
    }

    /// Whether this is measured in this repetition.
    fn wants(&self, measure: Measure, repetition: usize) -> bool {
        !measure.is_idle() || repetition < self.idle_repetitions
    }
}

/// Measures everything and returns the report.
pub(super) fn measure(options: &Options) -> Result<String, String> {
    let plan = HttpBenchPlan::of(options);
    let folder = BuildFolder::find()?;
    let contenders = contenders::build(&folder, options.creole.as_deref())?;
    let driver = Driver::new(folder.build_driver()?, folder.empty_folder()?)?;

    let started = Instant::now();
    let measurements = take_samples(&plan, &contenders, &driver)?;
    Ok(report::write(&plan, &contenders, &driver, &measurements, started.elapsed()))
}

/// Takes all samples. Each repetition begins with another server, so that a change of the machine's speed affects all
/// of them equally.
fn take_samples(
    plan: &HttpBenchPlan,
    contenders: &[Contender],
    driver: &Driver,
) -> Result<HttpMeasurements, String> {
    let mut measurements = HttpMeasurements::default();
    for repetition in 0..plan.repetitions {
        print_line(&format!("repetition {} of {}", repetition + 1, plan.repetitions))?;
        for measure in Measure::ALL.into_iter().filter(|it| plan.wants(*it, repetition)) {
            for era in Era::ALL {
                for turn in 0..contenders.len() {
                    let contender = &contenders[(turn + repetition) % contenders.len()];
                    if let Some(server) = contender.server(era, measure) {
                        let figures = sample::take(plan, driver, server, era, measure)
                            .map_err(|error| format!("{}: {error}", contender.name))?;
                        measurements.add(contender.name, era, measure, figures);
                    }
                }
            }
        }
    }
    Ok(measurements)
}
