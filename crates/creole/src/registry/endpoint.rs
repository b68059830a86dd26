//! The registry as the endpoint of the chain: executes calls.

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{
    CacheHints, Completion, CompletionRequest, Implementation, ListKind, Reference,
};
use creole_proto::operation::{Operation, Outcome, Page, Payload, ServerInfo, SubscriptionFilter};
use creole_proto::wire::Raw;
use serde_json::{Value, json};

use super::Registry;
use super::remote::LocalOrRemote;
use super::viewer::Viewer;
use crate::call::catch_panic::{CatchPanic, CaughtPanic};
use crate::call::{Call, Context};
use crate::chain;
use crate::chain::{BoxFuture, Endpoint, ViewerClass};
use crate::item::resource::{ReadResource, Variables};
use crate::item::tool::ToolError;
use crate::principal::Principal;
use crate::schema::{Schema, Violation};
use crate::seal::cursor::Position;

impl Endpoint for Registry {
    fn call(&self, mut call: Call) -> BoxFuture<'_, Outcome> {
        if let Err(fault) = self.check_remote_arguments(&call.operation) {
            return Box::pin(ready(fault.into()));
        }
        // The outcome of an upstream needs no further processing.
        if let Some(endpoint) = self.endpoint_of(&mut call) {
            return endpoint.call_owned(call);
        }
        Box::pin(async move {
            let result = self.dispatch(call.operation, call.context).await;
            result.unwrap_or_else(Outcome::Fail)
        })
    }
}

impl Registry {
    /// Executes a call that has no upstream. Most calls are of tools: the futures of the others are on the heap, so
    /// that this one is small.
    async fn dispatch(&self, operation: Operation, context: Context) -> Result<Outcome, Fault> {
        let method = operation.method();
        let payload = match operation {
            Operation::Discover => Payload::Server(self.server_info()),
            Operation::List(kind, cursor) => Payload::Page(self.page(kind, cursor, &context)?),
            Operation::CallTool { name, arguments } => {
                return self.call_tool(&name, arguments.as_ref(), context).await;
            }
            Operation::ReadResource { uri } => {
                return Box::pin(self.read_resource(uri, context)).await;
            }
            Operation::ReadDirectory { uri, cursor } => {
                Payload::Directory(self.directory(&uri, cursor, &context)?)
            }
            Operation::GetSkill { uri } => self.skill(&uri)?,
            Operation::GetPrompt { name, arguments } => {
                return Box::pin(self.get_prompt(&name, arguments.as_ref(), context)).await;
            }
            Operation::Complete(request) => {
                Payload::Completion(Box::pin(self.complete(*request)).await?)
            }
            Operation::Subscribe { uri } => {
                self.check_offered(ListKind::Resources, method)?;
                if self.find_reader(&uri).is_none() {
                    let subscribe = Operation::Subscribe { uri };
                    return Box::pin(self.read_remote_resource(&subscribe, &context)).await;
                }
                Payload::Empty
            }
            Operation::Unsubscribe { .. } => {
                self.check_offered(ListKind::Resources, method)?;
                Payload::Empty
            }
            Operation::Listen(filter) => {
                Payload::Listening(Box::pin(self.accept_filter(filter, &context)).await?)
            }
            Operation::GetTask { .. }
            | Operation::TaskResult { .. }
            | Operation::ListTasks(_)
            | Operation::UpdateTask { .. }
            | Operation::CancelTask { .. } => {
                self.check_tasks_offered(&context, method)?;
                let class = self.viewer_class(context.principal());
                let class = class.as_deref();
                return Box::pin(self.tasks().handle_request(&operation, &context, class)).await;
            }
        };
        Ok(Outcome::Complete(payload))
    }

    /// The class of a caller, if a layer shows callers different items.
    pub(super) fn viewer_class(&self, principal: &Principal) -> Option<Arc<dyn ViewerClass>> {
        let layers = Arc::clone(self.read().tools.layers());
        chain::viewer_class(&layers, principal)
    }

