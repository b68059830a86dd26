//! Detects the dialect of an upstream from the protocol version that it demands.

use creole::proto::dialect::{BUILTIN_NAMES, Dialect, VersionPolicy, builtin};
use creole::proto::fault::{Fault, FaultKind};

/// The dialect of the version that an upstream named when it refused ours.
pub fn detect_dialect(fault: &Fault) -> Option<Dialect> {
    let supported = fault.data.as_ref().filter(|_| fault.kind == FaultKind::UnsupportedVersion)?;
    let supported: serde_json::Value = supported.decode().ok()?;
    let version = supported["supported"][0].as_str()?;
    BUILTIN_NAMES
        .iter()
        .filter_map(|name| builtin(name))
        .find(|dialect| matches!(&dialect.version, VersionPolicy::Fixed(fixed) if fixed == version))
}

#[cfg(test)]
mod tests {
    use creole::proto::wire::Raw;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_of_its_own_tells_the_dialect() {
        let fault = Fault::new(FaultKind::UnsupportedVersion, "no");
        assert_eq!(detect_dialect(&fault).map(|dialect| dialect.name), None);
        let told = |version: &str| Fault {
            data: Some(Raw::from_value(&json!({"supported": [version]}))),
            ..fault.clone()
        };
        assert_eq!(detect_dialect(&told("1.0")).unwrap().name, "bb-mcp-server");
        assert_eq!(detect_dialect(&told("7.0")).map(|dialect| dialect.name), None);
    }
}
