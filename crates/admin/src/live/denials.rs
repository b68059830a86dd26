//! Refused calls and refused requests of clients, grouped by layer, rule, principal and target.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::SystemTime;

use ::http::StatusCode;
use creole::internal::sync::Mutex;
use creole::internal::telemetry::{CallOutcome, CallRecord, RefusedClientRequest};
use creole_proto::fault::FaultKind;
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock;
use crate::live::call::refusing_layer;

/// Maximum number of groups of calls and of requests. Beyond it, the one that was silent for longest goes. Strangers
/// cause refused requests, so these have groups of their own.
const MAX_GROUPS: usize = 1000;
const MAX_REQUEST_GROUPS: usize = 200;
/// Maximum length of a text of a request in characters.
const MAX_TEXT: usize = 200;
/// The layer of calls whose access token lacks a scope, of requests without a right credential, and of requests with a
/// wrong host or origin.
const SCOPES: &str = "scopes";
const AUTH: &str = "auth";
const GUARD: &str = "guard";

/// Refused calls and requests.
#[derive(Default)]
pub(crate) struct Denials {
    calls: Mutex<Groups>,
    requests: Mutex<Groups>,
}

type Groups = HashMap<GroupKey, Group>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct GroupKey {
    server: String,
    layer: String,
    rule: Option<String>,
    principal: Option<String>,
    remote: Option<IpAddr>,
    method: String,
    target: String,
}

struct Group {
    reason: Option<String>,
    count: u64,
    first: SystemTime,
    last: SystemTime,
}

/// A group of refused calls or requests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DenialGroup {
    /// The server. Empty for a request that was refused before its server was known.
    server: String,
    /// The layer that refused. `auth`: the credential. `guard`: the host or the origin. `scopes`: the access token.
    pub(crate) layer: String,
    /// The rule of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Who was refused, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// The address of a client that was refused before it could call.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<String>,
    /// The method of the call, or the method of HTTP.
    method: String,
    /// The tool, prompt or URI, or the path of the request.
    target: String,
    /// The kind of the fault that the client got, `tool_error` for a result, or why the request was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How often.
    pub(crate) count: u64,
    /// When first.
    first: String,
    /// When last.
    last: String,
    /// The line of the rule in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
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
        let fault = match end.outcome {
            CallOutcome::Fault(kind, _) => Some(kind),
            _ => None,
        };
        let rule = end.denied_by.as_deref().map(str::to_owned);
        let of_scopes = || {
            let lacks_scope = rule.is_none() && fault == Some(FaultKind::InsufficientScope);
            lacks_scope.then(|| SCOPES.to_owned())
        };
        let of_policy = || rule.as_ref().map(|_| "policy".to_owned());
        let layer = refusing_layer(record, &record.steps());
        let Some(layer) = layer.or_else(of_policy).or_else(of_scopes) else { return };
        let key = GroupKey {
            server: record.server.to_string(),
            layer,
            rule,
            principal: Some(record.principal.id().to_owned()),
            remote: None,
            method: record.method.to_owned(),
            target: record.target.to_string(),
        };
        let reason = Some(fault.map_or(end.outcome.name(), |kind| kind.name()).to_owned());
        add(&mut self.calls.lock(), MAX_GROUPS, key, reason, SystemTime::now());
    }

    /// Counts a request that was refused.
    pub(crate) fn read_request(&self, request: &RefusedClientRequest<'_>) {
        let is_auth = request.status == StatusCode::UNAUTHORIZED || request.principal.is_some();
        let short = |text: &str| text.chars().take(MAX_TEXT).collect::<String>();
        let key = GroupKey {
            server: String::new(),
            layer: if is_auth { AUTH } else { GUARD }.to_owned(),
            rule: None,
            principal: request.principal.map(str::to_owned),
            remote: request.remote,
            method: short(request.method),
            target: short(request.path),
        };
        let reason = Some(format!("{}: {}", request.status, short(request.reason)));
        let mut groups = self.requests.lock();
        add(&mut groups, MAX_REQUEST_GROUPS, key, reason, SystemTime::now());
    }

    /// The groups with a refusal since then, the newest first.
    pub(crate) fn since(&self, since: Option<SystemTime>) -> Vec<DenialGroup> {
        let recent = |group: &Group| since.is_none_or(|since| group.last >= since);
        let mut found = Vec::new();
        for groups in [&self.calls, &self.requests] {
            let groups = groups.lock();
            let matching = groups.iter().filter(|(_, group)| recent(group));
            found.extend(matching.map(|(key, group)| (group.last, DenialGroup::new(key, group))));
        }
        found.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
        found.into_iter().map(|(_, group)| group).collect()
    }

    /// The number of refusals.
    pub(crate) fn total(&self) -> u64 {
        let sum = |groups: &Mutex<Groups>| -> u64 {
            groups.lock().values().map(|group| group.count).sum()
        };
        sum(&self.calls) + sum(&self.requests)
    }
}

