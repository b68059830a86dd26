//! The laws of the stream: which message may be sent to which client, and when.

use creole::proto::model::{Level, TASKS_EXTENSION};
use creole::proto::operation::subscription_covers;
use creole::proto::wire::meta;
use serde_json::Value;

use super::sent::OpenMessage;
use super::{Referee, Version};

/// Whether a result contains a task.
pub(super) fn is_task(open: &OpenMessage, result: &Value) -> bool {
    let is_call = open.method == "tools/call";
    is_call
        && if open.stateless {
            result["resultType"] == "task"
        } else {
            result.get("task").is_some()
        }
}

/// The methods whose result may contain input requests (2026-07-28 basic/patterns/mrtr).
const MAY_ASK: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];

impl Referee {
    /// Removes the message that a response belongs to from the open ones.
    ///
    /// Of several with one id, the first gets the result. The others were rejected because of it.
    pub(super) fn take_open(
        &mut self,
        id: Option<&str>,
        failed: bool,
    ) -> Result<OpenMessage, String> {
        let same = |open: &OpenMessage| open.id.as_deref() == id;
        let found = match failed {
            true => self.open.iter().rposition(|open| same(open) && !open.cancelled),
            false => None,
        };
        let found = found.or_else(|| self.find_open(same));
        // A message can be rejected as a whole, so that even a readable id is not repeated.
        let unreadable = || if id.is_none() { self.open.len().checked_sub(1) } else { None };
        match found.or_else(unreadable) {
            Some(offset) => Ok(self.open.remove(offset)),
            None => match id {
                Some(id) => Err(format!("a response to {id}, which is not a pending request")),
                None => {
                    Err("an error without an id, but no message waits for a response".to_owned())
                }
            },
        }
    }

    /// The first open message that matches. A cancelled one only if there is no other.
    pub(super) fn find_open(&self, fits: impl Fn(&OpenMessage) -> bool) -> Option<usize> {
        let wanted = self.open.iter().position(|open| !open.cancelled && fits(open));
        wanted.or_else(|| self.open.iter().rposition(fits))
    }

    /// Checks an input request.
    pub(super) fn check_request(
        &self,
        method: &str,
        id: &str,
        message: &Value,
    ) -> Result<(), String> {
        if self.session.version == Version::Open {
            return Err("a request to a client without a handshake".to_owned());
        }
        if self.asked.iter().any(|asked| asked == id) {
            return Err(format!("two requests of the server have the id {id}"));
        }
        let needed: &[&str] = match (method, message["params"]["mode"].as_str()) {
            ("elicitation/create", Some("url")) => &["elicitation", "url"],
            ("elicitation/create", _) => &["elicitation"],
            ("sampling/createMessage", _) => &["sampling"],
            ("roots/list", _) => &["roots"],
            _ => &[],
        };
        let declared = needed.iter().try_fold(&self.session.client, |within, key| within.get(key));
        match declared {
            Some(Value::Null | Value::Bool(false)) if !needed.is_empty() => None,
            other => other,
        }
        .map(|_| ())
        .ok_or_else(|| format!("the client did not declare {}", needed.join(".")))
    }

