//! Builds a server from a plan and the packs.
//!
//! The gateway does not know recipes or packs, and the packs do not know the configuration. The binary and the
//! acceptance tests build their servers here.

use std::error::Error;
use std::fmt;

use crate::Plan;
use crate::plan::auth::{AuthPlan, KeyPlan};
use crate::plan::layer;
use crate::plan::layer::{LayerEnvironment, LayerError};
use crate::plan::policy;
use crate::resources::{resources, scope_rules};
use creole::auth::{AuthError, AuthSettings, Authenticator, BearerKey, Requirement};
use creole::internal::credential_files::read_credential_file;
use creole::proto::model::CacheHints;
use creole::proto::server::ServerLimits;
use creole::{Secrets, Server};
use creole_gateway::federation::Federation;
use creole_tools::recipe::RecipeError;
use creole_tools::{PackError, PackOptions};

use crate::wordpress::{self, Site};

/// How long clients may cache lists. Changes are announced, so the minute only matters to clients that do not listen.
const LIST_CACHE: CacheHints = CacheHints { ttl_ms: 60_000, public: false };

/// The names of the available packs.
pub fn packs() -> Vec<&'static str> {
    let general = creole_tools::PACKS.iter().map(|(name, _)| *name);
    general.chain(wordpress::pack_names()).collect()
}

/// The server of a plan, in front of its upstreams.
///
/// # Errors
/// When the plan names an unknown pack, when a pack cannot be built (such as from an unreadable folder), or when a file
/// of the chain cannot be opened.
pub fn assemble(
    plan: &Plan,
    options: &PackOptions,
    federation: &Federation,
) -> Result<Server, AssemblyError> {
    let environment = LayerEnvironment::default();
    assemble_with_site(plan, options, site(plan).as_ref(), federation, &environment)
}

/// The same, with a site that is shared with others.
pub(crate) fn assemble_with_site(
    plan: &Plan,
    options: &PackOptions,
    site: Option<&Site>,
    federation: &Federation,
    environment: &LayerEnvironment,
) -> Result<Server, AssemblyError> {
    let wanted = &plan.server;
    let mut server = Server::new(&wanted.name)
        .version(&wanted.version)
        .dialect(wanted.dialect.clone())
        .page_size(wanted.page_size)
        .limits(ServerLimits {
            max_calls: wanted.limits.calls_in_flight,
            call_idle_timeout: wanted.limits.call_timeout,
            call_total_timeout: wanted.limits.call_timeout_max,
            input_timeout: wanted.limits.input_timeout,
            ..ServerLimits::default()
        })
        .task_limits(wanted.limits.tasks)
        .log_payloads(plan.log.payloads)
        .cache(LIST_CACHE)
        .with(federation.layer());
    if let Some(title) = &wanted.title {
        server = server.title(title);
    }
    if let Some(instructions) = &wanted.instructions {
        server = server.instructions(instructions);
    }
    let skills = plan.skills.clone().or_else(|| options.skills.clone());
    let tasks = plan.tasks.clone().or_else(|| options.tasks.clone());
    let options = PackOptions { skills, tasks, ..options.clone() };
    for pack in &wanted.packs {
        server = match wordpress::is_pack(pack) {
            true => wordpress::add_pack(server, pack, site.ok_or(AssemblyError::MissingSite)?),
            false => creole_tools::add(server, pack, &options)?,
        };
    }
    for recipe in plan.offered_recipes() {
        server = recipe.add(server, &options)?;
    }
    let mut layers = layer::build(&wanted.chain, &wanted.name, environment)?;
    if let Some(settings) = &plan.policy {
        layers = policy::add_layer(settings, wanted, layers)?;
    }
    Ok(server.with_all(layers))
}

/// The WordPress site that packs work on, if the plan names one.
pub fn site(plan: &Plan) -> Option<Site> {
    plan.wordpress.clone().map(Site::new)
}

/// Why a server cannot be assembled.
#[derive(Debug)]
pub enum AssemblyError {
    /// A pack cannot be built.
    Pack(PackError),
    /// A pack of a WordPress site has no site.
    MissingSite,
    /// A configured item cannot be built.
    Recipe(RecipeError),
    /// A layer of the chain cannot be built.
    Layer(LayerError),
}

impl fmt::Display for AssemblyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pack(error) => error.fmt(formatter),
            Self::MissingSite => {
                formatter.write_str("packs of WordPress need a site: add `[wordpress]`")
            }
            Self::Recipe(error) => error.fmt(formatter),
            Self::Layer(error) => error.fmt(formatter),
        }
    }
}

impl Error for AssemblyError {}

impl From<PackError> for AssemblyError {
    fn from(error: PackError) -> Self {
        Self::Pack(error)
    }
}

impl From<RecipeError> for AssemblyError {
    fn from(error: RecipeError) -> Self {
        Self::Recipe(error)
    }
}

impl From<LayerError> for AssemblyError {
    fn from(error: LayerError) -> Self {
        Self::Layer(error)
    }
}

/// Why a planned server cannot run.
#[derive(Debug)]
pub enum RunError {
    /// A file of users or keys is invalid.
    Credentials(AuthError),
    /// The server refuses to start for a reason that the user can change.
    Refused(String),
    /// The server could not be started, or failed.
    Serve(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credentials(error) => write!(formatter, "error: {error}"),
            Self::Refused(message) | Self::Serve(message) => write!(formatter, "error: {message}"),
        }
    }
}

impl Error for RunError {}

impl From<AuthError> for RunError {
    fn from(error: AuthError) -> Self {
        Self::Credentials(error)
    }
}

/// The authenticator for HTTP, with the current contents of the files of users and keys.
///
/// # Errors
/// When a file cannot be read or has an invalid line.
pub fn authenticator(plan: &Plan, auth: &AuthPlan) -> Result<Authenticator, AuthError> {
    Authenticator::new(auth_settings(plan, auth)?)
}

/// The settings of the authenticator for HTTP: users, keys, their files, the required role, and issuers.
///
/// # Errors
/// When a key is invalid.
pub fn auth_settings(plan: &Plan, auth: &AuthPlan) -> Result<AuthSettings, AuthError> {
    let key =
        |key: &KeyPlan| BearerKey::new(&key.name, &key.sha256, &key.roles, key.expires.as_deref());
    let mut settings = AuthSettings::default();
    settings.users = auth.users.clone();
    settings.keys = auth.keys.iter().map(key).collect::<Result<_, _>>()?;
    settings.keys_file = auth.keys_file.clone();
    settings.requirement = auth.role.as_deref().map_or_else(Requirement::none, Requirement::role);
    settings.oauth.issuers = auth.issuers.iter().map(|issuer| issuer.settings.clone()).collect();
    settings.oauth.resources = resources(plan, auth);
    settings.oauth.scopes = scope_rules(auth);
    settings.oauth.legacy_metadata = auth.oauth.legacy_metadata;
    // Tokens are kept without the claims that no rule names.
    settings.oauth.kept_claims = plan.policy.as_ref().map(policy::claims).unwrap_or_default();
    Ok(settings)
}

/// The seal keys for request states and cursors, if the plan names a key file.
///
/// # Errors
/// When the file cannot be read or holds no keys.
pub fn seal_keys(plan: &Plan) -> Result<Option<Secrets>, RunError> {
    let Some(file) = &plan.seal_keys else { return Ok(None) };
    let refused = |reason: String| RunError::Refused(format!("`{}`: {reason}", file.display()));
    let text = read_credential_file(file).map_err(|error| RunError::Refused(error.to_string()))?;
    Secrets::parse(&text).map_err(refused).map(Some)
}
