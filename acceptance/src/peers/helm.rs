//! Helm, which renders the chart, and `kubernetes-validate`, which judges the manifests by the schemas of Kubernetes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::install::{Missing, virtual_environment};
use crate::process_under_test::finished_command::FinishedCommand;

/// The names of the installation and of its list of packages.
const NAME: &str = "helm";

/// A program of Python that reads YAML documents and prints them as one JSON array.
const YAML_TO_JSON: &str = "import json, sys, yaml; json.dump([it for it in yaml.safe_load_all(sys.stdin) if it], sys.stdout)";

/// The installed programs.
#[derive(Clone, Debug)]
pub struct Helm {
    programs: PathBuf,
}

impl Helm {
    /// The programs. Installs them if that was not done before.
    pub fn installed() -> Result<Self, Missing> {
        let python = virtual_environment(NAME, "helm/requirements.txt")?;
        let programs = python.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { programs })
    }

    /// Runs Helm with these arguments.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> FinishedCommand {
        FinishedCommand::run(self.command("helm").args(arguments), "")
    }

    /// Validates files of manifests strictly, by the newest schemas of Kubernetes that it has.
    #[track_caller]
    pub fn validate(&self, files: &[PathBuf]) -> FinishedCommand {
        let mut command = self.command("kubernetes-validate");
        FinishedCommand::run(command.arg("--strict").args(files), "")
    }

    /// The documents of a text in YAML.
    ///
    /// # Panics
    /// When the text is not valid.
    #[track_caller]
    pub fn documents(&self, yaml: &str) -> Vec<Value> {
        let mut command = self.command("python");
        let output = FinishedCommand::run(command.args(["-c", YAML_TO_JSON]), yaml).succeeded();
        serde_json::from_str(&output.stdout).expect("a JSON array")
    }

    fn command(&self, program: &str) -> Command {
        Command::new(self.programs.join(program))
    }
}
