//! Tests of the messages about typing errors and wrong servers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use creole_acceptance::http::server::ListeningServer;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use super::{FinishedCommand, Sandbox};

/// The address of a server that responds to every connection with these bytes.
pub(super) fn serve_response(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(bytes);
        }
    });
    address
}

#[track_caller]
fn assert_says(output: &FinishedCommand, code: i32, description: &str) {
    assert_eq!(output.code, Some(code), "{output:?}");
    assert!(output.stderr.contains(description), "{description}\n{}", output.stderr);
}

#[test]
fn a_wrong_path_is_reported_with_the_likely_right_one() {
    let sandbox = Sandbox::with("");
    let listening = ListeningServer::start(&["--preset", "default"]).unwrap();
    let address = listening.address().to_string();
    let root = sandbox.run(&["list", &format!("http://{address}/")]);
    assert_says(&root, 1, "responds with status 404 at `/`; MCP endpoints are often at `/mcp`");
    let bare = sandbox.run(&["list", &format!("{address}/mcp")]);
    assert_says(&bare, 2, &format!("did you mean `http://{address}/mcp`?"));
    let encrypted = sandbox.run(&["list", &format!("https://{address}/mcp")]);
    assert_says(&encrypted, 1, "does not support TLS; try `http://`");
}

#[test]
fn a_tls_port_is_suggested() {
    // The alert that a TLS server sends in response to plain HTTP.
    let address = serve_response(&[21, 3, 3, 0, 2, 2, 10]);
    let output = Sandbox::with("").run(&["list", &format!("http://{address}/mcp")]);
    assert_says(&output, 1, "it may be a TLS port: try `https://`");
}

#[test]
fn a_rate_limit_names_its_retry_delay() {
    let address = serve_response(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    let output = Sandbox::with("").run(&["list", &format!("http://{address}/mcp")]);
    assert_says(&output, 1, "the rate limit is reached (status 429); try again in 1 s");
    let limited = "[server]\npacks = [\"echo\"]\nchain = [{ kind = \"rate-limit\", overall_calls = 1, seconds = 3600 }]\n\
                   [tools.x]\ndescription = \"x\"\ncommand = [\"true\"]\n";
    assert_eq!(Sandbox::with(limited).run(&["config", "check", "creole.toml"]).code, Some(0));
}

#[test]
fn a_certificate_that_cannot_be_trusted_is_explained() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let sandbox = Sandbox::with(
        "[server]\npacks = [\"echo\"]\n[http.tls]\ncertificate = \"ca.pem\"\nkey = \"key.pem\"\n",
    );
    sandbox.write("ca.pem", &authority);
    sandbox.write("key.pem", &key.serialize_pem());
    let file = sandbox.path().join("creole.toml").display().to_string();
    let listening = ListeningServer::start(&[&file]).unwrap();
    let url = format!("https://localhost:{}/mcp", listening.address().port());
    let output = sandbox.run(&["list", &url, "--cacert", "ca.pem"]);
    assert_says(&output, 1, "its certificate is a CA certificate and not a server certificate");
}

#[test]
fn a_program_that_is_no_server_is_shown_with_what_it_wrote() {
    let sandbox = Sandbox::with("");
    let output = sandbox.run(&["list", "--", "echo", "hello", "world"]);
    assert_says(
        &output,
        1,
        "`echo` exited with code 0 without an MCP response; it wrote:\n  hello world",
    );
    // The error is printed once, without empty lines between those of the program.
    let output =
        sandbox.run(&["list", "--", "sh", "-c", "echo one; echo two; echo three >&2; exit 3"]);
    let expected = "error: `sh` exited with code 3 without an MCP response; it wrote:\n  one\n  two\n  three\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), expected));
}

#[test]
fn a_program_that_never_answers_is_shown_with_what_it_wrote() {
    let sandbox =
        Sandbox::with("[server]\npacks = [\"hello\"]\n[http]\nlisten = \"127.0.0.1:0\"\n");
    let binary = creole_acceptance::stage::stdio::binary().unwrap().display().to_string();
    let output = sandbox.run(&["list", "--timeout", "6", "--", &binary, "serve", "creole.toml"]);
    assert_says(&output, 1, "WARN `creole` has not responded for 5 s");
    assert_says(
        &output,
        1,
        "error: `creole` did not respond within 6 s; its last lines on stderr:\n",
    );
    assert_says(
        &output,
        1,
        "  creole: serving HTTP because of `[http]`; use --stdio to serve stdin and stdout\n",
    );
}

#[test]
fn json_is_not_read_as_a_configuration() {
    let sandbox = Sandbox::with("{ \"mcpServers\": {} }\n");
    for words in [&["serve", "creole.toml"][..], &["list", "--config", "creole.toml"]] {
        let output = sandbox.run(words);
        assert_says(&output, 2, "is JSON, but a configuration is TOML");
        assert_says(&output, 2, "`creole import creole.toml` converts it to a configuration");
    }
}

#[test]
fn a_port_alone_means_this_machine() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Sandbox::with("").run(&["serve", "--http", &port]);
    let reason = "the address is in use by another program; stop it, or choose another port with --http or `listen`";
    assert_says(&output, 1, &format!("cannot listen on 127.0.0.1:{port}: {reason}"));
}
