//! Prints a document that is made from the table of metrics: `reference`, `dashboard`, `rules` or `rules-test`.

use std::io::Write;
use std::process::ExitCode;

use creole_telemetry::documents;

fn main() -> ExitCode {
    let text = match std::env::args().nth(1).as_deref() {
        Some("reference") => documents::metrics_reference(),
        Some("dashboard") => documents::grafana_dashboard(),
        Some("rules") => documents::prometheus_rules(),
        Some("rules-test") => documents::prometheus_rules_test(),
        _ => return ExitCode::FAILURE,
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
