//! Samples: runs the load generator and stores its figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{BenchPlan, WINDOWS};

/// A measured server.
#[derive(Clone)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    program: PathBuf,
    arguments: &'static [&'static str],
    only_era: Option<Era>,
    is_loaded: bool,
}

impl Contender {
    pub(super) fn new(
        name: &'static str,
        program: &Path,
        arguments: &'static [&'static str],
    ) -> Self {
        Self { name, program: program.to_owned(), arguments, only_era: None, is_loaded: true }
    }

    /// The same server, measured only in `era`.
    pub(super) fn only_in(self, era: Era) -> Self {
        Self { only_era: Some(era), ..self }
    }

    /// The same server, with only its start measured.
    pub(super) fn only_started(self) -> Self {
        Self { is_loaded: false, ..self }
    }

    /// Whether it is measured in `era`.
    pub(super) fn supports(&self, era: Era) -> bool {
        self.only_era.is_none_or(|only| only == era)
    }

    /// The eras that it is measured in.
    pub(super) fn eras(&self) -> impl Iterator<Item = Era> {
        Era::ALL.into_iter().filter(|era| self.supports(*era))
    }

    /// Whether it is measured under load.
    pub(super) fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// The command line, for the report.
    pub(super) fn command(&self) -> String {
        [&[self.program.to_string_lossy().as_ref()], self.arguments].concat().join(" ")
    }
}

/// The two eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub(super) const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// One new server under load.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) messages: f64,
    pub(super) per_second: f64,
    pub(super) processor_microseconds: f64,
    pub(super) idle_megabytes: f64,
    pub(super) peak_megabytes: f64,
}

/// The cores that the server and the load generator are bound to.
pub(super) struct Cores {
    pub(super) server: String,
    pub(super) driver: String,
}

/// The load generator of `bench/driver`.
pub(super) struct Driver {
    program: PathBuf,
    /// The folder in which it and the servers run.
    pub(super) folder: PathBuf,
    /// Absent if there is one core or no `taskset`.
    pub(super) cores: Option<Cores>,
}

impl Driver {
    /// A driver that runs its servers in `folder`.
    pub(super) fn new(program: PathBuf, folder: PathBuf) -> Result<Self, String> {
        let status = fs::read_to_string("/proc/self/status")
            .map_err(|error| format!("the benchmark needs Linux: /proc/self/status: {error}"))?;
        let has_taskset = Command::new("taskset")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        let cores = if has_taskset { two_cores(&status) } else { None };
        Ok(Self { program, folder, cores })
    }

    /// Measures one new server under load.
    pub(super) fn load(
        &self,
        plan: &BenchPlan,
        contender: &Contender,
        era: Era,
        window: usize,
    ) -> Result<Load, String> {
        let words = [
            "load".to_owned(),
            era.name().to_owned(),
            window.to_string(),
            plan.warmup.as_millis().to_string(),
            plan.measure.as_millis().to_string(),
            self.server_core().to_owned(),
        ];
        let mut command = self.on_its_core();
        command.args(words).arg("--").arg(&contender.program).args(contender.arguments);
        let message = format!("{} ({}, window {window})", contender.name, era.name());
        let response = self.ask(command, &message)?;

        let messages = value(&response, "messages")?;
        Ok(Load {
            messages,
            per_second: messages * 1e9 / value(&response, "nanoseconds")?,
            processor_microseconds: value(&response, "processor_nanoseconds")? / 1e3 / messages,
            idle_megabytes: value(&response, "idle_bytes")? / 1e6,
            peak_megabytes: value(&response, "peak_bytes")? / 1e6,
        })
    }

    /// Measures one start, in milliseconds to the first response, on any free core.
    pub(super) fn start(&self, contender: &Contender, era: Era) -> Result<f64, String> {
        let mut command = Command::new(&self.program);
        command.args(["start", era.name(), "--"]).arg(&contender.program).args(contender.arguments);
        let response = self.ask(command, &format!("{} ({}, start)", contender.name, era.name()))?;
        Ok(value(&response, "nanoseconds")? / 1e6)
    }

    /// Runs a server inside `wrapper`, a profiler, with `count` calls, `window` at a time.
    pub(super) fn batch(
        &self,
        wrapper: &[String],
        contender: &Contender,
        era: Era,
        window: usize,
        count: usize,
    ) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(["batch", era.name(), &window.to_string(), &count.to_string(), "--"]);
        command.args(wrapper).arg(&contender.program).args(contender.arguments);
        let message = format!("{} ({}, {count} calls)", contender.name, era.name());
        self.ask(command, &message).map(drop)
    }

    /// Runs the driver on its core with these arguments and a server's command, and returns its output.
    pub(super) fn sample(
        &self,
        words: &[String],
        server: (&Path, &[String]),
        description: &str,
    ) -> Result<String, String> {
        let mut command = self.on_its_core();
        command.args(words).arg("--").arg(server.0).args(server.1);
        self.ask(command, description)
    }

    /// The core of the servers, as the driver's argument.
    pub(super) fn server_core(&self) -> &str {
        self.cores.as_ref().map_or("any", |cores| &cores.server)
    }

    fn on_its_core(&self) -> Command {
        match &self.cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cores.driver]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        }
    }

    /// Runs the driver without influence of the user's configuration and environment.
    fn ask(&self, mut command: Command, description: &str) -> Result<String, String> {
        command.current_dir(&self.folder).stdin(Stdio::null());
        for folder in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            command.env(folder, &self.folder);
        }
        for (name, _) in std::env::vars_os() {
            if name == "RUST_LOG" || name.to_string_lossy().starts_with("CREOLE_") {
                command.env_remove(name);
            }
        }
        let output = command.output().map_err(|error| {
            format!("cannot run the driver {}: {error}", self.program.display())
        })?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let reason = String::from_utf8_lossy(&output.stderr);
            Err(format!("measuring {description} failed: {}", reason.trim()))
        }
    }
}

