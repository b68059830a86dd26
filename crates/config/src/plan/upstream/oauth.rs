//! How Creole logs in to an upstream over HTTP.
//!
//! The plan holds the contents of the files of secrets and keys, so that a changed file is a changed plan.

pub(in crate::plan) mod files;

use std::ops::Range;
use std::path::{Path, PathBuf};

use creole::client::oauth::{
    Algorithm, DpopMode, LoginSettings, Scopes, SecretText, SigningKey, WebUrl,
};

use self::files::{private_key, secret};
use crate::plan::upstream::{TokenSource, token};
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::Spanned;
use crate::tables::enums::{AssertionAudience, DpopChoice, OAuthGrant, ResourceParameter};
use crate::tables::oauth::OAuthTable;

/// The names of the algorithms of assertions.
const ALGORITHMS: [&str; 4] = ["ES256", "EdDSA", "RS256", "PS256"];

/// How Creole logs in to an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthPlan {
    /// How the tokens are got.
    pub grant: GrantPlan,
    /// What the login asks for, and as which client.
    pub settings: LoginSettings,
    /// The command that logs in, for messages.
    pub login_command: Option<String>,
    /// The files whose contents the plan holds.
    pub files: Vec<PathBuf>,
}

/// How the tokens are got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GrantPlan {
    /// By the stored login of a person.
    #[default]
    Login,
    /// With the client's own credentials.
    ClientCredentials,
    /// With an assertion.
    JwtBearer(TokenSource),
    /// With an ID token.
    Enterprise {
        /// The source of the ID token.
        id_token: TokenSource,
        /// The token endpoint of the identity provider.
        token_url: String,
        /// The client at the identity provider.
        client_id: String,
        /// Its secret.
        client_secret: Option<SecretText>,
    },
}

/// The plan of a table. Without a table, stored logins are used.
pub(crate) fn resolve(
    table: Option<Spanned<OAuthTable>>,
    folder: &Path,
) -> Result<OAuthPlan, ConfigProblem> {
    let Some(Spanned { value: table, span }) = table else { return Ok(OAuthPlan::default()) };
    let kind = table.grant.as_ref().map_or(OAuthGrant::Login, |grant| grant.value);
    check_keys(&table, kind)?;
    let mut files = Vec::new();
    let mut settings = LoginSettings::default();
    settings.client_secret = secret(
        ("client_secret", table.client_secret),
        ("client_secret_file", table.client_secret_file),
        folder,
        &mut files,
    )?;
    settings.initial_access_token = secret(
        ("initial_access_token", table.initial_access_token),
        ("initial_access_token_file", table.initial_access_token_file),
        folder,
        &mut files,
    )?;
    let idp_client_secret = secret(
        ("idp_client_secret", table.idp_client_secret),
        ("idp_client_secret_file", table.idp_client_secret_file),
        folder,
        &mut files,
    )?;
    let key_settings = (table.private_key_algorithm, table.private_key_id);
    settings.private_key = signing_key(table.private_key_file, key_settings, folder, &mut files)?;
    settings.client_id = table.client_id.map(|id| text("client_id", id)).transpose()?;
    check_client(kind, &settings, &span)?;
    let grant = match kind {
        OAuthGrant::Login => GrantPlan::Login,
        OAuthGrant::ClientCredentials => GrantPlan::ClientCredentials,
        OAuthGrant::JwtBearer => {
            let assertion = token::resolve_source(
                ("assertion_file", table.assertion_file),
                ("assertion_command", table.assertion_command),
            )?;
            GrantPlan::JwtBearer(required(assertion, "assertion_file", kind, &span)?)
        }
        OAuthGrant::Enterprise => {
            let id_token = token::resolve_source(
                ("id_token_file", table.id_token_file),
                ("id_token_command", table.id_token_command),
            )?;
            GrantPlan::Enterprise {
                id_token: required(id_token, "id_token_file", kind, &span)?,
                token_url: idp_url(required(table.idp_token_url, "idp_token_url", kind, &span)?)?,
                client_id: text(
                    "idp_client_id",
                    required(table.idp_client_id, "idp_client_id", kind, &span)?,
                )?,
                client_secret: idp_client_secret,
            }
        }
    };
    settings.has_endpoint_audience =
        table.assertion_audience == Some(AssertionAudience::TokenEndpoint);
    settings.client_metadata_url = table.client_metadata_url.map(metadata_url).transpose()?;
    settings.issuer = table.issuer.map(|issuer| text("issuer", issuer)).transpose()?;
    settings.scopes = table.scopes.map(scopes).transpose()?.unwrap_or_default();
    settings.max_scopes = table.max_scopes.map(scopes).transpose()?;
    settings.omits_resource = table.resource_parameter == Some(ResourceParameter::Off);
    settings.dpop = table.dpop.map_or(DpopMode::Auto, dpop_mode);
    settings.allows_private = table.allow_private.unwrap_or(false);
    settings.requires_resource_metadata = !table.legacy_oauth.unwrap_or(true);
    Ok(OAuthPlan { grant, settings, login_command: None, files })
}

