//! The Redis server that the tests of the shared state start.

use super::debian::require_programs;
use super::install::Missing;

/// Installs the server and its command line, if they are missing.
pub fn prepared() -> Result<(), Missing> {
    let remedy = "install Redis 6.2 or newer (Debian: redis-server)";
    require_programs(&["redis-server", "redis-cli"], "redis-server", remedy)
}
