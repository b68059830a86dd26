//! Resolves the tables of the upstreams.

pub(in crate::plan) mod ca_certificates;
pub(in crate::plan) mod oauth;
mod program;
mod propagation;
mod token;

pub use ca_certificates::CaCertificates;
pub use oauth::{GrantPlan, OAuthPlan};
pub use token::TokenSource;

use std::path::{Path, PathBuf};
use std::time::Duration;

use creole::internal::telemetry::trace::Propagation;
use creole_proto::dialect::Dialect;
use creole_proto::revision::Revision;
pub use creole_tools::recipe::Secret;

use crate::plan::layer::LayerPlan;
use crate::plan::{chain, dialect, file, seconds};
use crate::presets;
use crate::syntax::environment::is_variable_name;
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::{AffinityChoice, UpstreamEra};
use crate::tables::oauth::OAuthTable;
use crate::tables::upstream::UpstreamTable;

/// The separator between the name of an upstream and the name of its tool.
const SEPARATOR: &str = "__";
/// The maximum length of a name or a prefix, in characters.
const MAX_NAME: usize = 64;
/// The default maximum number of parked calls of an upstream.
const DEFAULT_MAX_PARKED_CALLS: usize = 1024;
/// The default maximum number of upstream sessions.
const DEFAULT_MAX_SESSIONS: usize = 64;

/// Headers that the transport writes itself.
const OWN_HEADERS: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
    "transfer-encoding",
];

/// The plan of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamPlan {
    /// Its configured name.
    pub name: String,
    /// Its address.
    pub address: UpstreamAddress,
    /// The prefix of its tools' and prompts' names.
    pub prefix: String,
    /// Its dialect.
    pub dialect: Dialect,
    /// The revision that it is called in. Default: the newest one of the caller's era.
    pub revision: Option<Revision>,
    /// The era that it is called in.
    pub era: UpstreamEra,
    /// Which callers share a connection to it.
    pub affinity: AffinityChoice,
    /// Whether it may send input requests to callers.
    pub interactive: bool,
    /// The maximum time without progress of one of its calls.
    pub timeout: Duration,
    /// The maximum time that it may take to start.
    pub startup_timeout: Duration,
    /// The maximum number of its parked calls.
    pub max_parked_calls: usize,
    /// The maximum number of concurrent sessions with it.
    pub max_sessions: usize,
    /// What of a trace context it gets.
    pub propagation: Propagation,
    /// Layers around its calls, outermost first.
    pub chain: Vec<LayerPlan>,
}

/// The address of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddress {
    /// A program that the gateway starts.
    Command {
        /// The program and its arguments. There is at least the program.
        command: Vec<String>,
        /// Environment variables that it gets.
        env: Vec<(String, Secret)>,
        /// Environment variables of this process that it inherits.
        env_pass: Vec<String>,
        /// Its working directory.
        cwd: Option<PathBuf>,
    },
    /// A preset in a separate process. A program on the command line replaces it.
    Preset(String),
    /// An HTTP endpoint.
    Url {
        /// The URL of the endpoint.
        url: String,
        /// Headers that each request carries.
        headers: Vec<(String, Secret)>,
        /// The source of the token that each request carries.
        token: Option<TokenSource>,
        /// The certificates of the trusted authorities, in PEM. Default: those of the system.
        authorities: Option<CaCertificates>,
        /// How Creole logs in. `None` if the headers or the token have the credentials.
        oauth: Option<Box<OAuthPlan>>,
    },
}

impl UpstreamPlan {
    /// The trusted authorities, if they are configured.
    pub fn ca_certificates(&self) -> Option<&CaCertificates> {
        match &self.address {
            UpstreamAddress::Url { authorities, .. } => authorities.as_ref(),
            _ => None,
        }
    }

    /// How Creole logs in to the upstream.
    pub fn oauth(&self) -> Option<&OAuthPlan> {
        match &self.address {
            UpstreamAddress::Url { oauth, .. } => oauth.as_deref(),
            _ => None,
        }
    }

