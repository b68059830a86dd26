//! The admin listener of a process.

use std::io;
use std::io::ErrorKind;
use std::sync::Arc;

use creole::internal::telemetry::Telemetry;
use creole_admin::{AdminAddress, AdminHost, AdminListener, AdminSettings};
use creole_config::plan::admin::AdminPlan;
use creole_config::{Plan, admin_settings};
use tokio::task::JoinHandle;

use super::prerequisites::{certificates, reload_certificates};
use super::signals::Reload;
use crate::failure::Failure;
use crate::{log, output};

/// The settings of the listener, with its files.
///
/// # Errors
/// When the listener may not be exposed like this, or a file cannot be used.
pub(crate) fn settings(plan: &AdminPlan, is_insecure: bool) -> Result<AdminSettings, Failure> {
    if let Some(error) = &plan.exposure {
        if !is_insecure {
            return Err(Failure::Config(error.clone()));
        }
        output::write_message(&format!("warning: {}", error.message));
    }
    let mut settings = admin_settings(plan)?;
    settings.certificates = plan.tls.as_ref().map(certificates).transpose()?;
    Ok(settings)
}

/// Binds the admin listener of a plan, if it has one, and turns the metrics on. Before the servers start, so that they
/// count from their first call.
///
/// # Errors
/// When it may not be exposed, a file cannot be used, or the address cannot be bound.
pub(super) async fn bind(
    plan: &Plan,
    is_insecure: bool,
    telemetry: &Telemetry,
) -> Result<Option<AdminListener>, Failure> {
    let Some(admin) = &plan.admin else { return Ok(None) };
    let settings = settings(admin, is_insecure)?;
    telemetry.enable_metrics();
    let cannot = |error| listen_failure(&admin.listen, &error);
    let listener = AdminListener::bind(settings).await.map_err(cannot)?;
    log::set_buffer(Arc::clone(listener.log()));
    Ok(Some(listener))
}

/// The reason why the address cannot be listened on, with a suggestion.
fn listen_failure(listen: &AdminAddress, error: &io::Error) -> Failure {
    let other = "choose another address with `listen` of `[admin]`";
    let reason = match (error.kind(), listen) {
        (ErrorKind::AddrInUse, _) => {
            format!("the address is in use by another program; stop it, or {other}")
        }
        (ErrorKind::NotFound, AdminAddress::Unix(_)) => {
            format!("the folder of the socket does not exist; create it, or {other}")
        }
        (ErrorKind::PermissionDenied, _) => format!("{error}; {other}"),
        (ErrorKind::AlreadyExists, AdminAddress::Unix(_)) => {
            format!("there is a file that is no socket; remove it, or {other}")
        }
        (ErrorKind::AddrNotAvailable, _) => {
            format!("it is not an address of this machine; {other}")
        }
        _ => error.to_string(),
    };
    Failure::Serve(format!("cannot listen on {listen}: {reason}"))
}

/// The message about a listener: where it is, and how it is used.
fn announcement(settings: &AdminSettings, url: &str) -> String {
    let (what, how) = match (&settings.listen, &settings.authenticator) {
        // A browser cannot open a socket.
        (AdminAddress::Unix(_), _) => {
            ("the admin API is at", "; `creole top` and `creole trace` use it")
        }
        (_, None) if settings.console => {
            let how = "; `creole console` prints a link that signs in";
            ("the console and the admin API are at", how)
        }
        (_, Some(_)) if settings.console => ("sign in to the console at", ""),
        _ => ("the admin API is at", ""),
    };
    format!("creole: {what} {url}{how}")
}

/// Serves the admin listener until its task is aborted, and tells the user where it is. Returns also what reads the files
/// of users and keys again.
pub(super) fn start(
    listener: AdminListener,
    host: impl AdminHost,
    telemetry: &Telemetry,
) -> (Vec<Reload>, JoinHandle<()>) {
    let settings = listener.settings();
    let message = announcement(settings, listener.url());
    let mut reloads: Vec<Reload> = Vec::new();
    if let Some(known) = settings.authenticator.clone() {
        reloads.push(Box::new(move || {
            if let Err(error) = known.reload() {
                output::write_message(&format!("error: {error}; the admin users stay as they are"));
            }
        }));
    }
    if let Some(certificates) = settings.certificates.clone() {
        reloads.push(Box::new(move || reload_certificates(&certificates)));
    }
    let (host, telemetry): (Arc<dyn AdminHost>, _) = (Arc::new(host), telemetry.clone());
    // The one-time link exists before the message names it.
    let serving = listener.serve(host, telemetry);
    output::write_message(&message);
    (reloads, tokio::spawn(serving))
}
