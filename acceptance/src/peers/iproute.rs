//! The command line of network namespaces.

use super::debian::require_programs;
use super::install::Missing;

/// Installs `ip`, if it is missing.
pub fn prepared() -> Result<(), Missing> {
    require_programs(&["ip"], "iproute2", "install iproute2")
}