    fn server_info(&self) -> ServerInfo {
        let settings = &self.shared.settings;
        ServerInfo {
            identity: self.identity(),
            capabilities: self.capabilities(),
            instructions: self.instructions(),
            cache: settings.cache,
        }
    }

    /// The identity of this server, or of the upstream that it represents.
    fn identity(&self) -> Arc<Implementation> {
        let state = self.read();
        let lent = state.remote_servers.values().find_map(|offer| offer.identity.as_ref());
        Arc::clone(lent.unwrap_or(&self.shared.settings.identity))
    }

    /// The instructions for a model, of this server and its upstreams.
    fn instructions(&self) -> Option<String> {
        let state = self.read();
        let others =
            state.remote_servers.values().filter_map(|offer| offer.instructions.as_deref());
        let all: Vec<_> =
            self.shared.settings.instructions.as_deref().into_iter().chain(others).collect();
        (!all.is_empty()).then(|| all.join("\n\n"))
    }

    /// A method of a list that the server never offered is unknown.
    pub(super) fn check_offered(&self, kind: ListKind, method: &str) -> Result<(), Fault> {
        let has = self.capabilities();
        let (name, offered) = match kind {
            ListKind::Tools => ("tools", has.tools),
            ListKind::Resources | ListKind::Templates => ("resources", has.resources),
            ListKind::Prompts => ("prompts", has.prompts),
            ListKind::Skills => ("skills", has.skills),
        };
        if offered || self.shared.settings.dialect.shows_capability(name, false) {
            return Ok(());
        }
        Err(Fault::new(FaultKind::MethodNotFound, format!("this server has no {name}"))
            .with_subject(method))
    }

    fn page(
        &self,
        kind: ListKind,
        cursor: Option<String>,
        context: &Context,
    ) -> Result<Page, Fault> {
        self.check_offered(kind, Operation::List(kind, None).method())?;
        let settings = &self.shared.settings;
        let size = if settings.dialect.paging { settings.page_size } else { usize::MAX };
        let (sealer, principal, list) =
            (&settings.sealer, context.principal().binding(), kind.member());
        let after = self.position(cursor, context, list)?;
        let layers = Arc::clone(self.read().tools.layers());
        // A layer may take a lock of its own, so it is asked before the state is locked.
        let (rules, viewer) = (context.caller().rules, &Viewer::of(context, &layers));
        let state = self.read();
        if let Some(class) = &viewer.class {
            self.shared.class_lists.record(kind, class, &state);
        }
        let (after, own) = (after.as_ref(), state.session_lists(kind, context));
        let (items, next) = match (kind, own.is_empty()) {
            (ListKind::Tools, true) => state.tools.page(after, size, rules, viewer),
            (ListKind::Tools, false) => state.tools.session_page(after, size, viewer, &own),
            (ListKind::Resources, true) => state.resources.page(after, size, rules, viewer),
            (ListKind::Resources, false) => state.resources.session_page(after, size, viewer, &own),
            (ListKind::Templates, true) => state.templates.page(after, size, rules, viewer),
            (ListKind::Templates, false) => state.templates.session_page(after, size, viewer, &own),
            (ListKind::Prompts, true) => state.prompts.page(after, size, rules, viewer),
            (ListKind::Prompts, false) => state.prompts.session_page(after, size, viewer, &own),
            (ListKind::Skills, _) => state.skill_index.skills.page(after, size, rules, viewer),
        };
        let next = next.map(|position| position.seal(sealer, principal, list));
        Ok(Page { kind, items, excluded: Box::default(), next, cache: settings.cache })
    }