fn dpop_mode(choice: DpopChoice) -> DpopMode {
    match choice {
        DpopChoice::Auto => DpopMode::Auto,
        DpopChoice::Off => DpopMode::Off,
        DpopChoice::Require => DpopMode::Require,
    }
}

impl OAuthPlan {
    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(&mut self, folder: &Path) {
        match &mut self.grant {
            GrantPlan::JwtBearer(TokenSource::File(path))
            | GrantPlan::Enterprise { id_token: TokenSource::File(path), .. } => {
                *path = folder.join(&*path);
            }
            _ => {}
        }
    }
}

/// Checks that no key belongs to another grant.
fn check_keys(table: &OAuthTable, kind: OAuthGrant) -> Result<(), ConfigProblem> {
    let span = |written: &Option<Spanned<String>>| written.as_ref().map(|it| it.span.clone());
    let command = |written: &Option<Spanned<Vec<Spanned<String>>>>| {
        written.as_ref().map(|it| it.span.clone())
    };
    let keys = [
        ("client_metadata_url", OAuthGrant::Login, span(&table.client_metadata_url)),
        ("initial_access_token", OAuthGrant::Login, span(&table.initial_access_token)),
        ("initial_access_token_file", OAuthGrant::Login, span(&table.initial_access_token_file)),
        ("assertion_file", OAuthGrant::JwtBearer, span(&table.assertion_file)),
        ("assertion_command", OAuthGrant::JwtBearer, command(&table.assertion_command)),
        ("id_token_file", OAuthGrant::Enterprise, span(&table.id_token_file)),
        ("id_token_command", OAuthGrant::Enterprise, command(&table.id_token_command)),
        ("idp_token_url", OAuthGrant::Enterprise, span(&table.idp_token_url)),
        ("idp_client_id", OAuthGrant::Enterprise, span(&table.idp_client_id)),
        ("idp_client_secret", OAuthGrant::Enterprise, span(&table.idp_client_secret)),
        ("idp_client_secret_file", OAuthGrant::Enterprise, span(&table.idp_client_secret_file)),
    ];
    for (key, of, span) in keys {
        if let Some(span) = span.filter(|_| of != kind) {
            let what = format!("`{key}` is only valid with `grant = \"{}\"`", of.name());
            let help = "remove it, or change `grant`";
            return Err(ConfigProblem::new(what).help(help).at(span).hide_value());
        }
    }
    Ok(())
}

