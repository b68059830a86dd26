//! The published servers and the commands that start them.

use std::ffi::OsString;

use super::Folder;
use crate::peers::{Missing, zoo};

/// A published server.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its package.
    pub package: Package,
    /// Its arguments. `{folder}` stands for the folder of the run.
    pub arguments: &'static [&'static str],
    /// Its environment variables, with the same placeholder.
    pub environment: &'static [(&'static str, &'static str)],
    /// Whether it supports the stateless era too.
    pub has_both_eras: bool,
    /// Whether the folder must be a git repository.
    pub needs_repository: bool,
}

/// The package of a server, and the file that starts it.
#[derive(Clone, Copy, Debug)]
pub enum Package {
    /// A script below `node_modules`, of a package in `acceptance/peers/zoo/package.json`.
    Npm(&'static str),
    /// The same of a package in `acceptance/peers/reference/package.json`.
    Reference(&'static str),
    /// A virtual environment of Python in `acceptance/peers/zoo/`, and a program in it.
    Python(&'static str, &'static str),
}

impl Published {
    /// A server without arguments.
    #[must_use]
    pub const fn new(package: Package) -> Self {
        Self {
            package,
            arguments: &[],
            environment: &[],
            has_both_eras: false,
            needs_repository: false,
        }
    }

    /// The same, with support for both eras.
    #[must_use]
    pub const fn of_both_eras(self) -> Self {
        Self { has_both_eras: true, ..self }
    }

    /// The same in a git repository.
    #[must_use]
    pub const fn in_repository(self) -> Self {
        Self { needs_repository: true, ..self }
    }

    /// A folder for one run.
    pub fn folder(&self) -> Result<Folder, String> {
        let folder = Folder::new()?;
        if self.needs_repository {
            folder.commit()?;
        }
        Ok(folder)
    }

    /// The same with these arguments.
    #[must_use]
    pub const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    /// The same with these environment variables.
    #[must_use]
    pub const fn in_environment(
        self,
        environment: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { environment, ..self }
    }

    /// The command that starts it for a run in this folder. Installs it if needed.
    pub fn command(&self, folder: &Folder) -> Result<Vec<OsString>, Missing> {
        let mut words = match self.package {
            Package::Npm(script) => zoo::npm(script)?,
            Package::Reference(script) => zoo::reference(script)?,
            Package::Python(environment, program) => zoo::python(environment, program)?,
        };
        words.extend(self.arguments.iter().map(|word| folder.fill(word).into()));
        Ok(words)
    }

    /// Its environment variables for a run in this folder.
    #[must_use]
    pub fn environment(&self, folder: &Folder) -> Vec<(&'static str, String)> {
        self.environment.iter().map(|(name, value)| (*name, folder.fill(value))).collect()
    }
}
