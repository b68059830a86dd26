//! The alert rules, judged by `promtool`.

use creole_acceptance::peers::prometheus::promtool;
use creole_acceptance::stage::stdio::repository;

fn check(arguments: &[&str]) {
    let folder = repository().join("packaging/prometheus");
    let output = promtool(&folder, arguments, "");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn the_rules_are_valid() {
    check(&["check", "rules", "creole.rules.yml"]);
}

#[test]
fn each_alert_fires_on_its_series_and_on_no_other() {
    check(&["test", "rules", "creole.rules.test.yml"]);
}
