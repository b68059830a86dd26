//! Cases of `creole policy test`: callers, requests and the decisions that are expected.

use std::path::Path;
use std::sync::Arc;

use creole_policy::cel::Moment;
use creole_policy::{Subject, TargetKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::de::{DeTable, Deserializer};

use crate::source::ConfigSource;
use crate::syntax::error::{ConfigError, ConfigProblem};
use crate::syntax::toml_errors;
use crate::syntax::value::Spanned;

/// A caller, a request, and the expected decision.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyCase {
    /// The name, for messages.
    pub name: String,
    /// The server that is called. Default: the first one of the configuration.
    pub server: Option<String>,
    /// The caller.
    pub subject: Subject,
    /// The kind of item that is requested.
    pub kind: TargetKind,
    /// The name or URI of the item.
    pub item: String,
    /// The arguments of the call.
    pub arguments: Value,
    /// The annotations of the tool.
    pub annotations: Option<Value>,
    /// The time of the call.
    pub now: Moment,
    /// The expected decision.
    pub expected: ExpectedDecision,
}

/// An expected decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedDecision {
    /// The call is allowed.
    Allow,
    /// The call is refused, and the item is visible.
    Deny,
    /// The item is hidden.
    Hidden,
    /// These scopes are demanded.
    Challenge(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CasesFile {
    cases: Vec<Spanned<CaseTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    name: String,
    server: Option<String>,
    #[serde(rename = "as")]
    caller: CallerTable,
    call: Option<String>,
    read: Option<String>,
    prompt: Option<String>,
    arguments: Option<Value>,
    annotations: Option<Value>,
    now: Option<Spanned<String>>,
    expect: Spanned<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallerTable {
    id: String,
    #[serde(default)]
    roles: Vec<String>,
    scopes: Option<Vec<String>>,
    client: Option<String>,
    #[serde(default)]
    claims: Map<String, Value>,
}

/// Reads a file of cases.
///
/// # Errors
/// When the file cannot be read or a case is invalid.
pub fn load_policy_cases(path: &Path) -> Result<Vec<PolicyCase>, ConfigError> {
    let source = ConfigSource::File(path);
    let text = source.text()?;
    parse(&text).map_err(|problem| problem.into_error(&source.name(), &text))
}

fn parse(text: &str) -> Result<Vec<PolicyCase>, ConfigProblem> {
    let document = DeTable::parse(text).map_err(|error| toml_errors::syntax_error(&error))?;
    let file = CasesFile::deserialize(Deserializer::from(document))
        .map_err(|error| toml_errors::schema_error(&error, text))?;
    if file.cases.is_empty() {
        return Err(ConfigProblem::new("the file has no cases").help("add a table `[[cases]]`"));
    }
    let case = |Spanned { value, span }: Spanned<CaseTable>| {
        case(value).map_err(|problem| problem.or_at(span))
    };
    file.cases.into_iter().map(case).collect()
}

fn case(table: CaseTable) -> Result<PolicyCase, ConfigProblem> {
    let (kind, item) = match (table.call, table.read, table.prompt) {
        (Some(tool), None, None) => (TargetKind::Tool, tool),
        (None, Some(uri), None) => (TargetKind::Resource, uri),
        (None, None, Some(name)) => (TargetKind::Prompt, name),
        _ => {
            let message = format!("the case `{}` does not say what is requested", table.name);
            let help = "set one of `call`, `read` and `prompt`";
            return Err(ConfigProblem::new(message).help(help));
        }
    };
    let arguments = table.arguments.unwrap_or_else(|| Value::Object(Map::new()));
    if !arguments.is_object() {
        return Err(ConfigProblem::new("`arguments` is not a table"));
    }
    let now = match table.now {
        None => Moment::now(),
        Some(Spanned { value, span }) => Moment::parse(&value).ok_or_else(|| {
            let help = "write it like \"2026-11-18T12:00:00Z\"";
            ConfigProblem::new(format!("`{value}` is not a time")).help(help).at(span)
        })?,
    };
    Ok(PolicyCase {
        name: table.name,
        server: table.server,
        subject: caller(table.caller),
        kind,
        item,
        arguments,
        annotations: table.annotations,
        now,
        expected: expected(table.expect)?,
    })
}

fn caller(table: CallerTable) -> Subject {
    let texts = |all: Vec<String>| all.into_iter().map(Arc::from).collect::<Vec<Arc<str>>>();
    let own = Subject::new(&table.id);
    let scopes = table.scopes.map(texts);
    Subject {
        roles: texts(table.roles),
        client: table.client.map(Arc::from),
        // A caller with an access token has no scopes but those of the token.
        scopes: scopes.or_else(|| own.issuer.is_some().then(Vec::new)),
        claims: table.claims,
        ..own
    }
}

fn expected(written: Spanned<Value>) -> Result<ExpectedDecision, ConfigProblem> {
    let Spanned { value, span } = written;
    let challenge = || {
        let scopes = value.get("challenge")?.as_array()?;
        scopes.iter().map(|scope| scope.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    };
    match value.as_str() {
        Some("allow") => Ok(ExpectedDecision::Allow),
        Some("deny") => Ok(ExpectedDecision::Deny),
        Some("hidden") => Ok(ExpectedDecision::Hidden),
        _ => challenge().map(ExpectedDecision::Challenge).ok_or_else(|| {
            let help = "write \"allow\", \"deny\", \"hidden\" or { challenge = [\"SCOPE\"] }";
            ConfigProblem::new("`expect` is none of the decisions").help(help).at(span)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &str = r#"
        [[cases]]
        name = "own"
        as = { id = "oauth:corp:ada", roles = ["dev"], client = "editor", claims = { level = 3 } }
        call = "tasks__update"
        arguments = { owner = "ada" }
        now = "2026-11-18T12:00:00Z"
        expect = { challenge = ["tasks:write"] }
        [[cases]]
        name = "read"
        as = { id = "user:bob" }
        read = "file:///a"
        expect = "hidden"
    "#;

    #[test]
    fn cases_have_a_caller_a_request_and_an_expected_decision() {
        let cases = parse(CASES).unwrap();
        assert_eq!(cases[0].subject.scopes, Some(Vec::new()));
        assert_eq!(&*cases[0].subject.name, "ada");
        assert_eq!(cases[0].arguments["owner"], "ada");
        assert_eq!(cases[0].expected, ExpectedDecision::Challenge(vec!["tasks:write".to_owned()]));
        assert_eq!((cases[1].kind, &*cases[1].item), (TargetKind::Resource, "file:///a"));
        assert_eq!(cases[1].subject.scopes, None);
        assert_eq!(cases[1].expected, ExpectedDecision::Hidden);
    }

    #[test]
    fn an_invalid_case_is_refused_with_its_place() {
        for (from, to, expected) in [
            ("\"hidden\"", "\"maybe\"", "`expect` is none of the decisions"),
            ("read = ", "call = \"x\"\n        read = ", "does not say what is requested"),
            ("T12:00:00Z", "", "`2026-11-18` is not a time"),
            ("roles", "rolls", "rolls"),
        ] {
            let text = CASES.replace(from, to);
            let error = parse(&text).unwrap_err().into_error("cases.toml", &text).to_string();
            assert!(error.contains(expected) && error.contains("cases.toml:"), "{error}");
        }
    }
}
