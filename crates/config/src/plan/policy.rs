//! Resolves the policy, and its place among the layers of a server.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use creole::Middleware;
use creole_policy::{Effect, Policy, PolicyLayer, PolicySettings, RuleSettings};

use crate::plan::layer::{LayerError, LayerPlan};
use crate::plan::{ServerPlan, label};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;
use crate::tables::policy::{PolicyRuleTable, PolicyTable};

/// The maximum number of rules.
const MAX_RULES: usize = 1000;
/// The maximum length of a pattern, in characters.
const MAX_PATTERN: usize = 1000;
/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 1000;

/// Resolves the table. The expressions are checked.
pub(crate) fn resolve(table: PolicyTable) -> Result<PolicySettings, ConfigProblem> {
    let written = table.rules.unwrap_or_default();
    if let Some(rule) = written.get(MAX_RULES) {
        let message = format!("the policy has more than {MAX_RULES} rules");
        let help = "join rules with the same effect: their keys are lists of patterns";
        return Err(ConfigProblem::new(message).help(help).at(rule.span.clone()));
    }
    let (mut rules, mut places) = (Vec::new(), Vec::new());
    for Spanned { value, span } in written {
        let mut place = RulePlace { whole: span.clone(), members: BTreeMap::new() };
        let resolved = rule(value, &mut place.members);
        rules.push(resolved.map_err(|problem| problem.or_at(span))?);
        places.push(place);
    }
    // A table without rules and without a default denies everything, which is the safe reading of it.
    let default = table.default.map_or(Effect::Deny, Into::into);
    let settings = PolicySettings { default, rules };
    Policy::compile(&settings).map_err(|error| {
        let place = &places[error.index];
        let span = place.members.get(error.member).unwrap_or(&place.whole);
        let name = &settings.rules[error.index].name;
        ConfigProblem::new(format!("the rule `{name}`: {}", error.message)).at(span.clone())
    })?;
    Ok(settings)
}

/// Where a rule and its members are written.
struct RulePlace {
    whole: Range<usize>,
    members: MemberSpans,
}

type MemberSpans = BTreeMap<&'static str, Range<usize>>;

fn rule(table: PolicyRuleTable, members: &mut MemberSpans) -> Result<RuleSettings, ConfigProblem> {
    members.insert("name", table.name.span.clone());
    let name = label("name", Some(table.name))?.unwrap_or_default();
    let mut patterns = |key: &'static str, list: Option<Vec<Spanned<String>>>| {
        let Some(list) = list else { return Ok(Vec::new()) };
        members.extend(list.first().map(|first| (key, first.span.clone())));
        pattern_list(key, list)
    };
    let mut rule = RuleSettings {
        roles: patterns("roles", table.roles)?,
        principals: patterns("principals", table.principals)?,
        clients: patterns("clients", table.clients)?,
        issuers: patterns("issuers", table.issuers)?,
        servers: patterns("servers", table.servers)?,
        scopes: patterns("scopes", table.scopes)?,
        tools: patterns("tools", table.tools)?,
        resources: patterns("resources", table.resources)?,
        prompts: patterns("prompts", table.prompts)?,
        tasks: patterns("tasks", table.tasks)?,
        methods: patterns("methods", table.methods)?,
        ..RuleSettings::new(&name, table.effect.into())
    };
    if let Some(Spanned { value, span }) = table.when {
        members.insert("when", span);
        rule.when = Some(value);
    }
    if let Some(Spanned { value, span }) = table.message {
        if value.trim().is_empty() || value.chars().count() > MAX_MESSAGE {
            let message = format!("`message` is empty or longer than {MAX_MESSAGE} characters");
            return Err(ConfigProblem::new(message).at(span));
        }
        rule.message = Some(value);
    }
    Ok(rule)
}

fn pattern_list(key: &str, list: Vec<Spanned<String>>) -> Result<Vec<String>, ConfigProblem> {
    if list.is_empty() {
        return Err(ConfigProblem::new(format!("`{key}` is empty, so it matches nothing"))
            .help("remove the key to match everything, or list what the rule is about"));
    }
    let pattern = |Spanned { value, span }: Spanned<String>| {
        let problem = if value.is_empty() {
            format!("an entry of `{key}` is empty")
        } else if value.chars().count() > MAX_PATTERN {
            format!("an entry of `{key}` is longer than {MAX_PATTERN} characters")
        } else if key == "scopes" && !value.bytes().all(is_scope_byte) {
            format!("the scope `{value}` has a character that scopes cannot have")
        } else {
            return Ok(value);
        };
        Err(ConfigProblem::new(problem).at(span))
    };
    list.into_iter().map(pattern).collect()
}

/// The characters of a scope (RFC 6749, 3.3).
fn is_scope_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'
}

/// Checks that the layers of a server leave a place for the policy: outside of every layer that renames items, because
/// rules have the names that clients use, and inside of the audit log, so that refusals are recorded.
pub(crate) fn check_place(server: &ServerPlan) -> Result<(), ConfigProblem> {
    let kinds: Vec<_> = server.chain.iter().map(LayerPlan::kind).collect();
    let first = |kind: &str| kinds.iter().position(|it| *it == kind);
    let last = |kind: &str| kinds.iter().rposition(|it| *it == kind);
    let Some(rename) = first("rename") else { return Ok(()) };
    if first("audit").is_some_and(|audit| rename < audit) {
        let message =
            format!("`{}`: the audit log would not record what the policy refuses", server.name);
        let help = "put the `audit` layer before the `rename` layer";
        return Err(ConfigProblem::new(message).help(help));
    }
    if last("script").is_some_and(|script| rename < script) {
        let message = format!("`{}`: the policy cannot check the calls of the script", server.name);
        let help = "put the `script` layer before the `rename` layer, so that it uses the names that clients use";
        return Err(ConfigProblem::new(message).help(help));
    }
    Ok(())
}

/// The claims of access tokens that rules name.
pub(crate) fn claims(settings: &PolicySettings) -> Vec<String> {
    // The rules were compiled when the plan was made.
    let policy = Policy::compile(settings);
    policy.map(|policy| policy.claims().into_iter().collect()).unwrap_or_default()
}

/// Adds the policy to the built layers of a server: after the first audit log, and again behind each script, which may
/// change calls.
pub(crate) fn add_layer(
    settings: &PolicySettings,
    server: &ServerPlan,
    layers: Vec<Arc<dyn Middleware>>,
) -> Result<Vec<Arc<dyn Middleware>>, LayerError> {
    let policy = Policy::compile(settings).map_err(|error| LayerError::new(error.to_string()))?;
    let policy = Arc::new(PolicyLayer::new(policy, &server.name));
    let place = server.chain.iter().position(|layer| layer.kind() == "audit");
    let place = place.map_or(0, |audit| audit + 1);
    let mut all: Vec<Arc<dyn Middleware>> = Vec::with_capacity(layers.len() + 1);
    for (index, layer) in layers.into_iter().enumerate() {
        if index == place {
            all.push(Arc::clone(&policy) as _);
        }
        all.push(layer);
        if index >= place && server.chain[index].script().is_some() {
            all.push(Arc::new(policy.recheck()));
        }
    }
    if all.len() <= place {
        all.push(policy);
    }
    Ok(all)
}
