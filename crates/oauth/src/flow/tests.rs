//! Logins of persons and programs, with servers that are functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::discovery::challenge::Challenge;
use crate::error::OAuthError;
use crate::flow::attempt::{LoginTarget, find_server};
use crate::flow::authorization::AuthorizationRequest;
use crate::flow::person::{Browser, RedirectPage, log_in};
use crate::flow::program::{EnterpriseGrant, ProgramGrant, log_in_program};
use crate::http::exchange::{Body, Request, Response};
use crate::scopes::Scopes;
use crate::secret::SecretText;
use crate::settings::{DpopMode, LoginSettings};
use crate::testing::{Consent, Servers, not_found, response, run};
use crate::tokens::client::{ClientAuthMethod, ClientSource, OAuthClient};
use crate::tokens::login::Login;
use crate::web_url::WebUrl;

const SERVER: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://id.example.com";
const TOKEN: &str = "https://id.example.com/token";
const REGISTER: &str = "https://id.example.com/register";

/// An authorization server that does everything right. The text is added to its metadata.
fn good(request: &Request, more: &str) -> Response {
    match request.url.path() {
        "/.well-known/oauth-protected-resource/mcp" => response(
            200,
            format!(
                r#"{{"resource":"{SERVER}","authorization_servers":["{ISSUER}"],"scopes_supported":["read","write"]}}"#
            ),
        ),
        "/.well-known/oauth-authorization-server" => response(
            200,
            format!(
                r#"{{"issuer":"{ISSUER}","authorization_endpoint":"{ISSUER}/authorize","token_endpoint":"{TOKEN}",
                "registration_endpoint":"{REGISTER}","code_challenge_methods_supported":["S256"]{more}}}"#
            ),
        ),
        "/register" => response(201, r#"{"client_id":"registered"}"#),
        "/token" => response(
            200,
            r#"{"access_token":"t","token_type":"Bearer","refresh_token":"r","expires_in":100}"#,
        ),
        _ => not_found(),
    }
}

struct Outcome {
    login: Result<Login, OAuthError>,
    servers: Servers,
    scopes: Vec<Option<String>>,
}

fn log_in_with(
    servers: Servers,
    settings: &LoginSettings,
    challenge: &str,
    previous: Option<&Login>,
    registrations: &[(String, OAuthClient)],
) -> Outcome {
    let server = WebUrl::parse(SERVER).unwrap();
    let challenges = Challenge::parse_all([challenge]);
    let target = LoginTarget { server: &server, challenges: &challenges, previous, registrations };
    let browser = Consent::new(|| "code=c0de".to_owned());
    let login = run(async {
        let found = find_server(&servers, settings, target).await?;
        log_in(&servers, &&browser, settings, target, &found).await
    });
    let scopes = (0..browser.count()).map(|at| browser.parameter(at, "scope")).collect();
    Outcome { login, servers, scopes }
}

fn program(
    servers: &Servers,
    settings: &LoginSettings,
    target: LoginTarget<'_>,
    grant: &ProgramGrant,
) -> Result<Login, OAuthError> {
    let found = run(find_server(servers, settings, target))?;
    run(log_in_program(servers, settings, target, &found, grant))
}

fn value<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    form.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
}

#[test]
fn a_person_logs_in_with_a_registration() {
    let outcome = log_in_with(
        Servers::new(|it| good(it, "")),
        &LoginSettings::default(),
        "Bearer",
        None,
        &[],
    );
    let login = outcome.login.unwrap();
    assert_eq!(
        (login.client.id.as_str(), login.client.source),
        ("registered", ClientSource::Registered)
    );
    assert_eq!(outcome.scopes, [Some("read write".to_owned())]);
    assert_eq!((login.expires_at, login.generation), (1_000_100, 1));
    let form = &outcome.servers.forms(TOKEN)[0];
    assert_eq!((value(form, "resource"), value(form, "code")), (Some(SERVER), Some("c0de")));
    assert_eq!(value(form, "code_verifier").unwrap().len(), 43);
    let stored = serde_json::to_string(&login).unwrap();
    assert_eq!(serde_json::from_str::<Login>(&stored).unwrap(), login);
}

