//! The admin listener of a process.

use std::io;
use std::sync::Arc;

use creole::internal::telemetry::Telemetry;
use creole_admin::{AdminHost, AdminListener, AdminSettings};
use creole_config::plan::admin::AdminPlan;
use creole_config::{Plan, admin_settings};

use super::prerequisites::{certificates, reload_certificates};
use super::signals::Reload;
use crate::failure::Failure;
use crate::output;

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
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::Serve(format!(
            "cannot listen on {}: the address is in use by another program; stop it, or choose \
                another address with `listen` of `[admin]`",
            admin.listen
        )),
        _ => Failure::Serve(format!("cannot listen on {}: {error}", admin.listen)),
    };
    Ok(Some(AdminListener::bind(settings).await.map_err(cannot)?))
}

/// Serves the admin listener until the process ends, and tells the user where it is. Returns what reads the files of
/// users and keys again.
pub(super) fn start(
    listener: AdminListener,
    host: impl AdminHost,
    telemetry: &Telemetry,
) -> Vec<Reload> {
    let settings = listener.settings();
    let what = match (settings.console, &settings.authenticator) {
        (true, None) => "the console and the admin API are at",
        (true, Some(_)) => "sign in to the console at",
        (false, _) => "the admin API is at",
    };
    let how = match &settings.authenticator {
        None => "; `creole console` prints a link that signs in",
        Some(_) => "",
    };
    let message = format!("creole: {what} {}{how}", listener.url());
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
    // The one-time link is there before the user is told of it.
    let serving = listener.serve(host, telemetry);
    output::write_message(&message);
    tokio::spawn(serving);
    reloads
}