/// All samples of a run.
pub(super) struct Measurements {
    pub(super) rows: Vec<EraRow>,
}

/// The samples of one server in one era.
pub(super) struct EraRow {
    pub(super) name: &'static str,
    pub(super) era: Era,
    /// One list per window, one sample per repetition.
    loads: [Vec<Load>; WINDOWS.len()],
    /// Milliseconds to the first response.
    pub(super) starts: Vec<f64>,
}

impl Measurements {
    /// An empty row for every era of every contender.
    pub(super) fn new(contenders: &[Contender]) -> Self {
        let row =
            |name, era| EraRow { name, era, loads: [Vec::new(), Vec::new()], starts: Vec::new() };
        let rows = contenders.iter().flat_map(|c| c.eras().map(|era| row(c.name, era))).collect();
        Self { rows }
    }

    pub(super) fn add_load(&mut self, contender: &Contender, era: Era, window: usize, load: Load) {
        let position = WINDOWS.iter().position(|known| *known == window);
        if let (Some(row), Some(index)) = (self.row_mut(contender.name, era), position) {
            row.loads[index].push(load);
        }
    }

    pub(super) fn add_start(&mut self, contender: &Contender, era: Era, milliseconds: f64) {
        if let Some(row) = self.row_mut(contender.name, era) {
            row.starts.push(milliseconds);
        }
    }

    /// The row of the server called `name` in `era`, if it was measured.
    pub(super) fn row(&self, name: &str, era: Era) -> Option<&EraRow> {
        self.rows.iter().find(|row| row.name == name && row.era == era)
    }

    fn row_mut(&mut self, name: &str, era: Era) -> Option<&mut EraRow> {
        self.rows.iter_mut().find(|row| row.name == name && row.era == era)
    }

    /// All messages that were answered during the measured time.
    pub(super) fn messages(&self) -> f64 {
        self.rows.iter().flat_map(|row| row.loads.iter().flatten()).map(|l| l.messages).sum()
    }
}

impl EraRow {
    /// One figure of every repetition at `window`.
    pub(super) fn figures(&self, window: usize, figure: fn(&Load) -> f64) -> Vec<f64> {
        let position = WINDOWS.iter().position(|known| *known == window);
        position.map_or(Vec::new(), |index| self.loads[index].iter().map(figure).collect())
    }

    /// One figure of every sample, whatever its window.
    pub(super) fn all_figures(&self, figure: fn(&Load) -> f64) -> Vec<f64> {
        self.loads.iter().flatten().map(figure).collect()
    }
}

/// The first two cores that this process may use.
fn two_cores(status: &str) -> Option<Cores> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cores = list.trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<usize>().unwrap_or(1)..=last.parse::<usize>().unwrap_or(0)
    });
    Some(Cores { server: cores.next()?.to_string(), driver: cores.next()?.to_string() })
}

fn value(answer: &str, name: &str) -> Result<f64, String> {
    answer
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        .ok_or_else(|| format!("the driver printed no `{name}`: rebuild bench/driver"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Contender, Era, Measurements, two_cores, value};

    fn cores(list: &str) -> Option<(String, String)> {
        let cores = two_cores(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n"))?;
        Some((cores.server, cores.driver))
    }

    #[test]
    fn the_first_two_allowed_cores_are_used() {
        assert_eq!(cores("0-1"), Some(("0".into(), "1".into())));
        assert_eq!(cores("3,6-9"), Some(("3".into(), "6".into())));
        assert_eq!(cores("2"), None);
    }

    #[test]
    fn a_server_has_a_row_for_each_of_its_eras() {
        let both = Contender::new("both", Path::new("a"), &[]);
        let modern = Contender::new("modern", Path::new("b"), &[]).only_in(Era::Modern);
        let mut measurements = Measurements::new(&[both, modern.clone()]);
        assert_eq!(measurements.rows.len(), 3);
        assert!(measurements.row("modern", Era::Legacy).is_none());

        measurements.add_start(&modern, Era::Modern, 2.0);
        assert!(measurements.row("modern", Era::Modern).is_some_and(|row| row.starts.len() == 1));
    }

    #[test]
    fn a_value_is_found_by_its_full_name() {
        let answer = "processor_nanoseconds 5\nnanoseconds 7\n";
        assert!(value(answer, "nanoseconds").is_ok_and(|found| found > 6.0));
        assert!(value(answer, "seconds").is_err());
    }
}
