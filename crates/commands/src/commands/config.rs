//! `creole config`: shows, checks and documents configurations.

mod dry_run;

use std::path::Path;
use std::sync::Arc;

use creole::auth::ProtectedResource;
use creole_admin::AdminAddress;
use creole_config::describe::reference::reference;
use creole_config::describe::schema::schema;
use creole_config::plan::admin::AdminPlan;
use creole_config::plan::auth::AuthPlan;
use creole_config::plan::layer::LayerPlan;
use creole_config::plan::upstream::{UpstreamAddress, UpstreamPlan};
use creole_config::plan::{HttpPlan, LogPlan, ServerPlan};
use creole_config::wordpress::SiteSettings;
use creole_config::{ConfigSource, Plan};
use creole_policy::PolicySettings;
use creole_tools::openapi::Api;
use creole_tools::openapi::report::GeneratedTool;
use creole_tools::recipe::tool::ToolAction;
use creole_tools::recipe::{Recipe, ToolRecipe};
use creole_tools::skills::load;

use super::serve::{Prerequisites, admin};
use crate::args::{ConfigCheckArgs, ConfigCommand};
use crate::failure::Failure;
use crate::{output, upstreams};

/// More tools than some clients show to a model.
const MANY_TOOLS: usize = 100;

/// Runs the verb.
pub(crate) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Show(chosen) => output::write_data(&chosen.source().text()?),
        ConfigCommand::Check(args) => check(args),
        ConfigCommand::Reference => output::write_data(&reference(&creole_config::packs())),
        ConfigCommand::Schema => {
            output::write_data(&format!("{:#}\n", schema(&creole_config::packs())))
        }
    }
}

fn check(args: &ConfigCheckArgs) -> Result<(), Failure> {
    let (file, operations) = (args.file.as_path(), args.operations);
    let plan = Plan::load(ConfigSource::File(file), &creole_config::packs())?;
    Prerequisites::of(&plan, plan.http.as_ref(), args.dangerously_without_auth)?;
    let admin =
        plan.admin.as_ref().map(|admin| admin_line(admin, args.insecure_admin)).transpose()?;
    let auth = plan.auth.as_ref().map(|written| auth(&plan, written)).transpose()?;
    let skills = plan.skills.as_deref().map(skills).transpose()?;
    check_files(&plan)?;
    dry_run::check_offline(&plan)?;
    let tried = if args.connect { Some(dry_run::check_connected(&plan)?) } else { None };
    let mut lines = vec![format!("{} is valid.", file.display())];
    for each in std::iter::once(&plan.server).chain(&plan.other_servers) {
        lines.extend([
            format!("  server   {}", server(each)),
            format!("  dialect  {}", dialect(each)),
            format!("  packs    {}", list(&each.packs)),
            format!("  limits   {}", limits(each)),
        ]);
        lines.extend(each.path.as_ref().map(|path| format!("  path     {path}")));
        lines.extend(
            each.upstreams.as_ref().map(|names| format!("  upstream only {}", list(names))),
        );
        lines.extend(each.tools.as_ref().map(|names| format!("  tools    only {}", list(names))));
        lines.extend(chain("chain   ", &each.chain));
    }
    lines.extend(plan.recipes.iter().filter_map(Recipe::tool).map(tool_line));
    lines.extend(
        plan.recipes.iter().filter_map(Recipe::api).flat_map(|api| service(api, operations)),
    );
    for upstream in &plan.upstreams {
        lines.push(format!("  upstream {}", upstream_line(upstream)));
        lines.extend(chain("        ", &upstream.chain));
    }
    lines.extend(plan.wordpress.iter().flat_map(|site| site_lines(site, &plan)));
    lines.extend(plan.http.as_ref().map(|reached| format!("  http     {}", http(reached))));
    lines.extend(admin);
    lines.extend(plan.state.as_ref().map(|state| format!("  state    in {state}")));
    lines.push(format!("  log      {}", log(plan.log)));
    lines.extend(auth);
    lines.extend(plan.auth.iter().flat_map(|auth| resource_lines(&plan, auth)));
    lines.extend(plan.policy.as_ref().map(policy));
    lines.extend(skills);
    lines.extend(files(&plan));
    lines.extend(tried.filter(|rows| !rows.is_empty()).map(|rows| upstreams::table(&rows)));
    lines.push(String::new());
    output::write_data(&lines.join("\n"))
}

