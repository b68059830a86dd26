//! Files that are made from others: the manifests, which are the rendered chart, and the alert rules in the chart.
//!
//! `UPDATE=1` writes them.

use std::fs;
use std::path::Path;

use crate::chart::HelmChart;
use crate::packaging;

/// The first line of a rendered file.
const NOTE: &str =
    "# Rendered from packaging/helm by the test `manifests`. Change the chart, not this file.\n";

/// Asserts that a file has this text, or writes it.
#[track_caller]
fn assert_current(file: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
        fs::write(file, text).unwrap();
    }
    let is_current = fs::read_to_string(file).is_ok_and(|found| found == text);
    let remedy = "UPDATE=1 cargo nextest run -p creole-acceptance --test packaging manifests";
    assert!(is_current, "{} is stale; run `{remedy}`", file.display());
}

#[test]
fn the_plain_manifests_are_the_rendered_chart() {
    let Some(chart) = HelmChart::new() else { return };
    for name in ["single.yaml", "replicas.yaml"] {
        let rendered = chart.render(&packaging("helm/tests").join(name)).succeeded().stdout;
        let file = packaging("kubernetes").join(name);
        assert_current(&file, &format!("{NOTE}{rendered}"));
    }
}

#[test]
fn the_chart_has_the_alert_rules_and_the_version_of_the_program() {
    let rules = fs::read_to_string(packaging("prometheus/creole.rules.yml")).unwrap();
    assert_current(&packaging("helm/creole/files/creole.rules.yml"), &rules);
    let chart = fs::read_to_string(packaging("helm/creole/Chart.yaml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for key in ["version", "appVersion"] {
        assert!(chart.contains(&format!("\n{key}: {version}\n")), "`{key}` is not {version}");
    }
}
