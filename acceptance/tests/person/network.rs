//! Tests of proxies and private certificate authorities, set by the environment and by flags.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use creole_acceptance::http::server::ListeningServer;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::working_folder::Sandbox;

/// A proxy that opens tunnels and reports the head of each request.
fn proxy() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, heads) = channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let sender = sender.clone();
            thread::spawn(move || tunnel(client, &sender));
        }
    });
    (format!("http://ann:secret@{address}"), heads)
}

fn tunnel(mut client: TcpStream, sender: &std::sync::mpsc::Sender<String>) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let location = head.split(' ').nth(1)?.to_owned();
    sender.send(head).ok()?;
    let server = TcpStream::connect(location).ok()?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || std::io::copy(&mut from, &mut to));
    let mut server = server;
    std::io::copy(&mut client, &mut server).ok()?;
    server.shutdown(std::net::Shutdown::Write).ok()
}

/// The certificate of an authority, and a certificate that it issued for `localhost` with its key, in PEM form.
fn certificates() -> (String, String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("a certificate");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("a certificate").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a certificate");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    (authority, certificate.pem(), key.serialize_pem())
}

/// A server with TLS, and its URL.
fn encrypted(sandbox: &Sandbox) -> (ListeningServer, String) {
    let (authority, certificate, key) = certificates();
    sandbox.write("ca.pem", &authority);
    let certificate = sandbox.write("certificate.pem", &certificate);
    let key = sandbox.write("key.pem", &key);
    let text = format!(
        "[server]\npacks = [\"echo\"]\n[http.tls]\ncertificate = {certificate:?}\nkey = {key:?}\n"
    );
    let file = sandbox.write("server.toml", &text);
    let listening =
        ListeningServer::start(&[&file.display().to_string()]).expect("the server listens");
    let url = format!("https://localhost:{}/mcp", listening.address().port());
    (listening, url)
}

/// Runs a command with these environment variables.
fn run(sandbox: &Sandbox, words: &[&str], environment: &[(&str, &str)]) -> FinishedCommand {
    let mut command = sandbox.command(words);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    FinishedCommand::run(command.envs(environment.iter().copied()), "")
}

#[test]
fn a_private_authority_is_trusted_by_flag_by_environment_and_by_configuration() {
    let sandbox = Sandbox::new();
    let (_listening, url) = encrypted(&sandbox);
    let call = ["call", &url, "echo", "--arg", "message=hi"];
    let unknown = run(&sandbox, &call, &[]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("cannot be trusted"), "{}", unknown.stderr);
    let trusting = run(&sandbox, &[&call[..], &["--cacert", "ca.pem"]].concat(), &[]);
    assert_eq!(trusting.succeeded().stdout, "hi\n");
    let authority = sandbox.path().join("ca.pem").display().to_string();
    let trusting = run(&sandbox, &call, &[("SSL_CERT_FILE", &authority)]);
    assert_eq!(trusting.succeeded().stdout, "hi\n");
    let behind = format!(
        "[server]\n[upstreams.far]\nurl = \"{url}\"\nca_file = \"ca.pem\"\nprefix = \"\"\n"
    );
    sandbox.write("behind.toml", &behind);
    let program =
        creole_acceptance::stage::stdio::binary().expect("the binary").display().to_string();
    let words = ["call", "echo", "--arg", "message=hi", "--", &program, "serve", "behind.toml"];
    assert_eq!(run(&sandbox, &words, &[]).succeeded().stdout, "hi\n");
}

#[test]
fn a_file_without_a_certificate_is_refused_before_anything_is_sent() {
    let sandbox = Sandbox::new();
    sandbox.write("ca.pem", "nothing");
    let words = ["list", "https://localhost:1/mcp", "--cacert", "ca.pem"];
    let refused = run(&sandbox, &words, &[]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("`ca.pem` contains no valid PEM certificate"),
        "{}",
        refused.stderr
    );
    let behind = "[server]\n[upstreams.far]\nurl = \"https://a/mcp\"\nca_file = \"no.pem\"\n";
    sandbox.write("behind.toml", behind);
    let refused = run(&sandbox, &["config", "check", "behind.toml"], &[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("no.pem` cannot be read"), "{}", refused.stderr);
    assert!(refused.stderr.contains("behind.toml:4:"), "{}", refused.stderr);
}

#[test]
fn the_proxy_of_the_environment_is_used_unless_no_proxy_names_the_host() {
    let sandbox = Sandbox::new();
    let (_listening, url) = encrypted(&sandbox);
    let call = ["call", &url, "echo", "--arg", "message=hi", "--cacert", "ca.pem"];
    let (proxy, heads) = proxy();
    let output = run(&sandbox, &call, &[("HTTPS_PROXY", &proxy)]);
    assert_eq!(output.succeeded().stdout, "hi\n");
    let head = heads.recv().expect("a request");
    let host = url.trim_start_matches("https://").trim_end_matches("/mcp");
    assert!(head.starts_with(&format!("CONNECT {host} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("proxy-authorization: Basic YW5uOnNlY3JldA=="), "{head}");
    let dead = ("https_proxy", "http://ann:secret@127.0.0.1:1");
    let output = run(&sandbox, &call, &[dead, ("NO_PROXY", "localhost")]);
    assert_eq!(output.succeeded().stdout, "hi\n");
    let output = run(&sandbox, &call, &[dead]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("the proxy 127.0.0.1:1 refuses connections"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
}

#[test]
fn programs_get_the_proxies_and_the_authorities_of_the_network() {
    let sandbox = Sandbox::new();
    let script = r#"printf '%s %s %s %s' "$HTTPS_PROXY" "$no_proxy" "$NODE_EXTRA_CA_CERTS" "$SSL_CERT_DIR" > seen; exit 1"#;
    let environment = [
        ("HTTPS_PROXY", "http://p:1"),
        ("no_proxy", "a,b"),
        ("NODE_EXTRA_CA_CERTS", "/x.pem"),
        ("SSL_CERT_DIR", "/certs"),
    ];
    run(&sandbox, &["list", "--", "sh", "-c", script], &environment);
    assert_eq!(sandbox.read("seen"), "http://p:1 a,b /x.pem /certs");
}
