//! Logins of the user of a command at servers that want OAuth.

pub(crate) mod activity;
pub(crate) mod browser;
pub(crate) mod client_login;
mod copied_address;
pub(crate) mod listener;
pub(crate) mod prompt;
pub(crate) mod server;

use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use creole::client::oauth::{
    ClientSource, Login, LoginKey, LoginMethod, LoginSettings, LoginStore, OAuthCredentials,
    OAuthOptions, Scopes, SecretText, WebUrl,
};
use creole::client::{Address, Client, ClientBuilder};
use creole::proto::fault::Fault;

use crate::args::ClientArgs;
use crate::failure::Failure;
use crate::http_target::HttpTarget;
use crate::login::activity::{is_person_asked, wait_for_person};
use crate::login::client_login::{ClientLogin, ClientPrompt};
use crate::login::prompt::{OpenedBy, TerminalPrompt};

/// How long a person may take, unless the command line says otherwise.
const PERSON_TIMEOUT: Duration = Duration::from_secs(300);

/// How long the requests of a login may take, besides the person.
pub(crate) const REQUESTS_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum length of a secret.
const MAX_SECRET: u64 = 64 * 1024;

/// The folder of the logins.
pub(crate) fn store() -> Result<LoginStore, Failure> {
    let missing = "there is no folder for logins; set CREOLE_LOGINS";
    creole_config::login_store().ok_or_else(|| Failure::Refused(missing.to_owned()))
}

/// The credentials of a command that uses a server. At a terminal, the user logs in when the server demands it.
pub(crate) fn session_credentials(
    server: &HttpTarget,
    is_quiet: bool,
) -> Result<OAuthCredentials, Failure> {
    let method = match opened_by().filter(|_| !is_quiet) {
        None => LoginMethod::Stored,
        Some(opened_by) => LoginMethod::Person(Arc::new(TerminalPrompt {
            server: server.name.clone(),
            opened_by,
            port: None,
            timeout: PERSON_TIMEOUT,
        })),
    };
    let settings = with_stored_client(&server.url, LoginSettings::default())?;
    credentials(server, method, settings, PERSON_TIMEOUT)
}

/// The credentials of `creole connect`, which asks the person who uses its client.
pub(crate) fn client_credentials(
    server: &HttpTarget,
    client: &ClientArgs,
    is_quiet: bool,
) -> Result<(OAuthCredentials, Option<Arc<ClientLogin>>), Failure> {
    let settings = with_stored_client(&server.url, settings(client)?)?;
    if is_quiet {
        return Ok((credentials(server, LoginMethod::Stored, settings, REQUESTS_TIMEOUT)?, None));
    }
    let url = shown_url(&server.url);
    let key = LoginKey::new(&server.url, settings.client_id.as_deref());
    let stored = creole_config::login_store().map(|store| (store, key));
    let has_browser = browser::has_browser();
    let login = ClientLogin::new(&server.name, &url, client.port, has_browser, stored);
    let method = LoginMethod::Person(Arc::new(ClientPrompt(Arc::clone(&login))));
    let timeout = client_login::PERSON_TIMEOUT;
    Ok((credentials(server, method, settings, timeout)?, Some(login)))
}

/// The credentials of a server with stored logins.
pub(crate) fn credentials(
    server: &HttpTarget,
    method: LoginMethod,
    settings: LoginSettings,
    timeout: Duration,
) -> Result<OAuthCredentials, Failure> {
    let mut options = OAuthOptions::new(method);
    options.settings = settings;
    options.store = creole_config::login_store();
    options.timeout = timeout + REQUESTS_TIMEOUT;
    options.certificates.clone_from(&server.certificates);
    OAuthCredentials::new(&server.name, &server.url, options)
        .map_err(|error| Failure::Usage(error.to_string()))
}

/// The settings with the client of the stored login, if the command line names none. This also finds out whether the
/// files can be used.
pub(crate) fn with_stored_client(
    url: &str,
    mut settings: LoginSettings,
) -> Result<LoginSettings, Failure> {
    let Some(store) = creole_config::login_store() else { return Ok(settings) };
    let logins = stored_logins(&store, url)?;
    let is_own = |login: &Login| login.client.source == ClientSource::Configured;
    if settings.client_id.is_none()
        && logins.iter().all(is_own)
        && let Some(login) = logins.first()
    {
        settings.client_id = Some(login.client.id.clone());
        settings.client_secret.clone_from(&login.client.secret);
    }
    Ok(settings)
}

