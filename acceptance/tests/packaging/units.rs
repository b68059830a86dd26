//! The units of systemd, judged by `systemd-analyze`.

use std::fs;
use std::process::Command;

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;

use crate::{has_systemd, packaging};

const ANALYZE: &str = "systemd-analyze";

#[test]
fn the_units_are_valid() {
    if !has_systemd() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = binary().unwrap();
    let mut command = Command::new(ANALYZE);
    command.args(["verify", "--man=no"]);
    for name in ["creole.service", "creole.socket"] {
        let unit = fs::read_to_string(packaging("systemd").join(name)).unwrap();
        // The program is not installed here.
        let unit = unit.replace("/usr/bin/creole", &binary.display().to_string());
        fs::write(folder.path().join(name), unit).unwrap();
        command.arg(folder.path().join(name));
    }
    let verified = FinishedCommand::run(&mut command, "").succeeded();
    assert_eq!((verified.stdout.as_str(), verified.stderr.as_str()), ("", ""));
}

#[test]
fn the_service_is_confined() {
    if !has_systemd() {
        return;
    }
    let unit = packaging("systemd").join("creole.service");
    let mut command = Command::new(ANALYZE);
    // Tenths: the maximum exposure is 2.5 of 10.
    command.args(["security", "--offline=true", "--no-pager", "--threshold=25"]).arg(unit);
    FinishedCommand::run(&mut command, "").succeeded();
}
