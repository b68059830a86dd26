//! The plan of the issuers whose access tokens are accepted.
//!
//! The plan holds the contents of the files of secrets and keys, so that a changed file is a changed plan.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use creole::auth::oauth::{
    ClaimPath, IntrospectionSettings, IssuerSettings, KeySet, KeySource, SignatureAlgorithm,
};
use creole::client::oauth::{ClientAuthMethod, ClientSource, OAuthClient, SigningKey, WebUrl};

use crate::plan::plain_names::name;
use crate::plan::upstream::ca_certificates;
use crate::plan::upstream::oauth::files;
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::issuers::{
    ClientMethodChoice, IntrospectChoice, IntrospectionAudience, IntrospectionTable, IssuerTable,
    TokenTypeChoice,
};

/// The maximum number of issuers, and of audiences, algorithms and clients of one.
const MAX_ISSUERS: usize = 16;
const MAX_VALUES: usize = 256;

/// How long the answer of an introspection is used unless the table says it.
const DEFAULT_CACHE: Duration = Duration::from_secs(30);

/// An issuer whose access tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerPlan {
    /// What the authenticator needs to know.
    pub settings: IssuerSettings,
    /// The files whose contents the plan holds.
    pub files: Vec<PathBuf>,
}

/// Resolves the tables.
pub(crate) fn resolve(
    tables: Option<Entries<IssuerTable>>,
    folder: &Path,
) -> Result<Vec<IssuerPlan>, ConfigProblem> {
    let mut plans: Vec<IssuerPlan> = Vec::new();
    let mut asked = None;
    for (label, table) in tables.map(|Entries(entries)| entries).unwrap_or_default() {
        let (at_label, at_issuer) = (label.span.clone(), table.issuer.span.clone());
        if plans.len() == MAX_ISSUERS {
            let message = format!("there are more than {MAX_ISSUERS} issuers");
            return Err(ConfigProblem::new(message).at(at_label));
        }
        let plan = issuer(label, table, folder)?;
        let issuer = &plan.settings.rules.issuer;
        if let Some(other) = plans.iter().find(|it| it.settings.rules.issuer == *issuer) {
            let label = &other.settings.label;
            let problem = ConfigProblem::new(format!("`{label}` has the same issuer"));
            return Err(problem.help("remove one of the tables").at(at_issuer));
        }
        if plan.settings.introspection.is_some() {
            let label = Arc::clone(&plan.settings.label);
            if let Some(other) = asked.replace(label) {
                let message = format!("`{other}` is already asked about opaque tokens");
                let help =
                    "a token must not be sent to several issuers: set `introspect = \"never\"`";
                return Err(ConfigProblem::new(message).help(help).at(at_label));
            }
        }
        plans.push(plan);
    }
    Ok(plans)
}

fn issuer(
    label: Spanned<String>,
    table: IssuerTable,
    folder: &Path,
) -> Result<IssuerPlan, ConfigProblem> {
    let label = name("the name of an issuer", label)?;
    let own = identifier(&table.issuer)?;
    let mut settings = IssuerSettings::new(&label, own.as_str()).map_err(|reason| {
        ConfigProblem::new(format!("`issuer` cannot be used: {reason}"))
            .at(table.issuer.span.clone())
    })?;
    let mut files = Vec::new();
    settings.audiences = table.audiences.map(|list| texts("audiences", list)).transpose()?;
    settings.allows_private = table.allow_private.unwrap_or(false);
    if let Some(file) = table.ca_file {
        let read = ca_certificates::resolve(file, own.as_str(), folder)?;
        files.push(read.file().to_owned());
        settings.certificates = Some(read.pem().into());
    }
    settings.keys = key_source(table.jwks_url, table.jwks_file, folder, &mut files)?;
    let rules = &mut settings.rules;
    if let Some(list) = table.algorithms {
        rules.algorithms = algorithms(list)?;
    }
    rules.takes_plain_jwt = table.token_type == Some(TokenTypeChoice::Jwt);
    rules.subject_claim =
        claim("subject_claim", table.subject_claim)?.filter(|it| it.as_str() != "sub");
    rules.scopes_claim = claim("scopes_claim", table.scopes_claim)?;
    rules.roles_claim = claim("roles_claim", table.roles_claim)?;
    rules.clients = table.clients.map(clients).transpose()?;
    rules.skew = table.skew_seconds.map_or(rules.skew, |it| it.get().unsigned_abs());
    rules.max_age = table.max_age_seconds.map(|it| it.get().unsigned_abs());
    let has_discovery = settings.keys == KeySource::Discovery;
    settings.introspection = match (table.introspection, table.introspect) {
        (
            None,
            Some(Spanned { value: IntrospectChoice::Opaque | IntrospectChoice::Always, span }),
        ) => {
            let help = "add a table `introspection` with a `client_id`, or remove `introspect`";
            let problem = ConfigProblem::new("`introspect` needs the table `introspection`");
            return Err(problem.help(help).at(span));
        }
        (None, _) => None,
        (Some(table), choice) => {
            let choice = choice.map_or(IntrospectChoice::Opaque, |it| it.value);
            let mut asked = introspection(table, has_discovery, folder, &mut files)?;
            asked.asks_about_jwts = choice == IntrospectChoice::Always;
            (choice != IntrospectChoice::Never).then_some(asked)
        }
    };
    Ok(IssuerPlan { settings, files })
}