/// Describes the admin listener. Reads its files, since a server does not start with invalid ones.
fn admin_line(plan: &AdminPlan, is_insecure: bool) -> Result<String, Failure> {
    let settings = admin::settings(plan, is_insecure)?;
    let scheme = if settings.certificates.is_some() { "https" } else { "http" };
    let callers = match &settings.authenticator {
        Some(known) => {
            let (users, keys) = known.count();
            format!("{}, {}", counted(users, "user"), counted(keys, "key"))
        }
        None if matches!(plan.listen, AdminAddress::Unix(_)) => "for this user".to_owned(),
        None => "sign in with `creole console`".to_owned(),
    };
    let console = if plan.console { ", console" } else { "" };
    Ok(format!("  admin    {scheme}://{}{console}, {callers}", plan.listen)
        .replace("http://unix:", "unix:"))
}

/// Describes the policy.
fn policy(settings: &PolicySettings) -> String {
    let rules = match settings.rules.len() {
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    format!("  policy   {rules}, otherwise {}", settings.default.name())
}

/// A number of things with their name.
fn counted(count: usize, name: &str) -> String {
    match count {
        1 => format!("1 {name}"),
        count => format!("{count} {name}s"),
    }
}

/// Describes the authentication. Reads the files, since a server does not start with invalid ones.
fn auth(plan: &Plan, auth: &AuthPlan) -> Result<String, Failure> {
    let (users, keys) = creole_config::authenticator(plan, auth)?.count();
    let role = auth.role.as_ref().map(|role| format!(", with the role {role}"));
    let (users, keys) = (counted(users, "user"), counted(keys, "key"));
    let issuers = match auth.issuers.len() {
        0 => String::new(),
        count => format!(", {}", counted(count, "issuer")),
    };
    Ok(format!("  auth     {users}, {keys}{issuers}{}", role.unwrap_or_default()))
}

/// Describes what access tokens are for and must have, for each path.
fn resource_lines(plan: &Plan, auth: &AuthPlan) -> Vec<String> {
    let host = plan.http.as_ref().map(|http| http.listen.to_string());
    let names = |all: &[Arc<str>]| match all.is_empty() {
        true => "none".to_owned(),
        false => all.join(", "),
    };
    let resources = creole_config::resources(plan, auth).into_iter();
    let lines = resources.filter(|settings| !settings.issuers.is_empty()).map(|settings| {
        let labels: Vec<_> = settings.issuers.iter().map(|(label, _)| Arc::clone(label)).collect();
        let (required, supported) =
            (names(&settings.required_scopes), names(&settings.scopes_supported));
        let path = settings.path.clone();
        let resource = ProtectedResource::new(settings, Arc::default());
        let url = resource.url(host.as_deref());
        let audiences = auth.issuers.iter().filter(|it| labels.contains(&it.settings.label));
        let audiences = audiences.map(|issuer| match &issuer.settings.audiences {
            Some(own) => format!("{} {}", issuer.settings.label, own.join(", ")),
            None => format!("{} {url}", issuer.settings.label),
        });
        let audiences: Vec<String> = audiences.collect();
        format!(
            "  tokens   {path}: resource {url}\n           metadata {}\n           issuers {}\n           \
                audiences {}\n           scopes required {required}; supported {supported}",
            resource.metadata_url(host.as_deref()),
            names(&labels),
            audiences.join("; "),
        )
    });
    lines.collect()
}

/// Checks the served files. A server skips an invalid file; here it is an error.
fn check_files(plan: &Plan) -> Result<(), Failure> {
    let problems: Vec<_> = plan.recipes.iter().flat_map(Recipe::file_errors).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Files(problems)) }
}