    /// Names the file of the configuration in the command that logs in.
    pub(crate) fn name_login_command(&mut self, file: &Path) {
        if let UpstreamAddress::Url { oauth: Some(oauth), .. } = &mut self.address {
            let command = format!("creole login {} --config {}", self.name, file.display());
            oauth.login_command = Some(command);
        }
    }

    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(mut self, folder: &Path) -> Self {
        match &mut self.address {
            UpstreamAddress::Command { cwd: Some(path), .. }
            | UpstreamAddress::Url { token: Some(TokenSource::File(path)), .. } => {
                *path = folder.join(&*path)
            }
            UpstreamAddress::Url { oauth: Some(oauth), .. } => oauth.resolve_paths(folder),
            _ => {}
        }
        self.chain = self.chain.into_iter().map(|layer| layer.resolve_paths(folder)).collect();
        self
    }
}

/// The upstreams, in the order of the file. Disabled ones are checked and omitted.
pub(crate) fn resolve(
    tables: Option<Entries<UpstreamTable>>,
    folder: &Path,
) -> Result<Vec<UpstreamPlan>, ConfigProblem> {
    let mut upstreams = Vec::new();
    for (name, table) in tables.map(|tables| tables.0).unwrap_or_default() {
        let enabled = table.enabled.unwrap_or(true);
        let span = name.span.clone();
        let upstream = upstream(name, table, folder).map_err(|problem| problem.or_at(span))?;
        upstreams.extend(enabled.then_some(upstream));
    }
    Ok(upstreams)
}

fn upstream(
    name: Spanned<String>,
    table: UpstreamTable,
    folder: &Path,
) -> Result<UpstreamPlan, ConfigProblem> {
    let name = own_name(name)?;
    let prefix = match &table.prefix {
        Some(value) => prefix(value)?,
        None => format!("{name}{SEPARATOR}"),
    };
    let (revision, era) = revision_and_era(table.revision.as_ref(), table.era.as_ref())?;
    let time = |written: Option<i64>, default_value| seconds(written.unwrap_or(default_value));
    Ok(UpstreamPlan {
        prefix,
        revision,
        era,
        dialect: dialect::resolve(table.dialect.as_ref(), &name)?,
        affinity: table.affinity.unwrap_or(AffinityChoice::Principal),
        interactive: table.interactive.unwrap_or(true),
        timeout: time(table.timeout_seconds.map(Ranged::get), 60),
        startup_timeout: time(table.startup_timeout_seconds.map(Ranged::get), 30),
        max_parked_calls: count_or(table.max_parked_calls, DEFAULT_MAX_PARKED_CALLS),
        max_sessions: count_or(table.max_sessions, DEFAULT_MAX_SESSIONS),
        propagation: propagation::resolve(table.propagate, table.baggage.clone())?,
        chain: chain::resolve(table.chain.clone(), folder)?,
        address: upstream_address(table, folder)?,
        name,
    })
}

fn count_or(written: Option<Ranged<1, 100_000>>, usual: usize) -> usize {
    written.and_then(|max| usize::try_from(max.get()).ok()).unwrap_or(usual)
}

/// The name of an upstream, which must not contain the separator.
fn own_name(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value: name, span } = value;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_plain = !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_allowed);
    let problem = if name.contains(SEPARATOR) || name.ends_with('_') {
        format!(
            "invalid upstream name `{name}`: `{SEPARATOR}` separates the upstream's name \
            from a tool's name"
        )
    } else if !is_plain {
        format!("invalid upstream name `{name}`")
    } else {
        return Ok(name);
    };
    let help = format!("use at most {MAX_NAME} letters, digits, `-` or single `_`");
    Err(ConfigProblem::new(problem).help(help).at(span))
}

fn prefix(item: &Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    if value.len() > MAX_NAME || !value.bytes().all(is_allowed) {
        let help = format!("use at most {MAX_NAME} letters, digits, `_`, `-`, `.` or `/`");
        return Err(ConfigProblem::new(format!("invalid prefix `{value}`"))
            .help(help)
            .at(span.clone()));
    }
    Ok(value.clone())
}

