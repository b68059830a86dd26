//! Tests of the server on a port: its start, its robustness and its shutdown (security B15, C27, C29, D22).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole_acceptance::process_under_test::{ChildGuard, serve, shell};

/// A listening server, and the rest of its stderr.
struct ListeningProcess {
    process: ChildGuard,
    said: BufReader<std::process::ChildStderr>,
    line: String,
    address: SocketAddr,
}

impl ListeningProcess {
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = ChildGuard::start(silent);
        let mut stderr = BufReader::new(process.child().stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).parse().unwrap();
        Self { process, said: stderr, line, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// The first line of the response.
    fn ask(&self, path: &str) -> String {
        let mut stream = self.connect();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.lines().next().unwrap_or_default().to_owned()
    }

    fn signal(&mut self, name: &str) {
        let number = self.process.child().id().to_string();
        assert!(Command::new("kill").args([name, &number]).status().unwrap().success());
    }

    /// Its exit code, and its last output.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        (self.process.wait(), rest)
    }
}

fn write(folder: &Path, text: &str) {
    fs::write(folder.join("creole.toml"), text).unwrap();
}

#[test]
fn it_says_where_it_listens_and_ends_with_zero_when_told() {
    let data = tempfile::tempdir().unwrap();
    for signal in ["-TERM", "-INT"] {
        let mut server =
            ListeningProcess::start(&mut serve(data.path(), &["--http", "localhost:0"]));
        let expected = format!("creole: `creole` listens on http://{}/mcp\n", server.address);
        assert_eq!(server.line, expected);
        assert_ne!(server.address.port(), 0);
        assert_eq!(server.ask("/health"), "HTTP/1.1 200 OK");
        assert_eq!(server.ask("/ready"), "HTTP/1.1 200 OK");
        server.signal("-HUP");
        assert_eq!(server.ask("/health"), "HTTP/1.1 200 OK");
        let idle = server.connect();
        server.signal(signal);
        let expected =
            "creole: shutting down after the running calls; a second signal exits at once\n";
        assert_eq!(server.end(), (Some(0), expected.to_owned()));
        drop(idle);
    }
}

#[test]
fn the_file_configures_a_listener_and_the_command_line_overrides_it() {
    let data = tempfile::tempdir().unwrap();
    write(
        data.path(),
        "[server]\nname = \"acme\"\n[http]\nlisten = \"127.0.0.1:0\"\npath = \"/a/b\"\n",
    );
    let file = data.path().join("creole.toml");
    let file = file.to_str().unwrap();
    let mut server = ListeningProcess::start(&mut serve(data.path(), &[file]));
    assert!(
        server.line.starts_with("creole: `acme` listens on http://127.0.0.1:"),
        "{}",
        server.line
    );
    assert!(server.line.ends_with("/a/b\n"), "{}", server.line);
    assert_eq!(server.ask("/mcp"), "HTTP/1.1 404 Not Found");
    server.signal("-TERM");
    assert_eq!(server.end().0, Some(0));
    let output = serve(data.path(), &[file, "--stdio"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn an_address_that_others_can_reach_needs_to_know_who_calls() {
    let data = tempfile::tempdir().unwrap();
    let output =
        serve(data.path(), &["--http", "0.0.0.0:0"]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("[auth]") && text.contains("--dangerously-without-auth"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");

    let words = ["--http", "0.0.0.0:0", "--dangerously-without-auth"];
    let mut command = serve(data.path(), &words);
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = ChildGuard::start(silent);
    let mut stderr = BufReader::new(process.child().stderr.take().unwrap());
    let (mut warning, mut line) = (String::new(), String::new());
    stderr.read_line(&mut warning).unwrap();
    stderr.read_line(&mut line).unwrap();
    assert!(warning.starts_with("warning: 0.0.0.0:0 can be reached"), "{warning}");
    assert!(line.contains("listens on http://0.0.0.0:"), "{line}");
}

#[test]
fn a_port_in_use_and_an_invalid_certificate_are_named() {
    let data = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = serve(data.path(), &["--http", &address]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with(&format!("error: cannot listen on {address}: ")), "{text}");

    write(
        data.path(),
        "[server]\n[http]\nlisten = \"127.0.0.1:0\"\ntls = { certificate = \"c\", key = \"k\" }\n",
    );
    let file = data.path().join("creole.toml");
    let output =
        serve(data.path(), &[file.to_str().unwrap()]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    let beside = data.path().join("c");
    assert!(text.starts_with(&format!("error: {}: ", beside.display())), "{text}");
}

#[test]
fn without_file_descriptors_the_server_waits_and_recovers() {
    let data = tempfile::tempdir().unwrap();
    let script = "ulimit -n 40; exec creole serve --http 127.0.0.1:0 --log off";
    let mut server = ListeningProcess::start(&mut shell(data.path(), script));
    let mut live = server.connect();
    let ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut healthy = [0; 15];
    live.write_all(ask).unwrap();
    live.read_exact(&mut healthy).unwrap();
    let many: Vec<TcpStream> = (0..80).map(|_| server.connect()).collect();
    live.write_all(ask).unwrap();
    let mut rest = vec![0; 200];
    assert!(live.read(&mut rest).unwrap() > 0, "connected clients are served");
    drop(many);
    assert_eq!(server.ask("/health"), "HTTP/1.1 200 OK", "new clients are served again");
    server.signal("-TERM");
    assert_eq!(server.end().0, Some(0));
}
