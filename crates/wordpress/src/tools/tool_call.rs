//! One call of a curated tool: its requests to the site, and the interpretation of the responses.

pub(crate) mod arguments;
pub(crate) mod entities;
pub(crate) mod upload;

use creole::proto::fault::{Fault, FaultKind};
use creole::{BoxFuture, ToolError, ToolResult};
use serde_json::{Map, Value, json};

use super::spec::{ArgumentSpec, FixedValue, ListView, SiteArgumentType, ToolSpec, Verb};
use crate::login::users::SiteUser;
use crate::site::address::percent_encode;
use crate::site::platform::NAMESPACE;
use crate::site::site_error::SiteError;
use crate::site::{Site, SiteRequest, SiteResponse};
use crate::tool_result;
use crate::write_guard::{LATE_AUTH_ERROR, LATE_AUTH_NOTE};

/// One call.
pub(super) struct ToolCall<'a> {
    pub(super) spec: &'static ToolSpec,
    pub(super) site: &'a Site,
    pub(super) user: &'a SiteUser,
    pub(super) arguments: &'a Map<String, Value>,
}

impl ToolCall<'_> {
    /// Runs it.
    pub(super) async fn run(&self) -> Result<ToolResult, ToolError> {
        if !self.site.has_platform().await {
            return Err(platform_unavailable());
        }
        if self.spec.needs_visible_login && !self.site.is_login_visible(self.user).await {
            return Err(ToolError::failed(LATE_AUTH_ERROR));
        }
        self.check_entities().await?;
        let mut response = match self.spec.custom_run {
            Some(course) => course(self).await?,
            None => self.send_single_request().await?,
        };
        if self.spec.verb == Verb::Delete && is_denied(&response.body["deleted"]) {
            return Err(ToolError::failed("the site responded that nothing was deleted"));
        }
        if self.spec.is_unpaged {
            response.totals = None;
        }
        if self.spec.list_view == ListView::PerUser && !self.site.is_login_visible(self.user).await
        {
            response = response.with_note(LATE_AUTH_NOTE);
        }
        Ok(tool_result::to_tool_result(response, self.number("page").unwrap_or(1)))
    }

    /// Sends the single request that describes the tool.
    pub(super) async fn send_single_request(&self) -> Result<SiteResponse, ToolError> {
        self.request(&self.build_request()).await
    }

    /// The single request that describes the tool.
    pub(super) fn build_request(&self) -> SiteRequest {
        let ToolSpec { verb, route, .. } = *self.spec;
        let request = SiteRequest::new(verb.method(), self.path(route));
        let sent = self.members();
        match verb {
            Verb::Post | Verb::Put => request.with_body(Value::Object(sent)),
            Verb::Get | Verb::Delete => sent.iter().fold(request, |request, (key, value)| {
                request.with_query(key, to_query_text(value))
            }),
        }
    }

    /// The route with the values of its arguments.
    pub(super) fn path(&self, route: &str) -> String {
        let mut path = String::new();
        for part in route.split('/').skip(1) {
            path.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => percent_encode(&to_query_text(&self.arguments[name]), &mut path),
                None => path.push_str(part),
            }
        }
        path
    }

    /// The values outside of the route.
    fn members(&self) -> Map<String, Value> {
        let given = |given: FixedValue| match given {
            FixedValue::CallerId => json!(self.user.id),
            FixedValue::Number(number) => json!(number),
            FixedValue::Text(text) => json!(text),
            FixedValue::Flag(flag) => json!(flag),
        };
        let mut sent = Map::new();
        for (key, value) in self.spec.fixed_values {
            sent.insert((*key).to_owned(), given(*value));
        }
        let in_route = |it: &&ArgumentSpec| !self.spec.route.contains(&format!("{{{}}}", it.name));
        for argument in self.spec.arguments.iter().filter(in_route) {
            let Some(key) = argument.sent_as else { continue };
            let item = self.arguments.get(argument.name);
            let value = item.map(|value| match (argument.kind, value) {
                (SiteArgumentType::ZeroOrOne, Value::Bool(flag)) => json!(u8::from(*flag)),
                (_, value) => value.clone(),
            });
            if let Some(value) = value.or_else(|| argument.default.map(given)) {
                sent.insert(key.to_owned(), value);
            }
        }
        sent
    }

    /// Sends a request as the caller. A refusal becomes an error message of this tool.
    pub(super) async fn request(&self, received: &SiteRequest) -> Result<SiteResponse, ToolError> {
        match self.try_request(received).await {
            Ok(response) => Ok(response),
            Err(error) => Err(self.to_tool_error(error, received.is_write()).await),
        }
    }

    /// The same, where a refusal may be the expected outcome.
    pub(super) async fn try_request(
        &self,
        request: &SiteRequest,
    ) -> Result<SiteResponse, SiteError> {
        self.site.request(Some(&self.user.credentials), request).await
    }

    /// The error for the model.
    pub(super) async fn to_tool_error(&self, error: SiteError, is_write: bool) -> ToolError {
        let SiteError::Refused(refusal) = &error else {
            return ToolError::failed(error.to_message(is_write));
        };
        if refusal.is_missing_route() {
            return self.missing_route_error().await;
        }
        if refusal.status == 401 {
            self.site.inner.users.forget(self.user);
        }
        let message = match self.not_found_message(refusal) {
            Some(message) => message,
            None => error.to_message(is_write),
        };
        let is_forbidden =
            refusal.code == "bp_rest_authorization_required" && matches!(refusal.status, 401 | 403);
        if is_forbidden && !self.site.is_login_visible(self.user).await {
            return ToolError::failed(format!("{message}; {LATE_AUTH_ERROR}"));
        }
        // For a missing activity, the platform responds that access is denied.
        match self.number("id").filter(|_| is_forbidden && self.spec.noun == "Activity") {
            Some(id) => {
                ToolError::failed(format!("{message}; there may be no activity with ID {id}"))
            }
            None => ToolError::failed(message),
        }
    }

    /// The error for a missing route: the platform or the component that this tool needs is inactive.
    async fn missing_route_error(&self) -> ToolError {
        if !self.site.refresh_platform().await {
            return platform_unavailable();
        }
        let route = self.spec.route.trim_start_matches('/').trim_start_matches(NAMESPACE);
        let component = route.split('/').nth(1).unwrap_or_default();
        ToolError::failed(format!("the {component} component is not active on this site"))
    }

    /// A numeric argument.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.arguments.get(name)?.as_u64()
    }

    /// A boolean argument.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.arguments.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// A text argument.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name)?.as_str()
    }
}

/// The message for a missing entity.
pub(super) fn not_found(noun: &str, id: u64) -> String {
    format!("{noun} with ID {id} not found")
}

/// Deletes the entity of the route and verifies it: the platform reports success in any case.
pub(super) fn delete_and_verify<'a>(
    call: &'a ToolCall<'a>,
) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let deleted = call.send_single_request().await?;
        let request = SiteRequest::get(call.path(call.spec.route));
        match call.try_request(&request).await {
            Ok(item) if item.body["status"] != "trash" && item.body["id"] != 0 => {
                Err(ToolError::failed("the site reported success, but it is still there"))
            }
            _ => Ok(deleted),
        }
    })
}

/// Whether the site reports that something was not done; silence is no denial.
fn is_denied(deleted: &Value) -> bool {
    match deleted {
        Value::Bool(flag) => !flag,
        Value::Array(all) => all.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A number of the site, which may be encoded as text.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The error for an inactive platform.
fn platform_unavailable() -> ToolError {
    let detail = "the site has no BuddyBoss platform; activate it there";
    ToolError::Fault(Box::new(Fault::new(FaultKind::BackendUnavailable, detail)))
}

/// A value as a query parameter of the site.
fn to_query_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(to_query_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
