//! A page of Debian's Chromium that a test drives.
//!
//! `acceptance/peers/browser/driver.mjs` performs the commands, each a line of JSON. Selectors are those of
//! Playwright, such as `role=button[name="Run"]`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use creole_test_wait::blocking::within;
use serde_json::{Value, json};

use super::install::{Missing, folder, node, npm_packages, once, read, source, tool};
use super::process;
use crate::process_under_test::ChildGuard;

/// How long the browser may take to end.
const END: Duration = Duration::from_secs(5);
/// How long the check of the types may take.
const CHECK: Duration = Duration::from_secs(120);

/// A browser with one page. It ends when dropped.
pub struct Browser {
    process: ChildGuard,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Unpacks Chromium and installs its driver, if that was not done before.
pub fn prepared() -> Result<(), Missing> {
    let script = source("browser/prepare.sh");
    let folder = folder("chromium");
    once("chromium", &read(&script)?, &folder.join("root/usr/lib/chromium/chromium"), || {
        let mut shell = Command::new("sh");
        shell.arg(&script).arg(&folder);
        tool("sh", &mut shell).map(drop)
    })?;
    npm_packages("browser", "browser", &["browser/driver.mjs"]).map(drop)
}

/// Checks the types in the comments of JavaScript files with TypeScript. Returns its report, which is empty if there is no
/// error.
pub fn check_types(files: &[std::path::PathBuf]) -> Result<String, Missing> {
    let folder = npm_packages("browser", "browser", &["browser/driver.mjs"])?;
    let mut command = Command::new(node()?);
    command.arg(folder.join("node_modules/typescript/bin/tsc"));
    command.args("--noEmit --allowJs --checkJs --strict --noImplicitAny false".split(' '));
    command.args("--useUnknownInCatchVariables false --target es2024 --module esnext".split(' '));
    command.args("--moduleResolution bundler --lib es2024,dom,dom.iterable".split(' '));
    command.args(files);
    let output = process::output(&mut command, Instant::now() + CHECK).map_err(Missing)?;
    Ok(if output.success { String::new() } else { output.stdout + &output.stderr })
}

/// Runs a module of JavaScript without a browser, and returns the JSON that it prints.
pub fn run_module(script: &Path, arguments: &[&str]) -> Result<Value, Missing> {
    let mut command = Command::new(node()?);
    command.arg(script).args(arguments);
    let output = process::output(&mut command, Instant::now() + CHECK).map_err(Missing)?;
    serde_json::from_str(&output.stdout)
        .map_err(|error| Missing(format!("{error}: {}{}", output.stdout, output.stderr)))
}

impl Browser {
    /// Starts the browser. Requests to other places than this origin are recorded as foreign.
    pub fn start(origin: &str) -> Result<Self, Missing> {
        prepared()?;
        let mut command = Command::new(node()?);
        command.arg(folder("browser").join("driver.mjs")).arg(folder("chromium")).arg(origin);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = ChildGuard::start(&mut command);
        let input = process.child().stdin.take();
        let output = process.child().stdout.take();
        let output = output.ok_or_else(|| Missing("the driver has no output".to_owned()))?;
        Ok(Self { process, input, output: BufReader::new(output) })
    }

    /// Performs a command of the driver, and returns its result or its error.
    pub fn attempt(&mut self, command: &Value) -> Result<Value, String> {
        let input = self.input.as_mut().ok_or("the driver ended")?;
        writeln!(input, "{command}").map_err(|error| format!("the driver ended: {error}"))?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        let mut answer: Value =
            serde_json::from_str(&line).map_err(|error| format!("the driver: {error}: {line}"))?;
        match answer.get("error") {
            Some(error) => Err(format!("{command}: {}", error.as_str().unwrap_or_default())),
            None => Ok(answer["result"].take()),
        }
    }

    #[track_caller]
    fn perform(&mut self, command: &Value) -> Value {
        match self.attempt(command) {
            Ok(result) => result,
            Err(error) => {
                let shown = self.attempt(&json!({"do": "text", "selector": "body"}));
                panic!("{error}\nThe page shows: {}", shown.unwrap_or_default());
            }
        }
    }

