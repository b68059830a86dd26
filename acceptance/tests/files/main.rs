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

/// A server of the configuration in this folder, in a session.
fn greeted(folder: &Path) -> Client {
    let config = folder.join("creole.toml");
    Client {
        server: Server::start(&[config.to_str().unwrap()]).greeted(),
        id: 100,
        heard: Vec::new(),
    }
}

/// A client that keeps what it is told while it waits for something else.
struct Client {
    server: Server,
    id: u64,
    heard: Vec<Value>,
}

impl Client {
    /// The answer to a request.
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

    /// The next notification of this method that is as it should be; others are passed over.
    #[track_caller]
    fn hear(&mut self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = match self.heard.is_empty() {
                true => self.server.answer(),
                false => self.heard.remove(0),
            };
            if message["method"] == method && is_it(&message["params"]) {
                return message;
            }
        }
    }

    /// The text of a resource.
    #[track_caller]
    fn read(&mut self, uri: &str) -> String {
        let answer = self.ask("resources/read", &json!({ "uri": uri }));
        answer["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// The names, or uris, of a list.
    #[track_caller]
    fn list(&mut self, kind: &str, member: &str) -> Vec<String> {
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({ "cursor": cursor }),
            };
            let answer = self.ask(&format!("{kind}/list"), &params);
            let page = answer["result"][kind].as_array().unwrap_or_else(|| panic!("{answer}"));
            all.extend(page.iter().map(|item| item[member].as_str().unwrap().to_owned()));
            cursor = answer["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return all;
            }
        }
    }
}
