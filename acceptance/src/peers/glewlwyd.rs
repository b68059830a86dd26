//! An authorization server of another author, Glewlwyd, which publishes its metadata only in the form of OpenID Connect
//! that is appended to the issuer.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use creole_test_wait::blocking::within;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::install::{Missing, folder, node, once, read, source, tool};
use super::process;
use crate::canaries;
use crate::http::{Request, Response};
use crate::process_under_test::ChildGuard;

/// How long it may take to start.
const BEGINNING: Duration = Duration::from_secs(30);

/// The program that gets tokens, and its secret.
const CLIENT: [&str; 2] = ["service", "canary-glewlwyd-secret"];

/// A running server with one module `oidc`. It ends when dropped.
pub struct Glewlwyd {
    _process: ChildGuard,
    _data: TempDir,
    /// The server listens here; others only see the address of the recorder.
    address: SocketAddr,
    recorder: Recorder,
}

/// Installs it, if that was not done before.
pub fn prepared() -> Result<(), Missing> {
    let script = source("glewlwyd/prepare.sh");
    let folder = folder("glewlwyd");
    once("glewlwyd", &read(&script)?, &folder.join("root/usr/bin/glewlwyd"), || {
        let mut shell = Command::new("sh");
        shell.arg(&script).arg(&folder);
        tool("sh", &mut shell).map(drop)
    })
}

impl Glewlwyd {
    /// Starts a server that gives tokens for these resources.
    pub fn start(resources: &[&str]) -> Result<Self, Missing> {
        prepared()?;
        let wrong = |error: String| Missing(format!("Glewlwyd does not start: {error}"));
        let data = tempfile::tempdir().map_err(|error| wrong(error.to_string()))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| wrong(error.to_string()))?;
        let recorder = Recorder::start(address);
        write_files(data.path(), address, &recorder.origin)?;
        let root = folder("glewlwyd").join("root/usr");
        let mut command = Command::new(root.join("bin/glewlwyd"));
        command.arg(format!("--config-file={}", data.path().join("glewlwyd.conf").display()));
        command
            .env("LD_LIBRARY_PATH", root.join(format!("lib/{}-linux-gnu", std::env::consts::ARCH)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildGuard::start(&mut command);
        within(BEGINNING, || TcpStream::connect(address).is_ok())
            .ok_or_else(|| wrong(format!("nothing listens on {address}")))?;
        let server = Self { _process: process, _data: data, address, recorder };
        server.set_up(resources).map_err(wrong)?;
        Ok(server)
    }

    /// The issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("{}/api/oidc", self.recorder.origin)
    }

    /// The method and the path of each request so far, except those of this value.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.recorder.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An access token of the program for a resource.
    #[track_caller]
    #[must_use]
    pub fn access_token(&self, resource: &str) -> String {
        let resource = resource.replace(':', "%3A").replace('/', "%2F");
        let form = format!("grant_type=client_credentials&scope=mcp&resource={resource}");
        let credentials = canaries::base64(CLIENT.join(":").as_bytes());
        let request = Request::to("POST", "/api/oidc/token", form)
            .with("Content-Type", "application/x-www-form-urlencoded")
            .with("Authorization", &format!("Basic {credentials}"));
        let response = request.send(self.address).expect("a response").message();
        let token = response["access_token"].as_str();
        let token = token.unwrap_or_else(|| panic!("no token: {response}"));
        canaries::watch(token);
        token.to_owned()
    }

    /// Creates the scope, the module and the client.
    fn set_up(&self, resources: &[&str]) -> Result<(), String> {
        let administrator = json!({"username": "admin", "password": "password"});
        let response = self.send("/api/auth/", &administrator, None)?;
        let cookie = response.head.field("set-cookie").and_then(|it| it.split(';').next());
        let cookie = cookie.ok_or("it gives no session")?.to_owned();
        let scope = json!({
            "name": "mcp", "display_name": "mcp", "password_required": false, "scheme": {},
        });
        self.send("/api/scope/", &scope, Some(&cookie))?;
        let parameters = self.module_parameters(resources)?;
        let module = json!({
            "module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": parameters,
        });
        self.send("/api/mod/plugin/", &module, Some(&cookie))?;
        let client = json!({
            "client_id": CLIENT[0], "client_secret": CLIENT[1], "confidential": true,
            "authorization_type": ["client_credentials"], "scope": ["mcp"], "enabled": true,
            "token_endpoint_auth_method": ["client_secret_basic"], "redirect_uri": [],
        });
        self.send("/api/client/", &client, Some(&cookie)).map(drop)
    }

