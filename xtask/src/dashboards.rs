//! `cargo xtask dashboards`: generates the Grafana dashboard, the alert rules and their test.

use std::fs;

use crate::docs::metric_document;
use crate::repository::Repository;
use crate::say;

/// Each file, with the name by which `creole-telemetry` prints it.
const FILES: [(&str, &str); 3] = [
    ("packaging/grafana/creole.json", "dashboard"),
    ("packaging/prometheus/creole.rules.yml", "rules"),
    ("packaging/prometheus/creole.rules.test.yml", "rules-test"),
];

/// Writes every file. A test of `creole-telemetry` fails when one is outdated.
pub(crate) fn write() -> Result<(), String> {
    let repository = Repository::find()?;
    for (path, name) in FILES {
        let place = repository.root().join(path);
        let text = metric_document(&repository, name)?;
        if fs::read_to_string(&place).is_ok_and(|written| written == text) {
            continue;
        }
        let folder = place.parent().unwrap_or(repository.root());
        fs::create_dir_all(folder).map_err(|error| format!("cannot create a folder: {error}"))?;
        fs::write(&place, text).map_err(|error| format!("cannot write {path}: {error}"))?;
        say(&format!("wrote {path}"));
    }
    Ok(())
}
