//! Tests that a program and all its children end with their call, however the call ends.

use std::fs;
use std::path::Path;

use creole_acceptance::process_under_test::{call, request, told};
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::{ConfiguredServer, children, reapers};

/// A program with a child and a grandchild that ignore SIGTERM. It writes their process ids to files.
const TREE: &str = "trap : TERM; (trap : TERM; sleep 1000 & echo $! > third; while :; do sleep 1; done) & \
                    echo $! > second; echo $$ > first; echo grown >&2; while :; do sleep 1; done";

fn tree(keys: &str) -> ConfiguredServer {
    ConfiguredServer::start(&format!(
        "[tools.tree]\ndescription = 'Grows'\ncommand = ['sh', '-c', '{TREE}']\ncwd = '.'\n{keys}\n"
    ))
}

/// The process ids of the three, once all are written.
#[track_caller]
fn grown(folder: &Path) -> [String; 3] {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let names = ["first", "second", "third"];
    eventually("it grows", || names.iter().all(|name| read(name).ends_with('\n')));
    names.map(|name| read(name).trim().to_owned())
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[track_caller]
fn assert_ends(tree: &[String; 3]) {
    eventually("no process is left", || tree.iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_timed_out_call_ends_its_process_tree() {
    let mut server = tree("timeout_seconds = 8");
    server.server.write(call(5, "tree", &json!({})));
    let tree = grown(server.path());
    let response = server.server.answer();
    assert_eq!(response["result"]["isError"], true, "{response}");
    assert_ends(&tree);
}

#[test]
fn a_call_that_is_cancelled_ends_its_tree() {
    let mut server = tree("");
    server.server.write(call(5, "tree", &json!({})));
    let tree = grown(server.path());
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    server.server.write(format!("{cancel}\n"));
    assert_ends(&tree);
    server.server.ping();
}

#[test]
fn a_client_disconnect_ends_the_process_trees_of_its_calls() {
    let mut server = tree("");
    server.server.write(call(5, "tree", &json!({})));
    let tree = grown(server.path());
    let ConfiguredServer { server, folder: _folder } = server;
    let ended = server.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    assert_ends(&tree);
}

#[test]
fn a_killed_server_leaves_no_process() {
    let mut server = tree("progress = true");
    let params = json!({ "name": "tree", "arguments": {}, "_meta": { "progressToken": 1 } });
    server.server.write(request(5, "tools/call", &params));
    let tree = grown(server.path());
    // Progress shows that the server has registered the program. A server that is killed between the start of a program
    // and its registration cannot inform the reaper.
    let message = server.server.answer();
    assert_eq!(message["method"], "notifications/progress", "{message}");
    let ConfiguredServer { server, folder: _folder } = server;
    drop(server.kill());
    assert_ends(&tree);
}

#[test]
fn background_processes_of_a_program_are_ended_with_its_result() {
    let script = "sleep 1000 & echo $!";
    let mut server = ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'Leaves'\ncommand = ['sh', '-c', '{script}']\n"
    ));
    let left = server.call("t", json!({})).unwrap();
    assert!(!is_alive(left.trim()));
}

/// Sixteen is the default limit. Each program counts the running ones, including itself. The first ones wait for each
/// other, so that a smaller limit would block forever.
#[test]
fn of_five_hundred_concurrent_calls_sixteen_run_and_no_process_is_left() {
    let script = "mkdir -p running; : > running/$$; \
                  while set -- running/*; [ $# -lt 16 ] && [ ! -e full ]; do sleep 0.01; done; \
                  : > full; echo $#; rm running/$$";
    let mut server = ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'Counts'\ncommand = ['sh', '-c', '{script}']\ncwd = '.'\n"
    ));
    for number in 0..500 {
        server.server.write(call(1000 + number, "t", &json!({})));
    }
    let counts: Vec<usize> =
        (0..500).map(|_| told(&server.server.answer()).unwrap().trim().parse().unwrap()).collect();
    assert_eq!(counts.iter().max(), Some(&16));
    let server = &server.server;
    eventually("only the reaper is left", || children(server.id()) == reapers(server.id()));
}