#[test]
fn a_registration_says_what_kind_of_client_this_is() {
    let outcome = log_in_with(
        Servers::new(|it| good(it, "")),
        &LoginSettings::default(),
        "Bearer",
        None,
        &[],
    );
    let requests = outcome.servers.requests.lock().unwrap();
    let body = requests.iter().find_map(|it| match &it.body {
        Some(Body::Json(text)) => Some(serde_json::from_str::<serde_json::Value>(text).unwrap()),
        _ => None,
    });
    let body = body.unwrap();
    assert_eq!(body["application_type"], "native");
    assert_eq!(body.get("scope"), None);
    assert_eq!(body["token_endpoint_auth_method"], "none");
    assert_eq!(body["grant_types"], serde_json::json!(["authorization_code", "refresh_token"]));
    assert_eq!(body["redirect_uris"], serde_json::json!(["http://127.0.0.1:40001/callback"]));
}

#[test]
fn a_metadata_document_is_preferred_to_a_registration() {
    let settings = LoginSettings {
        client_metadata_url: Some("https://c.example/m".into()),
        ..LoginSettings::default()
    };
    let supported = |it: &Request| good(it, r#","client_id_metadata_document_supported":true"#);
    let outcome = log_in_with(Servers::new(supported), &settings, "Bearer", None, &[]);
    assert_eq!(outcome.login.unwrap().client.id, "https://c.example/m");
    let outcome = log_in_with(Servers::new(|it| good(it, "")), &settings, "Bearer", None, &[]);
    assert_eq!(outcome.login.unwrap().client.id, "registered");
}

#[test]
fn a_stored_registration_is_used_for_its_issuer_and_address() {
    let client = |redirect: &str| OAuthClient {
        redirect_uri: Some(redirect.to_owned()),
        source: ClientSource::Registered,
        ..OAuthClient::with_metadata_document("stored")
    };
    let used = |issuer: &str, redirect: &str| {
        let known = [(issuer.to_owned(), client(redirect))];
        log_in_with(Servers::new(|it| good(it, "")), &LoginSettings::default(), "", None, &known)
            .login
            .unwrap()
            .client
            .id
    };
    assert_eq!(used(ISSUER, "http://127.0.0.1:40001/callback"), "stored");
    assert_eq!(used(ISSUER, "http://127.0.0.1:2/callback"), "registered");
    assert_eq!(used("https://other.example", "http://127.0.0.1:40001/callback"), "registered");
}

#[test]
fn a_client_that_the_server_forgot_is_registered_once_more() {
    let refused = |it: &Request| match it.url.path() {
        "/token" => response(401, r#"{"error":"invalid_client"}"#),
        _ => good(it, ""),
    };
    let outcome = log_in_with(Servers::new(refused), &LoginSettings::default(), "", None, &[]);
    assert!(matches!(outcome.login, Err(OAuthError::Refused { .. })));
    assert_eq!(outcome.servers.urls().iter().filter(|url| *url == REGISTER).count(), 2);

    let configured = LoginSettings { client_id: Some("own".into()), ..LoginSettings::default() };
    let outcome = log_in_with(Servers::new(refused), &configured, "", None, &[]);
    assert!(outcome.login.is_err());
    assert_eq!((outcome.scopes.len(), outcome.servers.forms(TOKEN).len()), (1, 1));
}

#[test]
fn scopes_come_from_the_challenge_before_the_document() {
    let settings = LoginSettings::default();
    let scope = |challenge: &str, more: &'static str| {
        log_in_with(Servers::new(move |it| good(it, more)), &settings, challenge, None, &[])
            .scopes
            .remove(0)
    };
    assert_eq!(scope("Bearer scope=\"basic\"", ""), Some("basic".into()));
    assert_eq!(scope("Bearer", ""), Some("read write".into()));
    let offline = r#","scopes_supported":["offline_access"]"#;
    assert_eq!(scope("Bearer scope=\"basic\"", offline), Some("basic offline_access".into()));
}

#[test]
fn a_step_up_asks_for_the_old_and_the_new_scopes() {
    let settings = LoginSettings::default();
    let first =
        log_in_with(Servers::new(|it| good(it, "")), &settings, "Bearer scope=basic", None, &[])
            .login
            .unwrap();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let again =
        log_in_with(Servers::new(|it| good(it, "")), &settings, challenge, Some(&first), &[]);
    assert_eq!(again.scopes, [Some("basic write".to_owned())]);
    assert_eq!(again.login.unwrap().generation, 2);

    let limited =
        LoginSettings { max_scopes: Some(Scopes::parse("basic")), ..LoginSettings::default() };
    let refused =
        log_in_with(Servers::new(|it| good(it, "")), &limited, challenge, Some(&first), &[]);
    assert!(matches!(refused.login, Err(OAuthError::ScopeNotAllowed { .. })));
    assert!(refused.scopes.is_empty());
}

#[test]
fn a_login_at_another_issuer_shows_nothing_of_the_old_one() {
    let settings = LoginSettings::default();
    let mut old =
        log_in_with(Servers::new(|it| good(it, "")), &settings, "Bearer scope=basic", None, &[])
            .login
            .unwrap();
    old.issuer = "https://old.example".into();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let known = [("https://old.example".to_owned(), old.client.clone())];
    let outcome =
        log_in_with(Servers::new(|it| good(it, "")), &settings, challenge, Some(&old), &known);
    assert_eq!(outcome.scopes, [Some("write".to_owned())]);
    assert!(outcome.servers.urls().contains(&REGISTER.to_owned()));
    assert_eq!(outcome.login.unwrap().issuer, ISSUER);
}

#[test]
fn a_pushed_request_is_opened_by_its_uri() {
    let more = r#","require_pushed_authorization_requests":true,"pushed_authorization_request_endpoint":"https://id.example.com/par""#;
    let servers = Servers::new(move |it| match it.url.path() {
        "/par" => response(201, r#"{"request_uri":"urn:x"}"#),
        _ => good(it, more),
    });
    let server = WebUrl::parse(SERVER).unwrap();
    let target =
        LoginTarget { server: &server, challenges: &[], previous: None, registrations: &[] };
    let opened = std::sync::Mutex::new(Vec::new());
    struct Pushed<'a>(&'a Servers, &'a std::sync::Mutex<Vec<String>>);
    impl<'a> Browser for &'a Pushed<'a> {
        type Page = &'a Pushed<'a>;
        async fn open(&self, _: Option<&str>) -> Result<Self::Page, OAuthError> {
            Ok(self)
        }
    }
    impl RedirectPage for &Pushed<'_> {
        fn redirect_uri(&self) -> &'static str {
            "http://127.0.0.1:40001/callback"
        }
        async fn authorize(&self, request: &AuthorizationRequest) -> Result<String, OAuthError> {
            self.1.lock().unwrap().push(request.url());
            let form = self.0.forms("https://id.example.com/par").remove(0);
            Ok(format!("state={}&code=x", value(&form, "state").unwrap()))
        }
    }
    let (settings, browser) = (LoginSettings::default(), Pushed(&servers, &opened));
    let found = run(find_server(&servers, &settings, target)).unwrap();
    run(log_in(&servers, &&browser, &settings, target, &found)).unwrap();
    assert_eq!(
        *opened.lock().unwrap(),
        ["https://id.example.com/authorize?client_id=registered&request_uri=urn%3Ax"]
    );
}

