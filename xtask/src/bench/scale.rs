//! `cargo xtask bench scale`: what calls cost with several replicas on one store, beside one process without a store.
//!
//! Replicas and load share the machine, so the processor time per call counts and not the rate: a machine without free
//! cores cannot serve more calls with more processes. The operations on the store are exact.

mod connection;
mod load;
mod messages;
mod processes;

use std::fmt::Write as _;
use std::path::Path;

use super::Options;
use super::build::{BuildFolder, print_line};
use super::report::{grouped, machine};
use super::statistics::median;
use load::Load;
use messages::CallKind;
use processes::{Replica, StoreServer};

pub(super) const USAGE: &str = "\
usage: cargo xtask bench scale [--quick] [--repetitions N] [--creole PATH]
  --quick           under a minute instead of about 5, with more noise
  --repetitions N   take the medians of N repetitions, 1 to 100 (5, with --quick 2)
  --creole PATH     measure this binary as `PATH serve --http` instead of building creole";

/// The replicas of each scene. None stands for one process with its state in memory.
const SCENES: [Option<usize>; 4] = [None, Some(1), Some(2), Some(4)];

/// The server of all scenes, without its state.
const SERVER: &str = "[server]\nname = \"bench\"\npacks = [\"echo\"]\n";

/// What one run of a scene gives.
#[derive(Clone, Copy, Debug, Default)]
struct ScaleFigures {
    calls_per_second: f64,
    /// The processor time of all replicas per call, in microseconds.
    replica_us: f64,
    /// That of the store.
    store_us: f64,
    /// The operations on the store per call.
    operations: f64,
}

/// Measures all scenes and returns the report.
pub(super) fn measure(options: &Options) -> Result<String, String> {
    let folder = BuildFolder::find()?;
    let creole = folder.creole(options.creole.as_deref())?;
    let (repetitions, calls) = if options.quick { (2, 4_000) } else { (5, 20_000) };
    let repetitions = options.repetitions.unwrap_or(repetitions);
    folder.write("scale-seal", &"5c".repeat(32))?;
    let store = StoreServer::start(&folder.scratch())?;
    let mut samples = Vec::new();
    for repetition in 0..repetitions {
        print_line(&format!("repetition {} of {repetitions}", repetition + 1))?;
        for kind in CallKind::ALL {
            for scene in SCENES {
                samples.push((kind, scene, take(&folder, &creole, &store, scene, kind, calls)?));
            }
        }
    }
    Ok(report(&samples, repetitions, calls))
}

/// Runs one scene with new processes.
fn take(
    folder: &BuildFolder,
    creole: &Path,
    store: &StoreServer,
    scene: Option<usize>,
    kind: CallKind,
    calls: usize,
) -> Result<ScaleFigures, String> {
    let file = folder.write("scale.toml", &configuration(creole, store, scene, kind))?;
    let replicas = (0..scene.unwrap_or(1)).map(|_| Replica::start(creole, &file));
    let replicas: Vec<Replica> = replicas.collect::<Result<_, _>>()?;
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    let mut load = Load::open(kind, &addresses)?;
    // Every replica has seen every session before the measurement.
    load.run(load.connections() * 10)?;
    let time = || -> Result<f64, String> {
        replicas.iter().map(|replica| processes::processor_time_us(replica.id())).sum()
    };
    let (time_before, store_before) = (time()?, processes::processor_time_us(store.id())?);
    let operations_before = store.operations()?;
    let took = load.run(calls)?;
    let per_call = |amount: f64| amount / calls as f64;
    Ok(ScaleFigures {
        calls_per_second: calls as f64 / took.as_secs_f64(),
        operations: per_call(store.operations()? - operations_before),
        replica_us: per_call(time()? - time_before),
        store_us: per_call(processes::processor_time_us(store.id())? - store_before),
    })
}

/// The configuration of the replicas of one scene.
fn configuration(
    creole: &Path,
    store: &StoreServer,
    scene: Option<usize>,
    kind: CallKind,
) -> String {
    let upstream = match kind {
        CallKind::Stateless | CallKind::Session => String::new(),
        CallKind::Parked => format!(
            "[upstreams.asks]\ncommand = [{:?}, \"serve\", \"--preset\", \"everything\"]\n\
             revision = \"2025-11-25\"\nprefix = \"\"\n",
            creole.display().to_string(),
        ),
    };
    let state = match scene {
        None => String::new(),
        Some(_) => format!("[state]\nurl = \"{}\"\nkeys_file = \"scale-seal\"\n", store.url()),
    };
    format!("{SERVER}{upstream}{state}")
}

/// The table of medians.
fn report(
    samples: &[(CallKind, Option<usize>, ScaleFigures)],
    repetitions: usize,
    calls: usize,
) -> String {
    let mut text = format!(
        "calls of `echo` over HTTP/1.1 on the loopback, each to the next replica, on one Redis server\n\n\
         machine   {}\nmethod    medians of {repetitions} interleaved repetitions of {calls} calls, new processes for each\n\n\
         {:10}{:>16}{:>12}{:>14}{:>12}{:>12}{:>16}\n",
        machine(),
        "calls",
        "replicas",
        "calls/s",
        "CPU µs/call",
        "ratio",
        "store µs",
        "operations/call",
    );
    for kind in CallKind::ALL {
        let figure = |scene: Option<usize>, of: fn(&ScaleFigures) -> f64| {
            let matching = samples.iter().filter(|(it, at, _)| (*it, *at) == (kind, scene));
            median(matching.map(|(_, _, figures)| of(figures)))
        };
        for scene in SCENES {
            let replicas = scene.map_or("memory".to_owned(), |count| count.to_string());
            let cost = figure(scene, |it| it.replica_us);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:10}{replicas:>16}{:>12}{cost:>14.1}{:>12.2}{:>12.1}{:>16.4}",
                kind.name(),
                grouped(figure(scene, |it| it.calls_per_second)),
                cost / figure(None, |it| it.replica_us),
                figure(scene, |it| it.store_us),
                figure(scene, |it| it.operations),
            );
        }
    }
    text
}
