//! Decisions, and how rules lead to them.

use std::sync::Arc;

use crate::compile::{CompiledRule, DEFAULT};
use crate::rule::Effect;

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed, by this rule or by default.
    Allowed(Arc<str>),
    /// It is denied.
    Denied(Denial),
    /// It would be allowed with these scopes, which the caller's token lacks.
    Challenge {
        /// The rule that requires them.
        rule: Arc<str>,
        /// All scopes that the rule requires.
        required: Vec<Arc<str>>,
    },
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The rule that denied, or whose condition would have allowed; `default` if there is none.
    pub rule: Arc<str>,
    /// What the caller is told.
    pub message: String,
}

impl Denial {
    /// A refusal by a rule without a message.
    pub(crate) fn by(rule: Arc<str>) -> Self {
        Self { message: format!("not allowed: {rule}"), rule }
    }
}

/// What is known of an item for a class of callers, before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may use it.
    Yes,
    /// They may not: it is hidden. The rule that denied, or `default`.
    No(Arc<str>),
    /// It depends on the call: on its arguments, the time, or scopes that the caller may still get.
    Depends,
}

/// The value of a rule's condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConditionValue {
    True,
    False,
    /// The evaluation failed.
    Failed(String),
    /// It is not known before the call.
    Unknown,
}

/// What became of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOutcome {
    /// A member about the caller or the server does not match.
    OtherCaller(&'static str),
    /// It is not about this request.
    OtherItem,
    /// The expression is false.
    NotWhen,
    /// The evaluation of the expression failed. A rule that denies counts as matching.
    Failed(String),
    /// Only these scopes are missing.
    MissingScopes(Vec<Arc<str>>),
    /// It matches.
    Matches,
}

/// The decision about a request, with what became of each rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// Whether the item is hidden from the caller, so that the refusal is that of an unknown item.
    pub is_hidden: bool,
    /// The rules by name, with their effects.
    pub rules: Vec<(Arc<str>, Effect, RuleOutcome)>,
}

/// The rules that match a request, reduced to what decides. Rules are added in the order of their names.
#[derive(Default)]
pub(crate) struct MatchedRules<'a> {
    denied_by: Option<&'a CompiledRule>,
    may_be_denied: bool,
    allowed_by: Option<&'a CompiledRule>,
    may_be_allowed: bool,
    /// The rule that lacks the fewest scopes.
    challenge: Option<(&'a CompiledRule, usize)>,
    /// A rule that would allow, if its condition were true.
    closest: Option<&'a CompiledRule>,
}

impl<'a> MatchedRules<'a> {
    /// Adds a rule whose plain members match, with its condition and the number of missing scopes.
    pub(crate) fn add(
        &mut self,
        rule: &'a CompiledRule,
        condition: &ConditionValue,
        missing: usize,
    ) {
        match (rule.effect, condition) {
            // A denial whose condition cannot be evaluated denies: an error never allows a request.
            (Effect::Deny, ConditionValue::True | ConditionValue::Failed(_)) => {
                _ = self.denied_by.get_or_insert(rule);
            }
            (Effect::Deny, ConditionValue::Unknown) => self.may_be_denied = true,
            (Effect::Deny, ConditionValue::False) => {}
            (Effect::Allow, ConditionValue::True) if missing == 0 => {
                _ = self.allowed_by.get_or_insert(rule);
            }
            (Effect::Allow, ConditionValue::True) => {
                if self.challenge.is_none_or(|(_, fewest)| missing < fewest) {
                    self.challenge = Some((rule, missing));
                }
            }
            (Effect::Allow, ConditionValue::Unknown) => self.may_be_allowed = true,
            (Effect::Allow, ConditionValue::False | ConditionValue::Failed(_)) => {
                // A rule with a message explains more than one without.
                let is_better = self
                    .closest
                    .is_none_or(|closest| closest.message.is_none() && rule.message.is_some());
                if is_better {
                    self.closest = Some(rule);
                }
            }
        }
    }

    /// What is known before the call.
    pub(crate) fn verdict(&self, default: Effect) -> Verdict {
        if let Some(rule) = self.denied_by {
            return Verdict::No(Arc::clone(&rule.name));
        }
        let may_be_allowed = self.challenge.is_some() || self.may_be_allowed;
        match (self.allowed_by.is_some(), may_be_allowed) {
            (true, _) if !self.may_be_denied => Verdict::Yes,
            (true, _) | (false, true) => Verdict::Depends,
            (false, false) => match default {
                Effect::Allow if self.may_be_denied => Verdict::Depends,
                Effect::Allow => Verdict::Yes,
                Effect::Deny => {
                    let rule = self.closest.map(|rule| Arc::clone(&rule.name));
                    Verdict::No(rule.unwrap_or_else(|| DEFAULT.into()))
                }
            },
        }
    }

    /// The decision about the call.
    pub(crate) fn decision(&self, default: Effect) -> Decision {
        if let Some(rule) = self.denied_by {
            return Decision::Denied(denial(Some(rule)));
        }
        if let Some(rule) = self.allowed_by {
            return Decision::Allowed(Arc::clone(&rule.name));
        }
        if let Some((rule, _)) = self.challenge {
            let required = rule.scopes.clone();
            return Decision::Challenge { rule: Arc::clone(&rule.name), required };
        }
        match default {
            Effect::Allow => Decision::Allowed(DEFAULT.into()),
            Effect::Deny => Decision::Denied(denial(self.closest)),
        }
    }
}

fn denial(rule: Option<&CompiledRule>) -> Denial {
    let Some(rule) = rule else { return Denial::by(DEFAULT.into()) };
    let denial = Denial::by(Arc::clone(&rule.name));
    Denial { message: rule.message.clone().unwrap_or(denial.message), ..denial }
}
