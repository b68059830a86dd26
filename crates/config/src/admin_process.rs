//! The process as the admin listener sees it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use creole::auth::{AuthError, AuthSettings, Authenticator};
use creole::internal::replicas::Replicas;
use creole::serve::http::{Drain, DrainStage, McpEndpoint};
use creole_admin::{
    AdminHost, AdminSettings, ConfigView, Diagnostic, LayerView, RefusedConfig, ServerView, Stage,
};
use creole_gateway::layers::PinLocation;
use creole_tools::PackOptions;

use crate::effective_values::effective_values;
use crate::pin_locations::pin_locations;
use crate::plan::admin::AdminPlan;
use crate::plan::http::HttpPlan;
use crate::plan::layer::LayerPlan;
use crate::redacted_text::redacted;
use crate::reload::{RejectedReload, Reloader, config_digest};
use crate::rule_lines::rule_line;

/// A running process.
pub struct AdminProcess {
    reloader: Arc<Reloader>,
    http: Option<HttpParts>,
}

/// The listener of MCP clients.
struct HttpParts {
    plan: HttpPlan,
    endpoints: Vec<McpEndpoint>,
    drain: Drain,
}

impl AdminProcess {
    /// A process that serves stdio.
    pub fn new(reloader: &Arc<Reloader>) -> Self {
        Self { reloader: Arc::clone(reloader), http: None }
    }

    /// A process that serves HTTP, with the endpoints of its servers in the order of the plan.
    pub fn with_http(
        reloader: &Arc<Reloader>,
        plan: &HttpPlan,
        endpoints: Vec<McpEndpoint>,
        drain: &Drain,
    ) -> Self {
        let http = HttpParts { plan: plan.clone(), endpoints, drain: drain.clone() };
        Self { reloader: Arc::clone(reloader), http: Some(http) }
    }
}

impl AdminHost for AdminProcess {
    fn servers(&self) -> Vec<ServerView> {
        let plan = Arc::clone(&self.reloader.history().plan);
        let instances = self.reloader.instances();
        let view = |(index, (plan, instance)): (usize, (crate::Plan, crate::ServerInstance))| {
            let server = plan.server;
            let layer = |kind: &str| LayerView { kind: kind.to_owned(), name: None };
            let policy = plan.policy.as_ref().map(|_| layer("policy"));
            let layers = server.chain.iter().map(|plan| layer(plan.kind()));
            ServerView {
                path: self
                    .http
                    .as_ref()
                    .map(|http| server.path.clone().unwrap_or_else(|| http.plan.path.clone())),
                dialect: server.dialect.name.to_string(),
                layers: policy.into_iter().chain(layers).collect(),
                name: server.name,
                title: server.title,
                version: server.version,
                service: instance.service,
                federation: instance.federation,
                state: instance.state,
                endpoint: self.http.as_ref().and_then(|it| it.endpoints.get(index)).cloned(),
            }
        };
        plan.split().into_iter().zip(instances).enumerate().map(view).collect()
    }

    fn config(&self) -> ConfigView {
        let history = self.reloader.history();
        let text = history.text.as_deref().map(redact_config);
        let source = if self.reloader.file().is_some() { "file" } else { "preset" };
        let http = self.http.as_ref().map(|http| &http.plan);
        ConfigView {
            file: self.reloader.file().map(Path::to_path_buf),
            effective: effective_values(&history.plan, http, text.as_deref(), source),
            text,
            digest: config_digest(history.text.as_deref()),
            loaded: Some(history.loaded),
            refused: history.rejection.as_ref().map(refused),
            accepted_reloads: history.accepted,
            refused_reloads: history.rejected,
        }
    }

    fn replicas(&self) -> Option<Replicas> {
        self.reloader.instances().first()?.replicas.clone()
    }

    fn pin_locations(&self) -> Vec<PinLocation> {
        let plan = Arc::clone(&self.reloader.history().plan);
        let instances = self.reloader.instances();
        pin_locations(&plan, instances.first().map(|instance| &instance.state))
    }

    fn audit_files(&self) -> Vec<PathBuf> {
        let plan = Arc::clone(&self.reloader.history().plan);
        let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
        let behind = plan.upstreams.iter().flat_map(|upstream| &upstream.chain);
        let layers = servers.flat_map(|server| &server.chain).chain(behind);
        let files = layers.flat_map(|layer| match layer {
            LayerPlan::Audit(audit) => audit.existing_files(),
            _ => Vec::new(),
        });
        files.collect::<BTreeSet<PathBuf>>().into_iter().collect()
    }

    fn rule_line(&self, layer: &str, rule: Option<&str>) -> Option<usize> {
        let history = self.reloader.history();
        rule_line(history.text.as_deref()?, layer, rule)
    }

    fn stage(&self) -> Stage {
        match self.http.as_ref().map(|http| http.drain.stage()) {
            None | Some(DrainStage::Serving) => Stage::Running,
            Some(_) => Stage::Draining,
        }
    }
}

/// The text of a configuration with secrets replaced. A value that names a variable is no secret.
fn redact_config(text: &str) -> String {
    redacted(text)
}

fn refused(rejection: &RejectedReload) -> RefusedConfig {
    let diagnostic = match rejection.error.as_deref() {
        Some(error) => {
            let at = error.location.as_ref();
            Diagnostic {
                severity: "error".to_owned(),
                message: error.message.clone(),
                help: error.help.clone(),
                line: at.map(|at| at.line),
                column: at.map(|at| at.column),
                end_column: at.map(|at| at.column + at.length),
            }
        }
        None => Diagnostic {
            severity: "error".to_owned(),
            message: rejection.message.trim_start_matches("error: ").to_owned(),
            help: None,
            line: None,
            column: None,
            end_column: None,
        },
    };
    RefusedConfig {
        at: rejection.at,
        text: rejection.text.as_deref().map(redact_config),
        digest: config_digest(rejection.text.as_deref()),
        diagnostics: vec![diagnostic],
        restart_needed: rejection.restart_needed.into_iter().map(str::to_owned).collect(),
    }
}

/// The settings of the admin listener of a plan, with the current contents of its files of users and keys. Its
/// certificate is loaded by the caller.
///
/// # Errors
/// When a file of users or keys cannot be read or has an invalid line.
pub fn admin_settings(plan: &AdminPlan) -> Result<AdminSettings, AuthError> {
    let authenticator = match plan.has_users() {
        false => None,
        true => {
            let mut settings = AuthSettings::default();
            settings.users.clone_from(&plan.users);
            settings.keys_file.clone_from(&plan.keys_file);
            Some(Authenticator::new(settings)?)
        }
    };
    Ok(AdminSettings {
        listen: plan.listen.clone(),
        authenticator,
        guard: plan.guard(),
        certificates: None,
        console: plan.console,
        capture: plan.capture,
        metrics_open: plan.metrics_open,
        trace_url: plan.trace_url.clone(),
        link_folder: runtime_folder(),
    })
}

/// The folder of files that only the running process needs: `creole` in the runtime folder of the user, or else `run` in
/// the data folder.
pub fn runtime_folder() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|name| !name.is_empty());
    let runtime = runtime.map(|folder| PathBuf::from(folder).join("creole"));
    let default = || PackOptions::default().data_directory().map(|folder| folder.join("run"));
    runtime.or_else(default)
}
