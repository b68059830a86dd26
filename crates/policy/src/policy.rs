//! The policy: decides about requests.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::cel::{EvaluationInput, InputItem, Moment};
use crate::compile::{CompiledRule, RuleError, compile};
use crate::decision::{
    ConditionValue, Decision, Denial, Explanation, MatchedRules, RuleOutcome, Verdict,
};
use crate::rule::{Effect, PolicySettings};
use crate::subject::Subject;
use crate::target::TargetKind;

/// A set of rules that is ready to decide.
#[derive(Debug)]
pub struct Policy {
    pub(crate) default: Effect,
    pub(crate) rules: Vec<CompiledRule>,
    /// Differs between policies with other rules.
    pub(crate) digest: u64,
}

/// A request that is decided about.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The method.
    pub method: &'a str,
    /// The item, under the name that clients use.
    pub item: Option<(TargetKind, &'a str)>,
    /// The annotations of the tool.
    pub annotations: Option<&'a Value>,
    /// The arguments. `None` if they cannot be read.
    pub arguments: Option<&'a Value>,
    /// The time.
    pub now: Moment,
}

impl Policy {
    /// Compiles rules.
    ///
    /// # Errors
    /// When a rule is invalid.
    pub fn compile(settings: &PolicySettings) -> Result<Self, RuleError> {
        let mut hasher = DefaultHasher::new();
        format!("{settings:?}").hash(&mut hasher);
        let digest = hasher.finish();
        Ok(Self { default: settings.default, rules: compile(&settings.rules)?, digest })
    }

    /// The claims that rules name. Tokens are kept without the others.
    pub fn claims(&self) -> BTreeSet<String> {
        let expressions = self.rules.iter().filter_map(|rule| rule.when.as_ref());
        expressions.flat_map(|when| when.references().claims.iter().cloned()).collect()
    }

    /// Whether a rule reads the annotations of tools.
    pub fn reads_annotations(&self) -> bool {
        let mut expressions = self.rules.iter().filter_map(|rule| rule.when.as_ref());
        expressions.any(|when| when.references().annotations)
    }

    /// Whether a rule may deny requests that a server sends to its clients during a call.
    pub(crate) fn denies_input_requests(&self) -> bool {
        let methods = ["sampling/createMessage", "elicitation/create", "roots/list"];
        let is_about = |rule: &CompiledRule| methods.iter().any(|it| rule.is_about(it, None));
        self.rules.iter().any(|rule| rule.effect == Effect::Deny && is_about(rule))
    }

