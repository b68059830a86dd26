//! A log that cannot be written: a file that cannot grow, as on a full file system.

use std::fs;
use std::path::Path;

use creole_acceptance::process_under_test::{Server, shell};
use serde_json::{Value, json};

use super::{audit, configure, lines};

/// A server whose files cannot become larger than some KiB.
fn start_limited(folder: &Path) -> Server {
    let script = "trap '' XFSZ; ulimit -f 8; exec creole serve creole.toml";
    let mut command = shell(folder, script);
    command.env("CREOLE_DATA_DIR", folder.join("data"));
    Server::start_command(command).greeted()
}

/// Calls the tool; returns the message of the error, if it is one.
fn call(server: &mut Server) -> Option<String> {
    let response = server.call("calculate", &json!({ "expression": "6*7" }));
    response["error"]["message"].as_str().map(str::to_owned)
}

/// How many calls succeed until one does not.
fn calls_until_full(server: &mut Server) -> usize {
    (0..100).take_while(|_| call(server).is_none()).count()
}

#[test]
fn a_required_log_refuses_calls_while_the_file_system_is_full() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "file = \"audit.log\"\nchain = true\nrequired = true");
    let mut server = start_limited(folder.path());
    let executed = calls_until_full(&mut server);
    assert!((2..50).contains(&executed), "{executed}");
    let error = call(&mut server);
    assert!(error.is_some(), "still full");
    let file = folder.path().join("audit.log");
    let is_start = |it: &&Value| it["outcome"] == "started" && it["method"] == "tools/call";
    let started = lines(&file).iter().filter(is_start).count();
    assert_eq!(started, executed, "no call ran without a line");
    server.until_said("cannot write the audit log");
    // There is room again.
    fs::rename(&file, folder.path().join("audit.log.1")).unwrap();
    assert_eq!(call(&mut server), None);
    let exit = server.finish();
    assert_eq!(exit.code, Some(0), "{}", exit.log);
    let after = lines(&file);
    let lost: Vec<u64> = after.iter().filter_map(|line| line["lost"].as_u64()).collect();
    assert_eq!(lost.len(), 1, "{after:?}");
    assert!(lost[0] >= 2 && after[0]["lost"] == lost[0], "{after:?}");
    let found = audit(folder.path(), &["verify", "audit.log", "audit.log.1"]);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{}", found.stdout);
}

#[test]
fn a_log_that_is_not_required_counts_what_it_loses() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "file = \"audit.log\"");
    let mut server = start_limited(folder.path());
    for _ in 0..60 {
        assert_eq!(call(&mut server), None, "calls go on");
    }
    server.until_said("cannot write the audit log");
    let file = folder.path().join("audit.log");
    fs::rename(&file, folder.path().join("full.log")).unwrap();
    server.until_said("the audit log is written again");
    let exit = server.finish();
    // A short line about the loss may still fit into the full file.
    let all = [lines(&folder.path().join("full.log")), lines(&file)].concat();
    let lost: u64 = all.iter().filter_map(|line| line["lost"].as_u64()).sum();
    let calls = all.iter().filter(|line| line["method"] == "tools/call").count() as u64;
    assert!(lost > 0 && calls + lost == 60, "{calls} calls and {lost} lost: {}", exit.log);
}

#[test]
fn stdout_is_refused_where_the_protocol_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "to = \"stdout\"");
    for words in ["serve creole.toml", "config check creole.toml", "list --config creole.toml"] {
        let output = shell(folder.path(), &format!("creole {words}")).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{words}");
        assert!(message.contains("cannot go to stdout"), "{words}: {message}");
    }
    configure(folder.path(), "to = \"otlp\"");
    let output = shell(folder.path(), "creole serve creole.toml").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("no collector"), "{message}");
}
