//! `creole login`: logs in to a server, and stores the login.

pub(crate) mod logins;
pub(crate) mod logout;

use std::io;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use creole::client::oauth::{Login, LoginMethod, LoginSettings, OAuthCredentials};
use creole::client::{Address, Client, ClientBuilder};
use creole::internal::credential_files::Expiry;
use creole::proto::client::ClientLimits;
use creole::proto::fault::Fault;
use creole::proto::model::ListKind;
use creole_config::plan::LogPlan;
use creole_config::tables::enums::{LogFormat, LogLevel};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::signal;
use tokio::time::timeout;

use super::list::declared_lists;
use crate::args::LoginArgs;
use crate::failure::Failure;
use crate::http_target::HttpTarget;
use crate::instance::runtime;
use crate::login::prompt::{OpenedBy, TerminalCode, TerminalPrompt};
use crate::login::server::LoginServer;
use crate::login::{browser, shown_url};
use crate::output::progress::with_progress;
use crate::session::call_failure;
use crate::session::hints::GivenUrl;
use crate::{log, login, output};

/// How long a silent server is waited for.
const SILENCE: Duration = Duration::from_secs(60);

/// Runs the verb.
pub(crate) fn run(args: &LoginArgs) -> Result<(), Failure> {
    log::start(LogPlan { format: LogFormat::Text, level: LogLevel::Warn, payloads: false });
    let cacert = args.cacert.as_deref();
    let server = LoginServer::find(&args.target, args.config.as_deref(), &args.headers, cacert)?;
    let settings = login::merged(server.settings, login::settings(&args.client)?);
    let target = server.target;
    let settings = match server.upstream {
        // The gateway uses the client of its configuration.
        Some(_) => settings,
        None => login::with_stored_client(&target.url, settings)?,
    };
    if target.has_authorization {
        return Err(Failure::Usage(
            "a login and the header `Authorization` exclude each other; remove the header"
                .to_owned(),
        ));
    }
    login::store()?;
    let credentials = credentials(&target, args, settings)?;
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = log_in(&target, &credentials, args) => done,
            _ = signal::ctrl_c() => Err(Failure::Call("interrupted; nothing was stored".to_owned())),
        }
    });
    // A thread that still reads the terminal would block the end of the runtime.
    runtime.shutdown_background();
    done?;
    report(&target, &credentials, args.json)
}

fn credentials(
    target: &HttpTarget,
    args: &LoginArgs,
    settings: LoginSettings,
) -> Result<OAuthCredentials, Failure> {
    let server = shown_url(&target.url);
    let timeout = Duration::from_secs(args.timeout);
    let method = match args.device {
        true => LoginMethod::Device(Arc::new(TerminalCode { server })),
        false => LoginMethod::Person(Arc::new(TerminalPrompt {
            server,
            opened_by: opened_by(args.no_browser),
            port: args.client.port,
            timeout,
        })),
    };
    login::credentials(target, method, settings, timeout)
}

/// A browser is opened for a user at a terminal, and if the environment names one.
fn opened_by(is_headless: bool) -> OpenedBy {
    let is_watched = io::stderr().is_terminal() || browser::is_browser_named();
    match !is_headless && is_watched && browser::has_browser() {
        true => OpenedBy::Command,
        false => OpenedBy::User,
    }
}

/// Connects, so that the server says whether it wants a login.
async fn log_in(
    target: &HttpTarget,
    credentials: &OAuthCredentials,
    args: &LoginArgs,
) -> Result<(), Failure> {
    let asking = with_progress(visit(target, credentials, args));
    let visited = match args.device {
        false => asking.await,
        true => match timeout(Duration::from_secs(args.timeout), asking).await {
            Ok(visited) => visited,
            Err(_) => {
                let what = format!("login timed out after {} s", args.timeout);
                return Err(Failure::Call(what));
            }
        },
    };
    match visited? {
        // The tokens are stored, whatever the server then does with them.
        Err(fault) if !credentials.has_logged_in() => Err(failure(target, fault)),
        _ => Ok(()),
    }
}

/// Connects, and lists something: some servers demand a login only then.
async fn visit(
    target: &HttpTarget,
    credentials: &OAuthCredentials,
    args: &LoginArgs,
) -> Result<Result<(), Fault>, Failure> {
    let address = target.address.clone().credentials(Arc::new(credentials.clone()));
    let connected = login::connect(|| Ok(builder(args)), &Address::Http(address)).await?;
    let client = match connected {
        Ok(client) => client,
        Err(fault) => return Ok(Err(fault)),
    };
    let listed = match credentials.login().is_some() {
        true => Ok(()),
        false => list(&client).await,
    };
    client.close().await;
    // A server without this list still requires no login.
    Ok(match listed {
        Err(fault) if is_about_login(&fault) => Err(fault),
        _ => Ok(()),
    })
}