    fn module_parameters(&self, resources: &[&str]) -> Result<Value, String> {
        let mut script = Command::new(node().map_err(|missing| missing.to_string())?);
        script.arg(source("glewlwyd/key.mjs"));
        let printed = process::output(&mut script, Instant::now() + BEGINNING)?;
        let mut parameters: Value =
            serde_json::from_str(&printed.stdout).map_err(|error| error.to_string())?;
        let others = json!({
            "iss": self.issuer(), "jwt-type": "rsa", "jwt-key-size": "256", "jwks-show": true,
            "subject-type": "public", "allow-non-oidc": true,
            "access-token-duration": 3600, "refresh-token-duration": 86400, "code-duration": 600,
            "refresh-token-rolling": true, "scope": [],
            "auth-type-client-enabled": true, "auth-type-code-enabled": true,
            "auth-type-token-enabled": false, "auth-type-id-token-enabled": true,
            "auth-type-none-enabled": false, "auth-type-password-enabled": false,
            "auth-type-refresh-enabled": true,
            "pkce-allowed": true, "pkce-method-plain-allowed": false,
            "resource-allowed": true, "resource-scope": {"mcp": resources},
            "resource-client-property": "", "resource-scope-and-client-property": false,
        });
        for (name, value) in others.as_object().into_iter().flatten() {
            parameters[name] = value.clone();
        }
        Ok(parameters)
    }

    /// Sends a document to the administration.
    fn send(&self, path: &str, body: &Value, cookie: Option<&str>) -> Result<Response, String> {
        let mut request =
            Request::to("POST", path, body.to_string()).with("Content-Type", "application/json");
        if let Some(cookie) = cookie {
            request = request.with("Cookie", cookie);
        }
        let response = request.send(self.address)?;
        match response.head.status {
            200 => Ok(response),
            status => Err(format!("{path}: status {status}: {}", response.text())),
        }
    }
}

/// Writes the database and the configuration, which is the sample with other places.
fn write_files(data: &Path, address: SocketAddr, origin: &str) -> Result<(), Missing> {
    let prepared = folder("glewlwyd");
    let wrong = |error: String| Missing(format!("the files of Glewlwyd: {error}"));
    let database = data.join("glewlwyd.db");
    let connection = Connection::open(&database).map_err(|error| wrong(error.to_string()))?;
    let script = read(&prepared.join("database.sql"))?;
    connection.execute_batch(&script).map_err(|error| wrong(error.to_string()))?;
    let unpacked = format!("\"{}/usr/", prepared.join("root").display());
    let port = format!("port={}\nbind_address=\"127.0.0.1\"\n", address.port());
    let configuration = read(&prepared.join("sample.conf"))?
        .replace("\"/usr/", &unpacked)
        .replace("port=4593\n", &port)
        .replace("http://localhost:4593", origin)
        .replace("cookie_secure=1", "cookie_secure=0")
        .replace("/var/cache/glewlwyd/glewlwyd.db", &database.display().to_string());
    fs::write(data.join("glewlwyd.conf"), configuration).map_err(|error| wrong(error.to_string()))
}

/// Passes requests on to a server, and records them.
struct Recorder {
    origin: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("its port"));
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&requests);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let noted = Arc::clone(&noted);
                // Either end may leave.
                thread::spawn(move || pass_on(client, server, &noted));
            }
        });
        Self { origin, requests }
    }
}

/// Passes one request without a body on, and its response back.
fn pass_on(
    mut client: TcpStream,
    server: SocketAddr,
    noted: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let words: Vec<&str> = line.split(' ').take(2).collect();
    noted.lock().unwrap_or_else(PoisonError::into_inner).push(words.join(" "));
    let head =
        format!("{line}Host: {server}\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
    loop {
        let mut field = String::new();
        if reader.read_line(&mut field)? <= 2 {
            break;
        }
    }
    let mut server = TcpStream::connect(server)?;
    server.write_all(head.as_bytes())?;
    let mut response = Vec::new();
    server.read_to_end(&mut response)?;
    client.write_all(&response)
}