/// The names of the items that are made from files, by kind.
fn files(plan: &Plan) -> Vec<String> {
    let mut kinds =
        ["folders ", "prompts ", "files   ", "tables  "].map(|label| (label, Vec::new()));
    for recipe in &plan.recipes {
        let kind = match recipe {
            Recipe::Folder(_) => 0,
            Recipe::Prompts(_) => 1,
            Recipe::Resource(_) => 2,
            Recipe::Tables(tables) => {
                let location = tables.database.address().redacted();
                let names = tables.tables.join(", ");
                kinds[3].1.push(format!("{names} of {} ({location})", recipe.name()));
                continue;
            }
            Recipe::Tool(_) | Recipe::Api(_) => continue,
        };
        kinds[kind].1.push(recipe.name().to_owned());
    }
    let named = kinds.iter().filter(|(_, names)| !names.is_empty());
    named.map(|(label, names)| format!("  {label} {}", list(names))).collect()
}

/// The skills of a folder. A server skips an invalid one; here it is an error.
fn skills(folder: &Path) -> Result<String, Failure> {
    let loaded = load(folder).map_err(|problem| Failure::Files(vec![problem]))?;
    if !loaded.errors.is_empty() {
        return Err(Failure::Files(loaded.errors));
    }
    let names: Vec<String> = loaded.skills.iter().map(|skill| skill.name().to_owned()).collect();
    Ok(format!("  skills   {}", list(&names)))
}

/// The layers of a chain, outermost first.
fn chain(label: &str, layers: &[LayerPlan]) -> Option<String> {
    let kinds: Vec<&str> = layers.iter().map(LayerPlan::kind).collect();
    (!kinds.is_empty()).then(|| format!("  {label} {}", kinds.join(" > ")))
}

/// A configured tool and its action, without values that may be secrets.
fn tool_line(tool: &ToolRecipe) -> String {
    let message = match &tool.action {
        ToolAction::Command(command) => format!("runs {}", command.program.display()),
        ToolAction::Script(script) => format!("runs the script {}", script.name()),
        ToolAction::Query(query) => format!("queries the database {}", query.database.name()),
        ToolAction::Http(http) => {
            let host = http.url.literal_prefix().split('/').nth(2).unwrap_or_default();
            format!("sends requests to {}", host.split('?').next().unwrap_or_default())
        }
    };
    format!("  tool     {}: {message}", tool.name)
}

/// There is no site.
#[cfg(not(feature = "wordpress"))]
fn site_lines(_site: &SiteSettings, _plan: &Plan) -> Vec<String> {
    Vec::new()
}

/// A WordPress site: which users have access, and the source of its tools.
#[cfg(feature = "wordpress")]
fn site_lines(site: &SiteSettings, plan: &Plan) -> Vec<String> {
    let who = match site.capability.as_str() {
        "" => "for every user of the site".to_owned(),
        capability => format!("for users with the capability `{capability}`"),
    };
    let account = site.account.as_ref().map(|(user, _)| format!(", on stdio as `{user}`"));
    let account = account.unwrap_or_default();
    let mut lines = vec![format!("  site     {}, {who}{account}", site.address.as_str())];
    let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
    let packs: Vec<&String> = servers.flat_map(|server| &server.packs).collect();
    let has = |pack: &str| packs.iter().any(|text| *text == pack);
    let mut tell = |pack: &str, description: &str, names: &[String]| {
        if has(pack) && !names.is_empty() {
            lines.push(format!("           {description}: {}", names.join(", ")));
        }
    };
    tell("buddyboss-platform", "sets", &site.sets);
    tell("wordpress", "readable routes", &site.routes.read);
    tell("wordpress", "writable routes", &site.routes.write);
    lines
}