/// The stored logins of the server at this address.
pub(crate) fn stored_logins(store: &LoginStore, url: &str) -> Result<Vec<Login>, Failure> {
    let (mut logins, wanted) = (store.all()?, LoginKey::new(url, None));
    logins.retain(|login| LoginKey::of(login).is_same_server(&wanted));
    Ok(logins)
}

/// How the user of a command can be asked; `None` without a terminal.
fn opened_by() -> Option<OpenedBy> {
    let is_shown = io::stderr().is_terminal();
    match (browser::has_browser(), io::stdin().is_terminal()) {
        _ if !is_shown => None,
        (true, _) => Some(OpenedBy::Command),
        (false, true) => Some(OpenedBy::User),
        (false, false) => None,
    }
}

/// The settings of a login from the command line.
pub(crate) fn settings(args: &ClientArgs) -> Result<LoginSettings, Failure> {
    let mut settings = LoginSettings::default();
    settings.scopes = args.scopes.iter().cloned().collect::<Scopes>();
    settings.client_id.clone_from(&args.client_id);
    settings.client_secret = args.client_secret_file.as_deref().map(read_secret).transpose()?;
    settings.client_metadata_url =
        args.client_metadata.as_deref().map(client_metadata).transpose()?;
    settings.allows_private = args.allow_private;
    Ok(settings)
}

/// The settings of a configuration, with those of the command line in their place.
pub(crate) fn merged(configured: LoginSettings, given: LoginSettings) -> LoginSettings {
    let mut merged = configured;
    if given.client_id.is_some() {
        merged.client_id = given.client_id;
        merged.client_secret = given.client_secret;
    }
    merged.client_metadata_url = given.client_metadata_url.or(merged.client_metadata_url);
    merged.scopes = merged.scopes.union(&given.scopes);
    merged.allows_private |= given.allows_private;
    merged
}

/// The URL of a client's metadata document, which is its id.
fn client_metadata(url: &str) -> Result<String, Failure> {
    match WebUrl::parse(url).is_ok_and(|url| url.is_https() && url.path().len() > 1) {
        true => Ok(url.to_owned()),
        false => Err(Failure::Usage(format!(
            "invalid URL `{url}` in --client-metadata; write an https:// URL with a path"
        ))),
    }
}

/// The first line of a file, or of stdin.
fn read_secret(file: &Path) -> Result<SecretText, Failure> {
    let failed = |what: &str| {
        Failure::Usage(format!("cannot use `{}` as --client-secret-file: {what}", file.display()))
    };
    let mut line = String::new();
    let read = match file.as_os_str() == "-" {
        true => io::stdin().lock().take(MAX_SECRET).read_line(&mut line),
        false => File::open(file)
            .and_then(|file| BufReader::new(file).take(MAX_SECRET).read_line(&mut line)),
    };
    read.map_err(|error| failed(&error.to_string()))?;
    match line.trim() {
        "" => Err(failed("its first line is empty")),
        secret => Ok(SecretText::new(secret)),
    }
}

/// Connects to a server. If a person is asked for longer than the handshake may take, it connects again after the login.
pub(crate) async fn connect(
    builder: impl Fn() -> Result<ClientBuilder, Failure>,
    address: &Address,
) -> Result<Result<Client, Fault>, Failure> {
    let connected = builder()?.connect(address.clone()).await;
    if connected.is_ok() || !is_person_asked() {
        return Ok(connected);
    }
    wait_for_person().await;
    Ok(builder()?.connect(address.clone()).await)
}

/// An address without its query, which may hold a secret.
pub(crate) fn shown_url(url: &str) -> String {
    crate::output::printable(url.split('?').next().unwrap_or(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_first_line_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "s3cret\r\nmore\n").unwrap();
        let secret = read_secret(&file).unwrap();
        assert_eq!(secret.expose(), "s3cret");
        std::fs::write(&file, "\n").unwrap();
        let said = read_secret(&file).unwrap_err().to_string();
        assert!(said.ends_with("as --client-secret-file: its first line is empty"), "{said}");
        assert!(read_secret(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_metadata_document_has_an_encrypted_address() {
        assert!(client_metadata("https://client.example/id.json").is_ok());
        for wrong in ["http://client.example/id.json", "https://client.example", "id.json"] {
            let said = client_metadata(wrong).unwrap_err().to_string();
            assert!(said.contains(wrong) && said.contains("--client-metadata"), "{said}");
        }
    }
}
