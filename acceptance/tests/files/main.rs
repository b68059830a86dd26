//! Tests of files with the binary: folders as resources, Markdown files as prompts, single resources.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod examples;
mod folders;
mod prompts;
mod refusals;

use std::fs;
use std::path::Path;

use creole_acceptance::process_under_test::{
    Server, {self as under_test},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with these files.
fn stage(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Starts a server with the configuration in this folder and performs the handshake.
fn initialized(folder: &Path) -> Client {
    let config = folder.join("creole.toml");
    Client {
        server: Server::start(&[config.to_str().unwrap()]).greeted(),
        id: 100,
        heard: Vec::new(),
    }
}

/// A client that keeps notifications while it waits for a response.
struct Client {
    server: Server,
    id: u64,
    heard: Vec<Value>,
}

impl Client {
    /// Sends a request and returns its response.
    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        self.server.write(under_test::request(self.id, method, params));
        loop {
            let message = self.server.answer();
            if message["id"] == json!(self.id) {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Waits for a notification with this method that satisfies the condition, and skips others.
    #[track_caller]
    fn wait_for_notification(&mut self, method: &str, is_match: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = match self.heard.is_empty() {
                true => self.server.answer(),
                false => self.heard.remove(0),
            };
            if message["method"] == method && is_match(&message["params"]) {
                return message;
            }
        }
    }

    /// The text of a resource.
    #[track_caller]
    fn read(&mut self, uri: &str) -> String {
        let response = self.ask("resources/read", &json!({ "uri": uri }));
        response["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{response}"))
            .to_owned()
    }

    /// The names, or URIs, of the items in a list.
    #[track_caller]
    fn list(&mut self, kind: &str, member: &str) -> Vec<String> {
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({ "cursor": cursor }),
            };
            let response = self.ask(&format!("{kind}/list"), &params);
            let page = response["result"][kind].as_array().unwrap_or_else(|| panic!("{response}"));
            all.extend(page.iter().map(|item| item[member].as_str().unwrap().to_owned()));
            cursor = response["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return all;
            }
        }
    }
}
