//! `creole logout`: revokes stored logins and deletes them.

use std::path::Path;
use std::sync::Arc;

use creole::client::oauth::{
    Login, LoginKey, LoginStore, LogoutOutcome, RevocationOptions, log_out,
};
use creole_config::plan::upstream::CaCertificates;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::args::LogoutArgs;
use crate::failure::Failure;
use crate::instance::runtime;
use crate::login::server::LoginServer;
use crate::login::shown_url;
use crate::output::printable;
use crate::{login, output};

/// Runs the verb.
pub(crate) fn run(args: &LogoutArgs) -> Result<(), Failure> {
    let store = login::store()?;
    let mut revocation = RevocationOptions::default();
    let logins = match args.target.as_deref() {
        None => {
            revocation.certificates = args.cacert.as_deref().map(certificates).transpose()?;
            store.all()?
        }
        Some(word) => {
            let cacert = args.cacert.as_deref();
            let server = LoginServer::find(word, args.config.as_deref(), &[], cacert)?;
            let logins = server.stored_logins(&store)?;
            if logins.is_empty() {
                let url = shown_url(&server.target.url);
                return Err(Failure::Call(format!(
                    "no login is stored for {url}; `creole logins` lists the logins"
                )));
            }
            revocation.settings = server.settings;
            revocation.certificates = server.target.certificates;
            logins
        }
    };
    let revocation = Some(&revocation).filter(|_| !args.local);
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let mut ended = Vec::new();
    for login in &logins {
        ended.push(runtime.block_on(end(&store, login, revocation))?);
    }
    match args.json {
        true => output::write_data(&format!("{}\n", Value::from(ended))),
        false => Ok(()),
    }
}

/// The certificates of `--cacert`.
fn certificates(file: &Path) -> Result<Arc<[u8]>, Failure> {
    let read = CaCertificates::read(file.to_owned());
    let read = read.map_err(|reason| Failure::Usage(format!("`{}` {reason}", file.display())))?;
    Ok(Arc::from(read.pem()))
}

/// Ends one login, and reports the outcome.
async fn end(
    store: &LoginStore,
    login: &Login,
    revocation: Option<&RevocationOptions>,
) -> Result<Value, Failure> {
    let outcome = log_out(store, &LoginKey::of(login), revocation).await?;
    output::write_message(&text(login, &outcome));
    let is_revoked = matches!(outcome, LogoutOutcome::Done { is_revoked: true });
    Ok(json!({
        "server": shown_url(&login.server),
        "issuer": login.issuer,
        "revoked": is_revoked,
    }))
}

fn text(login: &Login, outcome: &LogoutOutcome) -> String {
    let (server, issuer) = (shown_url(&login.server), printable(&login.issuer));
    match outcome {
        LogoutOutcome::Done { is_revoked: true } => {
            format!("creole: logged out of {server}; {issuer} revoked the login")
        }
        LogoutOutcome::NotRevoked(error) => format!(
            "creole: login deleted; revocation at {issuer} failed: {}",
            printable(&error.to_string())
        ),
        _ => format!("creole: logged out of {server}; the login is deleted"),
    }
}

#[cfg(test)]
mod tests {
    use creole::client::oauth::{LogoutOutcome, OAuthError};

    use super::text;
    use crate::commands::login::tests::stored_login;

    #[test]
    fn a_failed_revocation_is_reported() {
        let login = stored_login(100, true);
        let reason = "no response".to_owned();
        let error =
            OAuthError::Unreachable { url: "https://id.example.com/revoke".to_owned(), reason };
        let expected = "creole: login deleted; revocation at https://id.example.com failed: cannot reach \
                        https://id.example.com/revoke: no response";
        assert_eq!(text(&login, &LogoutOutcome::NotRevoked(error)), expected);
        let done = text(&login, &LogoutOutcome::Done { is_revoked: false });
        assert_eq!(done, "creole: logged out of https://mcp.example.com/mcp; the login is deleted");
    }
}
