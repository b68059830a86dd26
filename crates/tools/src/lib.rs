//! Packs of tools, resources and prompts for servers built with [`creole`].
//!
//! A pack is added by name. It opens or creates nothing before the first call that needs it. The exception is the pack
//! `skills`: its folder is read at once, so that its errors are reported at startup.

pub mod database;
pub mod files;
pub mod openapi;
pub mod ordered_value;
mod packs;
pub mod recipe;
pub mod script;
pub mod skills;
mod text_template;

#[cfg(any(test, feature = "store-conformance"))]
pub use packs::tasks::conformance;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fmt};

use creole::Server;
use creole::internal::process::Reaper;
use etcetera::BaseStrategy;

/// The packs: their names and descriptions.
pub const PACKS: &[(&str, &str)] = &[
    ("hello", "One tool that returns a greeting. Has no side effects."),
    ("echo", "One tool that returns its argument. Has no side effects."),
    ("calculate", "One tool for arithmetic. Has no side effects."),
    (
        "tasks",
        "A list of tasks in a database. Reads and writes one file in the data directory, or the \
            configured database.",
    ),
    ("guide", "A text and two prompts about the use of this server. Has no side effects."),
    ("skills", "The skills in a folder, as resources. Reads the folder when the server starts."),
    (
        "everything",
        "The fixtures of the official conformance suite, for tests only; asks the client, sleeps, \
         panics and changes its own lists, touches no files.",
    ),
];

/// Storage locations and other settings of the packs.
#[derive(Clone, Debug, Default)]
pub struct PackOptions {
    /// The data directory. Defaults to `CREOLE_DATA_DIR`, or else to the directory `creole` in the platform's
    /// application data.
    pub data_dir: Option<PathBuf>,
    /// The folder that the pack `skills` serves.
    pub skills: Option<PathBuf>,
    /// The database of the pack `tasks`. Defaults to `CREOLE_TASKS_URL`, or else to a file in the data directory.
    pub tasks: Option<database::DatabaseAddress>,
    /// Ends the programs that tools run, if this process dies first.
    pub reaper: Option<Reaper>,
}

impl PackOptions {
    /// The data directory, if the platform has one.
    pub fn data_directory(&self) -> Option<PathBuf> {
        let named = || env::var_os("CREOLE_DATA_DIR").filter(|name| !name.is_empty());
        let usual = || etcetera::base_strategy::choose_native_strategy().ok();
        let chosen = self.data_dir.clone().or_else(|| named().map(PathBuf::from));
        chosen.or_else(|| usual().map(|platform| platform.data_dir().join("creole")))
    }
}

/// Adds a pack to a server.
pub fn add(server: Server, pack: &str, options: &PackOptions) -> Result<Server, PackError> {
    match pack {
        "hello" => Ok(packs::simple::add_hello(server)),
        "echo" => Ok(packs::simple::add_echo(server)),
        "calculate" => Ok(packs::calculate::add(server)),
        "tasks" => Ok(packs::tasks::add(server, options)),
        "guide" => Ok(packs::guide::add(server)),
        "skills" => {
            let folder = options.skills.as_deref().ok_or(PackError::MissingFolder)?;
            skills::add(server, folder).map_err(PackError::Skills)
        }
        "everything" => Ok(packs::everything::add(server)),
        unknown => Err(PackError::Unknown(UnknownPack { name: unknown.to_owned() })),
    }
}

/// The reason why a pack cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackError {
    /// No pack has this name.
    Unknown(UnknownPack),
    /// The pack `skills` has no folder.
    MissingFolder,
    /// The folder of skills is unreadable.
    Skills(skills::FileError),
}

impl fmt::Display for PackError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(unknown) => unknown.fmt(formatter),
            Self::MissingFolder => formatter.write_str("the pack `skills` needs a folder"),
            Self::Skills(problem) => problem.fmt(formatter),
        }
    }
}

impl Error for PackError {}

/// No pack has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPack {
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownPack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown pack `{}`; known packs:", self.name)?;
        for (position, (name, _)) in PACKS.iter().enumerate() {
            let separator = if position == 0 { " " } else { ", " };
            write!(formatter, "{separator}{name}")?;
        }
        Ok(())
    }
}

impl Error for UnknownPack {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pack_can_be_added_to_one_server() {
        let mut server = Server::new("all");
        let folder = tempfile::tempdir().unwrap();
        let options =
            PackOptions { skills: Some(folder.path().to_owned()), ..PackOptions::default() };
        for (name, about) in PACKS {
            assert!(about.ends_with('.'), "{name}");
            server = add(server, name, &options).unwrap();
        }
        drop(server.start());
    }

    #[test]
    fn an_unknown_pack_is_refused_and_the_known_ones_are_named() {
        let Err(refusal) = add(Server::new("none"), "helo", &PackOptions::default()) else {
            panic!("there is no pack `helo`");
        };
        let expected = "unknown pack `helo`; known packs: hello, echo, calculate, tasks, guide, skills, \
                        everything";
        assert_eq!(refusal.to_string(), expected);
    }
}