    /// The position that a cursor encodes.
    pub(super) fn position(
        &self,
        cursor: Option<String>,
        context: &Context,
        list: &str,
    ) -> Result<Option<Position>, Fault> {
        let settings = &self.shared.settings;
        let Some(text) = cursor.filter(|_| settings.dialect.paging) else { return Ok(None) };
        let opened = Position::open(&text, &settings.sealer, context.principal().binding(), list);
        opened.map(Some).ok_or_else(|| {
            let detail = "`cursor` was not issued by this server";
            Fault::new(FaultKind::InvalidParams, detail)
        })
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Option<&Raw>,
        context: Context,
    ) -> Result<Outcome, Fault> {
        let item = self.read().tools.get(name);
        let Some(tool) = item.as_deref().and_then(LocalOrRemote::local) else {
            let call = |there| Operation::CallTool { name: there, arguments: arguments.cloned() };
            let refused = self.unknown_tool_fault(name);
            if refused.kind != FaultKind::UnknownTool {
                return Err(refused);
            }
            let outcome = Box::pin(self.call_unlisted(ListKind::Tools, call, name, context)).await;
            return outcome.ok_or(refused);
        };
        let arguments = checked_arguments(name, &tool.schema, arguments)?;
        let debug = context.is_debug();
        match CatchPanic((tool.tool.run)(arguments, context)).await {
            Ok(Ok(result)) => Ok(Outcome::Complete(Payload::Tool(result))),
            Ok(Err(error)) => handler_error_outcome(error, name, debug),
            Err(panic) => Err(panic_fault(panic, name, debug)),
        }
    }

    /// The fault for a tool that is not listed.
    fn unknown_tool_fault(&self, name: &str) -> Fault {
        let state = self.read();
        let withheld = state.withheld.values().find_map(|tools| tools.get(name)).cloned();
        withheld.unwrap_or_else(|| Fault::new(FaultKind::UnknownTool, "").with_subject(name))
    }

    /// Checks the arguments for a tool of an upstream, if the dialect requires that here.
    fn check_remote_arguments(&self, operation: &Operation) -> Result<(), Fault> {
        let Operation::CallTool { name, arguments } = operation else { return Ok(()) };
        if !self.checks_remote_arguments() {
            return Ok(());
        }
        let tool = self.read().tools.get(name);
        let schema = tool
            .as_deref()
            .and_then(LocalOrRemote::remote)
            .and_then(|remote| remote.schema.as_ref());
        let Some(schema) = schema else { return Ok(()) };
        match checked_arguments(name, schema, arguments.as_ref()) {
            // An unusable schema is the upstream's own error.
            Err(fault) if fault.kind == FaultKind::InvalidArguments => Err(fault),
            _ => Ok(()),
        }
    }

    async fn read_resource(&self, uri: String, context: Context) -> Result<Outcome, Fault> {
        let Some((read, variables, cache)) = self.find_reader(&uri) else {
            self.check_offered(ListKind::Resources, "resources/read")?;
            return self.read_remote_resource(&Operation::ReadResource { uri }, &context).await;
        };
        match read(uri.clone(), variables, context).await {
            Ok(contents) => Ok(Outcome::Complete(Payload::Contents(contents, cache))),
            Err(error) => handler_error_outcome(error, &uri, false),
        }
    }

    /// Requests a resource that no list has from the upstreams.
    async fn read_remote_resource(
        &self,
        operation: &Operation,
        context: &Context,
    ) -> Result<Outcome, Fault> {
        let outcome = self.read_unlisted(operation, context).await;
        outcome.ok_or_else(|| unknown_resource_fault(operation.target()))
    }

