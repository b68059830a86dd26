//! The protected resources of a plan: one for each path that it serves over HTTP.

use std::sync::Arc;

use creole::auth::{DpopMode, Requirement, ResourceSettings, ScopeRule, ScopeRules};
use creole::internal::name_patterns::NamePatterns;

use crate::Plan;
use crate::plan::auth::AuthPlan;
use crate::plan::oauth::ScopePlan;
use crate::tables::auth_oauth::ServerDpopChoice;

/// The default path of the MCP endpoint.
const DEFAULT_PATH: &str = "/mcp";
/// The default path of HTTP+SSE.
const DEFAULT_LEGACY_SSE: &str = "/sse";

/// The resources: those of the servers in their order, and then that of the HTTP+SSE transport, which is another path
/// of the first server.
pub fn resources(plan: &Plan, auth: &AuthPlan) -> Vec<ResourceSettings> {
    let plans = plan.split();
    let mut all: Vec<_> = plans.iter().map(|server| resource(server, auth)).collect();
    let usual = || Some(DEFAULT_LEGACY_SSE.to_owned());
    let legacy_path = plan.http.as_ref().map_or_else(usual, |http| http.legacy_sse.clone());
    if let (Some(path), Some(first)) = (legacy_path, all.first().cloned()) {
        all.push(ResourceSettings { path, ..first });
    }
    all
}

/// The scopes that operations require.
pub(crate) fn scope_rules(auth: &AuthPlan) -> ScopeRules {
    let rules = auth.oauth.scopes.iter().map(scope_rule).collect();
    ScopeRules::new(rules, auth.oauth.denies_unlisted)
}

fn resource(plan: &Plan, auth: &AuthPlan) -> ResourceSettings {
    let (http, own) = (plan.http.as_ref(), &plan.server.auth);
    let usual = http.map_or(DEFAULT_PATH, |http| &*http.path);
    let is_accepted = |label: &str| {
        own.issuers.as_ref().is_none_or(|accepted| accepted.iter().any(|it| it == label))
    };
    let issuers = auth.issuers.iter().map(|issuer| &issuer.settings);
    let issuers = issuers.filter(|issuer| is_accepted(&issuer.label));
    let issuers =
        issuers.map(|issuer| (Arc::clone(&issuer.label), Arc::from(&*issuer.rules.issuer)));
    let required = own.required_scopes.as_ref().unwrap_or(&auth.oauth.required_scopes);
    let further = auth.oauth.scopes_supported.iter();
    // A path with its own required scopes names them, and not those of the others.
    let further = further.filter(|scope| {
        own.required_scopes.is_none()
            || required.contains(scope)
            || !auth.oauth.required_scopes.contains(scope)
    });
    let missing = required.iter().filter(|scope| !auth.oauth.scopes_supported.contains(scope));
    let supported: Vec<String> = missing.chain(further).cloned().collect();
    let role = own.role.as_ref().or(auth.role.as_ref());
    ResourceSettings {
        path: plan.server.path.clone().unwrap_or_else(|| usual.to_owned()),
        public_url: http.and_then(|http| http.public_url.clone()),
        is_tls: http.is_some_and(|http| http.tls.is_some()),
        issuers: issuers.collect(),
        required_scopes: shared(required),
        scopes_supported: shared(&supported),
        requirement: role.map_or_else(Requirement::none, |role| Requirement::role(role)),
        dpop: dpop_mode(own.dpop.unwrap_or(auth.oauth.dpop)),
        dpop_nonce: auth.oauth.dpop_nonce,
        max_token: auth.oauth.max_token,
        name: plan.server.title.clone().unwrap_or_else(|| plan.server.name.clone()),
        documentation: auth.oauth.documentation.clone(),
    }
}

fn scope_rule(plan: &ScopePlan) -> ScopeRule {
    let patterns = |patterns: &[String]| NamePatterns::new(patterns.iter().cloned());
    ScopeRule {
        name: plan.name.as_str().into(),
        tools: patterns(&plan.tools),
        resources: patterns(&plan.resources),
        prompts: patterns(&plan.prompts),
        tasks: patterns(&plan.tasks),
        methods: patterns(&plan.methods),
        implies: shared(&plan.implies),
        roles: shared(&plan.roles),
    }
}

fn dpop_mode(choice: ServerDpopChoice) -> DpopMode {
    match choice {
        ServerDpopChoice::Off => DpopMode::Off,
        ServerDpopChoice::Accept => DpopMode::Accept,
        ServerDpopChoice::Require => DpopMode::Require,
    }
}

fn shared(texts: &[String]) -> Vec<Arc<str>> {
    texts.iter().map(|text| text.as_str().into()).collect()
}
