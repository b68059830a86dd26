//! The verbs that use the admin listener of a running process.

pub(crate) mod console;
pub(crate) mod top;
pub(crate) mod trace;

use creole_admin::{AdminClient, AdminCredential, AdminError, AdminLink, read_links};
use creole_config::runtime_folder;

use crate::args::AdminArgs;
use crate::failure::Failure;
use crate::http_target::ca_certificates;

/// The variable with a key of the file of keys.
const KEY_VARIABLE: &str = "CREOLE_ADMIN_KEY";
/// What the address of a Unix socket begins with.
pub(crate) const UNIX_PREFIX: &str = "unix:";

/// What to do about a process that is not found.
const HOW_TO_REACH: &str = "if it has users, use --admin URL and set CREOLE_ADMIN_KEY to a key";

/// The links of running processes of this user, or of the one at this address.
fn links(url: Option<&str>) -> Vec<AdminLink> {
    let wanted = url.map(absolute);
    let folder = runtime_folder();
    let links = folder.as_deref().map(read_links).unwrap_or_default();
    let is_meant = |link: &AdminLink| wanted.as_ref().is_none_or(|wanted| link.url == *wanted);
    links.into_iter().filter(|link| is_meant(link) && is_running(link.pid)).collect()
}

/// The address as processes write it: without a slash at the end, and with the whole path of a socket.
fn absolute(url: &str) -> String {
    let socket = url.strip_prefix(UNIX_PREFIX).and_then(|path| std::path::absolute(path).ok());
    match socket {
        Some(path) => format!("{UNIX_PREFIX}{}", path.display()),
        None => url.trim_end_matches('/').to_owned(),
    }
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
/// When there is none, or more than one. The message says what to do about a process that has users.
fn only_link(url: Option<&str>, about_users: &str) -> Result<AdminLink, Failure> {
    let mut links = links(url);
    match (links.len(), url) {
        (1, _) => Ok(links.remove(0)),
        (0, Some(url)) => Err(Failure::Refused(format!(
            "no process of this user listens on {url} without users; {about_users}"
        ))),
        (0, None) => Err(Failure::Refused(format!(
            "no process of this user has an admin listener without users; add `[admin]` to the \
                configuration of a server and start it; {about_users}"
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
        (None, url) => {
            let link = only_link(url.as_deref(), HOW_TO_REACH)?;
            (link.url.clone(), AdminCredential::Link(link))
        }
    };
    let authorities = args.cacert.as_deref().map(|file| ca_certificates(&url, file)).transpose()?;
    let authorities = authorities.map(|authorities| authorities.pem().to_vec());
    AdminClient::sign_in(&url, credential, authorities).await.map_err(failure)
}

/// The failure of a request to the API.
pub(crate) fn failure(error: AdminError) -> Failure {
    let has_key = std::env::var_os(KEY_VARIABLE).is_some_and(|key| !key.is_empty());
    match error.status {
        Some(401) if has_key => Failure::Call(format!(
            "the key in {KEY_VARIABLE} is not accepted; use one of the file that `keys_file` of \
                `[admin]` names"
        )),
        _ => Failure::Call(error.message),
    }
}
