//! A tool that asks a service for one operation.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole::client::http::fetch::{Fetcher, Reach};
use creole::proto::wire::Raw;
use creole::{BoxFuture, Context, Tool, ToolError, ToolResult};
use http::{Response, StatusCode};
use serde_json::{Map, Value};

use super::grant::{Grant, Tokens};
use super::request::{Common, Operation};
use super::security::Credential;
use crate::recipe::argument::Values;
use crate::recipe::http::{Answer, Auth, answer, send};
use crate::recipe::secret::Secret;
use crate::recipe::tool::Hints;

/// One tool of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiTool {
    /// The name that clients call it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub about: String,
    /// The schema of its arguments.
    pub schema: Raw,
    /// What it does to the world.
    pub hints: Hints,
    /// How the service is asked.
    pub operation: Operation,
}

/// How a service is asked, whatever the operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Where the service is.
    pub base: String,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// What is shown at every door.
    pub auth: Option<Auth>,
    /// How often a request that may be repeated is tried again.
    pub retries: u32,
    /// Whether the name of the host may lead to addresses that are not public.
    pub allow_private: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes a result may have.
    pub longest: usize,
}

/// A service that is ready to be asked.
pub(super) struct Service {
    pub(super) terms: Terms,
    pub(super) fetcher: Fetcher,
    pub(super) reach: Reach,
    pub(super) tokens: Tokens,
}

impl ApiTool {
    /// The tool itself: the one at this place of the list.
    pub(super) fn make(tools: &Arc<[Self]>, index: usize, service: &Arc<Service>) -> Option<Tool> {
        let (all, service) = (Arc::clone(tools), Arc::clone(service));
        let run = move |arguments: Value, _: Context| -> BoxFuture<'static, _> {
            let (all, service) = (Arc::clone(&all), Arc::clone(&service));
            Box::pin(async move {
                match all.get(index) {
                    Some(tool) => service.call(&tool.operation, arguments).await,
                    None => Err(ToolError::failed("it is not there any more")),
                }
            })
        };
        let it = tools.get(index)?;
        let mut tool = Tool::raw(&it.name, &it.about, it.schema.clone(), run);
        if let Some(title) = &it.title {
            tool = tool.title(title);
        }
        Some(tool.hints(|hints| it.hints.tell(hints)))
    }
}

impl Service {
    async fn call(&self, operation: &Operation, arguments: Value) -> Result<ToolResult, ToolError> {
        let terms = &self.terms;
        let work = self.asked(operation, arguments);
        let answer = tokio::time::timeout(terms.timeout, work).await.unwrap_or_else(|_| {
            let seconds = terms.timeout.as_secs();
            Err(ToolError::failed(format!("it took longer than {seconds} s and was ended")))
        })?;
        let values = Values::new(&[], Value::Null);
        answer::shape(&Answer::default(), &answer, &values, terms.longest, None)
    }

    async fn asked(
        &self,
        operation: &Operation,
        arguments: Value,
    ) -> Result<Response<Bytes>, ToolError> {
        let terms = &self.terms;
        let values = match arguments {
            Value::Object(values) => values,
            _ => Map::new(),
        };
        let mut tokens = Vec::new();
        for grant in operation.grants() {
            tokens.push(self.tokens.get(grant, self.reach).await?);
        }
        let common =
            Common { base: &terms.base, headers: &terms.headers, auth: terms.auth.as_ref() };
        let (sent, secrets) = operation.build(&common, &values, &tokens)?;
        let retries = if operation.verb.is_idempotent() { terms.retries } else { 0 };
        let answer = send::answered(&self.fetcher, &sent, retries, terms.longest).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            // A token may have been taken back before its time.
            for grant in operation.grants() {
                self.tokens.forget(grant).await;
            }
        }
        send::welcomed(answer, &secrets)
    }
}

impl Operation {
    /// What tokens have to be fetched for.
    fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.credentials.iter().filter_map(|credential| match credential {
            Credential::Client(grant) => Some(grant),
            _ => None,
        })
    }
}
