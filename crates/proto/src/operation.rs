//! The era-neutral model of requests: operations, callers, outcomes and events.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::fault::Fault;
use crate::model::{
    CacheHints, ClientCapabilities, Completion, CompletionRequest, Contents, Definition,
    ExcludedItem, Implementation, Items, KeyedInputRequest, Level, ListKind, PromptResult,
    ServerCapabilities, Task, TaskPreference, ToolResult,
};
pub use crate::model::{RelayedKind, RelayedResult};
use crate::revision::Rules;
use crate::wire::Raw;

/// A client's operation, independent of its revision.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Return identity and capabilities: `server/discover`, and the main part of `initialize`
    /// (2026-07-28 server/discover, response).
    Discover,
    /// Return one page of a list (2025-11-25 schema, `PaginatedRequest`).
    List(ListKind, Option<String>),
    /// Call a tool.
    CallTool {
        /// Its name.
        name: String,
        /// The arguments: an object.
        arguments: Option<Raw>,
    },
    /// Read a resource.
    ReadResource {
        /// Its URI.
        uri: String,
    },
    /// Return one page of a directory's direct children (SEP-2640, reading directories).
    ReadDirectory {
        /// Its URI.
        uri: String,
        /// The cursor of the page.
        cursor: Option<String>,
    },
    /// Describe one skill (SEP-2640, getting a skill).
    GetSkill {
        /// The URI of its `SKILL.md`.
        uri: String,
    },
    /// Render a prompt.
    GetPrompt {
        /// Its name.
        name: String,
        /// The arguments: an object of strings (2025-11-25 schema, `GetPromptRequestParams`).
        arguments: Option<Raw>,
    },
    /// Complete an argument.
    Complete(Box<CompletionRequest>),
    /// Subscribe the session to a resource.
    Subscribe {
        /// Its URI.
        uri: String,
    },
    /// End a subscription.
    Unsubscribe {
        /// Its URI.
        uri: String,
    },
    /// Open a stream of notifications. The outcome is the part of the filter that the server honours
    /// (2026-07-28 basic/patterns/subscriptions, acknowledgment).
    Listen(SubscriptionFilter),
    /// Return the state of a task.
    GetTask {
        /// Its id.
        id: String,
    },
    /// Wait until a task ends and return the result of its call (2025-11-25 schema, `GetTaskPayloadRequest`).
    TaskResult {
        /// Its id.
        id: String,
    },
    /// Return one page of the caller's tasks.
    ListTasks(Option<String>),
    /// Send input responses to a task (SEP-2663, task update requests).
    UpdateTask {
        /// Its id.
        id: String,
        /// The input responses by key: an object of objects.
        responses: Raw,
    },
    /// Cancel a task.
    CancelTask {
        /// Its id.
        id: String,
    },
}

impl Operation {
    /// The operation's method in the newest revision.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::List(ListKind::Tools, _) => "tools/list",
            Self::List(ListKind::Resources, _) => "resources/list",
            Self::List(ListKind::Templates, _) => "resources/templates/list",
            Self::List(ListKind::Prompts, _) => "prompts/list",
            Self::List(ListKind::Skills, _) => "skills/list",
            Self::CallTool { .. } => "tools/call",
            Self::ReadResource { .. } => "resources/read",
            Self::ReadDirectory { .. } => "resources/directory/read",
            Self::GetSkill { .. } => "skills/get",
            Self::GetPrompt { .. } => "prompts/get",
            Self::Complete(_) => "completion/complete",
            Self::Subscribe { .. } => "resources/subscribe",
            Self::Unsubscribe { .. } => "resources/unsubscribe",
            Self::Listen(_) => "subscriptions/listen",
            Self::GetTask { .. } => "tasks/get",
            Self::TaskResult { .. } => "tasks/result",
            Self::ListTasks(_) => "tasks/list",
            Self::UpdateTask { .. } => "tasks/update",
            Self::CancelTask { .. } => "tasks/cancel",
        }
    }

    /// The tool, resource, prompt or task that the operation addresses.
    pub fn target(&self) -> &str {
        match self {
            Self::CallTool { name, .. } | Self::GetPrompt { name, .. } => name,
            Self::ReadResource { uri } | Self::Subscribe { uri } | Self::Unsubscribe { uri } => uri,
            Self::GetTask { id }
            | Self::TaskResult { id }
            | Self::UpdateTask { id, .. }
            | Self::CancelTask { id } => id,
            Self::ReadDirectory { uri, .. } | Self::GetSkill { uri } => uri,
            _ => "",
        }
    }

    /// The arguments, if any.
    pub fn arguments(&self) -> Option<&Raw> {
        match self {
            Self::CallTool { arguments, .. } | Self::GetPrompt { arguments, .. } => {
                arguments.as_ref()
            }
            _ => None,
        }
    }

    /// Whether the outcome may be an input request. The specification allows it on three methods only
    /// (2026-07-28 basic/patterns/mrtr, supported requests).
    pub fn may_require_input(&self) -> bool {
        matches!(self, Self::CallTool { .. } | Self::ReadResource { .. } | Self::GetPrompt { .. })
    }
}

