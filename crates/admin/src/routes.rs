//! The table of routes: method, path, role, and the types of body and answer.

use std::future::Future;
use std::sync::Arc;

use creole::BoxFuture;
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::Admin;
use crate::http::problem::Problem;
use crate::http::reply::Reply;
use crate::request::ApiRequest;
use crate::settings::Role;

/// Makes the schema of a type.
pub(crate) type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

type RouteHandler =
    Box<dyn Fn(Arc<Admin>, ApiRequest) -> BoxFuture<'static, Result<Reply, Problem>> + Send + Sync>;

/// What a route answers with.
pub(crate) enum Answer {
    /// One JSON document.
    Json(StatusCode, MakeSchema),
    /// A status without a body.
    NoContent,
    /// A stream of these events.
    Events(&'static [(&'static str, MakeSchema)]),
    /// A document, or a stream of these events for clients that accept one.
    JsonOrEvents(MakeSchema, &'static [(&'static str, MakeSchema)]),
}

/// One route.
pub(crate) struct Route {
    /// The method.
    pub(crate) method: Method,
    /// The path after `/api/v1`, with placeholders such as `{upstream}`.
    pub(crate) path: &'static str,
    /// The role that it needs. `None`: no credential.
    pub(crate) role: Option<Role>,
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    /// The names that its query may have.
    pub(crate) query: &'static [&'static str],
    /// The type of its body.
    pub(crate) body: Option<MakeSchema>,
    /// What it answers with.
    pub(crate) answer: Answer,
    handler: RouteHandler,
}

impl Route {
    /// A route with a handler that makes its reply itself.
    pub(crate) fn new<H, F>(
        (method, path): (Method, &'static str),
        role: impl Into<Option<Role>>,
        summary: &'static str,
        answer: Answer,
        handler: H,
    ) -> Self
    where
        H: Fn(Arc<Admin>, ApiRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        let handler: RouteHandler =
            Box::new(move |admin, request| Box::pin(handler(admin, request)));
        let role = role.into();
        Self { method, path, role, summary, query: &[], body: None, answer, handler }
    }

    /// A route that reads, and answers with a document.
    pub(crate) fn get<T, H, F>(
        path: &'static str,
        role: Role,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        T: Serialize + JsonSchema + 'static,
        H: Fn(Arc<Admin>, ApiRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let answer = Answer::Json(StatusCode::OK, schema::<T>);
        let reply = move |admin, request| {
            let answer = handler(admin, request);
            async move { Reply::json(StatusCode::OK, &answer.await?) }
        };
        Self::new((Method::GET, path), role, summary, answer, reply)
    }

    /// A route that takes a document, and answers with one.
    pub(crate) fn post<B, T, H, F>(
        path: &'static str,
        role: impl Into<Option<Role>>,
        status: StatusCode,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        B: JsonSchema + 'static,
        T: Serialize + JsonSchema + 'static,
        H: Fn(Arc<Admin>, ApiRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let reply = move |admin, request| {
            let answer = handler(admin, request);
            async move { Reply::json(status, &answer.await?) }
        };
        let answer = Answer::Json(status, schema::<T>);
        Self::new((Method::POST, path), role, summary, answer, reply).body::<B>()
    }

    /// A route that changes something, and answers with a status alone.
    pub(crate) fn act<H, F>(
        method: Method,
        path: &'static str,
        role: Role,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Fn(Arc<Admin>, ApiRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Problem>> + Send + 'static,
    {
        let reply = move |admin, request| {
            let done = handler(admin, request);
            async move { done.await.map(|()| Reply::no_content()) }
        };
        Self::new((method, path), role, summary, Answer::NoContent, reply)
    }

    /// The same with a body of this type.
    pub(crate) fn body<B: JsonSchema>(mut self) -> Self {
        self.body = Some(schema::<B>);
        self
    }

    /// The same with these names in its query.
    pub(crate) fn query(mut self, names: &'static [&'static str]) -> Self {
        self.query = names;
        self
    }

    /// The values of the placeholders, if the path is this route's.
    pub(crate) fn matches(&self, path: &[String]) -> Option<Vec<String>> {
        let mut expected = self.path.split('/').skip(1);
        let mut names = Vec::new();
        for part in path {
            let pattern = expected.next()?;
            if pattern.starts_with('{') {
                names.push(part.clone());
            } else if pattern != part {
                return None;
            }
        }
        expected.next().is_none().then_some(names)
    }

    /// Handles a request.
    pub(crate) async fn run(
        &self,
        admin: Arc<Admin>,
        request: ApiRequest,
    ) -> Result<Reply, Problem> {
        (self.handler)(admin, request).await
    }
}

/// The schema of a type.
pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