async fn list(client: &Client) -> Result<(), Fault> {
    let kind = declared_lists(client).next().unwrap_or(ListKind::Tools);
    client.list(kind).await.map(drop)
}

fn builder(args: &LoginArgs) -> ClientBuilder {
    // A person at another device is waited for in the request itself.
    let silence = if args.device { Duration::from_secs(args.timeout) + SILENCE } else { SILENCE };
    let limits = ClientLimits {
        call_idle_timeout: silence,
        handshake_timeout: silence,
        ..ClientLimits::default()
    };
    ClientBuilder::new("creole", env!("CARGO_PKG_VERSION")).limits(limits)
}

/// Whether a fault is about credentials.
fn is_about_login(fault: &Fault) -> bool {
    let data: serde_json::Value =
        fault.data.as_ref().and_then(|data| data.decode().ok()).unwrap_or_default();
    let reason = data["reason"].as_str().unwrap_or_default();
    ["login_required", "credentials", "insufficient_scope", "unauthorized"].contains(&reason)
}

/// The failure of a login, without the name of the server: the user has just typed it.
fn failure(target: &HttpTarget, fault: Fault) -> Failure {
    let prefix = format!("the login to `{}` failed: ", target.name);
    if let Some(why) = fault.detail.strip_prefix(&prefix) {
        return Failure::Call(output::printable(why));
    }
    let given = GivenUrl { url: target.url.clone(), has_credentials: true };
    call_failure(&target.name, &given.explain(fault))
}

/// Reports the outcome of the login.
fn report(
    target: &HttpTarget,
    credentials: &OAuthCredentials,
    as_json: bool,
) -> Result<(), Failure> {
    let server = shown_url(&target.url);
    let Some(login) = credentials.login() else {
        output::write_message(&format!("creole: {server} requires no login; nothing stored"));
        return Ok(());
    };
    if as_json {
        output::write_data(&format!("{}\n", document(&login)))?;
    }
    output::write_message(&match credentials.has_logged_in() {
        true => logged_in_text(&server, &login),
        false => {
            format!("creole: already logged in to {server}; use --scope to request more")
        }
    });
    Ok(())
}

fn logged_in_text(server: &str, login: &Login) -> String {
    let renewal = match login.refresh_token.is_some() {
        true => "refreshes automatically",
        false => "no refresh token",
    };
    let scopes = login.scopes.to_parameter().unwrap_or_else(|| "none".to_owned());
    format!(
        "creole: logged in to {server} (issuer {}); expires {}, {renewal}; scopes: {}",
        output::printable(&login.issuer),
        Expiry::from_seconds(login.expires_at),
        output::printable(&scopes)
    )
}

fn document(login: &Login) -> serde_json::Value {
    json!({
        "resource": login.resource,
        "issuer": login.issuer,
        "client_id": login.client.id,
        "scopes": login.scopes.iter().collect::<Vec<_>>(),
        "expires_at": Expiry::from_seconds(login.expires_at).to_string(),
        "renewable": login.refresh_token.is_some(),
        "store": "file",
    })
}

#[cfg(test)]
pub(super) mod tests {
    use creole::client::oauth::Login;
    use serde_json::json;

    use super::{document, logged_in_text};
    use crate::login::shown_url;

    /// A login as a file has it.
    pub(crate) fn stored_login(expires_at: u64, has_refresh_token: bool) -> Login {
        let mut login = json!({
            "version": 1, "generation": 1, "server": "https://mcp.example.com/mcp?key=hidden",
            "resource": "https://mcp.example.com/mcp", "issuer": "https://id.example.com",
            "token_endpoint": "https://id.example.com/token",
            "client": {"id": "c", "secret": "hidden", "method": "none", "source": "registered"},
            "requested_scopes": ["mcp:read"], "scopes": ["mcp:read"], "access_token": "hidden",
            "token_type": "Bearer", "expires_at": expires_at, "created_at": 0,
        });
        if has_refresh_token {
            login["refresh_token"] = "hidden".into();
        }
        serde_json::from_value(login).unwrap()
    }

    #[test]
    fn a_login_is_reported_without_its_tokens() {
        let login = stored_login(1_794_862_800, true);
        let expected = "creole: logged in to https://mcp.example.com/mcp (issuer https://id.example.com); expires \
                        2026-11-16T21:00:00Z, refreshes automatically; scopes: mcp:read";
        assert_eq!(logged_in_text(&shown_url(&login.server), &login), expected);
        let text = logged_in_text("x", &stored_login(1_794_862_800, false));
        assert!(
            text.contains("; expires 2026-11-16T21:00:00Z, no refresh token; scopes: "),
            "{text}"
        );
        let document = document(&login).to_string();
        assert!(
            !document.contains("hidden") && document.contains(r#""renewable":true"#),
            "{document}"
        );
    }
}
