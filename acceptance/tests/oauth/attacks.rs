//! Logs in at an authorization server that misbehaves: every attack ends with an error, and no secret leaks.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use creole::proto::fault::Fault;
use creole_acceptance::oauth::{AutomaticPerson, RogueRequest, RogueResponse, RogueServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tracing_subscriber::filter::LevelFilter;

use crate::{call, connect, person, store};

/// The longest time that a login with a wrong document may take.
const QUICK: Duration = Duration::from_secs(20);

/// The path of the metadata of the authorization server.
const METADATA: &str = "/.well-known/oauth-authorization-server";

/// The path of the metadata of the protected resource.
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";

/// A login at a server that misbehaves.
struct Attempt {
    server: RogueServer,
    person: AutomaticPerson,
    result: Result<(), Fault>,
    folder: TempDir,
}

/// Logs in, calls a tool, and checks that no secret appears in the error or in a file besides the login.
async fn attempt(
    misbehaviour: impl Fn(&RogueRequest, &str) -> Option<RogueResponse> + Send + Sync + 'static,
) -> Attempt {
    let server = RogueServer::start(misbehaviour);
    let ((folder, store), person_) = (store(), AutomaticPerson::default());
    let url = server.url();
    let credentials = person(&url, &person_, Some(&store));
    let since = Instant::now();
    let result = match connect(&url, &credentials).await {
        Ok(client) => call(&client, "echo").await.map(drop),
        Err(fault) => Err(fault),
    };
    assert!(since.elapsed() < QUICK * 2, "{:?}", since.elapsed());
    let shown = format!("{result:?} {credentials:?} {:?}", credentials.login());
    assert!(!shown.contains("canary"), "{shown}");
    Attempt { server, person: person_, result, folder }
}

impl Attempt {
    /// The error, after checking that nothing was stored and no token was requested.
    #[track_caller]
    fn refused_without_token(&self) -> &str {
        assert_eq!(self.server.visits("/token"), 0, "a token was requested");
        self.refused()
    }

    /// The error, after checking that no person was asked.
    #[track_caller]
    fn refused_unasked(&self) -> &str {
        assert_eq!(self.person.visited(), Vec::<String>::new(), "a browser was opened");
        self.refused_without_token()
    }

    /// The error, after checking that no login was stored.
    #[track_caller]
    fn refused(&self) -> &str {
        let fault = self.result.as_ref().expect_err("the login succeeds");
        let is_login = |name: &str| name.ends_with(".json") && !name.starts_with("client-");
        let names = std::fs::read_dir(self.folder.path().join("logins")).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| is_login(name)).count(), 0, "a login is stored");
        let is_visible = |it: char| !it.is_control();
        assert!(fault.detail.chars().all(is_visible), "{:?}", fault.detail);
        assert!(fault.detail.len() < 1_000, "{}", fault.detail.len());
        &fault.detail
    }
}

