//! An upstream of replicas that records each execution of a call.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::http::ListeningServer;
use crate::stage::stdio::beside;

/// The program `recording-server`, listening. It ends when dropped.
pub struct RecordingServer {
    server: ListeningServer,
    folder: TempDir,
}

/// How often each call was executed, by its nonce.
pub type Executions = HashMap<String, usize>;

impl RecordingServer {
    /// Starts it at an address of this machine.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn start(address: impl Into<IpAddr>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = program();
        command.arg(SocketAddr::new(address.into(), 0).to_string());
        command.arg(folder.path().join(RECORDS));
        Self { server: ListeningServer::other(command).expect("a server"), folder }
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The command of the same server on stdio, with the same records.
    #[must_use]
    pub fn stdio_command(&self) -> Vec<String> {
        let program = program().get_program().to_string_lossy().into_owned();
        vec![program, "stdio".to_owned(), self.records().display().to_string()]
    }

    /// What has been executed so far.
    ///
    /// # Panics
    /// When the records cannot be read.
    #[must_use]
    pub fn executions(&self) -> Executions {
        let mut executions = Executions::new();
        for nonce in fs::read_to_string(self.records()).expect("records").lines() {
            *executions.entry(nonce.to_owned()).or_default() += 1;
        }
        executions
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join(RECORDS)
    }
}

/// The file of the records.
const RECORDS: &str = "records";

fn program() -> Command {
    Command::new(beside("recording-server").expect("the program"))
}