/// Checks that the client can authenticate, if the grant demands it.
fn check_client(
    kind: OAuthGrant,
    settings: &LoginSettings,
    span: &Range<usize>,
) -> Result<(), ConfigProblem> {
    let has_id = settings.client_id.is_some();
    let (has_secret, has_key) = (settings.client_secret.is_some(), settings.private_key.is_some());
    let problem = |what: String, help: &str| {
        Err(ConfigProblem::new(what).help(help).at(span.clone()).hide_value())
    };
    if (has_secret || has_key) && !has_id {
        let help = "add `client_id = \"…\"`";
        return problem("the client has a secret or a key, but no `client_id`".to_owned(), help);
    }
    if has_secret && has_key {
        let what = "the client has both a secret and a private key";
        return problem(what.to_owned(), "remove one of them");
    }
    let needs_client = matches!(kind, OAuthGrant::ClientCredentials | OAuthGrant::Enterprise);
    if needs_client && !has_id {
        let what = format!("`grant = \"{}\"` requires a `client_id`", kind.name());
        return problem(what, "add `client_id = \"…\"`");
    }
    if kind == OAuthGrant::ClientCredentials && !has_secret && !has_key {
        let what = "`grant = \"client-credentials\"` requires a secret or a private key";
        return problem(what.to_owned(), "add `client_secret_file` or `private_key_file`");
    }
    Ok(())
}

fn required<T>(
    found: Option<T>,
    key: &str,
    kind: OAuthGrant,
    span: &Range<usize>,
) -> Result<T, ConfigProblem> {
    found.ok_or_else(|| {
        let what = format!("`grant = \"{}\"` requires `{key}`", kind.name());
        ConfigProblem::new(what).help(format!("add `{key} = \"…\"`")).at(span.clone()).hide_value()
    })
}

/// A text of visible ASCII characters.
fn text(key: &str, written: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = written;
    match !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("invalid `{key}` `{value}`"))
            .help("use at least one character, and only printable ASCII")
            .at(span)),
    }
}

/// A list of scopes (RFC 6749, section 3.3).
fn scopes(written: Vec<Spanned<String>>) -> Result<Scopes, ConfigProblem> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let scope = |Spanned { value, span }: Spanned<String>| match !value.is_empty()
        && value.bytes().all(is_allowed)
    {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("invalid scope `{value}`"))
            .help("write each scope as a string of its own, without spaces")
            .at(span)),
    };
    written.into_iter().map(scope).collect()
}

fn metadata_url(written: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = written;
    match WebUrl::parse(&value).is_ok_and(|url| url.is_https() && url.path().len() > 1) {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("invalid `client_metadata_url` `{value}`"))
            .help("write an `https://` URL with a path")
            .at(span)),
    }
}

fn idp_url(written: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = written;
    match WebUrl::parse(&value).is_ok_and(|url| url.is_https() || url.is_loopback()) {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("invalid `idp_token_url` `{value}`"))
            .help("write the `https://` URL of the token endpoint")
            .at(span)),
    }
}

/// The private key of the client.
fn signing_key(
    written: Option<Spanned<String>>,
    (algorithm, id): (Option<Spanned<String>>, Option<Spanned<String>>),
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<Option<SigningKey>, ConfigProblem> {
    let Some(written) = written else {
        let span = algorithm.as_ref().or(id.as_ref()).map(|it| it.span.clone());
        return match span {
            None => Ok(None),
            Some(span) => Err(ConfigProblem::new("there is no `private_key_file`")
                .help("add it, or remove the settings of the key")
                .at(span)),
        };
    };
    let algorithm = algorithm.map(signing_algorithm).transpose()?;
    let span = written.span.clone();
    let pem = private_key(written, folder, files)?;
    let id = id.map(|id| text("private_key_id", id)).transpose()?;
    match (SigningKey::from_pem(pem.expose(), algorithm), id) {
        (Ok(key), Some(id)) => Ok(Some(key.with_id(&id))),
        (Ok(key), None) => Ok(Some(key)),
        (Err(error), _) => Err(ConfigProblem::new(format!("invalid `private_key_file`: {error}"))
            .help("make a key with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256")
            .at(span)),
    }
}

fn signing_algorithm(written: Spanned<String>) -> Result<Algorithm, ConfigProblem> {
    let Spanned { value, span } = written;
    Algorithm::from_name(&value).ok_or_else(|| {
        let help = suggestion(&value, "the known algorithms", &ALGORITHMS);
        ConfigProblem::new(format!("unknown algorithm `{value}`")).help(help).at(span)
    })
}

#[cfg(test)]
mod tests;
