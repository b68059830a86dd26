//! The Redis server that the tests of the shared state start.

use std::env;

use super::debian::install_package;
use super::install::Missing;

/// Installs the server and its command line, if they are missing.
pub fn prepared() -> Result<(), Missing> {
    let is_found = || {
        let path = env::var_os("PATH").unwrap_or_default();
        ["redis-server", "redis-cli"]
            .iter()
            .all(|program| env::split_paths(&path).any(|folder| folder.join(program).exists()))
    };
    let remedy = "install Redis 6.2 or newer (Debian: redis-server)";
    if !is_found() {
        install_package("redis-server", remedy)?;
    }
    if is_found() { Ok(()) } else { Err(Missing(format!("redis-server is not found; {remedy}"))) }
}