    /// The names of all rules, in their order.
    pub fn rule_names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.name)
    }

    /// The patterns of all rules for items of this kind, each once.
    pub fn patterns(&self, kind: TargetKind) -> BTreeSet<&str> {
        let all = self.rules.iter().flat_map(|rule| rule.patterns(kind));
        all.map(String::as_str).collect()
    }

    /// The decision about a request.
    pub fn decide(&self, subject: &Subject, request: &Request<'_>) -> Decision {
        self.explain(subject, request).decision
    }

    /// What a caller may do with an item, as far as it is known before a call.
    pub fn verdict(&self, subject: &Subject, request: &Request<'_>) -> Verdict {
        let applies = |rule: &CompiledRule| rule.caller_mismatch(subject, request.server).is_none();
        let mut matched = MatchedRules::default();
        for rule in self.rules.iter().filter(|rule| applies(rule)) {
            if rule.is_about(request.method, request.item) {
                let condition = known_condition(rule, subject, request);
                matched.add(rule, &condition, rule.missing_scopes(subject).len());
            }
        }
        matched.verdict(self.default)
    }

    /// The decision about a request, with what became of each rule.
    pub fn explain(&self, subject: &Subject, request: &Request<'_>) -> Explanation {
        let mut matched = MatchedRules::default();
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let outcome = match rule.caller_mismatch(subject, request.server) {
                Some(member) => RuleOutcome::OtherCaller(member),
                None if !rule.is_about(request.method, request.item) => RuleOutcome::OtherItem,
                None => {
                    let condition = condition(rule, subject, request);
                    let missing = rule.missing_scopes(subject);
                    matched.add(rule, &condition, missing.len());
                    match condition {
                        ConditionValue::Failed(reason) => RuleOutcome::Failed(reason),
                        ConditionValue::True if missing.is_empty() => RuleOutcome::Matches,
                        ConditionValue::True => RuleOutcome::MissingScopes(missing),
                        ConditionValue::False | ConditionValue::Unknown => RuleOutcome::NotWhen,
                    }
                }
            };
            rules.push((rule.name.clone(), rule.effect, outcome));
        }
        // A hidden item is refused before its arguments are looked at.
        let (decision, is_hidden) = match self.verdict(subject, request) {
            Verdict::No(rule) => (Decision::Denied(Denial::by(rule)), true),
            Verdict::Yes | Verdict::Depends => (matched.decision(self.default), false),
        };
        Explanation { decision, is_hidden, rules }
    }

    /// The rule that denies a method without an item, such as a list. Such methods are never denied by default, because
    /// their results only have what the caller may use.
    pub fn denies_method(&self, subject: &Subject, server: &str, method: &str) -> Option<Arc<str>> {
        let now = Moment::now();
        let request =
            Request { server, method, item: None, annotations: None, arguments: None, now };
        let is_denied = |rule: &&CompiledRule| {
            rule.effect == Effect::Deny
                && rule.is_about(method, None)
                && rule.caller_mismatch(subject, server).is_none()
                && condition(rule, subject, &request) != ConditionValue::False
        };
        self.rules.iter().find(is_denied).map(|rule| Arc::clone(&rule.name))
    }

    /// The decision about a call of an item that is visible to the caller. `applies` has the rules whose members about
    /// the caller match.
    pub(crate) fn decide_call(
        &self,
        applies: &[bool],
        subject: &Subject,
        request: &Request<'_>,
    ) -> Decision {
        let mut matched = MatchedRules::default();
        for rule in self.applicable(applies, request) {
            let condition = condition(rule, subject, request);
            matched.add(rule, &condition, rule.missing_scopes(subject).len());
        }
        matched.decision(self.default)
    }

    /// What is known of an item before a call.
    pub(crate) fn known_verdict(
        &self,
        applies: &[bool],
        subject: &Subject,
        request: &Request<'_>,
    ) -> Verdict {
        let mut matched = MatchedRules::default();
        for rule in self.applicable(applies, request) {
            let condition = known_condition(rule, subject, request);
            matched.add(rule, &condition, rule.missing_scopes(subject).len());
        }
        matched.verdict(self.default)
    }

    /// The rules that apply to the caller and are about the request.
    fn applicable<'a>(
        &'a self,
        applies: &'a [bool],
        request: &'a Request<'_>,
    ) -> impl Iterator<Item = &'a CompiledRule> {
        let own = self.rules.iter().zip(applies).filter(|(_, applies)| **applies);
        own.map(|(rule, _)| rule).filter(|rule| rule.is_about(request.method, request.item))
    }
}

/// The condition of a rule, as far as it is known before a call.
fn known_condition(
    rule: &CompiledRule,
    subject: &Subject,
    request: &Request<'_>,
) -> ConditionValue {
    match rule.varies_by_call() {
        true => ConditionValue::Unknown,
        false => condition(rule, subject, request),
    }
}

fn condition(rule: &CompiledRule, subject: &Subject, request: &Request<'_>) -> ConditionValue {
    let Some(when) = &rule.when else { return ConditionValue::True };
    let item = match request.item {
        Some((TargetKind::Tool | TargetKind::Task, name)) => {
            InputItem::Tool { name, annotations: request.annotations }
        }
        Some((TargetKind::Resource, uri)) => InputItem::Resource { uri },
        Some((TargetKind::Prompt, name)) => InputItem::Prompt { name },
        None => InputItem::None,
    };
    let Request { server, method, arguments, now, .. } = *request;
    let input = EvaluationInput { subject, server, method, item, arguments, now };
    match when.is_true(&input) {
        Ok(true) => ConditionValue::True,
        Ok(false) => ConditionValue::False,
        Err(error) => ConditionValue::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
