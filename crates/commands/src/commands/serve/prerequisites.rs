//! Prerequisites of a server. `serve` and `config check` share them, so that both reject the same configurations.

use std::path::Path;
use std::sync::Arc;

use creole::auth::Authenticator;
use creole::serve::http::Certificates;
use creole_config::Plan;
use creole_config::plan::HttpPlan;
use creole_config::plan::audit::STDOUT_IS_USED;
use creole_config::plan::http::TlsPlan;
use creole_config::plan::layer::{AuditTargetPlan, LayerPlan, PinPlan};
use creole_config::plan::state::StatePlan;

use crate::failure::Failure;
use crate::output;

/// The parsed files that a server needs.
pub(crate) struct Prerequisites {
    pub(crate) certificates: Option<Arc<Certificates>>,
    pub(crate) authenticator: Option<Authenticator>,
}

impl Prerequisites {
    /// Loads what the plan needs for this listener. `is_open` allows callers without authentication.
    ///
    /// # Errors
    /// When the server may not be exposed like this, or a file cannot be used.
    pub(crate) fn of(plan: &Plan, http: Option<&HttpPlan>, is_open: bool) -> Result<Self, Failure> {
        if let Some(http) = http {
            check_exposure(plan, http, is_open)?;
        } else if layers(plan).any(writes_to_stdout) {
            return Err(Failure::Refused(STDOUT_IS_USED.to_owned()));
        }
        let tls = http.and_then(|http| http.tls.as_ref());
        let certificates = tls.map(certificates).transpose()?;
        let auth = plan.auth.as_ref().filter(|_| http.is_some());
        let callers = auth.map(|auth| creole_config::authenticator(plan, auth)).transpose()?;
        creole_config::seal_keys(plan)?;
        for file in written_files(plan) {
            check_folder(file)?;
        }
        Ok(Self { certificates, authenticator: callers })
    }
}

/// Checks that the server is not reachable from other machines without authentication.
fn check_exposure(plan: &Plan, http: &HttpPlan, is_open: bool) -> Result<(), Failure> {
    let is_guarded = plan.auth.is_some() || plan.signs_in_at_a_site();
    if http.is_loopback() || is_guarded {
        return Ok(());
    }
    let listen = http.listen;
    if is_open {
        output::write_message(&format!(
            "warning: {listen} can be reached from other machines, and there is no authentication"
        ));
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{listen} can be reached from other machines, and there is no authentication; listen on \
            127.0.0.1, configure `[auth]`, or serve without authentication with \
            --dangerously-without-auth"
    )))
}

/// Loads a certificate.
pub(super) fn certificates(tls: &TlsPlan) -> Result<Arc<Certificates>, Failure> {
    let clients = tls.client_certificates.as_deref();
    let loaded = Certificates::load_with_clients(&tls.certificate, &tls.key, clients);
    loaded.map_err(|error| Failure::Refused(error.to_string()))
}

/// Reads a certificate again.
pub(super) fn reload_certificates(certificates: &Certificates) {
    if let Err(error) = certificates.reload() {
        output::write_message(&format!("error: {error}; the old certificate stays in use"));
    }
}

/// The layers of all chains.
fn layers(plan: &Plan) -> impl Iterator<Item = &LayerPlan> {
    let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
    let behind = plan.upstreams.iter().flat_map(|upstream| &upstream.chain);
    servers.flat_map(|server| &server.chain).chain(behind)
}

fn writes_to_stdout(layer: &LayerPlan) -> bool {
    matches!(layer, LayerPlan::Audit(audit) if audit.to == AuditTargetPlan::Stdout)
}

/// The files that the server writes.
fn written_files(plan: &Plan) -> impl Iterator<Item = &Path> {
    let of_layers = layers(plan).filter_map(|layer| match layer {
        LayerPlan::Audit(audit) => audit.file(),
        LayerPlan::Pin(PinPlan::File(file)) => Some(file.as_path()),
        _ => None,
    });
    of_layers.chain(plan.state.as_ref().and_then(StatePlan::file))
}

/// Checks that the folder of a file to be written exists.
fn check_folder(file: &Path) -> Result<(), Failure> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failure::Refused(format!(
            "cannot write `{}`: the folder `{}` does not exist; create it first",
            file.display(),
            folder.display()
        ))),
    }
}
