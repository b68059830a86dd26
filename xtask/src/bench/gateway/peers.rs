//! The other gateways, installed from their registries in the compared versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::build::{BuildFolder, print_line};

/// The registry of a package.
#[derive(Clone, Copy)]
pub(super) enum PackageRegistry {
    Crates,
    Npm,
    Pypi,
}

/// A package of a registry.
pub(super) struct Package {
    pub(super) registry: PackageRegistry,
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// The folder that it is installed to.
    pub(super) folder: &'static str,
    /// The program to run, in that folder.
    pub(super) program: &'static str,
}

impl Package {
    /// Installs it unless it is installed, and returns the path of its program.
    pub(super) fn install(&self, workshop: &BuildFolder) -> Result<PathBuf, String> {
        let folder = workshop.scratch().join("peers").join(self.folder);
        let program = folder.join(self.program);
        if !program.exists() {
            print_line(&format!("installing {} {}", self.name, self.version))?;
            self.fetch(&folder).map_err(|error| {
                format!("{} {} cannot be installed: {error}", self.name, self.version)
            })?;
        }
        if program.exists() {
            Ok(program)
        } else {
            Err(format!("{} {} has no {}", self.name, self.version, self.program))
        }
    }

    fn fetch(&self, folder: &Path) -> Result<(), String> {
        let explain = |error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(explain)?;
        match self.registry {
            PackageRegistry::Crates => {
                let package = format!("{}@{}", self.name, self.version);
                let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
                cargo.args(["install", "--quiet", "--locked", &package, "--root"]).arg(folder);
                run(cargo.arg("--target-dir").arg(folder.join("target")))
            }
            PackageRegistry::Npm => {
                let package = format!("{}@{}", self.name, self.version);
                let mut npm = Command::new("npm");
                npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
                run(npm.arg(folder).arg(package))
            }
            PackageRegistry::Pypi => {
                run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
                let package = format!("{}=={}", self.name, self.version);
                run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", &package]))
            }
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(error) => Err(format!("cannot run {name}: {error}")),
    }
}
