//! A load balancer of other authors in front of replicas.

use super::debian::require_programs;
use super::install::Missing;

/// Installs HAProxy, if it is missing.
pub fn prepared() -> Result<(), Missing> {
    require_programs(&["haproxy"], "haproxy", "install HAProxy 2.6 or newer (Debian: haproxy)")
}