#[test]
fn dpop_is_used_when_the_server_asks_for_it() {
    let dpop = |it: &Request| match it.url.path() {
        "/token" => response(200, r#"{"access_token":"t","token_type":"DPoP"}"#),
        _ => good(it, r#","dpop_signing_alg_values_supported":["ES256"]"#),
    };
    let login = log_in_with(
        Servers::new(dpop),
        &LoginSettings::default(),
        "DPoP algs=\"ES256\"",
        None,
        &[],
    )
    .login
    .unwrap();
    assert!(login.dpop_key.is_some());
    let refused =
        log_in_with(Servers::new(|it| good(it, "")), &LoginSettings::default(), "DPoP", None, &[]);
    assert!(matches!(refused.login, Err(OAuthError::Unsupported { .. })));
    let off = LoginSettings { dpop: DpopMode::Off, ..LoginSettings::default() };
    assert!(
        log_in_with(Servers::new(|it| good(it, "")), &off, "DPoP", None, &[])
            .login
            .unwrap()
            .dpop_key
            .is_none()
    );
}

#[test]
fn a_refresh_keeps_what_the_response_does_not_name() {
    let login =
        log_in_with(Servers::new(|it| good(it, "")), &LoginSettings::default(), "", None, &[])
            .login
            .unwrap();
    let servers = Servers::new(|_| response(200, r#"{"access_token":"u","token_type":"Bearer"}"#));
    let next = run(login.refresh(&servers, &LoginSettings::default())).unwrap();
    assert_eq!((next.access_token.expose(), next.generation), ("u", 2));
    assert_eq!((&next.refresh_token, &next.scopes), (&login.refresh_token, &login.scopes));
    let form = &servers.forms(TOKEN)[0];
    assert_eq!(
        (value(form, "resource"), value(form, "refresh_token"), value(form, "scope")),
        (Some(SERVER), Some("r"), None)
    );
    let ended = Login { refresh_token: None, ..login.clone() };
    assert!(matches!(
        run(ended.refresh(&servers, &LoginSettings::default())),
        Err(OAuthError::Unsupported { .. })
    ));
    assert!(login.is_fresh(1_000_080) && !login.is_fresh(1_000_090));
}

#[test]
fn programs_log_in_with_their_credentials() {
    let settings = LoginSettings {
        client_id: Some("program".into()),
        client_secret: Some(SecretText::new("s3cret")),
        ..LoginSettings::default()
    };
    let server = WebUrl::parse(SERVER).unwrap();
    let target =
        LoginTarget { server: &server, challenges: &[], previous: None, registrations: &[] };
    let servers = Servers::new(|it| good(it, ""));
    let login = program(&servers, &settings, target, &ProgramGrant::ClientCredentials).unwrap();
    assert_eq!(login.client.method, ClientAuthMethod::Basic);
    let form = &servers.forms(TOKEN)[0];
    assert_eq!(
        (value(form, "grant_type"), value(form, "resource")),
        (Some("client_credentials"), Some(SERVER))
    );
    assert_eq!(value(form, "client_id"), None);

    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let servers = Servers::new(move |it| match it.url.path() {
        "/token" => {
            count.fetch_add(1, Ordering::Relaxed);
            response(400, r#"{"error":"invalid_grant"}"#)
        }
        _ => good(it, ""),
    });
    let grant = ProgramGrant::JwtBearer(SecretText::new("jwt"));
    assert!(program(&servers, &settings, target, &grant).is_err());
    assert_eq!(refused.load(Ordering::Relaxed), 1);
}

#[test]
fn an_id_token_is_exchanged_for_an_assertion() {
    let settings = LoginSettings {
        client_id: Some("program".into()),
        client_secret: Some(SecretText::new("s3cret")),
        ..LoginSettings::default()
    };
    let enterprise = EnterpriseGrant {
        id_token: SecretText::new("idt"),
        token_endpoint: WebUrl::parse("https://idp.example.com/token").unwrap(),
        issuer: "https://idp.example.com".into(),
        client: OAuthClient::with_metadata_document("idp-client"),
    };
    let servers = Servers::new(|it| match it.url.host() {
        "idp.example.com" => response(
            200,
            r#"{"access_token":"jag","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#,
        ),
        _ => good(it, ""),
    });
    let server = WebUrl::parse(SERVER).unwrap();
    let target =
        LoginTarget { server: &server, challenges: &[], previous: None, registrations: &[] };
    program(&servers, &settings, target, &ProgramGrant::Enterprise(enterprise.clone())).unwrap();
    let exchange = &servers.forms("https://idp.example.com/token")[0];
    assert_eq!(
        (value(exchange, "audience"), value(exchange, "resource")),
        (Some(ISSUER), Some(SERVER))
    );
    assert_eq!(value(&servers.forms(TOKEN)[0], "assertion"), Some("jag"));

    let other = Servers::new(|it| match it.url.host() {
        "idp.example.com" => response(200, r#"{"access_token":"jag","token_type":"Bearer"}"#),
        _ => good(it, ""),
    });
    assert!(program(&other, &settings, target, &ProgramGrant::Enterprise(enterprise)).is_err());
    assert!(other.forms(TOKEN).is_empty());
}

#[test]
fn a_logout_revokes_both_tokens() {
    let more = r#","revocation_endpoint":"https://id.example.com/revoke""#;
    let settings = LoginSettings::default();
    let login = log_in_with(Servers::new(move |it| good(it, more)), &settings, "", None, &[])
        .login
        .unwrap();
    let servers = Servers::new(|_| response(200, ""));
    assert!(run(login.revoke(&servers, &settings)).unwrap());
    let forms = servers.forms("https://id.example.com/revoke");
    let sent: Vec<_> = forms.iter().map(|form| value(form, "token").unwrap()).collect();
    assert_eq!((sent, value(&forms[0], "client_id")), (vec!["r", "t"], Some("registered")));
    let partial = Servers::new(|it| match &it.body {
        Some(Body::Form(form)) if form.contains("access_token") => {
            response(400, r#"{"error":"unsupported_token_type"}"#)
        }
        _ => response(200, ""),
    });
    assert!(run(login.revoke(&partial, &settings)).unwrap());
    let failing = Servers::new(|_| response(503, ""));
    assert!(run(login.revoke(&failing, &settings)).unwrap_err().is_temporary());
    let without = Login { revocation_endpoint: None, ..login };
    assert!(!run(without.revoke(&failing, &settings)).unwrap());
}

#[test]
fn a_token_that_is_not_bound_is_refused_where_the_server_takes_no_other() {
    let bearer = |it: &Request| good(it, r#","dpop_signing_alg_values_supported":["ES256"]"#);
    let settings = LoginSettings::default();
    let login = |challenge: &str, settings: &LoginSettings| {
        log_in_with(Servers::new(bearer), settings, challenge, None, &[]).login
    };
    assert!(matches!(login("DPoP", &settings), Err(OAuthError::Document { .. })));
    assert!(login("DPoP, Bearer", &settings).unwrap().dpop_key.is_none());
    let require = LoginSettings { dpop: DpopMode::Require, ..LoginSettings::default() };
    assert!(matches!(login("Bearer", &require), Err(OAuthError::Document { .. })));
}

#[test]
fn only_what_a_challenge_demands_must_be_within_the_maximum() {
    let settings =
        LoginSettings { max_scopes: Some(Scopes::parse("read")), ..LoginSettings::default() };
    let offline = r#","scopes_supported":["offline_access"]"#;
    let outcome = |challenge: &str| {
        log_in_with(Servers::new(move |it| good(it, offline)), &settings, challenge, None, &[])
    };
    assert_eq!(outcome("Bearer").scopes, [Some("read".to_owned())]);
    let error = outcome("Bearer scope=\"write\"").login.unwrap_err().to_string();
    assert!(error.contains("`write`"), "{error}");
}

#[test]
fn nothing_is_opened_for_a_server_that_cannot_be_used() {
    let plain = |it: &Request| match it.url.path() {
        "/.well-known/oauth-authorization-server" => {
            let text = String::from_utf8(good(it, "").body).unwrap();
            response(200, text.replace("S256", "plain"))
        }
        _ => good(it, ""),
    };
    let outcome = log_in_with(Servers::new(plain), &LoginSettings::default(), "Bearer", None, &[]);
    assert!(matches!(outcome.login, Err(OAuthError::NoPkce { .. })));
    assert!(outcome.scopes.is_empty() && !outcome.servers.urls().contains(&REGISTER.to_owned()));
}