/// The operations of a document: a summary, or each of them.
fn service(api: &Api, operations: bool) -> Vec<String> {
    let report = &api.report;
    if let Some(reason) = &api.failure {
        return vec![format!("  openapi  {}: {reason}", api.name)];
    }
    let mut lines = vec![format!("  openapi  {}: {report}", api.name)];
    if report.tool_count() > MANY_TOOLS {
        lines.push(
            "           models choose badly among so many tools; select fewer with `include`"
                .to_owned(),
        );
    }
    if operations {
        lines.extend(report.operations.iter().map(|outcome| format!("           {outcome}")));
        return lines;
    }
    let reasons = report.excluded_reasons().into_iter();
    lines.extend(reasons.map(|(reason, count)| format!("           {count} excluded: {reason}")));
    let noted = |tool: &GeneratedTool| tool.rename_reason.is_some() || !tool.notes.is_empty();
    let kept = report.operations.iter().filter(|outcome| outcome.outcome.as_ref().is_ok_and(noted));
    match kept.count() {
        0 => {}
        count => lines.push(format!("           {count} with notes; `--operations` shows them")),
    }
    lines
}

fn upstream_line(upstream: &UpstreamPlan) -> String {
    let location = match &upstream.address {
        UpstreamAddress::Command { command, .. } => command.first().map_or("", String::as_str),
        UpstreamAddress::Preset(preset) => preset,
        UpstreamAddress::Url { url, .. } => url.split('?').next().unwrap_or_default(),
    };
    match upstream.prefix.as_str() {
        "" => format!("{}: {location}", upstream.name),
        prefix => format!("{}: {location}, prefix `{prefix}`", upstream.name),
    }
}

fn server(server: &ServerPlan) -> String {
    match &server.title {
        Some(title) => format!("{} {} ({title})", server.name, server.version),
        None => format!("{} {}", server.name, server.version),
    }
}

fn dialect(server: &ServerPlan) -> String {
    let dialect = &server.dialect;
    format!("{}, based on {}: {}", dialect.name, dialect.base_rules().name, dialect.about)
}

fn list(packs: &[String]) -> String {
    if packs.is_empty() { "none".to_owned() } else { packs.join(", ") }
}

fn limits(server: &ServerPlan) -> String {
    let limits = &server.limits;
    let pages = if server.dialect.paging {
        format!("{} items per page", server.page_size)
    } else {
        "lists without pages".to_owned()
    };
    format!(
        "{pages}, {} bytes per message, {} calls at once,\n           timeouts: {} s for a \
            silent call, {} s for any call, {} s for input,\n           {} s for the first lists \
            of slow upstreams,\n           {} tasks, {} per principal, kept for {} s, at most {} s",
        server.dialect.max_message,
        limits.calls_in_flight,
        limits.call_timeout.as_secs(),
        limits.call_timeout_max.as_secs(),
        limits.input_timeout.as_secs(),
        limits.list_wait.as_secs(),
        limits.tasks.total,
        limits.tasks.per_principal,
        limits.tasks.ttl.as_secs(),
        limits.tasks.max_ttl.as_secs(),
    )
}

fn http(http: &HttpPlan) -> String {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let legacy = http.legacy_sse.iter().map(|path| format!(" and {path}")).collect::<String>();
    let limits = &http.limits;
    format!(
        "{scheme}://{}{}{legacy}, {} connections, {} sessions,\n           {} bytes per body",
        http.listen, http.path, limits.max_connections, limits.max_sessions, limits.max_body
    )
}

fn log(log: LogPlan) -> String {
    let payloads = if log.payloads { ", with arguments and results" } else { "" };
    let (format, level) = (format!("{:?}", log.format), format!("{:?}", log.level));
    format!("{}, {}{payloads}", format.to_lowercase(), level.to_lowercase())
}
