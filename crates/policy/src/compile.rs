//! Compiles rules: patterns, expressions and the kinds of items that they are about.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use creole_gateway::layers::NamePatterns;

use crate::cel::{Expression, ExpressionError};
use crate::rule::{Effect, RuleSettings};
use crate::subject::Subject;
use crate::target::TargetKind;

/// The name of the decision that no rule made. No rule may have it.
pub(crate) const DEFAULT: &str = "default";

/// Why a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The position of the rule.
    pub index: usize,
    /// The member that is wrong.
    pub member: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}", self.member, self.message)
    }
}

impl std::error::Error for RuleError {}

/// A rule that is ready to decide.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) name: Arc<str>,
    pub(crate) effect: Effect,
    callers: Callers,
    targets: Targets,
    pub(crate) scopes: Vec<Arc<str>>,
    pub(crate) when: Option<Expression>,
    pub(crate) message: Option<String>,
}

/// The members about the caller and the server.
#[derive(Debug)]
struct Callers {
    roles: NamePatterns,
    principals: NamePatterns,
    clients: NamePatterns,
    issuers: NamePatterns,
    servers: NamePatterns,
}

/// The members about the item and the method.
#[derive(Debug)]
struct Targets {
    tools: NamePatterns,
    resources: NamePatterns,
    prompts: NamePatterns,
    tasks: NamePatterns,
    methods: NamePatterns,
}

impl CompiledRule {
    fn new(rule: &RuleSettings) -> Result<Self, (&'static str, String)> {
        let when = rule.when.as_deref().map(compile_expression).transpose();
        let patterns = |list: &[String]| NamePatterns::new(list.iter().cloned());
        if rule.effect == Effect::Deny && !rule.scopes.is_empty() {
            let message =
                "a rule that denies cannot require scopes; move them to a rule that allows";
            return Err(("scopes", message.to_owned()));
        }
        let when = when.map_err(|error| ("when", error))?;
        if when.as_ref().is_some_and(|when| when.references().items.len() > 1) {
            let message = "the expression names two kinds of items, so it is never true; write one \
                 rule for each kind";
            return Err(("when", message.to_owned()));
        }
        Ok(Self {
            name: rule.name.as_str().into(),
            effect: rule.effect,
            callers: Callers {
                roles: patterns(&rule.roles),
                principals: patterns(&rule.principals),
                clients: patterns(&rule.clients),
                issuers: patterns(&rule.issuers),
                servers: patterns(&rule.servers),
            },
            targets: Targets {
                tools: patterns(&rule.tools),
                resources: patterns(&rule.resources),
                prompts: patterns(&rule.prompts),
                tasks: patterns(&rule.tasks),
                methods: patterns(&rule.methods),
            },
            scopes: rule.scopes.iter().map(|scope| scope.as_str().into()).collect(),
            when,
            message: rule.message.clone(),
        })
    }

    /// The first member about the caller or the server that does not match.
    pub(crate) fn caller_mismatch(&self, subject: &Subject, server: &str) -> Option<&'static str> {
        let Callers { roles, principals, clients, issuers, servers } = &self.callers;
        let fits = |patterns: &NamePatterns, name: Option<&str>| {
            patterns.is_empty() || name.is_some_and(|name| patterns.contains(name))
        };
        if !roles.is_empty() && !subject.roles.iter().any(|role| roles.contains(role)) {
            return Some("roles");
        }
        let others = [
            ("principals", principals, Some(&*subject.id)),
            ("clients", clients, subject.client.as_deref()),
            ("issuers", issuers, subject.issuer.as_deref()),
            ("servers", servers, Some(server)),
        ];
        let mut others = others.into_iter().filter(|(_, patterns, name)| !fits(patterns, *name));
        others.next().map(|(member, ..)| member)
    }

    /// Whether the rule is about this request. A request without an item is only decided by rules with `methods`.
    pub(crate) fn is_about(&self, method: &str, item: Option<(TargetKind, &str)>) -> bool {
        let Targets { tools, resources, prompts, tasks, methods } = &self.targets;
        let Some((kind, name)) = item else { return methods.contains(method) };
        // An expression about tools says nothing about resources.
        let named = self.when.as_ref().and_then(|when| when.references().items.first());
        if named.is_some_and(|named| *named != kind.root()) {
            return false;
        }
        let is_general = [tools, resources, prompts, tasks, methods].iter().all(|it| it.is_empty());
        is_general
            || methods.contains(method)
            || match kind {
                TargetKind::Tool => tools.contains(name),
                TargetKind::Resource => resources.contains(name),
                TargetKind::Prompt => prompts.contains(name),
                TargetKind::Task => tasks.contains(name) || tools.contains(name),
            }
    }

    /// The patterns of items of this kind.
    pub(crate) fn patterns(&self, kind: TargetKind) -> &[String] {
        let Targets { tools, resources, prompts, tasks, .. } = &self.targets;
        match kind {
            TargetKind::Tool => tools.patterns(),
            TargetKind::Resource => resources.patterns(),
            TargetKind::Prompt => prompts.patterns(),
            TargetKind::Task => tasks.patterns(),
        }
    }

    /// Whether the value of its expression differs between two calls of the same caller.
    pub(crate) fn varies_by_call(&self) -> bool {
        self.when.as_ref().is_some_and(|when| when.references().varies_by_call)
    }

    /// The scopes that the caller lacks.
    pub(crate) fn missing_scopes(&self, subject: &Subject) -> Vec<Arc<str>> {
        let missing = self.scopes.iter().filter(|scope| !subject.has_scope(scope));
        missing.cloned().collect()
    }
}

fn compile_expression(text: &str) -> Result<Expression, String> {
    Expression::compile(text).map_err(|ExpressionError { message, offset }| {
        let before = text.get(..offset).unwrap_or(text);
        let (line, column) = (
            before.matches('\n').count() + 1,
            before.chars().rev().take_while(|it| *it != '\n').count() + 1,
        );
        match offset {
            0 => message,
            _ if line == 1 => format!("{message} (column {column} of the expression)"),
            _ => format!("{message} (line {line}, column {column} of the expression)"),
        }
    })
}

/// Compiles rules. They are sorted by name, so their order in the file has no effect.
pub(crate) fn compile(rules: &[RuleSettings]) -> Result<Vec<CompiledRule>, RuleError> {
    let mut names = BTreeSet::new();
    let mut compiled = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let failure = |member, message| RuleError { index, member, message };
        if rule.name == DEFAULT {
            let message = "no rule may be called `default`, which stands for `policy.default`";
            return Err(failure("name", message.to_owned()));
        }
        if !names.insert(&rule.name) {
            return Err(failure("name", format!("two rules are called `{}`", rule.name)));
        }
        let rule = CompiledRule::new(rule);
        compiled.push(rule.map_err(|(member, message)| failure(member, message))?);
    }
    compiled.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(compiled)
}
