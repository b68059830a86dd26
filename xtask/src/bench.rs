//! `cargo xtask bench`: measures the product, its peers and the bare limits.
//!
//! The peers, the bare echo and the load generator are in `bench/`, outside the workspace, so that cargo unifies no
//! features with them. The generator takes one sample of one server. This module decides which samples are taken in
//! which order and evaluates them. Only ratios within one run and processor time per message are meaningful: wall-clock
//! times of a shared machine are not, so a missed target is reported and never fails the command.

mod build;
mod figures;
mod gateway;
mod http;
mod instructions;
mod report;
mod sample;
mod scale;
mod statistics;
mod targets;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use build::{BuildFolder, print_line};
use sample::{Contender, Driver, Era, Measurements};

/// Measures `creole serve` on stdio beside its peers and the bare echoes, and prints one table.
pub(crate) fn stdio(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments, STDIO_USAGE)?;
    let plan = options.plan();
    let folder = BuildFolder::find()?;
    let contenders = folder.contenders(options.creole.as_deref())?;
    let driver = Driver::new(folder.build_driver()?, folder.empty_folder()?)?;

    let started = Instant::now();
    let measurements = measure(&plan, &contenders, &driver)?;
    let text = report::stdio(&plan, &contenders, &driver, &measurements, started.elapsed());
    show(&text)
}

/// Measures `creole serve --http` beside its peers and the bare responder, and prints the tables.
pub(crate) fn http(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments, http::USAGE)?;
    show(&http::measure(&options)?)
}

/// Measures calls through Creole beside other gateways and the bare relay, and prints the tables.
pub(crate) fn gateway(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments, gateway::USAGE)?;
    show(&gateway::measure(&options)?)
}

/// Measures calls with several replicas on one store, and prints the table.
pub(crate) fn scale(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments, scale::USAGE)?;
    show(&scale::measure(&options)?)
}

/// Counts the instructions that one `tools/call` costs, with callgrind.
pub(crate) fn instructions(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments, INSTRUCTIONS_USAGE)?;
    if options.quick || options.repetitions.is_some() {
        return Err(format!(
            "--quick and --repetitions do not apply to this benchmark\n{INSTRUCTIONS_USAGE}"
        ));
    }
    show(&instructions::count(options.creole.as_deref())?)
}

const STDIO_USAGE: &str = "\
usage: cargo xtask bench stdio [--quick] [--repetitions N] [--creole PATH]
  --quick           under 50 seconds instead of under 4 minutes, with more noise
  --repetitions N   take the medians of N repetitions, 1 to 100 (5, with --quick 3)
  --creole PATH     measure this binary as `PATH serve` instead of building creole";

const INSTRUCTIONS_USAGE: &str = "\
usage: cargo xtask bench instructions [--creole PATH]
  --creole PATH     measure this binary as `PATH serve` instead of building creole";

/// The options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    quick: bool,
    repetitions: Option<usize>,
    creole: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String], usage: &str) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => options.quick = true,
                "--repetitions" => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    let Some(number @ 1..=100) = number else {
                        return Err(format!("--repetitions needs a number, 1 to 100\n{usage}"));
                    };
                    options.repetitions = Some(number);
                }
                "--creole" => {
                    let path = words.next().ok_or(format!("--creole needs a path\n{usage}"))?;
                    options.creole = Some(PathBuf::from(path));
                }
                _ => return Err(format!("unknown option `{word}`\n{usage}")),
            }
        }
        Ok(options)
    }

    fn plan(&self) -> BenchPlan {
        let (repetitions, starts, warmup, measure) =
            if self.quick { (3, 50, 50, 250) } else { (5, 300, 150, 1_000) };
        BenchPlan {
            repetitions: self.repetitions.unwrap_or(repetitions),
            starts,
            warmup: Duration::from_millis(warmup),
            measure: Duration::from_millis(measure),
        }
    }
}

/// The extent of a measurement.
struct BenchPlan {
    repetitions: usize,
    starts: usize,
    warmup: Duration,
    measure: Duration,
}

/// The numbers of requests in flight that are measured.
const WINDOWS: [usize; 2] = [1, 64];

/// Takes all samples. Figures that are compared are taken right after each other, and each repetition begins with
/// another server, so that a change of the machine's speed affects all of them equally.
fn measure(
    plan: &BenchPlan,
    contenders: &[Contender],
    driver: &Driver,
) -> Result<Measurements, String> {
    let mut measurements = Measurements::new(contenders);
    for repetition in 0..plan.repetitions {
        print_line(&format!("repetition {} of {}", repetition + 1, plan.repetitions))?;
        for era in Era::ALL {
            for window in WINDOWS {
                for turn in 0..contenders.len() {
                    let contender = &contenders[(turn + repetition) % contenders.len()];
                    if contender.is_loaded() && contender.supports(era) {
                        let load = driver.load(plan, contender, era, window)?;
                        measurements.add_load(contender, era, window, load);
                    }
                }
            }
        }
    }

    print_line(&format!("{} cold starts of each", plan.starts))?;
    // The first round loads the programs into memory and is not counted.
    for round in 0..=plan.starts {
        for contender in contenders {
            for era in contender.eras() {
                let start = driver.start(contender, era)?;
                if round > 0 {
                    measurements.add_start(contender, era, start);
                }
            }
        }
    }
    Ok(measurements)
}

fn show(text: &str) -> Result<(), String> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| format!("cannot print the report: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Options, STDIO_USAGE};

    fn parse(words: &[&str]) -> Result<Options, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Options::parse(&words, STDIO_USAGE)
    }

    #[test]
    fn quick_uses_fewer_repetitions_unless_configured() {
        assert_eq!(parse(&[]).unwrap().plan().repetitions, 5);
        assert_eq!(parse(&["--quick"]).unwrap().plan().repetitions, 3);
        assert_eq!(parse(&["--quick", "--repetitions", "7"]).unwrap().plan().repetitions, 7);
    }

    #[test]
    fn an_invalid_option_shows_the_valid_ones() {
        for invalid in [&["--fast"][..], &["--repetitions", "0"], &["--creole"]] {
            assert!(parse(invalid).unwrap_err().contains("usage: cargo xtask bench stdio"));
        }
    }
}
