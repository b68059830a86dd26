//! Tests of the gateway frame by frame: the frames that upstreams and callers receive.
//!
//! The upstreams are scripted children. Each test writes their frames.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod crowds;
mod definitions;
mod discretion;
mod driving;
mod eras;
mod isolation;
mod kinds;
mod lacking;
mod lists_without_stream;
mod merging;
mod notifications;
mod old_sites;
mod own_sessions;
mod parking;
mod pipes;
mod replicas;
mod rounds;
mod routes;
mod sharing;
mod sites;
mod slow;
mod tasks;
mod tasks_across_eras;
mod timeouts;

use std::fs;
use std::time::Duration;

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies, StatelessClient};
use creole_acceptance::http::ListeningServer;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough to notice a message that must not be sent.
const A_MOMENT: Duration = Duration::from_millis(300);

const ALICE: &str = "alice-secret-key-of-the-test";
const BOB: &str = "bob-secret-key-of-the-test";

/// The configuration of a gateway with the callers Alice and Bob.
const KEYS: &str = r#"
[server]
name = "gateway"

[auth]
keys = [
    { name = "alice", sha256 = "fdedecbe137a31fb1ee084b0a8a53f3a6247bff209ab14e288af55aac40e5ed8" },
    { name = "bob", sha256 = "0a0ae130c452513bcca2c6b1d87601038383846f3313e4b24b768c6d9c64c8f0" },
]
"#;

/// A gateway in front of scripted children.
struct Bridge {
    puppets: ScriptedChildren,
    gateway: ListeningServer,
    folder: Option<TempDir>,
}

impl Bridge {
    /// A gateway that admits every caller.
    fn new(show: ScriptedReplies) -> Self {
        let children = ScriptedChildren::new(show);
        let command = children.command();
        let gateway = ListeningServer::start(&["--", &command[0], &command[1]]).unwrap();
        Self { puppets: children, gateway, folder: None }
    }

    /// A gateway that admits Alice and Bob.
    fn with_keys(show: ScriptedReplies) -> Self {
        Self::configured(show, &format!("{KEYS}[upstreams.behind]\nprefix = \"\"\n"))
    }

    /// A gateway with this configuration, which ends with the table of the upstream.
    fn configured(show: ScriptedReplies, configuration: &str) -> Self {
        let children = ScriptedChildren::new(show);
        let command = json!(children.command());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        fs::write(&file, format!("{configuration}command = {command}\n")).unwrap();
        let gateway = ListeningServer::start(&[&file.display().to_string()]).unwrap();
        Self { puppets: children, gateway, folder: Some(folder) }
    }

    /// Replaces the configuration in one step, as careful editors do.
    fn rewrite(&self, configuration: &str) {
        self.write("gateway.toml", configuration);
    }

    /// Replaces a file beside the configuration in one step.
    fn write(&self, name: &str, text: &str) {
        let folder = self.folder.as_ref().expect("it has a configuration").path();
        let fresh = folder.join(format!("{name}.new"));
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, folder.join(name)).unwrap();
    }

    fn modern(&self) -> StatelessClient {
        StatelessClient::new(self.gateway.address())
    }
}

/// A server of the handshake era with one tool.
fn asking() -> ScriptedReplies {
    ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["ask"])
}

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": message, "requestedSchema": schema})
}

/// The input response of a user who filled in the form.
fn named(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// The only key of a result with one input request.
#[track_caller]
fn only_key(result: &Value) -> String {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let asked = result["inputRequests"].as_object().unwrap();
    assert_eq!(asked.len(), 1, "{result}");
    asked.keys().next().unwrap().clone()
}

/// The text of the tool's result.
#[track_caller]
fn text(response: &Value) -> &str {
    let result = &response["result"];
    assert_ne!(result["isError"], true, "{response}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}
