//! Drives the Inspector's command line, with one process and one connection for each step.

use std::net::TcpListener;
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::process::Output;
use super::{Installed, Mode, Peer, Server, Step, Steps, process};

/// Performs the steps and creates the document that the other peers print.
pub(super) fn run(
    installed: &Installed,
    mode: Mode,
    steps: &Steps,
    server: Server<'_>,
    deadline: Instant,
) -> Result<Value, String> {
    let mut document = Map::new();
    let mut errors = Vec::new();
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = home.path();
    let welcome = invoke(installed, mode, &["initialize".into()], server, home, deadline)?;
    let initialize_result =
        result(&welcome).map_err(|error| format!("the Inspector failed: {error}"))?;
    document.insert("sdk".into(), json!(Peer::Inspector.name()));
    document.insert("version".into(), json!(installed.version()?));
    document.insert("protocol".into(), initialize_result["protocolVersion"].clone());
    document.insert("server".into(), initialize_result["serverInfo"].clone());
    let mut requests = vec![listing("tools", "tools/list", "name")];
    for step in &steps.0 {
        requests.extend(requested(step)?);
    }
    for Request { name, arguments, names } in requests {
        let output = invoke(installed, mode, &arguments, server, home, deadline)?;
        match result(&output) {
            Ok(value) => {
                let value = names.map_or_else(|| value.clone(), |key| named(&value[name], key));
                document.insert(name.into(), value);
            }
            Err(error) => errors.push(json!({ "step": name, "message": error })),
        }
    }
    document.insert("errors".into(), Value::Array(errors));
    Ok(Value::Object(document))
}

/// One invocation: its name in the document, the arguments after `--method`, and the key of the names in a listing.
struct Request {
    name: &'static str,
    arguments: Vec<String>,
    names: Option<&'static str>,
}

/// The invocation for a listing.
fn listing(name: &'static str, method: &str, key: &'static str) -> Request {
    Request { name, arguments: vec![method.into()], names: Some(key) }
}

/// The invocations of a step.
fn requested(step: &Step) -> Result<Vec<Request>, String> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    match step.flag {
        "--call" => {
            let mut arguments = words(&["tools/call", "--tool-name", &step.name]);
            arguments.push("--tool-args-json".into());
            arguments.push(step.arguments.clone().unwrap_or_else(|| json!({})).to_string());
            Ok(vec![Request { name: "call", arguments, names: None }])
        }
        "--read" => {
            let arguments = words(&["resources/read", "--uri", &step.name]);
            let read = Request { name: "read", arguments, names: None };
            Ok(vec![listing("resources", "resources/list", "uri"), read])
        }
        "--prompt" => {
            let mut arguments = words(&["prompts/get", "--prompt-name", &step.name]);
            let given = step.arguments.as_ref().and_then(Value::as_object);
            for (index, (key, value)) in given.into_iter().flatten().enumerate() {
                if index == 0 {
                    arguments.push("--prompt-args".into());
                }
                arguments.push(format!("{key}={}", value.as_str().unwrap_or_default()));
            }
            let prompt = Request { name: "prompt", arguments, names: None };
            Ok(vec![listing("prompts", "prompts/list", "name"), prompt])
        }
        flag => Err(format!("the command line of the Inspector has nothing for {flag}")),
    }
}

/// Runs the Inspector for one method.
fn invoke(
    installed: &Installed,
    mode: Mode,
    words: &[String],
    server: Server<'_>,
    home: &Path,
    deadline: Instant,
) -> Result<Output, String> {
    let mut command = installed.command();
    // Without these it would read the catalog and settings of the user who runs the tests.
    command.env("MCP_CATALOG_PATH", installed.folder().join("catalog.json"));
    command.env("MCP_CLIENT_CONFIG_PATH", installed.folder().join("client.json"));
    command.args(["--format", "json"]);
    if mode != Mode::Default {
        command.args(["--protocol-era", mode.name()]);
    }
    match server {
        Server::Command(started) => {
            command.arg("--method").args(words).arg("--").args(started);
        }
        Server::Protected { url, browser } => {
            // Without these it would only log in at a terminal, and store the login of the user who runs the tests.
            command.env("MCP_AUTO_OPEN_ENABLED", "true").env("BROWSER", browser);
            command.env("MCP_STORAGE_DIR", home).env("MCP_INSPECTOR_SECRET_STORE", "file");
            command.env("HOME", home).env_remove("DISPLAY");
            let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let port = port.map_err(|error| error.to_string())?.port();
            command.args([url, "--transport", "http", "--callback-url"]);
            command.arg(format!("http://127.0.0.1:{port}/oauth/callback"));
            command.arg("--method").args(words);
        }
        Server::Url { url, header } => {
            command.args([url, "--transport", "http"]);
            if let Some(header) = header {
                command.args(["--header", header]);
            }
            command.arg("--method").args(words);
        }
    }
    process::output(&mut command, deadline)
}

/// The result that the Inspector printed, or the error that it reports.
fn result(output: &Output) -> Result<Value, String> {
    if output.success {
        let printed: Value = serde_json::from_str(&output.stdout)
            .map_err(|error| format!("it printed no JSON: {error}\n{}", output.stdout))?;
        return Ok(printed["result"].clone());
    }
    // The error is a JSON line among the server's own stderr output.
    let reported = output.stderr.lines().rev().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        line["error"]["message"].as_str().map(str::to_owned)
    });
    Err(reported.unwrap_or_else(|| output.stderr.clone()))
}

/// One key of each entry of a listing.
fn named(entries: &Value, key: &str) -> Value {
    entries.as_array().into_iter().flatten().map(|entry| entry[key].clone()).collect()
}