/// The revision and the era, which must not contradict each other.
fn revision_and_era(
    revision: Option<&Spanned<String>>,
    era: Option<&Spanned<UpstreamEra>>,
) -> Result<(Option<Revision>, UpstreamEra), ConfigProblem> {
    let chosen = era.map_or(UpstreamEra::Auto, |era| era.value);
    let Some(value) = revision else { return Ok((None, chosen)) };
    let Some(revision) = Revision::from_name(&value.value) else {
        let help = suggestion(&value.value, "the known revisions", &suggestions::revisions());
        let message = format!("unknown revision `{}`", value.value);
        return Err(ConfigProblem::new(message).help(help).at(value.span.clone()));
    };
    let of_revision = match revision.rules().has_handshake() {
        true => UpstreamEra::Handshake,
        false => UpstreamEra::Stateless,
    };
    if let Some(era) = era.filter(|era| ![UpstreamEra::Auto, of_revision].contains(&era.value)) {
        let message = format!("`revision` {} does not belong to the configured `era`", value.value);
        return Err(ConfigProblem::new(message)
            .help("remove `era` or `revision`")
            .at(era.span.clone()));
    }
    Ok((Some(revision), of_revision))
}

fn upstream_address(table: UpstreamTable, folder: &Path) -> Result<UpstreamAddress, ConfigProblem> {
    let UpstreamTable { command, url, preset, env, env_pass, cwd, headers, .. } = table;
    let UpstreamTable { token_file, token_command, oauth, ca_file, .. } = table;
    if let Some(preset) = preset {
        let is_alone = command.is_none() && url.is_none();
        return match presets::find(&preset.value) {
            Ok(found) if is_alone => Ok(UpstreamAddress::Preset(found.name.to_owned())),
            Ok(_) => Err(ConfigProblem::new(
                "the upstream has `preset` together with `command` or `url`",
            )
            .help("remove all but one")
            .at(preset.span)),
            Err(_) => {
                let names: Vec<&str> = presets::ALL.iter().map(|preset| preset.name).collect();
                let help = suggestion(&preset.value, "the known presets", &names);
                let message = format!("unknown preset `{}`", preset.value);
                Err(ConfigProblem::new(message).help(help).at(preset.span))
            }
        };
    }
    let only = |key: &str, with: &str, span: &std::ops::Range<usize>| {
        let message = format!("`{key}` is only valid for upstreams with a `{with}`");
        ConfigProblem::new(message).help("remove it").at(span.clone())
    };
    match (command, url) {
        (Some(command), None) => {
            let spans = [
                ("headers", headers.map(|value| value.span)),
                ("token_file", token_file.map(|value| value.span)),
                ("token_command", token_command.map(|value| value.span)),
                ("oauth", oauth.map(|value| value.span)),
                ("ca_file", ca_file.map(|value| value.span)),
            ];
            if let Some((key, Some(span))) = spans.iter().find(|(_, span)| span.is_some()) {
                return Err(only(key, "url", span));
            }
            let env = env.map(|env| env.value.0).unwrap_or_default();
            Ok(UpstreamAddress::Command {
                command: program("command", command)?,
                env: env.into_iter().map(variable).collect::<Result<_, _>>()?,
                env_pass: inherited_variables(
                    env_pass.map(|value| value.value).unwrap_or_default(),
                )?,
                cwd: cwd.map(|cwd| file("cwd", cwd)).transpose()?,
            })
        }
        (None, Some(url)) => {
            let spans = [
                ("env", env.map(|value| value.span)),
                ("env_pass", env_pass.map(|value| value.span)),
                ("cwd", cwd.map(|value| value.span)),
            ];
            if let Some((key, Some(span))) = spans.iter().find(|(_, span)| span.is_some()) {
                return Err(only(key, "command", span));
            }
            let headers = headers.map(|headers| headers.value.0).unwrap_or_default();
            let oauth = login(oauth, &token_file, &token_command, &headers, folder)?;
            let token = token::resolve(token_file, token_command, &headers)?;
            let headers = headers
                .into_iter()
                .map(|entry| header(entry, &OWN_HEADERS))
                .collect::<Result<_, _>>()?;
            let url = endpoint_url(url)?;
            let authorities = ca_file.map(|file| ca_certificates::resolve(file, &url, folder));
            let authorities = authorities.transpose()?;
            Ok(UpstreamAddress::Url { url, headers, token, authorities, oauth })
        }
        (Some(_), Some(url)) => {
            Err(ConfigProblem::new("the upstream has both `command` and `url`")
                .help("remove one of them")
                .at(url.span))
        }
        (None, None) => Err(ConfigProblem::new("the upstream has neither `command` nor `url`")
            .help("add `command = [\"program\", \"argument\"]` or `url = \"https://…\"`")),
    }
}

