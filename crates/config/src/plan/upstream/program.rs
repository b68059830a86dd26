//! Checks whether the program of an upstream exists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::plan::upstream::{Secret, UpstreamAddress, UpstreamPlan};

impl UpstreamPlan {
    /// The program of the upstream, if it cannot be found.
    pub fn missing_program(&self) -> Option<&str> {
        let UpstreamAddress::Command { command, env, cwd, .. } = &self.address else { return None };
        let program = command.first()?;
        let own = env.iter().rev().find(|(name, _)| name == "PATH");
        let path = own.map(|(_, Secret(path))| OsString::from(path));
        let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let folder = cwd.as_deref().unwrap_or(Path::new(""));
        (!is_there(program, folder, &path)).then_some(program)
    }
}

fn is_there(program: &str, folder: &Path, path: &OsString) -> bool {
    let candidates: Vec<PathBuf> = match program.contains(std::path::MAIN_SEPARATOR) {
        true => vec![folder.join(program)],
        false => {
            std::env::split_paths(path).map(|place| folder.join(place).join(program)).collect()
        }
    };
    candidates.iter().any(|candidate| is_program(candidate))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// On other systems the file extension marks a program, and the system appends it.
#[cfg(not(unix))]
fn is_program(_: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_resolved_in_the_path_or_by_its_path() {
        let path = OsString::from("/nowhere:/bin");
        for (program, folder, found) in [
            ("sh", "", true),
            ("/bin/sh", "", true),
            ("./sh", "/bin", true),
            ("./sh", "/", false),
            ("no-such-program", "", false),
            ("/etc/passwd", "", false),
            ("/bin", "", false),
        ] {
            assert_eq!(is_there(program, Path::new(folder), &path), found, "{program}");
        }
    }
}
