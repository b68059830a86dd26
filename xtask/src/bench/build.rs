//! Builds the measured programs: the product, the peers and the load generator, each alone.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sample::{Contender, Era};
use super::targets::{
    BARE, BARE_CHUNKS, CREOLE, CREOLE_EVERYTHING, RMCP, RMCP_TUNED, RUST_MCP_SDK,
};

/// The repository, in which everything is built.
pub(super) struct BuildFolder {
    root: PathBuf,
}

impl BuildFolder {
    /// Finds the repository around the current folder.
    pub(super) fn find() -> Result<Self, String> {
        let path =
            std::env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
        path.ancestors()
            .find(|folder| folder.join("bench/driver/Cargo.toml").is_file())
            .map(|root| Self { root: root.to_owned() })
            .ok_or_else(|| "no bench/driver above this folder: run it in the repository".to_owned())
    }

    /// Builds everything that is compared on stdio. The bare echoes come first, creole last.
    pub(super) fn contenders(&self, creole: Option<&Path>) -> Result<Vec<Contender>, String> {
        let bare = self.bare()?;
        let rmcp = self.build_bench("rmcp-echo", "rmcp-echo")?;
        let rust_mcp_sdk = self.build_bench("rust-mcp-sdk-echo", "rust-mcp-sdk-echo")?;
        let creole = self.creole(creole)?;
        Ok(vec![
            Contender::new(BARE, &bare, &[]),
            Contender::new(BARE_CHUNKS, &bare, &["chunks"]),
            Contender::new(RMCP, &rmcp, &[]),
            Contender::new(RMCP_TUNED, &rmcp, &["tuned"]),
            Contender::new(RUST_MCP_SDK, &rust_mcp_sdk, &[]).only_in(Era::Modern),
            Contender::new(CREOLE, &creole, &["serve"]),
            // It has no tool `echo`: only its start with `initialize` is measured, and no load.
            Contender::new(CREOLE_EVERYTHING, &creole, &["serve", "--preset", "everything"])
                .only_in(Era::Legacy)
                .only_started(),
        ])
    }

    /// Builds the bare echoes, which are one program.
    pub(super) fn bare(&self) -> Result<PathBuf, String> {
        self.build_bench("bare-echo", "bare-echo")
    }

    /// Builds the load generator.
    pub(super) fn build_driver(&self) -> Result<PathBuf, String> {
        self.build_bench("driver", "bench-driver")
    }

    /// The creole to measure: the given one, or this repository's.
    pub(super) fn creole(&self, given: Option<&Path>) -> Result<PathBuf, String> {
        if let Some(given) = given {
            // The servers run in another folder, so the path must be absolute.
            return given.canonicalize().map_err(|error| {
                format!("cannot find the creole to measure, {}: {error}", given.display())
            });
        }
        let target = self.root.join("target");
        let mut cargo = self.cargo_build("Cargo.toml", &target, &["--locked"]);
        cargo.args(["--package", "creole-cli"]);
        run_build(cargo, "creole")
            .map_err(|error| format!("{error}, or measure another binary with --creole PATH"))?;
        Ok(target.join("release/creole"))
    }

    /// A folder for files that the benchmark leaves behind.
    pub(super) fn scratch(&self) -> PathBuf {
        self.root.join("bench/target")
    }

    /// A new empty folder without a configuration file.
    pub(super) fn empty_folder(&self) -> Result<PathBuf, String> {
        let folder = self.scratch().join("empty");
        let explain =
            |error| format!("cannot create the empty folder {}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(explain)?;
        }
        fs::create_dir_all(&folder).map_err(explain)?;
        Ok(folder)
    }

    /// A configuration file with the content of a preset, and additions.
    pub(super) fn preset_with(
        &self,
        preset: &str,
        name: &str,
        more: &str,
    ) -> Result<PathBuf, String> {
        let from = self.root.join(format!("crates/config/presets/{preset}.toml"));
        let to = self.scratch().join(format!("{name}.toml"));
        let explain =
            |error| format!("cannot create {} from {}: {error}", to.display(), from.display());
        let text = fs::read_to_string(&from).map_err(explain)?;
        fs::create_dir_all(self.scratch()).map_err(explain)?;
        fs::write(&to, format!("{text}\n{more}")).map_err(explain)?;
        Ok(to)
    }

    /// Writes a file that a configuration names.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let to = self.scratch().join(name);
        let explain = |error| format!("cannot write {}: {error}", to.display());
        fs::create_dir_all(self.scratch()).map_err(explain)?;
        fs::write(&to, text).map_err(explain)?;
        Ok(to)
    }

    /// Builds a crate of `bench/` that uses the product's library, with the product's locked versions.
    pub(super) fn build_ours(&self, folder: &str) -> Result<PathBuf, String> {
        let target = self.scratch();
        let manifest = format!("bench/{folder}/Cargo.toml");
        let lock = self.root.join(format!("bench/{folder}/Cargo.lock"));
        fs::copy(self.root.join("Cargo.lock"), &lock)
            .map_err(|error| format!("cannot write {}: {error}", lock.display()))?;
        // Cargo removes entries from the copy that this crate does not need.
        let cargo = self.cargo_build(&manifest, &target, &[]);
        run_build(cargo, &format!("bench/{folder}"))?;
        Ok(target.join("release").join(folder))
    }

    /// Builds a crate of `bench/`, alone.
    pub(super) fn build_bench(&self, folder: &str, binary: &str) -> Result<PathBuf, String> {
        let target = self.scratch();
        let cargo = self.cargo_build(&format!("bench/{folder}/Cargo.toml"), &target, &["--locked"]);
        run_build(cargo, &format!("bench/{folder}"))?;
        Ok(target.join("release").join(binary))
    }

    fn cargo_build(&self, manifest: &str, target: &Path, options: &[&str]) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--release", "--quiet"]).args(options).arg("--manifest-path");
        cargo.arg(self.root.join(manifest)).arg("--target-dir").arg(target);
        cargo
    }
}

fn run_build(mut cargo: Command, description: &str) -> Result<(), String> {
    print_line(&format!("building {description}"))?;
    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{description} did not build ({status}): fix the errors above"))
    }
}

/// Writes a progress message to stderr, since a run takes minutes.
pub(super) fn print_line(line: &str) -> Result<(), String> {
    writeln!(std::io::stderr(), "bench: {line}").map_err(|error| format!("no stderr: {error}"))
}
