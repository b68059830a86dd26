//! Packages of Debian that are installed into the system, where the tests may do that.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use super::install::Missing;
use super::process;

/// How long an installation may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Installs a package, unless its programs are on the path. `remedy` says what to do where that is not possible.
pub(super) fn require_programs(
    programs: &[&str],
    package: &str,
    remedy: &str,
) -> Result<(), Missing> {
    if !are_on_path(programs) {
        install_package(package, remedy)?;
    }
    match are_on_path(programs) {
        true => Ok(()),
        false => Err(Missing(format!("{} is not found; {remedy}", programs.join(" or ")))),
    }
}

fn are_on_path(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    programs
        .iter()
        .all(|program| env::split_paths(&path).any(|folder| folder.join(program).exists()))
}

/// Installs a package. `remedy` says what to do where that is not possible.
pub(super) fn install_package(package: &str, remedy: &str) -> Result<(), Missing> {
    if !geteuid().is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return Err(Missing(format!("the programs of {package} are needed; {remedy}")));
    }
    let install = ["install", "-qq", "-y", "--no-install-recommends", package];
    for words in [&["update", "-qq"][..], &install] {
        let mut command = Command::new("apt-get");
        // Services of packages are not started outside of the multi-user runlevels.
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        match process::output(&mut command, Instant::now() + PATIENCE) {
            Ok(output) if output.success => {}
            Ok(output) => {
                return Err(Missing(format!("apt-get failed: {}; {remedy}", output.stderr)));
            }
            Err(error) => return Err(Missing(format!("{error}; {remedy}"))),
        }
    }
    Ok(())
}
