//! Callers of replicas, each with a key of its own.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The key of a caller.
#[must_use]
pub fn tenant_key(tenant: usize) -> String {
    format!("the-secret-key-of-tenant-{tenant}")
}

/// The table of a configuration that admits this many callers.
#[must_use]
pub fn tenants(count: usize) -> String {
    let mut table = "[auth]\nkeys = [\n".to_owned();
    for tenant in 0..count {
        let digest = Sha256::digest(tenant_key(tenant));
        let hex: String = digest.iter().fold(String::new(), |mut hex, byte| {
            // Writing into a string cannot fail.
            _ = write!(hex, "{byte:02x}");
            hex
        });
        _ = writeln!(table, "    {{ name = \"tenant-{tenant}\", sha256 = \"{hex}\" }},");
    }
    table + "]\n"
}
