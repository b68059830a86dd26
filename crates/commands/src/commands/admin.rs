//! The verbs that use the admin listener of a running process.

pub(crate) mod console;
pub(crate) mod top;
pub(crate) mod trace;

use creole_admin::{AdminClient, AdminCredential, AdminError, AdminLink, read_links};
use creole_config::runtime_folder;

use crate::args::AdminArgs;
use crate::failure::Failure;

/// The variable with a key of the file of keys.
const KEY_VARIABLE: &str = "CREOLE_ADMIN_KEY";

/// What is said when no process is found.
const HOW_TO_START: &str = "add `[admin]` to the configuration of a server and start it. For one with users, use --admin URL and CREOLE_ADMIN_KEY";

/// The links of running processes of this user that match the arguments.
fn links(args: &AdminArgs) -> Vec<AdminLink> {
    let wanted = args.url.as_deref().map(|url| url.trim_end_matches('/'));
    let folder = runtime_folder();
    let links = folder.as_deref().map(read_links).unwrap_or_default();
    let is_meant = |link: &AdminLink| wanted.is_none_or(|wanted| link.url == wanted);
    links.into_iter().filter(|link| is_meant(link) && is_running(link.pid)).collect()
}

#[cfg(unix)]
fn is_running(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid).is_ok())
}

#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    true
}

/// The only link of a running process.
///
/// # Errors
/// When there is none, or more than one.
fn only_link(args: &AdminArgs) -> Result<AdminLink, Failure> {
    let mut links = links(args);
    match (links.len(), &args.url) {
        (1, _) => Ok(links.remove(0)),
        (0, Some(url)) => {
            let message = format!("no process of this user listens on {url} without users");
            Err(Failure::Refused(message))
        }
        (0, None) => Err(Failure::Refused(format!(
            "no process of this user has an admin listener without users; {HOW_TO_START}"
        ))),
        _ => {
            let urls: Vec<String> = links.into_iter().map(|link| link.url).collect();
            let urls = urls.join(", ");
            Err(Failure::Usage(format!("several processes run; choose one with --admin: {urls}")))
        }
    }
}

/// A client of the process that is meant.
///
/// # Errors
/// When no process is found, it cannot be reached, or the credential is refused.
pub(crate) async fn client(args: &AdminArgs) -> Result<AdminClient, Failure> {
    let key = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    let (url, credential) = match (key, &args.url) {
        (Some(key), Some(url)) => (url.clone(), AdminCredential::Key(key)),
        (Some(_), None) => {
            let message =
                format!("{KEY_VARIABLE} needs the address of its listener: use --admin URL");
            return Err(Failure::Usage(message));
        }
        (None, _) => {
            let link = only_link(args).map_err(|failure| match (failure, &args.url) {
                (Failure::Refused(message), Some(_)) => Failure::Refused(format!(
                    "{message}; if it has users, set {KEY_VARIABLE} to a key"
                )),
                (failure, _) => failure,
            })?;
            (link.url.clone(), AdminCredential::Link(link))
        }
    };
    AdminClient::sign_in(&url, credential).await.map_err(failure)
}

/// The failure of a request to the API.
pub(crate) fn failure(error: AdminError) -> Failure {
    Failure::Call(error.message)
}
