//! The programs of systemd that check the units, and start a server by its socket.

use super::debian::require_programs;
use super::install::Missing;

/// Installs them, if they are missing.
pub fn prepared() -> Result<(), Missing> {
    let programs = ["systemd-analyze", "systemd-socket-activate"];
    require_programs(&programs, "systemd", "install systemd (Debian: systemd)")
}
