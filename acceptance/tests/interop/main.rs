//! Runs third-party clients against the binary over stdio. [`http`] runs them over HTTP.
//!
//! Every peer connects in each of its modes to the presets `default` and `everything`, and as an old client to the
//! seeds' presets. A peer that cannot be installed is reported on stderr and skipped. With `CI=true` that is a failure.
//! [`schema`] checks configurations with a third-party validator, and [`definitions`] checks the lists of servers.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod definitions;
mod http;
mod schema;

use std::path::Path;
use std::thread;

use creole_acceptance::peers;
use creole_acceptance::peers::{Mode, Peer, Steps, if_installed, is_installed};
use creole_acceptance::process_under_test::Server;
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};

/// The revision that is negotiated with `initialize`.
const HANDSHAKE: &str = "2025-11-25";
/// The revision that is used without it.
const STATELESS: &str = "2026-07-28";

const TASK_TOOLS: [&str; 6] =
    ["create_task", "get_task", "list_tasks", "update_task", "delete_task", "wait_task"];
const GUIDE: &str = include_str!("../../../crates/tools/src/packs/guide.md");

#[test]
fn the_python_sdk_of_version_1_uses_every_feature() {
    speak_in_every_mode(Peer::PythonV1);
}

#[test]
fn the_python_sdk_of_version_2_uses_every_feature() {
    speak_in_every_mode(Peer::PythonV2);
}

#[test]
fn the_typescript_sdk_of_version_1_uses_every_feature() {
    speak_in_every_mode(Peer::TypeScriptV1);
}

#[test]
fn the_typescript_sdk_of_version_2_uses_every_feature() {
    speak_in_every_mode(Peer::TypeScriptV2);
}

#[test]
fn the_rust_sdk_uses_every_feature() {
    speak_in_every_mode(Peer::Rmcp);
}

#[test]
fn the_inspector_uses_every_feature() {
    if !is_installed(Peer::Inspector) {
        return;
    }
    // The Inspector starts a process for each request. Running the modes concurrently halves the time.
    thread::scope(|scope| {
        for mode in [Mode::Legacy, Mode::Auto, Mode::Modern] {
            scope.spawn(move || inspect(mode));
        }
    });
}

#[test]
fn the_inspector_finds_the_tools_of_the_seeds() {
    if is_installed(Peer::Inspector) {
        thread::scope(|scope| {
            scope.spawn(|| check_bossman(Peer::Inspector));
            scope.spawn(|| check_governance(Peer::Inspector));
        });
    }
}