/// The sender of a call, with its revision and capabilities.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The rules of the caller's revision.
    pub rules: &'static Rules,
    /// The caller's capabilities (2026-07-28 schema, `ClientCapabilities`).
    pub capabilities: Arc<ClientCapabilities>,
    /// The caller's `Implementation` as received.
    pub client: Option<Raw>,
    /// The minimum level of log messages that the caller requested.
    pub log: Option<Level>,
    /// Whether the caller requested progress notifications.
    pub progress: bool,
    /// The input responses and the request state of the previous round, on a retry.
    pub input_responses: Option<InputResponses>,
    /// Whether the outcome may be a task.
    pub task_preference: TaskPreference,
    /// Extra members, which are forwarded to upstreams.
    pub extra: Option<Arc<ExtraMembers>>,
}

/// Members of a request that the protocol does not define, as received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtraMembers {
    /// Extra members of `params`: an object.
    pub params: Option<Raw>,
    /// Extra members of `_meta`, such as a trace context: an object.
    pub meta: Option<Raw>,
}

/// The additions of a client's retry in a multi-round-trip request (2026-07-28 schema, `InputResponseRequestParams`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputResponses {
    /// `inputResponses`: an object.
    pub responses: Option<Raw>,
    /// `requestState`, as the server issued it.
    pub request_state: Option<String>,
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Success.
    Complete(Payload),
    /// The server needs input first (2026-07-28 schema, `InputRequiredResult`).
    InputRequired {
        /// The input requests.
        requests: Vec<KeyedInputRequest>,
        /// The request state that the client returns with its input responses.
        request_state: Option<String>,
    },
    /// The call continues as a task. The driver runs it again as a task, with this state.
    Detach(Option<String>),
    /// Failure.
    Fail(Fault),
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        Self::Fail(fault)
    }
}

/// The result of a completed operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Nothing.
    Empty,
    /// Identity and capabilities of the server.
    Server(ServerInfo),
    /// A page of a list.
    Page(Page),
    /// A tool result.
    Tool(ToolResult),
    /// The contents of a resource.
    Contents(Vec<Contents>, CacheHints),
    /// A page of a directory's direct children. The extension defines no cache hints for it
    /// (SEP-2640, reading directories).
    Directory(Page),
    /// One skill.
    Skill(Arc<Definition>, CacheHints),
    /// A rendered prompt.
    Prompt(PromptResult),
    /// Completion values.
    Completion(Completion),
    /// The part of a filter that the server honours.
    Listening(SubscriptionFilter),
    /// The task that the call became (2025-11-25 schema, `CreateTaskResult`).
    TaskCreated(Arc<Task>),
    /// The state of a task.
    Task(Arc<Task>),
    /// A page of tasks.
    Tasks(TaskPage),
    /// A relayed result.
    Relayed(RelayedResult),
}

