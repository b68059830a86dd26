//! The plan of the requirements for access tokens: `[auth.oauth]`, `[auth.scopes.NAME]` and `auth` of a server.

use std::collections::HashSet;

use crate::plan::plain_names::name;
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::auth_oauth::{
    AuthOAuthTable, ScopeTable, ServerAuthTable, ServerDpopChoice, UnlistedChoice,
};

/// The maximum length of a scope, in bytes.
const MAX_SCOPE: usize = 128;
/// The maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 256;
/// The maximum number of scopes.
const MAX_SCOPES: usize = 256;
/// The scope that asks for a refresh token, which no server requires (RFC 9728 leaves it to authorization servers).
const OFFLINE_ACCESS: &str = "offline_access";

/// The requirements for access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthPlan {
    /// The scopes that every request requires.
    pub required_scopes: Vec<String>,
    /// The scopes that the metadata names.
    pub scopes_supported: Vec<String>,
    /// Whether items that no scope names are refused.
    pub denies_unlisted: bool,
    /// Whether tokens are bound to a key.
    pub dpop: ServerDpopChoice,
    /// Whether proofs must have a nonce of the server.
    pub dpop_nonce: bool,
    /// The maximum length of a token, in bytes.
    pub max_token: usize,
    /// Whether the metadata of the only issuer is served under this server's address.
    pub legacy_metadata: bool,
    /// The URL of a page for developers.
    pub documentation: Option<String>,
    /// The scopes and what they allow, in the order of the file.
    pub scopes: Vec<ScopePlan>,
}

/// One scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopePlan {
    /// The scope.
    pub name: String,
    /// Patterns for tools.
    pub tools: Vec<String>,
    /// Patterns for resources.
    pub resources: Vec<String>,
    /// Patterns for prompts.
    pub prompts: Vec<String>,
    /// Patterns for tools whose tasks are allowed.
    pub tasks: Vec<String>,
    /// Patterns for methods.
    pub methods: Vec<String>,
    /// The scopes that it includes.
    pub implies: Vec<String>,
    /// The roles of its holders.
    pub roles: Vec<String>,
}

/// The requirements of one path where they differ from those of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAuthPlan {
    /// The labels of the accepted issuers.
    pub issuers: Option<Vec<String>>,
    /// The scopes that every request requires.
    pub required_scopes: Option<Vec<String>>,
    /// Whether tokens are bound to a key.
    pub dpop: Option<ServerDpopChoice>,
    /// The role that a caller must have.
    pub role: Option<String>,
}

impl Default for OAuthPlan {
    fn default() -> Self {
        Self {
            required_scopes: Vec::new(),
            scopes_supported: Vec::new(),
            denies_unlisted: false,
            dpop: ServerDpopChoice::Accept,
            dpop_nonce: false,
            max_token: 8192,
            legacy_metadata: true,
            documentation: None,
            scopes: Vec::new(),
        }
    }
}

/// Resolves the tables `[auth.oauth]` and `[auth.scopes]`. `has_issuers`: whether access tokens are accepted at all.
pub(crate) fn resolve(
    table: Option<Spanned<AuthOAuthTable>>,
    scopes: Option<Spanned<Entries<ScopeTable>>>,
    has_issuers: bool,
) -> Result<OAuthPlan, ConfigProblem> {
    let spans = [
        ("[auth.oauth]", table.as_ref().map(|table| table.span.clone())),
        ("[auth.scopes]", scopes.as_ref().map(|scopes| scopes.span.clone())),
    ];
    for (name, span) in spans.into_iter().filter(|_| !has_issuers) {
        let Some(span) = span else { continue };
        let problem = ConfigProblem::new(format!("`{name}` has no effect without an issuer"));
        return Err(problem.help("add a table `[auth.issuers.NAME]`").at(span));
    }
    let defaults = OAuthPlan::default();
    let table = table.map(|table| table.value).unwrap_or_default();
    let scopes = scope_plans(scopes.map(|scopes| scopes.value))?;
    let required = scope_list("required_scopes", table.required_scopes.unwrap_or_default())?;
    let supported = match table.scopes_supported {
        Some(supported) => scope_list("scopes_supported", supported)?,
        None => {
            let own = scopes.iter().map(|scope| &scope.name);
            let further = own.filter(|scope| !required.contains(scope)).cloned();
            required.iter().cloned().chain(further).collect()
        }
    };
    Ok(OAuthPlan {
        required_scopes: required,
        scopes_supported: supported,
        denies_unlisted: table.unlisted == Some(UnlistedChoice::Deny),
        dpop: table.dpop.unwrap_or(defaults.dpop),
        dpop_nonce: table.dpop_nonce.unwrap_or(defaults.dpop_nonce),
        max_token: table.max_token.map_or(defaults.max_token, |bytes| super::count(bytes.get())),
        legacy_metadata: table.legacy_metadata.unwrap_or(defaults.legacy_metadata),
        documentation: table.documentation.map(documentation).transpose()?,
        scopes,
    })
}