    /// Opens an address, or a place of the console such as `#/calls`.
    #[track_caller]
    pub fn open(&mut self, address: &str) {
        self.perform(&json!({"do": "goto", "address": address}));
    }

    /// Loads the page again.
    #[track_caller]
    pub fn reload(&mut self) {
        self.perform(&json!({"do": "reload"}));
    }

    /// Clicks the first element of a selector.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        self.perform(&json!({"do": "click", "selector": selector}));
    }

    /// Fills a field.
    #[track_caller]
    pub fn fill(&mut self, selector: &str, value: &str) {
        self.perform(&json!({"do": "fill", "selector": selector, "value": value}));
    }

    /// Chooses an option by its text.
    #[track_caller]
    pub fn choose(&mut self, selector: &str, value: &str) {
        self.perform(&json!({"do": "choose", "selector": selector, "value": value}));
    }

    /// Presses a key, such as `Enter`.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        self.perform(&json!({"do": "press", "key": key}));
    }

    /// Types a text.
    #[track_caller]
    pub fn type_text(&mut self, text: &str) {
        self.perform(&json!({"do": "type", "text": text}));
    }

    /// Waits until an element is shown.
    #[track_caller]
    pub fn wait(&mut self, selector: &str) {
        self.perform(&json!({"do": "wait", "selector": selector}));
    }

    /// Waits until an element is not shown.
    #[track_caller]
    pub fn wait_gone(&mut self, selector: &str) {
        self.perform(&json!({"do": "gone", "selector": selector}));
    }

    /// The text of an element, as it is shown.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        self.perform(&json!({"do": "text", "selector": selector}))
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The value of a field.
    #[track_caller]
    pub fn value(&mut self, selector: &str) -> String {
        self.perform(&json!({"do": "value", "selector": selector}))
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The number of elements.
    #[track_caller]
    pub fn count(&mut self, selector: &str) -> u64 {
        self.perform(&json!({"do": "count", "selector": selector})).as_u64().unwrap_or_default()
    }

    /// What the focused element says.
    #[track_caller]
    pub fn focused(&mut self) -> String {
        self.perform(&json!({"do": "focused"})).as_str().unwrap_or_default().to_owned()
    }

    /// The value of an expression on the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.perform(&json!({"do": "evaluate", "expression": expression}))
    }

    /// Sets the colour scheme, forced colours and the size of the page.
    #[track_caller]
    pub fn show_as(&mut self, scheme: &str, is_forced: bool, width: u32) {
        self.perform(&json!({
            "do": "media", "scheme": scheme, "forced": is_forced, "width": width, "height": 900,
        }));
    }

    /// The findings of axe-core on the page.
    #[track_caller]
    pub fn accessibility(&mut self) -> Vec<String> {
        let found = self.perform(&json!({"do": "axe"}));
        let found = found.as_array().cloned().unwrap_or_default();
        found.iter().map(|finding| finding.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Writes a picture of the page to a file.
    #[track_caller]
    pub fn screenshot(&mut self, path: &Path) {
        self.perform(&json!({"do": "screenshot", "path": path}));
    }

    /// Clicks, and returns the content of the file that is saved.
    #[track_caller]
    pub fn save(&mut self, selector: &str) -> String {
        self.perform(&json!({"do": "save", "selector": selector}))
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// What happened so far: `dialogs`, `foreign` requests, `errors`, `violations` of the policy, and `requests`.
    #[track_caller]
    pub fn seen(&mut self) -> Value {
        self.perform(&json!({"do": "seen"}))
    }

    /// The bytes of the page's objects after a collection.
    #[track_caller]
    pub fn heap(&mut self) -> u64 {
        self.perform(&json!({"do": "heap"})).as_u64().unwrap_or_default()
    }

    /// Fails if a script of others ran, or was stopped by the policy, or if the console itself failed.
    #[track_caller]
    pub fn assert_harmless(&mut self) {
        let seen = self.seen();
        for kind in ["dialogs", "foreign", "violations", "errors"] {
            assert_eq!(seen[kind], json!([]), "{kind}");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser when its input ends.
        self.input = None;
        let child = self.process.child();
        within(END, || matches!(child.try_wait(), Ok(Some(_))));
    }
}
