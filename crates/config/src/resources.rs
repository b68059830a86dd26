//! The protected resources of a plan: one for each path that it serves over HTTP.

use std::sync::Arc;

use creole::auth::{Requirement, ResourceSettings};

use crate::Plan;
use crate::plan::auth::AuthPlan;

/// The default path of the MCP endpoint.
const DEFAULT_PATH: &str = "/mcp";

/// The maximum length of an access token, in bytes.
const MAX_TOKEN: usize = 8_192;

/// The resources, in the order of the servers.
pub(crate) fn resources(plan: &Plan, auth: &AuthPlan) -> Vec<ResourceSettings> {
    plan.split().iter().map(|server| resource(server, auth)).collect()
}

fn resource(plan: &Plan, auth: &AuthPlan) -> ResourceSettings {
    let usual = plan.http.as_ref().map_or(DEFAULT_PATH, |http| &*http.path);
    let issuers = auth.issuers.iter().map(|issuer| {
        (Arc::clone(&issuer.settings.label), Arc::from(&*issuer.settings.rules.issuer))
    });
    ResourceSettings {
        path: plan.server.path.clone().unwrap_or_else(|| usual.to_owned()),
        is_tls: plan.http.as_ref().is_some_and(|http| http.tls.is_some()),
        issuers: issuers.collect(),
        requirement: auth.role.as_deref().map_or_else(Requirement::none, Requirement::role),
        max_token: MAX_TOKEN,
        name: plan.server.title.clone().unwrap_or_else(|| plan.server.name.clone()),
        ..ResourceSettings::default()
    }
}