/// Misbehaves in the response to one path.
fn at(
    path: &'static str,
    response: impl Fn(&RogueRequest, &str) -> RogueResponse + Send + Sync + 'static,
) -> impl Fn(&RogueRequest, &str) -> Option<RogueResponse> + Send + Sync + 'static {
    move |request, origin| (request.path == path).then(|| response(request, origin))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_behaves_well_is_used() {
    let attempt = attempt(|_, _| None).await;
    assert!(attempt.result.is_ok(), "{:?}", attempt.result);
    assert_eq!((attempt.person.logins(), attempt.server.visits("/token")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_leads_to_a_private_address_is_not_followed() {
    for issuer in [
        "https://169.254.169.254",
        "https://10.0.0.1",
        "https://192.168.1.1:8443/realm",
        "https://[::ffff:10.0.0.1]",
        "https://[fe80::1]",
        "https://[fd00::1]",
    ] {
        let servers = json!({"authorization_servers": [issuer]});
        let attempt = attempt(at(RESOURCE, move |_, origin| {
            RogueServer::resource_metadata(origin, &servers)
        }));
        let attempt = attempt.await;
        let error = attempt.refused_unasked();
        assert!(error.contains("the address is not public"), "{issuer}: {error}");
    }
    for member in ["token_endpoint", "registration_endpoint"] {
        let endpoint = json!({member: "https://169.254.169.254/latest/meta-data"});
        let attempt =
            attempt(at(METADATA, move |_, origin| RogueServer::metadata(origin, &endpoint)));
        let attempt = attempt.await;
        let error = attempt.refused_without_token();
        assert!(error.contains("the address is not public"), "{member}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_document_elsewhere_must_be_encrypted() {
    let challenge = "Bearer resource_metadata=\"http://10.0.0.1:6379/x\"";
    let attempt = attempt(at("/mcp", |_, _| RogueServer::challenge(401, challenge))).await;
    let error = attempt.refused_unasked();
    assert!(error.contains("`resource_metadata` must begin with https://"), "{error}");
    assert_eq!(attempt.server.requests().iter().filter(|it| it.path != "/mcp").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_are_no_web_addresses_are_refused() {
    for (member, value, said) in [
        ("authorization_endpoint", "javascript:alert(1)", "begins neither"),
        ("authorization_endpoint", "file:///etc/passwd", "begins neither"),
        ("authorization_endpoint", "https://x\" --y", "a character"),
        ("authorization_endpoint", "-x", "begins neither"),
        ("authorization_endpoint", "https://x\n/", "a character"),
        ("authorization_endpoint", "http://elsewhere.example/a", "must begin with https://"),
        ("token_endpoint", "http://elsewhere.example/t", "must begin with https://"),
        ("token_endpoint", "ftp://elsewhere.example/t", "begins neither"),
        ("token_endpoint", "https://user:pw@elsewhere.example/t", "has a user part"),
    ] {
        let endpoint = json!({member: value});
        let attempt =
            attempt(at(METADATA, move |_, origin| RogueServer::metadata(origin, &endpoint)));
        let attempt = attempt.await;
        let error = attempt.refused_unasked();
        assert!(error.contains(member) && error.contains(said), "{value}: {error}");
        assert_eq!(attempt.server.visits("/register"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_read_within_limits_of_size_and_depth() {
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(1024 * 1024));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let json = |text: &str| RogueResponse::Text(200, String::new(), text.to_owned());
    for path in [RESOURCE, METADATA] {
        for response in [json(&large), json(&deep), RogueResponse::Endless] {
            let attempt = attempt(at(path, move |_, _| response.clone())).await;
            attempt.refused_unasked();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_does_not_arrive_ends_the_login_in_time() {
    let (slow, nothing) = tokio::join!(
        attempt(at(METADATA, |_, _| RogueResponse::Slow)),
        attempt(at(RESOURCE, |_, _| RogueResponse::Nothing)),
    );
    for attempt in [slow, nothing] {
        let error = attempt.refused_unasked();
        assert!(error.contains("within 10 s"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_elsewhere_is_not_followed() {
    let other = RogueServer::start(|_, _| None);
    let elsewhere = format!("{}{METADATA}", other.origin());
    for path in [RESOURCE, METADATA] {
        for to in [elsewhere.clone(), "http://169.254.169.254/latest/meta-data".to_owned()] {
            let attempt = attempt(at(path, move |_, _| RogueResponse::Redirect(to.clone()))).await;
            let error = attempt.refused_unasked();
            assert!(error.contains("status 302"), "{error}");
        }
        let round = attempt(at(path, move |_, _| RogueResponse::Redirect(path.to_owned()))).await;
        round.refused_unasked();
        assert!(round.server.visits(path) < 10, "{}", round.server.visits(path));
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_of_another_resource_or_issuer_is_refused() {
    let resource = json!({"resource": "https://evil.example.com/mcp"});
    let other =
        attempt(at(RESOURCE, move |_, origin| RogueServer::resource_metadata(origin, &resource)))
            .await;
    let error = other.refused_unasked();
    let url = other.server.url();
    let expected = format!("resource mismatch: {url} publishes https://evil.example.com/mcp");
    assert!(error.ends_with(&expected), "{error}");
    for issuer in ["ORIGIN/", "https://id.example.com", ""] {
        let other = attempt(at(METADATA, move |_, origin| {
            let issuer = issuer.replace("ORIGIN", origin);
            RogueServer::metadata(origin, &json!({"issuer": issuer}))
        }));
        let other = other.await;
        let error = other.refused_unasked();
        assert!(error.contains("issuer mismatch: the metadata of"), "{error}");
        assert_eq!(other.server.visits("/register"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_sent_as_it_was_written() {
    let attempt = attempt(at(RESOURCE, |_, origin| {
        RogueServer::resource_metadata(origin, &json!({"resource": origin}))
    }));
    let attempt = attempt.await;
    assert!(attempt.result.is_ok(), "{:?}", attempt.result);
    let written = attempt.server.origin().replace(':', "%3A").replace('/', "%2F");
    for path in ["/authorize", "/token"] {
        let requests = attempt.server.requests();
        let request = requests.iter().find(|it| it.path == path).unwrap();
        assert_eq!(request.parameter("resource"), Some(&*written), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_pkce_is_not_used() {
    for methods in [json!(["plain"]), json!([]), Value::Null] {
        let methods = json!({"code_challenge_methods_supported": methods});
        let attempt =
            attempt(at(METADATA, move |_, origin| RogueServer::metadata(origin, &methods)));
        let attempt = attempt.await;
        let error = attempt.refused_unasked();
        let expected =
            format!("{} does not advertise PKCE S256; refusing to log in", attempt.server.origin());
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_of_another_issuer_or_login_requests_no_token() {
    for (rest, said) in [
        ("code=canary-code&state=STATE&iss=https%3A%2F%2Fevil.example", "issuer mismatch in the"),
        ("code=canary-code&state=STATE", "issuer mismatch in the authorization response"),
        ("error=access_denied&state=STATE&iss=https%3A%2F%2Fevil.example", "issuer mismatch in"),
        ("code=canary-code&state=another&iss=ISSUER", "its state is that of another request"),
        ("code=canary-code&iss=ISSUER", "its state is that of another request"),
        ("code=canary-code&code=x&state=STATE&iss=ISSUER", "it repeats a parameter"),
        ("state=STATE&iss=ISSUER", "it has no code"),
    ] {
        let attempt = attempt(at("/authorize", move |request, origin| {
            let issuer = origin.replace(':', "%3A").replace('/', "%2F");
            let query = rest
                .replace("STATE", request.parameter("state").unwrap_or_default())
                .replace("ISSUER", &issuer);
            RogueResponse::Redirect(format!("http://127.0.0.1:33418/callback?{query}"))
        }));
        let attempt = attempt.await;
        let error = attempt.refused_without_token();
        assert!(error.contains(said), "{rest}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_response_that_cannot_be_used_is_not_stored() {
    let tokens = |members: Value| {
        let mut document = json!({"access_token": "canary-access-1", "token_type": "Bearer"});
        for (name, value) in members.as_object().into_iter().flatten() {
            document[name] = value.clone();
        }
        RogueResponse::Json(200, document)
    };
    for (response, said) in [
        (tokens(json!({"token_type": "mac"})), "type of token"),
        (tokens(json!({"token_type": null})), "type of token"),
        (tokens(json!({"token_type": "DPoP"})), "type of token"),
        (tokens(json!({"access_token": "canary-\n-access"})), "no usable access token"),
        (tokens(json!({"access_token": "x".repeat(17 * 1024)})), "no usable access token"),
        (tokens(json!({"access_token": "x".repeat(1024 * 1024)})), "longer than 64 KiB"),
        (RogueResponse::Endless, "longer than 64 KiB"),
        (RogueResponse::Text(200, String::new(), "canary page".to_owned()), "not a JSON document"),
        (RogueResponse::Redirect("http://127.0.0.1:1/".to_owned()), "302"),
        (
            RogueResponse::Json(
                400,
                json!({"error": "invalid_grant", "error_description": "\u{1b}[2J\r\n\u{202e}no"}),
            ),
            "invalid_grant",
        ),
        (RogueResponse::Json(400, json!({"error": "\u{1b}]0;x\u{7}".repeat(500)})), "refused"),
    ] {
        let attempt = attempt(at("/token", move |_, _| response.clone())).await;
        let error = attempt.refused();
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_not_sent_to_where_the_token_endpoint_redirects() {
    let attempt = attempt(|request, origin| match request.path.as_str() {
        "/token" => {
            let head = format!("Location: {origin}/steal\r\n");
            Some(RogueResponse::Text(307, head, String::new()))
        }
        _ => None,
    });
    let attempt = attempt.await;
    attempt.refused();
    assert_eq!((attempt.server.visits("/token"), attempt.server.visits("/steal")), (1, 0));
}

/// A log that a test reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_log_no_address_and_no_file_but_the_login() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .init();
    // One login succeeds, and the others fail in different ways after the secrets were given.
    let good = attempt(|_, _| None).await;
    let refused = attempt(|request, _| {
        let is_authorized = request.path == "/mcp" && request.authorization.is_some();
        is_authorized.then(|| RogueServer::challenge(401, "Bearer error=\"invalid_token\""))
    });
    let refused = refused.await;
    let failed =
        attempt(at("/token", |_, _| RogueResponse::Json(400, json!({"error": "invalid_grant"}))));
    let failed = failed.await;
    assert!(good.result.is_ok() && refused.result.is_err() && failed.result.is_err());
    let mut secrets = vec!["canary".to_owned()];
    for attempt in [&good, &refused, &failed] {
        for request in attempt.server.requests() {
            for name in ["code_verifier", "state"] {
                secrets.extend(request.parameter(name).map(str::to_owned));
            }
            assert!(!request.query.contains("canary"), "{}", request.query);
        }
        for url in attempt.person.visited() {
            assert!(!url.contains("code_verifier"), "{url}");
        }
    }
    assert!(secrets.len() > 5, "{}", secrets.len());
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!log.is_empty());
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "{secret} is in the log");
    }
    let mut stored = Vec::new();
    for entry in std::fs::read_dir(good.folder.path().join("logins")).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::read_to_string(&path).unwrap().contains("canary") {
            stored.push(path);
        }
    }
    assert_eq!(stored.len(), 1, "{stored:?}");
}
