//! `creole logins`: lists the stored logins, without their tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use creole::client::oauth::Login;
use creole::internal::credential_files::Expiry;
use serde_json::{Value, json};

use crate::args::LoginsArgs;
use crate::failure::Failure;
use crate::login::server::LoginServer;
use crate::login::shown_url;
use crate::output::printable;
use crate::output::render::for_stdout;
use crate::{login, output};

/// Runs the verb.
pub(crate) fn run(args: &LoginsArgs) -> Result<(), Failure> {
    let store = login::store()?;
    let server = args
        .target
        .as_deref()
        .map(|word| LoginServer::find(word, args.config.as_deref(), &[], None))
        .transpose()?;
    let logins = match &server {
        Some(server) => server.stored_logins(&store)?,
        None => store.all()?,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    match args.json {
        true => {
            let documents: Value = logins.iter().map(|login| document(login, now)).collect();
            output::write_data(&format!("{documents}\n"))?;
        }
        false if logins.is_empty() && server.is_none() => {
            output::write_message("creole: no logins are stored");
        }
        false => {
            let lines: Vec<String> = logins.iter().map(|login| line(login, now)).collect();
            if !lines.is_empty() {
                output::write_data(&for_stdout(&lines.join("\n")))?;
            }
        }
    }
    match server {
        Some(server) if !logins.iter().any(|login| state(login, now) != "ended") => {
            let url = shown_url(&server.target.url);
            let what =
                if logins.is_empty() { "no login is stored for" } else { "the login has ended at" };
            Err(Failure::Call(format!(
                "{what} {url}; run: creole login {}",
                server.command_words()
            )))
        }
        _ => Ok(()),
    }
}

/// Whether a login is refreshed, ends at its time, or has ended.
fn state(login: &Login, now: u64) -> &'static str {
    match (login.refresh_token.is_some(), login.is_valid(now)) {
        (true, _) => "renews",
        (false, true) => "ends",
        (false, false) => "ended",
    }
}

fn line(login: &Login, now: u64) -> String {
    let scopes = login.scopes.to_parameter().unwrap_or_else(|| "none".to_owned());
    let end = Expiry::from_seconds(login.expires_at);
    printable(&format!(
        "{}  {}  scopes: {scopes}  {end}  {}",
        shown_url(&login.server),
        login.issuer,
        state(login, now)
    ))
}

fn document(login: &Login, now: u64) -> Value {
    json!({
        "server": shown_url(&login.server),
        "resource": login.resource,
        "issuer": login.issuer,
        "client_id": login.client.id,
        "scopes": login.scopes.iter().collect::<Vec<_>>(),
        "expires_at": Expiry::from_seconds(login.expires_at).to_string(),
        "state": state(login, now),
    })
}

#[cfg(test)]
mod tests {
    use super::{document, line};
    use crate::commands::login::tests::stored_login;

    #[test]
    fn a_line_has_the_end_and_no_token() {
        let expected = "https://mcp.example.com/mcp  https://id.example.com  scopes: mcp:read  1970-01-01T00:01:40Z  ";
        assert_eq!(line(&stored_login(100, true), 200), format!("{expected}renews"));
        assert_eq!(line(&stored_login(100, false), 99), format!("{expected}ends"));
        assert_eq!(line(&stored_login(100, false), 100), format!("{expected}ended"));
        assert!(!document(&stored_login(100, true), 0).to_string().contains("hidden"));
    }
}