    /// The reader of a resource, with the values of its template's variables.
    pub(super) fn find_reader(
        &self,
        uri: &str,
    ) -> Option<(Arc<ReadResource>, Variables, CacheHints)> {
        let state = self.read();
        if let Some(file) = state.skill_index.file(uri) {
            let resource = &file.resource;
            return Some((Arc::clone(&resource.read), Variables::new(), resource.cache));
        }
        if let Some(resource) = state.resources.get(uri) {
            let resource = resource.local()?;
            return Some((Arc::clone(&resource.read), Variables::new(), resource.cache));
        }
        state.templates.iter().filter_map(|template| template.local()).find_map(|template| {
            let variables = template.pattern.matches(uri)?;
            Some((Arc::clone(&template.read), variables, CacheHints::NONE))
        })
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Option<&Raw>,
        context: Context,
    ) -> Result<Outcome, Fault> {
        let item = self.read().prompts.get(name);
        let Some(prompt) = item.as_deref().and_then(LocalOrRemote::local) else {
            self.check_offered(ListKind::Prompts, "prompts/get")?;
            let get = |there| Operation::GetPrompt { name: there, arguments: arguments.cloned() };
            let got = Box::pin(self.call_unlisted(ListKind::Prompts, get, name, context)).await;
            return got.ok_or_else(|| Fault::new(FaultKind::UnknownPrompt, "").with_subject(name));
        };
        let variables: BTreeMap<String, String> =
            arguments.and_then(|raw| raw.decode().ok()).unwrap_or_default();
        let needed = prompt.definition.arguments.iter().filter(|argument| argument.required);
        if let Some(missing) =
            needed.into_iter().find(|needed| !variables.contains_key(&needed.name))
        {
            let detail = format!("the argument `{}` of the prompt is missing", missing.name);
            return Err(Fault::new(FaultKind::InvalidParams, detail));
        }
        match (prompt.render)(variables, context).await {
            Ok(result) => Ok(Outcome::Complete(Payload::Prompt(result))),
            Err(error) => handler_error_outcome(error, name, false),
        }
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, Fault> {
        if !self.capabilities().completions {
            let detail = "this server does not support completion";
            return Err(
                Fault::new(FaultKind::MethodNotFound, detail).with_subject("completion/complete")
            );
        }
        let completers = match &request.reference {
            Reference::Prompt(name) => {
                let item = self.read().prompts.get(name);
                item.as_deref()
                    .and_then(LocalOrRemote::local)
                    .map(|prompt| prompt.completers.clone())
            }
            Reference::Resource(uri) => {
                let state = self.read();
                let mut templates = state.templates.iter().filter_map(|template| template.local());
                let template = templates.find(|it| it.definition.uri_template == *uri);
                template.map(|template| template.completers.clone())
            }
        };
        let Some(completers) = completers else {
            let detail = "`ref` is not a prompt or resource template of this server";
            return Err(Fault::new(FaultKind::InvalidParams, detail));
        };
        let values = match completers.get(&request.argument) {
            Some(propose) => propose(request.value, request.context).await,
            None => Vec::new(),
        };
        Ok(Completion::from_values(values))
    }

    /// The part of a filter that is supported.
    async fn accept_filter(
        &self,
        filter: SubscriptionFilter,
        context: &Context,
    ) -> Result<SubscriptionFilter, Fault> {
        let has = self.capabilities();
        let tasks = match self.has_tasks(context.caller().rules) {
            true => {
                let class = self.viewer_class(context.principal());
                self.tasks().follow_tasks(filter.tasks, context, class.as_deref()).await?
            }
            false => Vec::new(),
        };
        Ok(SubscriptionFilter {
            tools: filter.tools && has.tools,
            prompts: filter.prompts && has.prompts,
            resources: filter.resources && has.resources,
            uris: self.filter_subscribable(filter.uris, context).await,
            tasks,
        })
    }

    /// The resources that can be subscribed to; upstreams are subscribed to for theirs.
    async fn filter_subscribable(&self, uris: Vec<String>, context: &Context) -> Vec<String> {
        let mut watchable = Vec::new();
        for uri in uris {
            let mut subscribe = Operation::Subscribe { uri };
            let is_watched = match self.remote_endpoint(&mut subscribe) {
                Some(endpoint) => {
                    let call = Call { operation: subscribe.clone(), context: context.clone() };
                    matches!(endpoint.call(call).await, Outcome::Complete(_))
                }
                None if self.find_reader(subscribe.target()).is_some() => true,
                None => {
                    let outcome = self.read_unlisted(&subscribe, context).await;
                    matches!(outcome, Some(Outcome::Complete(_)))
                }
            };
            if let (true, Operation::Subscribe { uri }) = (is_watched, subscribe) {
                watchable.push(uri);
            }
        }
        watchable
    }
}

/// The arguments as JSON, validated against the announced schema.
fn checked_arguments(name: &str, schema: &Schema, arguments: Option<&Raw>) -> Result<Value, Fault> {
    let refused =
        |detail: String| Fault::new(FaultKind::InvalidArguments, detail).with_subject(name);
    let arguments = match arguments {
        None => json!({}),
        Some(raw) => raw.decode().map_err(|error| refused(error.to_string()))?,
    };
    match schema.validate(&arguments) {
        Ok(()) => Ok(arguments),
        Err(violations) if violations.iter().any(Violation::is_broken_schema) => {
            // The error is the tool's, not the caller's.
            Err(Fault::new(FaultKind::Internal, violations_message(&violations)).with_subject(name))
        }
        Err(violations) => Err(refused(violations_message(&violations))),
    }
}

fn violations_message(violations: &[Violation]) -> String {
    let sentences: Vec<_> = violations.iter().map(ToString::to_string).collect();
    sentences.join("; ")
}

/// The outcome of a handler that returned an error.
fn handler_error_outcome(error: ToolError, subject: &str, debug: bool) -> Result<Outcome, Fault> {
    match error {
        ToolError::InputRequired(input_requests) => {
            Ok(Outcome::InputRequired { requests: input_requests, request_state: None })
        }
        ToolError::Detach => Ok(Outcome::Detach(None)),
        ToolError::Fault(mut fault) => {
            if fault.subject.is_empty() {
                subject.clone_into(&mut fault.subject);
            }
            fault.trace = fault.trace.filter(|_| debug);
            Err(*fault)
        }
        ToolError::Failed(detail) => {
            let mut fault = Fault::new(FaultKind::ToolFailed, detail).with_subject(subject);
            fault.trace = debug.then(|| Backtrace::force_capture().to_string());
            Err(fault)
        }
    }
}

fn panic_fault(panic: CaughtPanic, tool: &str, debug: bool) -> Fault {
    let mut fault = Fault::new(FaultKind::ToolPanicked, panic.message).with_subject(tool);
    fault.trace = panic.trace.filter(|_| debug);
    fault
}

pub(super) fn unknown_resource_fault(uri: &str) -> Fault {
    let data = Raw::from_value(&json!({"uri": uri}));
    Fault::new(FaultKind::ResourceNotFound, "").with_subject(uri).with_data(data)
}

impl Registry {
    /// Whether the target of an operation exists; true for operations without one.
    #[doc(hidden)]
    pub fn has_target(&self, operation: &Operation) -> bool {
        match operation {
            Operation::CallTool { name, .. } => self.read().tools.get_visible(name).is_some(),
            Operation::GetPrompt { name, .. } => self.has_prompt(name),
            Operation::ReadResource { uri } | Operation::Subscribe { uri } => {
                self.find_reader(uri).is_some()
                    || self.remote_endpoint(&mut operation.clone()).is_some()
            }
            Operation::Complete(request) => match &request.reference {
                Reference::Prompt(name) => self.has_prompt(name),
                Reference::Resource(uri) => {
                    self.has_template(uri) || self.remote_endpoint(&mut operation.clone()).is_some()
                }
            },
            _ => true,
        }
    }

    fn has_prompt(&self, name: &str) -> bool {
        self.read().prompts.get_visible(name).is_some()
    }

    fn has_template(&self, uri_template: &str) -> bool {
        let state = self.read();
        let mut own = state.templates.iter().filter_map(|template| template.local());
        own.any(|template| template.definition.uri_template == uri_template)
    }
}