impl DenialGroup {
    fn new(key: &GroupKey, group: &Group) -> Self {
        let key = key.clone();
        Self {
            server: key.server,
            layer: key.layer,
            rule: key.rule,
            principal: key.principal,
            remote: key.remote.map(|remote| remote.to_canonical().to_string()),
            method: key.method,
            target: key.target,
            reason: group.reason.clone(),
            count: group.count,
            first: clock::text(group.first),
            last: clock::text(group.last),
            line: None,
        }
    }
}

fn add(groups: &mut Groups, max: usize, key: GroupKey, reason: Option<String>, now: SystemTime) {
    if groups.len() >= max && !groups.contains_key(&key) {
        let oldest = groups.iter().min_by_key(|(_, group)| group.last);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            groups.remove(&oldest);
        }
    }
    let empty = Group { reason: None, count: 0, first: now, last: now };
    let group = groups.entry(key).or_insert(empty);
    group.count += 1;
    group.last = now;
    group.reason = reason;
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
            principal: Some("anna".to_owned()),
            remote: None,
            method: "tools/call".to_owned(),
            target: format!("tool{number}"),
        }
    }

    #[test]
    fn the_group_that_was_silent_for_longest_makes_room() {
        let denials = Denials::default();
        let at = |seconds: usize| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64);
        for number in 0..=MAX_GROUPS {
            add(&mut denials.calls.lock(), MAX_GROUPS, key(number), None, at(number));
        }
        add(&mut denials.calls.lock(), MAX_GROUPS, key(7), None, at(MAX_GROUPS + 1));
        let groups = denials.since(None);
        assert_eq!((groups.len(), groups[0].count, &*groups[0].target), (MAX_GROUPS, 2, "tool7"));
        assert!(groups.iter().all(|group| group.target != "tool0"));
        assert_eq!(denials.since(Some(at(MAX_GROUPS))).len(), 2);
        assert_eq!(denials.total(), MAX_GROUPS as u64 + 1);
    }

    #[test]
    fn strangers_cannot_drive_out_the_refusals_of_a_policy() {
        let denials = Denials::default();
        add(&mut denials.calls.lock(), MAX_GROUPS, key(1), None, SystemTime::UNIX_EPOCH);
        let long = "/".repeat(10_000);
        for number in 0..=MAX_GROUPS {
            denials.read_request(&RefusedClientRequest {
                status: 401,
                method: "POST",
                path: if number == 0 { &long } else { "/mcp" },
                reason: "unknown key",
                principal: None,
                remote: Some(IpAddr::from([10, 0, (number >> 8) as u8, number as u8])),
            });
        }
        let groups = denials.since(None);
        assert_eq!(groups.len(), MAX_REQUEST_GROUPS + 1);
        assert!(groups.iter().all(|group| group.target.len() <= MAX_TEXT));
        let request = groups.iter().find(|group| group.layer == AUTH).unwrap();
        assert_eq!(request.reason.as_deref(), Some("401: unknown key"));
        assert!(groups.iter().any(|group| group.layer == "filter"));
    }
}