/// The options of a call. Options that the server's revision cannot express are omitted.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The caller's capabilities. A stateless server gets them with each request. An input request beyond them is a
    /// fault.
    pub capabilities: Arc<ClientCapabilities>,
    /// The caller's `Implementation`, for stateless servers; otherwise the profile's identity is sent.
    pub client_info: Option<Raw>,
    /// The minimum level of log messages. Less severe ones are dropped.
    pub log_level: Option<Level>,
    /// Whether progress notifications are wanted.
    pub progress: bool,
    /// The input responses and the request state of the previous round.
    pub input_responses: Option<InputResponses>,
    /// Whether the outcome may be a task.
    pub task_preference: TaskPreference,
    /// Idle timeout; defaults to the profile's limit.
    pub idle_timeout: Option<Duration>,
    /// Timeout of the whole call; defaults to the profile's limit.
    pub total_timeout: Option<Duration>,
    /// Extra members of `_meta`: an object. Members that the protocol reserves are dropped.
    pub meta: Option<Raw>,
    /// Extra members of the params of `tools/call` or `prompts/get`: an object. Members that the protocol defines are
    /// dropped.
    pub params: Option<Raw>,
    /// Headers that repeat the trace context of `meta`, for transports that have headers.
    pub trace_headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

/// Identity and capabilities of a server (2026-07-28 schema, `DiscoverResult`).
#[derive(Clone, Debug, PartialEq)]
pub struct ServerInfo {
    /// Its name and version.
    pub identity: Arc<Implementation>,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Cache hints.
    pub cache: CacheHints,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The kind of its items.
    pub kind: ListKind,
    /// The items.
    pub items: Items,
    /// Items of an upstream that are excluded because they break the rules.
    pub excluded: Box<[ExcludedItem]>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Cache hints.
    pub cache: CacheHints,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// The notifications that a listener requested or receives (2026-07-28 schema, `SubscriptionFilter`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Changes of the tools.
    pub tools: bool,
    /// Changes of the prompts.
    pub prompts: bool,
    /// Changes of the resources.
    pub resources: bool,
    /// Updates of these resources.
    pub uris: Vec<String>,
    /// Status changes of these tasks (SEP-2663, task status notifications).
    pub tasks: Vec<String>,
}

impl SubscriptionFilter {
    /// Whether the filter includes the change.
    pub fn wants(&self, change: &Change) -> bool {
        match change {
            Change::List(ListKind::Tools) => self.tools,
            Change::List(ListKind::Prompts) => self.prompts,
            Change::List(ListKind::Resources | ListKind::Templates | ListKind::Skills) => {
                self.resources
            }
            Change::Resource(uri) => {
                self.uris.iter().any(|watched| subscription_covers(watched, uri))
            }
            Change::Task(task) => self.tasks.contains(&task.id),
        }
    }
}

/// Whether a subscription to `watched` covers `uri`: the same resource or a part of it (schema of every revision,
/// `ResourceUpdatedNotification`: the URI may be a sub-resource of the one subscribed to).
pub fn subscription_covers(watched: &str, uri: &str) -> bool {
    match uri.strip_prefix(watched) {
        Some(rest) => {
            rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '#', '?'])
        }
        None => false,
    }
}

/// An event of a running call.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Progress (2025-11-25 schema, `ProgressNotificationParams`).
    Progress {
        /// The progress so far.
        progress: f64,
        /// The total, if known.
        total: Option<f64>,
        /// A description.
        message: Option<String>,
    },
    /// A log message (2025-11-25 schema, `LoggingMessageNotificationParams`).
    Log {
        /// The severity.
        level: Level,
        /// The name of the logger.
        logger: Option<String>,
        /// The logged value.
        data: Raw,
    },
    /// The URL elicitation with this id is complete (2025-11-25 schema, `ElicitationCompleteNotification`).
    ElicitationCompleted(String),
}

/// A change in a server that is independent of any call.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A list changed.
    List(ListKind),
    /// A resource changed.
    Resource(String),
    /// A task changed. Only its followers are notified. Their permission is checked when they start to follow it.
    Task(Arc<Task>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_covers_the_resource_and_its_parts_only() {
        assert!(subscription_covers("file:///p", "file:///p"));
        assert!(subscription_covers("file:///p", "file:///p/x"));
        assert!(subscription_covers("file:///p/", "file:///p/x"));
        assert!(!subscription_covers("file:///p", "file:///pq"));
        assert!(!subscription_covers("file:///p/x", "file:///p"));
    }
}
