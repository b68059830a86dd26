//! Programs log in without a person: upstreams of a gateway with assertions of their platform or of a company.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use creole::client::oauth::SigningKey;
use creole_acceptance::canaries;
use creole_acceptance::oauth::browser::Browser;
use creole_acceptance::peers::idp::IdentityProvider;
use creole_acceptance::process_under_test::{Server, handshake, told};
use serde_json::{Value, json};

use crate::{Home, provider};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The identity of a workload on its platform.
const WORKLOAD: &str = "system:serviceaccount:ci:robot";

/// A gateway whose upstream `work` has these keys in its table `oauth`.
fn gateway(home: &Home, url: &str, keys: &str) -> Server {
    let text = format!("[upstreams.work]\nurl = \"{url}\"\n\n[upstreams.work.oauth]\n{keys}\n");
    fs::write(home.0.path().join("creole.toml"), text).unwrap();
    Server::start_command(home.command(&["serve", "creole.toml", "--debug"]))
}

/// The table `oauth` of an employee, whose ID token and secrets are files.
fn enterprise(home: &Home, company: &IdentityProvider, provider: &IdentityProvider) -> String {
    home.write_secret("agent", &provider.told("/agent/secret"));
    home.write_secret("desk", &company.told("/desk/secret"));
    let (agent, desk) = (provider.told("/agent/id"), company.told("/desk/id"));
    format!(
        "grant = \"enterprise\"\nclient_id = \"{agent}\"\nclient_secret_file = \"secrets/agent\"\n\
        id_token_file = \"secrets/id-token\"\nidp_token_url = \"{}/token\"\n\
        idp_client_id = \"{desk}\"\nidp_client_secret_file = \"secrets/desk\"",
        company.issuer()
    )
}

/// Checks that a gateway without its only upstream opens no session, and that the error reveals nothing.
#[track_caller]
fn refuses_sessions(gateway: &mut Server) {
    gateway.write(handshake());
    let refused = gateway.answer();
    let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(message.ends_with("the login to `work` failed; the log has the reason"), "{refused}");
    canaries::assert_absent("the error", &refused.to_string());
}

/// What the upstream knows about the gateway, or the error.
fn whoami(gateway: &mut Server) -> Result<Value, String> {
    let text = told(&gateway.call("work__whoami", &json!({})))?;
    Ok(serde_json::from_str(&text).unwrap())
}

/// An identity of the workload that the platform signs, with some claims replaced.
fn workload_identity(provider: &IdentityProvider, claims: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut identity = json!({
        "iss": provider.told("/workload/issuer"),
        "sub": WORKLOAD,
        "aud": provider.issuer(),
        "iat": now,
        "exp": now + 300,
    });
    for (name, value) in claims.as_object().into_iter().flatten() {
        identity[name] = value.clone();
    }
    let key = SigningKey::from_pem(&provider.told("/workload/key"), None).unwrap();
    key.sign(&json!({"typ": "JWT", "kid": key.id()}), &identity).unwrap()
}

/// The ID token that `alice` gets at the provider of her company.
fn id_token(company: &IdentityProvider) -> String {
    let told = |name: &str| company.told(&format!("/desk/{name}"));
    let (id, secret) = (told("id"), told("secret"));
    let redirect = told("redirect").replace(':', "%3A").replace('/', "%2F");
    let query = format!("client_id={id}&redirect_uri={redirect}&response_type=code&scope=openid");
    let returned = Browser::default().open(&format!("{}/auth?{query}", company.issuer())).unwrap();
    let code = returned.split("code=").nth(1).and_then(|rest| rest.split('&').next()).unwrap();
    let form = format!(
        "grant_type=authorization_code&code={code}&redirect_uri={redirect}&client_id={id}&client_secret={secret}"
    );
    let tokens = company.post("/token", &form).message();
    tokens["id_token"].as_str().unwrap_or_else(|| panic!("no ID token: {tokens}")).to_owned()
}

