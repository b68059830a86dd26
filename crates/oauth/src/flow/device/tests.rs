//! Logins at another device, with servers that are functions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{DeviceCode, DeviceScreen, log_in_device};
use crate::error::OAuthError;
use crate::flow::attempt::{LoginTarget, find_server};
use crate::http::exchange::{Body, Request, Response};
use crate::settings::LoginSettings;
use crate::testing::{Servers, not_found, response, run};
use crate::tokens::login::Login;
use crate::web_url::WebUrl;

const SERVER: &str = "https://mcp.example.com/mcp";
const DEVICE: &str = r#"{"device_code":"d","user_code":"AB-CD","verification_uri":"https://id.example.com/d","expires_in":60}"#;

#[derive(Default)]
struct Screen(Mutex<Vec<DeviceCode>>);

impl DeviceScreen for Screen {
    async fn show(&self, code: &DeviceCode) -> Result<(), OAuthError> {
        self.0.lock().unwrap().push(code.clone());
        Ok(())
    }
}

fn metadata(request: &Request) -> Response {
    match request.url.path() {
        "/.well-known/oauth-protected-resource/mcp" => response(
            200,
            format!(
                r#"{{"resource":"{SERVER}","authorization_servers":["https://id.example.com"]}}"#
            ),
        ),
        "/.well-known/oauth-authorization-server" => response(
            200,
            r#"{"issuer":"https://id.example.com","token_endpoint":"https://id.example.com/token",
            "device_authorization_endpoint":"https://id.example.com/device",
            "registration_endpoint":"https://id.example.com/register"}"#,
        ),
        "/register" => response(201, r#"{"client_id":"registered"}"#),
        _ => not_found(),
    }
}

/// Logs in at a server that answers the token requests in this order, and the last one for ever.
fn log_in(device: &'static str, tokens: Vec<Response>) -> (Result<Login, OAuthError>, Servers) {
    let count = AtomicUsize::new(0);
    let servers = Servers::new(move |it| match it.url.path() {
        "/device" => response(200, device),
        "/token" => {
            let at = count.fetch_add(1, Ordering::Relaxed).min(tokens.len() - 1);
            tokens[at].clone()
        }
        _ => metadata(it),
    });
    let (server, settings, screen) =
        (WebUrl::parse(SERVER).unwrap(), LoginSettings::default(), Screen::default());
    let target =
        LoginTarget { server: &server, challenges: &[], previous: None, registrations: &[] };
    let found = run(find_server(&servers, &settings, target)).unwrap();
    let login = run(log_in_device(&servers, &screen, &settings, target, &found));
    if let Some(shown) = screen.0.lock().unwrap().first() {
        assert_eq!(shown.user_code, "AB-CD");
        assert_eq!(shown.verification_uri.as_str(), "https://id.example.com/d");
    }
    (login, servers)
}

fn error(code: &str) -> Response {
    response(400, format!(r#"{{"error":"{code}"}}"#))
}

#[test]
fn tokens_are_requested_until_the_person_has_finished() {
    let token = response(200, r#"{"access_token":"t","token_type":"Bearer"}"#);
    let answers = vec![error("authorization_pending"), error("slow_down"), token];
    let (login, servers) = log_in(DEVICE, answers);
    assert_eq!(login.unwrap().access_token.expose(), "t");
    assert_eq!(*servers.waits.lock().unwrap(), [5, 5, 10]);
    for url in ["https://id.example.com/device", "https://id.example.com/token"] {
        let form = servers.forms(url).remove(0);
        let has = |name: &str, value: &str| form.contains(&(name.to_owned(), value.to_owned()));
        assert!(has("resource", SERVER) && has("client_id", "registered"), "{url}");
    }
    let requests = servers.requests.lock().unwrap();
    let body = requests.iter().find_map(|it| match &it.body {
        Some(Body::Json(text)) => Some(text.clone()),
        _ => None,
    });
    assert!(body.unwrap().contains("urn:ietf:params:oauth:grant-type:device_code"));
}

#[test]
fn a_login_that_no_person_finishes_ends() {
    let (login, servers) = log_in(DEVICE, vec![error("authorization_pending")]);
    assert_eq!(login.unwrap_err(), OAuthError::TimedOut { seconds: 60 });
    assert_eq!(servers.waits.lock().unwrap().len(), 12);
    let (login, _) = log_in(DEVICE, vec![error("access_denied")]);
    assert!(matches!(login, Err(OAuthError::Declined { .. })));
    let (login, servers) = log_in(DEVICE, vec![error("invalid_grant")]);
    assert!(matches!(login, Err(OAuthError::Refused { .. })));
    assert_eq!(servers.waits.lock().unwrap().len(), 1);
}

#[test]
fn a_code_that_cannot_be_shown_is_refused() {
    for device in [
        "{}",
        r#"{"device_code":"d","user_code":"A\u001b[2J","verification_uri":"https://id.example.com/d"}"#,
        r#"{"device_code":"d","user_code":"A","verification_uri":"javascript:x"}"#,
        r#"{"device_code":"d","user_code":"A","verification_uri":"http://id.example.com/d"}"#,
    ] {
        let (login, servers) = log_in(device, vec![error("x")]);
        assert!(login.is_err() && servers.waits.lock().unwrap().is_empty(), "{device}");
    }
}
