//! One call of a curated tool: what is sent to the site, and what its answer means.

use creole::proto::fault::{Fault, FaultKind};
use creole::{BoxFuture, ToolError, ToolResult};
use serde_json::{Map, Value, json};

use super::spec::{Argument, Given, Kind, Spec, Verb, View};
use crate::wordpress::address::percent;
use crate::wordpress::answer;
use crate::wordpress::guard::{LATE, LATE_VIEW};
use crate::wordpress::platform::NAMESPACE;
use crate::wordpress::site::{Answered, Asked, Site};
use crate::wordpress::trouble::Trouble;
use crate::wordpress::visitors::Visitor;

/// One call.
pub(super) struct Errand<'a> {
    pub(super) spec: &'static Spec,
    pub(super) site: &'a Site,
    pub(super) visitor: &'a Visitor,
    pub(super) arguments: &'a Map<String, Value>,
}

impl Errand<'_> {
    /// Runs it.
    pub(super) async fn run(&self) -> Result<ToolResult, ToolError> {
        if !self.site.has_platform().await {
            return Err(unavailable());
        }
        if self.spec.needs_early && !self.site.is_early(self.visitor).await {
            return Err(ToolError::failed(LATE));
        }
        self.find_things().await?;
        let mut answered = match self.spec.course {
            Some(course) => course(self).await?,
            None => self.plain().await?,
        };
        if self.spec.verb == Verb::Delete && is_denied(&answered.body["deleted"]) {
            return Err(ToolError::failed("the site answered that nothing was deleted"));
        }
        if self.spec.is_whole {
            answered.extent = None;
        }
        if self.spec.view == View::Own && !self.site.is_early(self.visitor).await {
            answered = answered.note(LATE_VIEW);
        }
        Ok(answer::result(answered, self.number("page").unwrap_or(1)))
    }

    /// Sends the one request that the tool is described by.
    pub(super) async fn plain(&self) -> Result<Answered, ToolError> {
        self.ask(&self.request()).await
    }

    /// The request that the tool is described by.
    pub(super) fn request(&self) -> Asked {
        let Spec { verb, route, .. } = *self.spec;
        let asked = Asked::new(verb.method(), self.path(route));
        let sent = self.sent();
        match verb {
            Verb::Post | Verb::Put => asked.body(Value::Object(sent)),
            Verb::Get | Verb::Delete => {
                sent.iter().fold(asked, |asked, (key, value)| asked.with(key, in_query(value)))
            }
        }
    }

    /// The route with the values of its arguments.
    pub(super) fn path(&self, route: &str) -> String {
        let mut path = String::new();
        for part in route.split('/').skip(1) {
            path.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => percent(&in_query(&self.arguments[name]), &mut path),
                None => path.push_str(part),
            }
        }
        path
    }

    /// What is sent besides the route.
    fn sent(&self) -> Map<String, Value> {
        let given = |given: Given| match given {
            Given::Me => json!(self.visitor.id),
            Given::Number(number) => json!(number),
            Given::Text(text) => json!(text),
            Given::Flag(flag) => json!(flag),
        };
        let mut sent = Map::new();
        for (key, value) in self.spec.fixed {
            sent.insert((*key).to_owned(), given(*value));
        }
        let in_route = |it: &&Argument| !self.spec.route.contains(&format!("{{{}}}", it.name));
        for argument in self.spec.arguments.iter().filter(in_route) {
            let Some(key) = argument.sent_as else { continue };
            let written = self.arguments.get(argument.name);
            let value = written.map(|value| match (argument.kind, value) {
                (Kind::Bit, Value::Bool(flag)) => json!(u8::from(*flag)),
                (_, value) => value.clone(),
            });
            if let Some(value) = value.or_else(|| argument.default.map(given)) {
                sent.insert(key.to_owned(), value);
            }
        }
        sent
    }

    /// Asks the site as the caller; a refusal is told in the words of this tool.
    pub(super) async fn ask(&self, asked: &Asked) -> Result<Answered, ToolError> {
        match self.try_ask(asked).await {
            Ok(answered) => Ok(answered),
            Err(trouble) => Err(self.told(trouble, asked.is_write()).await),
        }
    }

    /// The same, where a refusal may be what is wanted.
    pub(super) async fn try_ask(&self, asked: &Asked) -> Result<Answered, Trouble> {
        self.site.ask(Some(&self.visitor.proof), asked).await
    }

    /// What the model is told.
    pub(super) async fn told(&self, trouble: Trouble, is_write: bool) -> ToolError {
        let Trouble::Refused(refusal) = &trouble else {
            return ToolError::failed(trouble.told(is_write));
        };
        if refusal.is_no_route() {
            return self.no_route().await;
        }
        if refusal.status == 401 {
            self.site.shared.visitors.forget(self.visitor);
        }
        let told = match self.unknown(refusal) {
            Some(told) => told,
            None => trouble.told(is_write),
        };
        let is_forbidden =
            refusal.code == "bp_rest_authorization_required" && matches!(refusal.status, 401 | 403);
        if is_forbidden && !self.site.is_early(self.visitor).await {
            return ToolError::failed(format!("{told}; {LATE}"));
        }
        // Of an activity that is not there, the platform says that it may not be seen.
        match self.number("id").filter(|_| is_forbidden && self.spec.noun == "Activity") {
            Some(id) => ToolError::failed(format!("{told}; there may be no activity with ID {id}")),
            None => ToolError::failed(told),
        }
    }

    /// A route that is not there: the platform is gone, or the part of it that this tool needs.
    async fn no_route(&self) -> ToolError {
        if !self.site.look_for_platform().await {
            return unavailable();
        }
        let route = self.spec.route.trim_start_matches('/').trim_start_matches(NAMESPACE);
        let component = route.split('/').nth(1).unwrap_or_default();
        ToolError::failed(format!("the {component} component is not active on this site"))
    }

    /// An argument that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.arguments.get(name)?.as_u64()
    }

    /// An argument that is yes or no.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.arguments.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// An argument that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name)?.as_str()
    }
}

/// The sentence for something that is not there.
pub(super) fn not_found(noun: &str, id: u64) -> String {
    format!("{noun} with ID {id} not found")
}

/// Deletes what the route names, and looks whether it is gone: the platform says so in any case.
pub(super) fn deleted<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let deleted = errand.plain().await?;
        let look = Asked::get(errand.path(errand.spec.route));
        match errand.try_ask(&look).await {
            Ok(item) if item.body["status"] != "trash" && item.body["id"] != 0 => {
                Err(ToolError::failed("the site says that it is done, but it is still there"))
            }
            _ => Ok(deleted),
        }
    })
}

/// Whether the site says that something was not done; saying nothing is no denial.
fn is_denied(deleted: &Value) -> bool {
    match deleted {
        Value::Bool(flag) => !flag,
        Value::Array(all) => all.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A number of the site, which it may write as a text.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The platform is not active.
fn unavailable() -> ToolError {
    let detail = "the site has no BuddyBoss platform; activate it there";
    ToolError::Fault(Box::new(Fault::new(FaultKind::BackendUnavailable, detail)))
}

/// A value as the site reads it behind an address.
fn in_query(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(in_query).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