#[test]
fn a_workload_logs_in_with_the_identity_of_its_platform() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    let sources = [
        "assertion_file = \"secrets/identity\"",
        "assertion_command = [\"cat\", \"secrets/identity\"]",
    ];
    for (number, source) in sources.into_iter().enumerate() {
        let home = Home::new();
        let identity = workload_identity(&provider, &json!({}));
        home.write_secret("identity", &identity);
        let keys = format!("grant = \"jwt-bearer\"\nclient_id = \"workload\"\n{source}");
        let mut gateway = gateway(&home, &url, &keys).greeted();
        for _ in 0..2 {
            let me = whoami(&mut gateway).unwrap();
            assert_eq!((&me["sub"], &me["client"]), (&json!(WORKLOAD), &json!("workload")));
            assert_eq!(me["scopes"], json!(["mcp"]));
        }
        assert_eq!(provider.token_requests(JWT_BEARER, 200), number + 1);
        assert!(!home.logins().exists());
        assert_eq!(gateway.finish().code, Some(0));
    }
    assert_eq!((provider.visits("/reg"), provider.visits("/auth")), (0, 0));
}

#[test]
fn an_identity_that_is_refused_ends_the_login() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    let wrong = [
        json!({"exp": 1}),
        json!({"aud": "https://elsewhere.example"}),
        json!({"iss": "https://elsewhere.example"}),
    ];
    for (number, claims) in wrong.iter().enumerate() {
        let home = Home::new();
        home.write_secret("identity", &workload_identity(&provider, claims));
        let keys = "grant = \"jwt-bearer\"\nclient_id = \"workload\"\nassertion_file = \"secrets/identity\"";
        refuses_sessions(&mut gateway(&home, &url, keys));
        // No other grant is tried, and the same one is not tried at once again.
        assert_eq!(provider.token_requests(JWT_BEARER, 400), number + 1, "{claims}");
    }
    let others = provider.requests().into_iter().filter(|it| it["path"] == "/token");
    assert!(others.clone().all(|it| it["grant"] == JWT_BEARER), "{:?}", others.collect::<Vec<_>>());
}

#[test]
fn an_employee_logs_in_with_the_id_token_of_the_company() {
    let Some(company) = provider(&[]) else { return };
    let issuer = company.issuer();
    let Some(provider) = provider(&["--company", &issuer]) else { return };
    let (home, id) = (Home::new(), provider.told("/agent/id"));
    home.write_secret("id-token", &id_token(&company));
    let keys = enterprise(&home, &company, &provider);
    let mut gateway = gateway(&home, &provider.server("/mcp"), &keys).greeted();
    for _ in 0..2 {
        let me = whoami(&mut gateway).unwrap();
        assert_eq!((&me["sub"], &me["client"]), (&json!("alice"), &json!(id)));
        assert_eq!(me["scopes"], json!(["mcp"]));
    }
    assert_eq!(company.token_requests(TOKEN_EXCHANGE, 200), 1);
    assert_eq!(provider.token_requests(JWT_BEARER, 200), 1);
    assert!(!home.logins().exists());
    assert_eq!(gateway.finish().code, Some(0));
}

#[test]
fn a_company_that_refuses_an_id_token_ends_the_login() {
    let Some(company) = provider(&[]) else { return };
    let issuer = company.issuer();
    let Some(provider) = provider(&["--company", &issuer]) else { return };
    let home = Home::new();
    // It is the token of another issuer.
    home.write_secret("id-token", &workload_identity(&company, &json!({"aud": "desk"})));
    let keys = enterprise(&home, &company, &provider);
    refuses_sessions(&mut gateway(&home, &provider.server("/mcp"), &keys));
    assert_eq!(company.token_requests(TOKEN_EXCHANGE, 400), 1);
    assert_eq!(provider.visits("/token"), 0);
}
