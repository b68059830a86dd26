//! Refused calls, grouped by layer, rule, principal and target.

use std::collections::HashMap;
use std::time::SystemTime;

use creole::internal::sync::Mutex;
use creole::internal::telemetry::{CallOutcome, CallRecord};
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock;
use crate::live::call::refusing_layer;

/// Maximum number of groups. Beyond it, the one that was silent for longest goes.
const MAX_GROUPS: usize = 1000;

/// Refused calls.
#[derive(Default)]
pub(crate) struct Denials(Mutex<HashMap<GroupKey, Group>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct GroupKey {
    server: String,
    layer: String,
    rule: Option<String>,
    principal: String,
    method: &'static str,
    target: String,
}

struct Group {
    reason: Option<&'static str>,
    count: u64,
    first: SystemTime,
    last: SystemTime,
}

/// A group of refused calls.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DenialGroup {
    /// The server.
    server: String,
    /// The layer that refused.
    pub(crate) layer: String,
    /// The rule of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Who was refused.
    principal: String,
    /// The method.
    method: &'static str,
    /// The tool, prompt or URI.
    target: String,
    /// The kind of the fault that the client got.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// How often.
    pub(crate) count: u64,
    /// When first.
    first: String,
    /// When last.
    last: String,
    /// The line of the rule in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl Denials {
    /// Counts a call that was refused.
    pub(crate) fn read(&self, record: &CallRecord) {
        let Some(end) = record.end() else { return };
        if end.denied_by.is_none()
            && !matches!(end.outcome, CallOutcome::Fault(..) | CallOutcome::ToolError)
        {
            return;
        }
        let layer = refusing_layer(record, &record.steps());
        let rule = end.denied_by.as_deref().map(str::to_owned);
        let Some(layer) = layer.or_else(|| rule.as_ref().map(|_| "policy".to_owned())) else {
            return;
        };
        let reason = match end.outcome {
            CallOutcome::Fault(kind, _) => Some(kind.name()),
            _ => None,
        };
        let key = GroupKey {
            server: record.server.to_string(),
            layer,
            rule,
            principal: record.principal.id().to_owned(),
            method: record.method,
            target: record.target.to_string(),
        };
        self.add(key, reason, SystemTime::now());
    }

    fn add(&self, key: GroupKey, reason: Option<&'static str>, now: SystemTime) {
        let mut groups = self.0.lock();
        if groups.len() >= MAX_GROUPS && !groups.contains_key(&key) {
            let oldest = groups.iter().min_by_key(|(_, group)| group.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                groups.remove(&oldest);
            }
        }
        let group = groups.entry(key).or_insert(Group { reason, count: 0, first: now, last: now });
        group.count += 1;
        group.last = now;
        group.reason = reason;
    }

    /// The groups with a refusal since then, the newest first.
    pub(crate) fn since(&self, since: Option<SystemTime>) -> Vec<DenialGroup> {
        let groups = self.0.lock();
        let recent = |group: &Group| since.is_none_or(|since| group.last >= since);
        let mut found: Vec<_> = groups.iter().filter(|(_, group)| recent(group)).collect();
        found.sort_by_key(|(_, group)| std::cmp::Reverse(group.last));
        let shown = |(key, group): (&GroupKey, &Group)| {
            let key = key.clone();
            DenialGroup {
                server: key.server,
                layer: key.layer,
                rule: key.rule,
                principal: key.principal,
                method: key.method,
                target: key.target,
                reason: group.reason,
                count: group.count,
                first: clock::text(group.first),
                last: clock::text(group.last),
                line: None,
            }
        };
        found.into_iter().map(shown).collect()
    }

    /// The number of refusals.
    pub(crate) fn total(&self) -> u64 {
        self.0.lock().values().map(|group| group.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(number: usize) -> GroupKey {
        GroupKey {
            server: "team".to_owned(),
            layer: "filter".to_owned(),
            rule: None,
            principal: "anna".to_owned(),
            method: "tools/call",
            target: format!("tool{number}"),
        }
    }

    #[test]
    fn the_group_that_was_silent_for_longest_makes_room() {
        let denials = Denials::default();
        let at = |seconds: usize| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64);
        for number in 0..=MAX_GROUPS {
            denials.add(key(number), None, at(number));
        }
        denials.add(key(7), None, at(MAX_GROUPS + 1));
        let groups = denials.since(None);
        assert_eq!((groups.len(), groups[0].count, &*groups[0].target), (MAX_GROUPS, 2, "tool7"));
        assert!(groups.iter().all(|group| group.target != "tool0"));
        assert_eq!(denials.since(Some(at(MAX_GROUPS))).len(), 2);
        assert_eq!(denials.total(), MAX_GROUPS as u64 + 1);
    }
}
