//! Gateways that share a login and a state: one of them refreshes, and all calls succeed.

use std::fs;
use std::thread;

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::http::ListeningServer;
use creole_acceptance::process_under_test::told;
use serde_json::{Value, json};

use crate::{Home, expire, provider};

/// How many calls arrive when the token ends.
const CALLS: usize = 100;

/// Who the upstream says that the caller is.
fn whoami(client: &StatelessClient) -> Result<Value, String> {
    let text = told(&client.call("work__whoami", json!({})))?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Makes a login look as if it had been used for a while: a new one is not refreshed when it is refused. Returns its
/// access token.
fn age(home: &Home) -> String {
    let file = home.login_file();
    let mut login: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    login["created_at"] = json!(login["created_at"].as_u64().unwrap() - 3_000);
    fs::write(&file, login.to_string()).unwrap();
    login["access_token"].as_str().unwrap().to_owned()
}

#[test]
fn two_gateways_whose_token_ends_send_one_refresh() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let text = format!("[upstreams.work]\nurl = \"{url}\"\n\n[state]\nfile = \"state.db\"\n");
    fs::write(home.0.path().join("creole.toml"), text).unwrap();
    home.run(&["login", "work"]).succeeded();
    let token = age(&home);
    let serve = || home.command(&["serve", "creole.toml", "--http", "127.0.0.1:0"]);
    let gateways = [(); 2].map(|()| ListeningServer::other(serve()).unwrap());
    let clients = gateways.each_ref().map(|it| StatelessClient::new(it.address()));
    for client in &clients {
        assert_eq!(whoami(client).unwrap()["sub"], "alice");
    }
    assert_eq!(provider.token_requests("refresh_token", 200), 0);
    provider.refuse(&token);
    let results: Vec<_> = thread::scope(|scope| {
        let callers = (0..CALLS).map(|number| {
            let client = &clients[number % clients.len()];
            scope.spawn(|| whoami(client))
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let is_alice =
        |result: &&Result<Value, String>| result.as_ref().is_ok_and(|me| me["sub"] == "alice");
    assert_eq!(results.iter().filter(is_alice).count(), CALLS, "{results:?}");
    assert_eq!(provider.token_requests("refresh_token", 200), 1);
    // The server revokes every token of a login whose refresh token is used twice, so the next refresh shows that it was
    // not.
    expire(&home.login_file());
    home.run(&["call", &url, "whoami"]).succeeded();
    assert_eq!(provider.token_requests("refresh_token", 200), 2);
    assert_eq!(provider.token_requests("refresh_token", 400), 0);
    for gateway in &gateways {
        assert!(!gateway.log().contains(&token), "{}", gateway.log());
    }
}