/// The issuer identifier (RFC 8414, section 2): a URL without a query.
fn identifier(written: &Spanned<String>) -> Result<WebUrl, ConfigProblem> {
    let url = url("issuer", written)?;
    if !url.query().is_empty() {
        let problem = ConfigProblem::new("`issuer` has a query");
        return Err(problem.help("an issuer identifier has none").at(written.span.clone()));
    }
    Ok(url)
}

/// An address that is encrypted, or on this machine.
fn url(key: &str, written: &Spanned<String>) -> Result<WebUrl, ConfigProblem> {
    let at = |problem: ConfigProblem| problem.at(written.span.clone());
    let url = WebUrl::parse(&written.value)
        .map_err(|error| at(ConfigProblem::new(format!("the URL in `{key}` {error}"))))?;
    if !url.is_https() && !url.is_loopback() {
        let problem = ConfigProblem::new(format!("the URL in `{key}` is not encrypted"));
        return Err(at(problem.help("use `https://`, or an address of this machine")));
    }
    Ok(url)
}

fn key_source(
    address: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<KeySource, ConfigProblem> {
    match (address, file) {
        (None, None) => Ok(KeySource::Discovery),
        (Some(_), Some(file)) => {
            let problem = ConfigProblem::new("there are both `jwks_url` and `jwks_file`");
            Err(problem.help("remove one of them").at(file.span))
        }
        (Some(address), None) => Ok(KeySource::Url(url("jwks_url", &address)?)),
        (None, Some(written)) => {
            let span = written.span.clone();
            let text = files::read("jwks_file", written, folder, files)?;
            KeySet::parse(text.as_bytes()).map_err(|error| {
                ConfigProblem::new(format!("the file of `jwks_file` cannot be used: {error}"))
                    .at(span)
            })?;
            Ok(KeySource::File(files.last().cloned().unwrap_or_default()))
        }
    }
}

fn introspection(
    Spanned { value: table, span }: Spanned<IntrospectionTable>,
    has_discovery: bool,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<IntrospectionSettings, ConfigProblem> {
    if table.url.is_none() && !has_discovery {
        let problem = ConfigProblem::new("`introspection` needs a `url`");
        let help = "with `jwks_url` or `jwks_file`, the metadata of the issuer is not fetched";
        return Err(problem.help(help).at(span));
    }
    let secret = files::secret(
        ("client_secret", table.client_secret),
        ("client_secret_file", table.client_secret_file),
        folder,
        files,
    )?;
    let key = table.private_key_file.map(|file| private_key(file, folder, files)).transpose()?;
    let method = method(table.method, secret.is_some(), key.is_some(), &span)?;
    let client = OAuthClient {
        id: text("client_id", table.client_id)?,
        secret,
        method,
        source: ClientSource::Configured,
        redirect_uri: None,
        expires_at: None,
    };
    Ok(IntrospectionSettings {
        url: table.url.map(|written| url("url", &written)).transpose()?,
        client,
        private_key: key,
        cache: table
            .cache_seconds
            .map_or(DEFAULT_CACHE, |it| Duration::from_secs(it.get().unsigned_abs())),
        implies_audience: table.audience == Some(IntrospectionAudience::Implied),
        asks_about_jwts: false,
    })
}

/// How the client authenticates: with its secret or with its key, and with one of them only.
fn method(
    chosen: Option<Spanned<ClientMethodChoice>>,
    has_secret: bool,
    has_key: bool,
    span: &Range<usize>,
) -> Result<ClientAuthMethod, ConfigProblem> {
    let problem = |text: &str, help: &str| {
        Err(ConfigProblem::new(text).help(help).at(span.clone()).hide_value())
    };
    let with_key = match (has_secret, has_key) {
        (true, true) => {
            return problem("the client has both a secret and a private key", "remove one of them");
        }
        (false, false) => {
            let help = "add `client_secret_file` or `private_key_file`";
            return problem("the client has neither a secret nor a private key", help);
        }
        (_, has_key) => has_key,
    };
    let chosen = match chosen {
        None if with_key => return Ok(ClientAuthMethod::PrivateKeyJwt),
        None => return Ok(ClientAuthMethod::Basic),
        Some(chosen) => chosen,
    };
    let (method, needs_key) = match chosen.value {
        ClientMethodChoice::Basic => (ClientAuthMethod::Basic, false),
        ClientMethodChoice::Post => (ClientAuthMethod::Post, false),
        ClientMethodChoice::PrivateKeyJwt => (ClientAuthMethod::PrivateKeyJwt, true),
    };
    match needs_key == with_key {
        true => Ok(method),
        false => {
            let what = if needs_key { "a private key" } else { "a secret" };
            let message = format!("this `method` needs {what}");
            Err(ConfigProblem::new(message).help("change `method`, or remove it").at(chosen.span))
        }
    }
}

fn private_key(
    written: Spanned<String>,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<SigningKey, ConfigProblem> {
    let span = written.span.clone();
    let pem = files::private_key(written, folder, files)?;
    SigningKey::from_pem(pem.expose(), None)
        .map_err(|error| ConfigProblem::new(error.to_string()).at(span))
}

fn algorithms(
    Spanned { value: list, span }: Spanned<Vec<Spanned<String>>>,
) -> Result<Vec<SignatureAlgorithm>, ConfigProblem> {
    if list.is_empty() {
        return Err(ConfigProblem::new("`algorithms` is empty").help("remove it").at(span));
    }
    let known = SignatureAlgorithm::ALL.map(SignatureAlgorithm::name);
    let named = |Spanned { value, span }: Spanned<String>| {
        SignatureAlgorithm::from_name(&value).ok_or_else(|| {
            let problem = ConfigProblem::new(format!("`{value}` is not an accepted algorithm"));
            problem.help(suggestion(&value, "the accepted algorithms", &known)).at(span)
        })
    };
    list.into_iter().map(named).collect()
}

fn claim(key: &str, written: Option<Spanned<String>>) -> Result<Option<ClaimPath>, ConfigProblem> {
    let Some(Spanned { value, span }) = written else { return Ok(None) };
    let path = ClaimPath::new(&value).ok_or_else(|| {
        ConfigProblem::new(format!("`{key}` is not the name of a claim"))
            .help("write a name, or names separated by dots, such as \"realm_access.roles\"")
            .at(span)
    })?;
    Ok(Some(path))
}

fn texts(
    key: &str,
    Spanned { value: list, span }: Spanned<Vec<Spanned<String>>>,
) -> Result<Vec<String>, ConfigProblem> {
    if list.is_empty() {
        let problem = ConfigProblem::new(format!("`{key}` is empty, so every token is refused"));
        return Err(problem.help("remove it, or add a value").at(span));
    }
    values(key, list)
}

fn clients(list: Vec<Spanned<String>>) -> Result<Vec<String>, ConfigProblem> {
    values("clients", list)
}

fn values(key: &str, list: Vec<Spanned<String>>) -> Result<Vec<String>, ConfigProblem> {
    if let Some(extra) = list.get(MAX_VALUES) {
        let message = format!("`{key}` has more than {MAX_VALUES} values");
        return Err(ConfigProblem::new(message).at(extra.span.clone()));
    }
    list.into_iter().map(|value| text(key, value)).collect()
}

/// A text of visible ASCII characters.
fn text(key: &str, Spanned { value, span }: Spanned<String>) -> Result<String, ConfigProblem> {
    match !value.is_empty() && value.len() <= 2_048 && value.bytes().all(|it| it.is_ascii_graphic())
    {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!(
            "a value of `{key}` is empty, too long or has a character that is not allowed"
        ))
        .help("use visible ASCII characters without spaces")
        .at(span)),
    }
}

#[cfg(test)]
mod tests;