    /// Checks a result beyond its shape.
    pub(super) fn check_result(
        &mut self,
        open: &OpenMessage,
        result: &Value,
    ) -> Result<(), String> {
        if open.stateless && result["resultType"] == "input_required" {
            return match MAY_ASK.contains(&open.method.as_str()) {
                true => Ok(()),
                false => Err(format!("the result of {} must not request input", open.method)),
            };
        }
        if is_task(open, result) {
            return check_task(open);
        }
        match open.method.as_str() {
            "tasks/result" if !open.stateless => check_related(open, result),
            "logging/setLevel" if !open.stateless => {
                self.session.level = open.params["level"].as_str().and_then(Level::from_name);
                Ok(())
            }
            "subscriptions/listen" if open.acknowledged.is_none() => {
                Err("a subscription ended with success but was never acknowledged".to_owned())
            }
            "subscriptions/listen" if !open.has_id(&result["_meta"][meta::SUBSCRIPTION_ID]) => {
                Err("the response to a subscription does not have its id".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Checks a notification. Returns whether it belongs to the stateless era.
    pub(super) fn check_notification(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<bool, String> {
        let subscription = &params["_meta"][meta::SUBSCRIPTION_ID];
        match method {
            "notifications/cancelled" => self.check_withdrawal(params).map(|()| false),
            "notifications/progress" => self.check_progress(params),
            "notifications/message" => self.check_log(params),
            _ if !subscription.is_null() => {
                self.check_subscribed(method, params, subscription).map(|()| true)
            }
            "notifications/subscriptions/acknowledged" => {
                Err("an acknowledgement does not have the id of its subscription".to_owned())
            }
            _ => self.check_announced(method, params).map(|()| false),
        }
    }

    /// A server withdraws only its own requests.
    fn check_withdrawal(&mut self, params: &Value) -> Result<(), String> {
        let id = params["requestId"].to_string();
        match self.asked.iter().position(|asked| *asked == id) {
            Some(offset) => drop(self.asked.remove(offset)),
            None => {
                return Err(format!(
                    "it cancels {id}, which is not a pending request of the server"
                ));
            }
        }
        Ok(())
    }

    fn check_progress(&mut self, params: &Value) -> Result<bool, String> {
        let token = &params["progressToken"];
        let offset = self.find_open(|open| open.meta(meta::PROGRESS_TOKEN) == token);
        let offset =
            offset.ok_or_else(|| format!("no pending request has the progress token {token}"))?;
        let open = &mut self.open[offset];
        let progress = params["progress"].as_f64().ok_or("`progress` must be a number")?;
        if open.last_progress.is_some_and(|last| progress <= last) {
            return Err(format!("progress under {token} does not increase"));
        }
        open.last_progress = Some(progress);
        Ok(open.stateless)
    }

    fn check_log(&self, params: &Value) -> Result<bool, String> {
        let name = params["level"].as_str().unwrap_or_default();
        let level = Level::from_name(name).ok_or_else(|| format!("{name:?} is not a log level"))?;
        let wants = |open: &&OpenMessage| {
            open.stateless && open.level.is_some_and(|min_level| level >= min_level)
        };
        if self.open.iter().any(|open| wants(&open)) {
            return Ok(true);
        }
        if !self.session.used {
            return Err(format!("no pending request wants log messages of level {name}"));
        }
        let min_level =
            |min_level: Option<Level>| min_level.is_none_or(|min_level| level >= min_level);
        let waiting = self.open.iter().filter(|open| !open.stateless);
        if !min_level(self.session.level) && !waiting.map(|open| open.level).any(min_level) {
            return Err(format!("the client requested no log messages of level {name}"));
        }
        match self.session.version == Version::Open || self.session.server.get("logging").is_some()
        {
            true => Ok(false),
            false => Err("a log message of a server that declared no logging".to_owned()),
        }
    }

    fn check_subscribed(
        &mut self,
        method: &str,
        params: &Value,
        subscription: &Value,
    ) -> Result<(), String> {
        let is_match = |open: &OpenMessage| {
            open.stateless && open.method == "subscriptions/listen" && open.has_id(subscription)
        };
        let offset = self.find_open(is_match);
        let offset = offset.ok_or_else(|| format!("no subscription has the id {subscription}"))?;
        let open = &mut self.open[offset];
        if method == "notifications/subscriptions/acknowledged" {
            if open.acknowledged.is_some() {
                return Err(format!("the subscription {subscription} is acknowledged twice"));
            }
            let granted = params["notifications"].clone();
            check_filter(&granted, &open.params["notifications"])?;
            open.acknowledged = Some(granted);
            return Ok(());
        }
        let Some(granted) = &open.acknowledged else {
            return Err(format!("the subscription {subscription} is not acknowledged yet"));
        };
        match is_wanted(method, params, granted) {
            true => Ok(()),
            false => Err(format!("the subscription {subscription} does not include {method}")),
        }
    }

    /// Checks a notification to a session, which needs no subscription of the stateless era.
    fn check_announced(&self, method: &str, params: &Value) -> Result<(), String> {
        if self.session.version == Version::Open {
            return Err(format!("{method} without a handshake and without a subscription"));
        }
        let parts: Vec<&str> = method.split('/').collect();
        match parts.as_slice() {
            ["notifications", list, "list_changed"]
                if self.session.server[*list]["listChanged"] != true =>
            {
                Err(format!("the server did not declare `listChanged` of {list}"))
            }
            ["notifications", "resources", "updated"] => {
                let uri = params["uri"].as_str().unwrap_or_default();
                match self.session.watched.iter().any(|watched| subscription_covers(watched, uri)) {
                    true => Ok(()),
                    false => Err(format!("{uri} has no subscription")),
                }
            }
            _ => Ok(()),
        }
    }
}

/// A task goes only to a client that can follow it: one that requested it (2025-11-25 basic/utilities/tasks), or one
/// that declares the extension in this request (SEP-2663, capability negotiation).
fn check_task(open: &OpenMessage) -> Result<(), String> {
    let declared = &open.meta(meta::CLIENT_CAPABILITIES)["extensions"][TASKS_EXTENSION];
    let may = if open.stateless { declared.is_object() } else { open.params["task"].is_object() };
    if may { Ok(()) } else { Err("a task for a client that cannot follow it".to_owned()) }
}

/// The result of a task must name the task (2025-11-25 basic/utilities/tasks, related task metadata).
fn check_related(open: &OpenMessage, result: &Value) -> Result<(), String> {
    match result["_meta"][meta::RELATED_TASK]["taskId"] == open.params["taskId"] {
        true => Ok(()),
        false => Err("the result of a task does not name the task".to_owned()),
    }
}

/// The acknowledged filter must be a part of the requested one.
fn check_filter(granted: &Value, expected: &Value) -> Result<(), String> {
    for (key, value) in granted.as_object().into_iter().flatten() {
        let fair = match (value, &expected[key]) {
            (Value::Array(given), Value::Array(requests)) => {
                given.iter().all(|uri| requests.contains(uri))
            }
            (item, request) => item == request || *item == Value::Bool(false),
        };
        if !fair {
            return Err(format!("`{key}` is acknowledged, but was not requested"));
        }
    }
    Ok(())
}

fn is_wanted(method: &str, params: &Value, granted: &Value) -> bool {
    match method {
        "notifications/tools/list_changed" => granted["toolsListChanged"] == true,
        "notifications/prompts/list_changed" => granted["promptsListChanged"] == true,
        "notifications/resources/list_changed" => granted["resourcesListChanged"] == true,
        "notifications/resources/updated" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            let watched = granted["resourceSubscriptions"].as_array().into_iter().flatten();
            watched.filter_map(Value::as_str).any(|watched| subscription_covers(watched, uri))
        }
        "notifications/tasks" => {
            let followed = granted["taskIds"].as_array().into_iter().flatten();
            followed.into_iter().any(|id| *id == params["taskId"])
        }
        _ => false,
    }
}
