//! A tool that calls one operation of a service.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole::internal::fetch::{AllowedAddresses, Fetcher};
use creole::proto::wire::Raw;
use creole::{BoxFuture, Context, Tool, ToolError, ToolResult};
use http::{Response, StatusCode};
use serde_json::{Map, Value};

use super::request::{ApiOperation, ServiceContext};
use super::security::Credential;
use crate::openapi::security::client_credentials::{ClientCredentials, TokenCache};
use crate::recipe::argument::ArgumentValues;
use crate::recipe::http::{Auth, ResponseOptions, response, send};
use crate::recipe::secret::Secret;
use crate::recipe::tool::ToolHints;

/// One tool of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiTool {
    /// The name for clients.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// Its description for the model.
    pub about: String,
    /// The schema of its arguments.
    pub schema: Raw,
    /// The hints about its behaviour.
    pub hints: ToolHints,
    /// The request template.
    pub operation: ApiOperation,
}

/// The options of requests to a service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceOptions {
    /// The base URL of the service.
    pub base: String,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// The credentials of every request.
    pub auth: Option<Auth>,
    /// Maximum number of retries of an idempotent request.
    pub retries: u32,
    /// Whether the host name may resolve to non-public addresses.
    pub allow_private: bool,
    /// Maximum duration of a call.
    pub timeout: Duration,
    /// Maximum size of a result, in bytes.
    pub max_result_bytes: usize,
}

/// A service that is ready for calls.
pub(super) struct ApiService {
    pub(super) options: ServiceOptions,
    pub(super) fetcher: Fetcher,
    pub(super) reach: AllowedAddresses,
    pub(super) tokens: TokenCache,
}

impl ApiTool {
    /// Creates the tool at this index of the list.
    pub(super) fn make(
        tools: &Arc<[Self]>,
        index: usize,
        service: &Arc<ApiService>,
    ) -> Option<Tool> {
        let (all, service) = (Arc::clone(tools), Arc::clone(service));
        let run = move |arguments: Value, _: Context| -> BoxFuture<'static, _> {
            let (all, service) = (Arc::clone(&all), Arc::clone(&service));
            Box::pin(async move {
                match all.get(index) {
                    Some(tool) => service.call(&tool.operation, arguments).await,
                    None => Err(ToolError::failed("the operation no longer exists")),
                }
            })
        };
        let api_tool = tools.get(index)?;
        let mut tool = Tool::raw(&api_tool.name, &api_tool.about, api_tool.schema.clone(), run);
        if let Some(title) = &api_tool.title {
            tool = tool.title(title);
        }
        Some(tool.hints(|hints| api_tool.hints.apply_to(hints)))
    }
}

impl ApiService {
    async fn call(
        &self,
        operation: &ApiOperation,
        arguments: Value,
    ) -> Result<ToolResult, ToolError> {
        let options = &self.options;
        let work = self.send(operation, arguments);
        let result = tokio::time::timeout(options.timeout, work).await.unwrap_or_else(|_| {
            let seconds = options.timeout.as_secs();
            Err(ToolError::failed(format!(
                "the call took longer than {seconds} s and was cancelled"
            )))
        })?;
        let values = ArgumentValues::new(&[], Value::Null);
        response::to_tool_result(
            &ResponseOptions::default(),
            &result,
            &values,
            options.max_result_bytes,
            None,
        )
    }

    async fn send(
        &self,
        operation: &ApiOperation,
        arguments: Value,
    ) -> Result<Response<Bytes>, ToolError> {
        let options = &self.options;
        let values = match arguments {
            Value::Object(values) => values,
            _ => Map::new(),
        };
        let mut tokens = Vec::new();
        for grant in operation.client_credentials() {
            tokens.push(self.tokens.get(grant, self.reach).await?);
        }
        let common = ServiceContext {
            base: &options.base,
            headers: &options.headers,
            auth: options.auth.as_ref(),
        };
        let (sent, secrets) = operation.build(&common, &values, &tokens)?;
        let retries = if operation.verb.is_idempotent() { options.retries } else { 0 };
        let response =
            send::fetch_any_status(&self.fetcher, &sent, retries, options.max_result_bytes).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            // A token may have been revoked before its expiry.
            for grant in operation.client_credentials() {
                self.tokens.forget(grant).await;
            }
        }
        send::check_success(response, &secrets)
    }
}

impl ApiOperation {
    /// The client credentials for which tokens are fetched.
    fn client_credentials(&self) -> impl Iterator<Item = &ClientCredentials> {
        self.credentials.iter().filter_map(|credential| match credential {
            Credential::Client(grant) => Some(grant),
            _ => None,
        })
    }
}