/// Resolves the table `auth` of a server. `issuers` are those of `[auth]`, if it is present.
pub(crate) fn resolve_server(
    table: Option<Spanned<ServerAuthTable>>,
    issuers: Option<&[String]>,
) -> Result<ServerAuthPlan, ConfigProblem> {
    let Some(Spanned { value: table, span }) = table else { return Ok(ServerAuthPlan::default()) };
    let Some(issuers) = issuers else {
        let problem = ConfigProblem::new("`auth` of a server has no effect without `[auth]`");
        return Err(problem.help("add a table `[auth]` with users, keys or issuers").at(span));
    };
    let issuers: Vec<&str> = issuers.iter().map(String::as_str).collect();
    let known = |Spanned { value, span }: Spanned<String>| match issuers.contains(&value.as_str()) {
        true => Ok(value),
        false => {
            let help = suggestion(&value, "the issuers in `[auth.issuers]`", &issuers);
            Err(ConfigProblem::new(format!("unknown issuer `{value}`")).help(help).at(span))
        }
    };
    let named = |all: Vec<_>| all.into_iter().map(known).collect::<Result<_, _>>();
    let required = |all| scope_list("required_scopes", all);
    Ok(ServerAuthPlan {
        issuers: table.issuers.map(named).transpose()?,
        required_scopes: table.required_scopes.map(required).transpose()?,
        dpop: table.dpop,
        role: table.role.map(|role| name("role", role)).transpose()?,
    })
}

fn scope_plans(scopes: Option<Entries<ScopeTable>>) -> Result<Vec<ScopePlan>, ConfigProblem> {
    let Some(Entries(entries)) = scopes else { return Ok(Vec::new()) };
    if let Some((key, _)) = entries.get(MAX_SCOPES) {
        let problem = ConfigProblem::new(format!("there are more than {MAX_SCOPES} scopes"));
        return Err(problem.at(key.span.clone()));
    }
    let names: HashSet<String> = entries.iter().map(|(key, _)| key.value.clone()).collect();
    let plan = |(key, table): (Spanned<String>, ScopeTable)| {
        let implies = scope_list("implies", table.implies.clone().unwrap_or_default())?;
        let unknown = implies.iter().position(|scope| !names.contains(scope));
        if let Some(scope) = unknown.and_then(|at| table.implies.as_ref()?.get(at)) {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let help = suggestion(&scope.value, "the tables in `[auth.scopes]`", &known);
            let problem = ConfigProblem::new(format!("unknown scope `{}`", scope.value));
            return Err(problem.help(help).at(scope.span.clone()));
        }
        Ok(ScopePlan {
            name: scope("the name of a table in `[auth.scopes]`", key)?,
            tools: patterns("tools", table.tools)?,
            resources: patterns("resources", table.resources)?,
            prompts: patterns("prompts", table.prompts)?,
            tasks: patterns("tasks", table.tasks)?,
            methods: patterns("methods", table.methods)?,
            implies,
            roles: table
                .roles
                .unwrap_or_default()
                .into_iter()
                .map(|role| name("roles", role))
                .collect::<Result<_, _>>()?,
        })
    };
    entries.into_iter().map(plan).collect()
}

fn scope_list(key: &str, written: Vec<Spanned<String>>) -> Result<Vec<String>, ConfigProblem> {
    let mut scopes: Vec<String> = Vec::with_capacity(written.len());
    for item in written {
        let span = item.span.clone();
        let scope = scope(&format!("`{key}`"), item)?;
        if scopes.contains(&scope) {
            let problem = ConfigProblem::new(format!("the scope `{scope}` is listed twice"));
            return Err(problem.at(span));
        }
        scopes.push(scope);
    }
    Ok(scopes)
}

/// A scope as RFC 6749 defines it (3.3). It appears in a header, and a space separates it from others.
fn scope(place: &str, item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let problem = if value.is_empty() {
        ConfigProblem::new(format!("a scope in {place} is empty"))
    } else if value.len() > MAX_SCOPE {
        ConfigProblem::new(format!("a scope in {place} is longer than {MAX_SCOPE} characters"))
    } else if !value.bytes().all(is_allowed) {
        ConfigProblem::new(format!(
            "the scope `{value}` in {place} contains a character that is not allowed"
        ))
        .help("write one scope per string, without spaces, quotes and backslashes")
    } else if value == OFFLINE_ACCESS {
        ConfigProblem::new(format!("`{OFFLINE_ACCESS}` in {place} is not a scope of a server"))
            .help("remove it; a client requests it at the authorization server if it wants it")
    } else {
        return Ok(value);
    };
    Err(problem.at(span))
}