#[test]
fn clients_refuse_the_boolean_capabilities_of_bb_mcp_server_after_it_has_welcomed_them() {
    for peer in Peer::ALL.into_iter().filter(|&peer| is_installed(peer)) {
        let data = tempfile::tempdir().expect("a data directory");
        let server = serve("bb-mcp-server", data.path());
        let refusal = peers::run(peer, Mode::Legacy, &Steps::new(), &server);
        let refusal = refusal.expect_err("seed 000 is not what an SDK reads");
        assert!(refusal.contains("capabilities"), "{peer}: {refusal}");
        // The Inspector prints only its own reason. The others pass the server's log through.
        let welcomed = refusal.contains(r#"request completed method="initialize""#)
            && refusal.contains(r#"outcome="success""#);
        assert!(welcomed || peer == Peer::Inspector, "{peer}: {refusal}");
    }
}

#[test]
fn bb_mcp_server_serves_clients_that_accept_its_version() {
    let mut server = Server::start(&["--preset", "bb-mcp-server"]);
    let hello =
        json!({"protocolVersion": "1.0", "clientInfo": {"name": "by hand", "version": "1"}});
    let initialize_result = server.request("initialize", &hello);
    assert_eq!(initialize_result["result"]["protocolVersion"], "1.0");
    assert_eq!(initialize_result["result"]["serverInfo"]["name"], "bb-mcp-server");
    let listed = server.request("tools/list", &json!({}));
    assert_eq!(names(&listed["result"]["tools"]), ["hello", "echo", "calculate"]);
    let sum = server.call("calculate", &json!({"expression": "6*7"}));
    assert_eq!(sum["result"]["content"][0]["text"], "42");
    assert_eq!(server.finish().code, Some(0));
}

/// Runs all checks for a peer that supports input requests.
fn speak_in_every_mode(peer: Peer) {
    if !is_installed(peer) {
        return;
    }
    for &mode in peer.modes() {
        check_default(peer, mode);
        check_everything(peer, mode);
    }
    check_bossman(peer);
    check_governance(peer);
}

/// The preset `default`: a peer lists, calls three tools, reads and gets a prompt.
///
/// A peer makes one plain call, so the other calls use steps for tools that send progress or input requests. These
/// tools send none, and the peer reports that.
fn check_default(peer: Peer, mode: Mode) {
    let steps = Steps::new()
        .call("echo", json!({"message": "Grüße, 世界"}))
        .read("creole://guide")
        .prompt("plan_task", json!({"goal": "ship it"}))
        .progress("create_task", json!({"description": "by a peer"}))
        .elicit("hello", json!({"name": "Ada"}));
    let report = PeerReport::by(peer, mode, "default", &steps);
    report.is(&["tools"], &json!(default_tools()));
    report.is(&["call", "content", "0", "text"], &json!("Grüße, 世界"));
    report.is(&["elicit_call", "content", "0", "text"], &json!("Hello, Ada!"));
    report.is(&["progress"], &json!([]));
    report.is(&["elicited"], &json!(false));
    report.has_created(&["progress_call", "content", "0", "text"], "by a peer");
    report.has_read_the_guide();
    report.assert_revision(expected_revision(peer, mode));
    if report.get(&["server"]) != &Value::Null {
        report.is(&["server", "name"], &json!("creole"));
    }
}

/// The preset `everything`: a peer receives every kind of input request and notification.
fn check_everything(peer: Peer, mode: Mode) {
    let steps = everything(peer, mode);
    PeerReport::by(peer, mode, "everything", &steps).has_done_everything(peer, mode);
}

/// All steps that a peer supports with the preset `everything`.
fn everything(peer: Peer, mode: Mode) -> Steps {
    let steps = Steps::new()
        .call("test_structured", json!({}))
        .read("test://static-text")
        .prompt("test_prompt_with_arguments", json!({"arg1": "one", "arg2": "two"}));
    if peer == Peer::Inspector {
        return steps;
    }
    let steps = steps
        .progress("test_tool_with_progress", json!({}))
        .elicit("test_elicitation", json!({"message": "Who are you?"}))
        .sample("test_sampling", json!({"prompt": "Say something"}))
        .roots("test_input_required_result_list_roots", json!({}));
    match can_be_told(peer, mode) {
        true => steps.list_changed("test_trigger_tool_change", json!({})),
        false => steps,
    }
}

/// Whether the peer can receive change notifications: without a handshake it has to subscribe.
fn can_be_told(peer: Peer, mode: Mode) -> bool {
    peer != Peer::FastMcp || expected_revision(peer, mode) == HANDSHAKE
}

/// The preset `bossman`, which responds to every version with its own.
fn check_bossman(peer: Peer) {
    let steps = Steps::new().call("create_task", json!({"description": "for the boss"}));
    let report = PeerReport::by(peer, Mode::Legacy, "bossman", &steps);
    report.assert_revision("2025-03-26");
    report.is(&["server", "name"], &json!("bossman"));
    report.is(&["tools"], &json!(TASK_TOOLS));
    report.has_created(&["call", "content", "0", "text"], "for the boss");
}

/// The preset `fpf-governance`, which negotiates.
fn check_governance(peer: Peer) {
    let steps = Steps::new().call("hello", json!({"name": "Grace"}));
    let report = PeerReport::by(peer, Mode::Legacy, "fpf-governance", &steps);
    report.assert_revision(HANDSHAKE);
    report.is(&["server", "name"], &json!("fpf-governance"));
    report.is(&["tools"], &json!(["echo", "hello"]));
    report.is(&["call", "content", "0", "text"], &json!("Hello, Grace!"));
}

/// The steps that the Inspector's command line supports.
fn inspect(mode: Mode) {
    let peer = Peer::Inspector;
    let steps = Steps::new()
        .call("echo", json!({"message": "Grüße, 世界"}))
        .read("creole://guide")
        .prompt("plan_task", json!({"goal": "ship it"}));
    let report = PeerReport::by(peer, mode, "default", &steps);
    report.assert_revision(expected_revision(peer, mode));
    report.is(&["server", "name"], &json!("creole"));
    report.is(&["tools"], &json!(default_tools()));
    report.is(&["call", "content", "0", "text"], &json!("Grüße, 世界"));
    report.has_read_the_guide();

    let steps = Steps::new().call("hello", json!({"name": "Ada"}));
    let report = PeerReport::by(peer, mode, "default", &steps);
    report.is(&["call", "content", "0", "text"], &json!("Hello, Ada!"));

    let steps = Steps::new().call("create_task", json!({"description": "by a peer"}));
    let report = PeerReport::by(peer, mode, "default", &steps);
    report.has_created(&["call", "content", "0", "text"], "by a peer");

    let report =
        PeerReport::by(peer, mode, "everything", &Steps::new().call("test_structured", json!({})));
    report.is(&["call", "structuredContent"], &json!({"city": "Berlin", "temperature": 21.5}));
}

/// The revision that a peer in this mode should negotiate with a server that supports all of them.
fn expected_revision(peer: Peer, mode: Mode) -> &'static str {
    match mode {
        Mode::Legacy => HANDSHAKE,
        Mode::Auto | Mode::Modern => STATELESS,
        Mode::Default if [Peer::FastMcp, Peer::PythonV2].contains(&peer) => STATELESS,
        Mode::Default => HANDSHAKE,
    }
}

/// The command that serves a preset with this data directory. `env` sets it, because some SDKs do not pass their
/// environment on.
fn serve(preset: &str, data: &Path) -> Vec<String> {
    let data = format!("CREOLE_DATA_DIR={}", data.display());
    let binary = binary().expect("the binary under test").display().to_string();
    ["env", &data, &binary, "serve", "--preset", preset].map(str::to_owned).to_vec()
}

fn default_tools() -> Vec<&'static str> {
    ["hello", "echo", "calculate"].into_iter().chain(TASK_TOOLS).collect()
}