/// How Creole logs in. `None` if the headers or a token have the credentials.
fn login(
    table: Option<Spanned<OAuthTable>>,
    token_file: &Option<Spanned<String>>,
    token_command: &Option<Spanned<Vec<Spanned<String>>>>,
    headers: &[(Spanned<String>, Spanned<String>)],
    folder: &Path,
) -> Result<Option<Box<OAuthPlan>>, ConfigProblem> {
    let other = match (token_file, token_command) {
        (Some(_), _) => Some("`token_file`"),
        (None, Some(_)) => Some("`token_command`"),
        (None, None) if token::has_authorization(headers) => Some("the header `Authorization`"),
        (None, None) => None,
    };
    match (other, table) {
        (None, table) => oauth::resolve(table, folder).map(|plan| Some(Box::new(plan))),
        (Some(_), None) => Ok(None),
        (Some(other), Some(table)) => {
            let what = format!("`oauth` conflicts with {other}");
            Err(ConfigProblem::new(what).help("remove one of them").at(table.span).hide_value())
        }
    }
}

fn program(key: &str, item: Spanned<Vec<Spanned<String>>>) -> Result<Vec<String>, ConfigProblem> {
    let help = "write the program and its arguments, such as `[\"npx\", \"-y\", \"server\"]`";
    let is_named = item.value.first().is_some_and(|program| !program.value.trim().is_empty());
    if !is_named {
        let message = format!("`{key}` has no program");
        return Err(ConfigProblem::new(message).help(help).at(item.span));
    }
    let argument = |Spanned { value, span }: Spanned<String>| match value.contains('\0') {
        true => Err(ConfigProblem::new("an argument contains a NUL character").at(span)),
        false => Ok(value),
    };
    item.value.into_iter().map(argument).collect()
}

pub(crate) fn variable(
    entry: (Spanned<String>, Spanned<String>),
) -> Result<(String, Secret), ConfigProblem> {
    let (name, value) = entry;
    let name = variable_name(name)?;
    if value.value.contains('\0') {
        return Err(ConfigProblem::new(format!("`{name}` contains a NUL character"))
            .at(value.span)
            .hide_value());
    }
    Ok((name, Secret(value.value)))
}

pub(crate) fn inherited_variables(
    values: Vec<Spanned<String>>,
) -> Result<Vec<String>, ConfigProblem> {
    values.into_iter().map(variable_name).collect()
}

pub(crate) fn variable_name(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value: name, span } = value;
    if is_variable_name(&name) {
        return Ok(name);
    }
    let message = format!("invalid environment variable name `{name}`");
    Err(ConfigProblem::new(message).help("use letters, digits and `_`").at(span))
}

pub(crate) fn header(
    entry: (Spanned<String>, Spanned<String>),
    own: &[&str],
) -> Result<(String, Secret), ConfigProblem> {
    let (Spanned { value: name, span }, value) = entry;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(ConfigProblem::new(format!("invalid header name `{name}`")).at(span));
    }
    if own.contains(&name.to_ascii_lowercase().as_str()) {
        let message = format!("the header `{name}` is set by the transport");
        return Err(ConfigProblem::new(message).help("remove it").at(span));
    }
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
    if !is_plain(&value.value) {
        let message =
            format!("the value of `{name}` contains a character that is not allowed in a header");
        return Err(ConfigProblem::new(message).at(value.span).hide_value());
    }
    Ok((name, Secret(value.value)))
}

/// The URL of an endpoint: http or https, with a host and without secrets.
pub(crate) fn endpoint_url(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value: url, span } = value;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let (problem, help) = if host.contains('@') {
        return Err(ConfigProblem::new("`url` contains a user name or a password")
            .help("send credentials in a header: `headers = { Authorization = \"…\" }`")
            .at(span)
            .hide_value());
    } else if host.is_empty() || host.starts_with(':') || !is_plain {
        (format!("invalid URL `{url}`"), "write it as `https://host/path`")
    } else if url.contains('#') {
        (format!("the URL `{url}` has a fragment"), "remove the part after `#`")
    } else {
        return Ok(url);
    };
    Err(ConfigProblem::new(problem).help(help).at(span))
}