fn patterns(
    key: &str,
    written: Option<Vec<Spanned<String>>>,
) -> Result<Vec<String>, ConfigProblem> {
    let pattern = |Spanned { value, span }: Spanned<String>| match value.len() {
        1..=MAX_PATTERN => Ok(value),
        0 => Err(ConfigProblem::new(format!("a pattern in `{key}` is empty"))
            .help("`*` matches every name")
            .at(span)),
        _ => Err(ConfigProblem::new(format!(
            "a pattern in `{key}` is longer than {MAX_PATTERN} bytes"
        ))
        .at(span)),
    };
    written.unwrap_or_default().into_iter().map(pattern).collect()
}

fn documentation(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_web = value.starts_with("https://") || value.starts_with("http://");
    match is_web && value.len() <= 2048 && value.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("`documentation` is not a URL: `{value}`"))
            .help("write the URL of a page, such as `https://example.com/docs`")
            .at(span)),
    }
}

#[cfg(test)]
mod tests {
    use std::env::VarError;
    use std::path::Path;

    use crate::Plan;

    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        let text = format!(
            "[server]\n[auth]\nusers = \"u\"\n[auth.issuers.corp]\nissuer = \"https://id.example.com\"\n{text}"
        );
        let lookup = |_: &str| Err(VarError::NotPresent);
        let plan = Plan::read(&text, Path::new(""), &[], &lookup);
        plan.map_err(|problem| problem.into_error("creole.toml", &text).message)
    }

    fn oauth(text: &str) -> OAuthPlan {
        read(text).unwrap().auth.unwrap().oauth
    }

    #[test]
    fn without_tables_the_defaults_hold() {
        assert_eq!(oauth(""), OAuthPlan::default());
    }

    #[test]
    fn the_supported_scopes_are_the_required_ones_and_those_with_a_table() {
        let tables =
            "[auth.scopes.b]\n[auth.scopes.a]\n[auth.oauth]\nrequired_scopes = [\"mcp\", \"a\"]";
        let plan = oauth(tables);
        assert_eq!(plan.scopes_supported, ["mcp", "a", "b"]);
        assert_eq!(plan.scopes.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["b", "a"]);
        let written =
            oauth("[auth.oauth]\nrequired_scopes = [\"mcp\"]\nscopes_supported = [\"x\"]");
        assert_eq!(written.scopes_supported, ["x"]);
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, message) in [
            (
                "[auth.oauth]\nrequired_scopes = [\"a b\"]",
                "the scope `a b` in `required_scopes` contains a character that is not allowed",
            ),
            ("[auth.oauth]\nrequired_scopes = [\"\"]", "a scope in `required_scopes` is empty"),
            ("[auth.oauth]\nscopes_supported = [\"a\", \"a\"]", "the scope `a` is listed twice"),
            (
                "[auth.oauth]\nscopes_supported = [\"offline_access\"]",
                "`offline_access` in `scopes_supported` is not a scope of a server",
            ),
            (
                "[auth.scopes.'a\"']",
                "the scope `a\"` in the name of a table in `[auth.scopes]` contains a character that \
                    is not allowed",
            ),
            ("[auth.scopes.a]\nimplies = [\"b\"]", "unknown scope `b`"),
            ("[auth.scopes.a]\ntools = [\"\"]", "a pattern in `tools` is empty"),
            (
                "[auth.scopes.a]\nroles = [\"a b\"]",
                "`roles` contains a character that is not allowed",
            ),
            ("[auth.oauth]\ndocumentation = \"docs\"", "`documentation` is not a URL: `docs`"),
            ("[auth.oauth]\nmax_token = 1", "1 is not an integer from 1024 to 24576"),
            ("[server.auth]\nissuers = [\"other\"]", "unknown issuer `other`"),
        ] {
            let error = read(text).err();
            assert_eq!(error.as_deref(), Some(message), "{text}");
        }
    }

    #[test]
    fn a_table_without_effect_is_refused() {
        let lookup = |_: &str| Err(VarError::NotPresent);
        for (text, message) in [
            (
                "[server]\n[auth]\nusers = \"u\"\n[auth.oauth]",
                "`[auth.oauth]` has no effect without an issuer",
            ),
            (
                "[server]\n[auth]\nusers = \"u\"\n[auth.scopes.a]",
                "`[auth.scopes]` has no effect without an issuer",
            ),
            (
                "[server]\n[server.auth]\nrole = \"a\"",
                "`auth` of a server has no effect without `[auth]`",
            ),
        ] {
            let problem = Plan::read(text, Path::new(""), &[], &lookup).unwrap_err();
            assert_eq!(problem.into_error("creole.toml", text).message, message);
        }
    }
}