fn names(entries: &Value) -> Vec<&str> {
    entries.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// The document of a peer, and the name of the run for failure messages.
struct PeerReport {
    whose: String,
    document: Value,
}

impl PeerReport {
    /// Runs the peer. No step may fail.
    fn by(peer: Peer, mode: Mode, preset: &str, steps: &Steps) -> Self {
        let label = format!("{peer} in mode {} with {preset}", mode.name());
        let data = tempfile::tempdir().expect("a data directory");
        Self::of(label, peers::run(peer, mode, steps, &serve(preset, data.path())))
    }

    /// The document of a run in which no step failed.
    #[track_caller]
    fn of(label: String, document: Result<Value, String>) -> Self {
        let document = document.unwrap_or_else(|error| panic!("{label}: {error}"));
        let report = Self { whose: label, document };
        report.is(&["errors"], &json!([]));
        report
    }

    /// The value at this path of object keys and array indices.
    fn get(&self, path: &[&str]) -> &Value {
        let pointer = format!("/{}", path.join("/"));
        self.document.pointer(&pointer).unwrap_or(&Value::Null)
    }

    fn text(&self, path: &[&str]) -> &str {
        let found = self.get(path).as_str();
        found.unwrap_or_else(|| panic!("{}: no text at {path:?}: {}", self.whose, self.document))
    }

    #[track_caller]
    fn is(&self, path: &[&str], expected: &Value) {
        assert_eq!(self.get(path), expected, "{}: {path:?}", self.whose);
    }

    /// Asserts the results of the steps of [`everything`].
    #[track_caller]
    fn has_done_everything(&self, peer: Peer, mode: Mode) {
        self.assert_revision(expected_revision(peer, mode));
        self.is(&["call", "structuredContent"], &json!({"city": "Berlin", "temperature": 21.5}));
        self.is(&["read", "contents", "0", "uri"], &json!("test://static-text"));
        let prompt = self.text(&["prompt", "messages", "0", "content", "text"]);
        assert!(prompt.contains("one") && prompt.contains("two"), "{}: {prompt}", self.whose);
        if peer == Peer::Inspector {
            return;
        }
        let messages: Vec<_> = self.get(&["progress"]).as_array().unwrap().iter().collect();
        let steps: Vec<_> =
            messages.iter().map(|step| step["progress"].as_f64().unwrap()).collect();
        assert_eq!(steps, [0.0, 50.0, 100.0], "{}: {messages:?}", self.whose);
        for asked in ["elicited", "sampled", "roots"] {
            self.is(&[asked], &json!(true));
        }
        if can_be_told(peer, mode) {
            self.is(&["list_changed"], &json!(true));
        }
        let elicited = self.text(&["elicit_call", "content", "0", "text"]);
        assert!(elicited.starts_with("User response: action=accept"), "{}: {elicited}", self.whose);
        let sampled = "LLM response: Sampled by the peer.";
        self.is(&["sample_call", "content", "0", "text"], &json!(sampled));
        self.is(&["roots_call", "content", "0", "text"], &json!("Roots: file:///peer/root"));
    }

    #[track_caller]
    fn assert_revision(&self, revision: &str) {
        self.is(&["protocol"], &json!(revision));
    }

    #[track_caller]
    fn has_created(&self, path: &[&str], description: &str) {
        let task: Value = serde_json::from_str(self.text(path)).expect("a task");
        assert!(task["id"].as_str().unwrap().starts_with("task_"), "{}: {task}", self.whose);
        assert_eq!(task["description"], description, "{}", self.whose);
        assert_eq!(task["status"], "pending", "{}", self.whose);
    }

    #[track_caller]
    fn has_read_the_guide(&self) {
        self.is(&["resources"], &json!(["creole://guide"]));
        self.is(&["read", "contents", "0", "text"], &json!(GUIDE));
        self.is(&["prompts"], &json!(["introduce", "plan_task"]));
        let prompt = self.text(&["prompt", "messages", "0", "content", "text"]);
        assert!(prompt.ends_with("Goal: ship it"), "{}: {prompt}", self.whose);
    }
}
