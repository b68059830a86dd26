//! Counts the instructions per `tools/call` with callgrind.
//!
//! Unlike a time, a count does not depend on the load of the machine: a server with one thread gives the same number
//! every time. The difference between 2,000 and 1,000 calls excludes the start, the handshake and the end.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::build::{BuildFolder, print_line};
use super::report::grouped;
use super::sample::{Contender, Driver, Era};
use super::targets::{BARE, CREOLE};

const FEW: usize = 1_000;
const MANY: usize = 2_000;

/// The numbers of calls that are queued at once. Both divide the total numbers of calls.
const WINDOWS: [usize; 2] = [1, 50];

/// The configuration of a scene without its telemetry.
const ONE_TOOL: &str = "[server]\nname = \"bench\"\npacks = [\"echo\"]\n";

/// The same server with a part of the telemetry. The rows differ in nothing else.
struct Scene {
    name: &'static str,
    /// Its file, beside the folder that servers run in.
    file: &'static str,
    arguments: &'static [&'static str],
    telemetry: &'static str,
}

const SCENES: [Scene; 3] = [
    Scene {
        name: "creole, telemetry off",
        file: "telemetry-off.toml",
        arguments: &["serve", "--stdio", "../telemetry-off.toml"],
        telemetry: "",
    },
    Scene {
        name: "creole, metrics",
        file: "telemetry-metrics.toml",
        arguments: &["serve", "--stdio", "../telemetry-metrics.toml"],
        telemetry: "\n[admin]\nlisten = \"127.0.0.1:0\"\nconsole = false\n",
    },
    Scene {
        name: "creole, 1 % traces",
        file: "telemetry-traces.toml",
        arguments: &["serve", "--stdio", "../telemetry-traces.toml"],
        // Nothing listens there: spans are queued and dropped. Metrics have a row of their own.
        telemetry: "\n[telemetry]\nendpoint = \"http://127.0.0.1:9\"\n\n[telemetry.traces]\nsample = 0.01\n\n\
                    [telemetry.metrics]\notlp = false\n",
    },
];

/// Counts for the bare echo and for creole with and without telemetry, and returns the report.
pub(super) fn count(creole: Option<&Path>) -> Result<String, String> {
    require_valgrind()?;
    let folder = BuildFolder::find()?;
    let creole = folder.creole(creole)?;
    let mut contenders = vec![
        Contender::new(BARE, &folder.bare()?, &[]),
        Contender::new(CREOLE, &creole, &["serve"]),
    ];
    let driver = Driver::new(folder.build_driver()?, folder.empty_folder()?)?;
    for scene in SCENES {
        let file = folder.scratch().join(scene.file);
        fs::write(&file, format!("{ONE_TOOL}{}", scene.telemetry))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        contenders.push(Contender::new(scene.name, &creole, scene.arguments));
    }

    let mut text = format!(
        "instructions per tools/call of `echo`, 16-byte message: (calls {FEW} to {MANY}) / {}\n\n\
         {:24}{:8}{:>14}{:>14}\n",
        MANY - FEW,
        "server",
        "era",
        "one at a time",
        "50 at a time"
    );
    for contender in &contenders {
        for era in Era::ALL {
            let _ = write!(text, "{:24}{:8}", contender.name, era.name());
            for window in WINDOWS {
                let profile = profile_path(&folder, contender, era, window);
                print_line(&format!("counting {} ({}, {window})", contender.name, era.name()))?;
                let few = run(&driver, contender, era, window, FEW, &profile)?;
                let many = run(&driver, contender, era, window, MANY, &profile)?;
                let _ = write!(text, "{:>14}", grouped((many - few) / (MANY - FEW) as f64));
            }
            text.push('\n');
        }
    }
    let profiles = folder.scratch().join("callgrind.*.out");
    let _ = writeln!(text, "\ndetails: callgrind_annotate {}", profiles.display());
    Ok(text)
}

fn require_valgrind() -> Result<(), String> {
    Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .map(drop)
        .map_err(|error| format!("cannot run valgrind ({error}): install the package `valgrind`"))
}

fn profile_path(folder: &BuildFolder, contender: &Contender, era: Era, window: usize) -> String {
    // Valgrind replaces what follows a percent sign.
    let server = contender.name.replace(' ', "-").replace('%', "percent");
    let file = format!("callgrind.{server}.{}.{window}.out", era.name());
    folder.scratch().join(file).display().to_string()
}

/// The instructions of a whole run with `count` calls.
fn run(
    driver: &Driver,
    contender: &Contender,
    era: Era,
    window: usize,
    count: usize,
    profile: &str,
) -> Result<f64, String> {
    let valgrind = ["valgrind", "--tool=callgrind", &format!("--callgrind-out-file={profile}")]
        .map(String::from);
    // The file may not exist. An earlier profile must not be read as this one.
    let _ = fs::remove_file(profile);
    driver.batch(&valgrind, contender, era, window, count)?;
    let text = fs::read_to_string(profile).map_err(|error| {
        format!("callgrind left no profile in {profile} ({error}): did the server call exec?")
    })?;
    total(&text)
        .ok_or_else(|| format!("{profile} has no line `totals:`; measure a binary, not a script"))
}

fn total(profile: &str) -> Option<f64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{FEW, MANY, WINDOWS, total};

    #[test]
    fn the_total_is_read_from_the_profile() {
        assert!(total("events: Ir\nfn=(1)\ntotals: 8720052\n").is_some_and(|sum| sum > 8e6));
        assert!(total("").is_none());
    }

    #[test]
    fn batches_are_complete() {
        assert!(
            WINDOWS
                .iter()
                .all(|window| [FEW, MANY].iter().all(|count| count.is_multiple_of(*window)))
        );
    }
}
