//! The era-neutral model: what is asked, by whom, what comes of it, and what happens meanwhile.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::model::{
    CacheHints, ClientCapabilities, Completion, CompletionRequest, Contents, Definition,
    ExcludedItem, Implementation, Items, KeyedInputRequest, Level, ListKind, PromptResult,
    ServerCapabilities, Task, TaskPreference, ToolResult,
};
use crate::revision::Rules;
use crate::wire::Raw;

/// What a client asks for, whatever its revision.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Tell identity and capabilities: `server/discover`, and the heart of `initialize`.
    Discover,
    /// One page of a list.
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
        /// Where it is.
        uri: String,
    },
    /// One page of what is directly in a directory.
    ReadDirectory {
        /// Where it is.
        uri: String,
        /// Where the page before ended.
        cursor: Option<String>,
    },
    /// Tell of one skill.
    GetSkill {
        /// Where its `SKILL.md` is.
        uri: String,
    },
    /// Render a prompt.
    GetPrompt {
        /// Its name.
        name: String,
        /// The arguments: an object of strings.
        arguments: Option<Raw>,
    },
    /// Complete an argument.
    Complete(CompletionRequest),
    /// Watch a resource for the session.
    Subscribe {
        /// Where it is.
        uri: String,
    },
    /// Watch it no longer.
    Unsubscribe {
        /// Where it is.
        uri: String,
    },
    /// Open a stream of notifications; the answer is the part that is honoured.
    Listen(SubscriptionFilter),
    /// Tell how a task stands.
    GetTask {
        /// Its id.
        id: String,
    },
    /// Wait until a task is over and tell what its call came to.
    TaskResult {
        /// Its id.
        id: String,
    },
    /// One page of the caller's tasks.
    ListTasks(Option<String>),
    /// Answer questions of a task.
    UpdateTask {
        /// Its id.
        id: String,
        /// The answers by the questions' keys: an object of objects.
        responses: Raw,
    },
    /// Cancel a task.
    CancelTask {
        /// Its id.
        id: String,
    },
}

impl Operation {
    /// The method that newest clients use for it.
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

    /// The tool, resource, prompt or task that it is about.
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

    /// The arguments, where there are any.
    pub fn arguments(&self) -> Option<&Raw> {
        match self {
            Self::CallTool { arguments, .. } | Self::GetPrompt { arguments, .. } => {
                arguments.as_ref()
            }
            _ => None,
        }
    }

    /// Whether the answer may be a question: the specification allows it on three methods only
    /// (2026-07-28 basic/patterns/mrtr, supported requests).
    pub fn may_require_input(&self) -> bool {
        matches!(self, Self::CallTool { .. } | Self::ReadResource { .. } | Self::GetPrompt { .. })
    }
}

/// Who asks, and on what terms.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The rules of the revision it speaks.
    pub rules: &'static Rules,
    /// What it can be asked for.
    pub capabilities: Arc<ClientCapabilities>,
    /// Who it says it is: an `Implementation` in its own words.
    pub client: Option<Raw>,
    /// The least serious log messages that it wants.
    pub log: Option<Level>,
    /// Whether it wants progress.
    pub progress: bool,
    /// The answers and state of an earlier round, when it calls again.
    pub input_responses: Option<InputResponses>,
    /// Whether the answer may be a task.
    pub task_preference: TaskPreference,
    /// What it says beyond the protocol, for whoever else the call reaches.
    pub extra: Option<Arc<ExtraMembers>>,
}

/// Members of a request that the protocol gives no meaning, as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtraMembers {
    /// Of its params: an object.
    pub params: Option<Raw>,
    /// Of its `_meta`, such as the context of a trace: an object.
    pub meta: Option<Raw>,
}

/// What a client brings when it calls again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputResponses {
    /// `inputResponses`: an object.
    pub responses: Option<Raw>,
    /// `requestState`, as it was handed out.
    pub request_state: Option<String>,
}

/// What comes of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is done.
    Complete(Payload),
    /// The client has to answer first.
    InputRequired {
        /// The questions.
        requests: Vec<KeyedInputRequest>,
        /// What to hand back with the answers.
        request_state: Option<String>,
    },
    /// It is to go on as a task: whoever drives the call runs it again as one, with this state.
    Detach(Option<String>),
    /// It failed.
    Fail(Fault),
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        Self::Fail(fault)
    }
}

/// What a completed operation carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Nothing.
    Empty,
    /// Who the server is.
    Server(ServerInfo),
    /// A page of a list.
    Page(Page),
    /// What a tool answered.
    Tool(ToolResult),
    /// What a resource holds.
    Contents(Vec<Contents>, CacheHints),
    /// A page of what is directly in a directory; the extension gives it no freshness.
    Directory(Page),
    /// One skill.
    Skill(Arc<Definition>, CacheHints),
    /// A rendered prompt.
    Prompt(PromptResult),
    /// Proposed values.
    Completion(Completion),
    /// The part of a filter that is honoured.
    Listening(SubscriptionFilter),
    /// The call became a task.
    TaskCreated(Arc<Task>),
    /// How a task stands.
    Task(Arc<Task>),
    /// A page of tasks.
    Tasks(TaskPage),
    /// What another server answered.
    Relayed(RelayedResult),
}

/// What another server answered, as it wrote it: most of it reaches the client untouched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayedResult {
    result: Raw,
    /// The rules of the server that wrote it.
    #[serde(with = "rules_by_name")]
    pub rules: &'static Rules,
    /// What kind of result it is.
    pub kind: RelayedKind,
    /// Whether it is known to have all that its rules want, and nothing that was only for us.
    #[serde(skip)]
    is_verbatim: bool,
}

impl RelayedResult {
    /// A result, which is an object.
    pub fn new(result: Raw, rules: &'static Rules, kind: RelayedKind) -> Self {
        Self { result, rules, kind, is_verbatim: false }
    }

    /// The same, of which it is known whether it is [whole](Self::is_verbatim).
    pub(crate) fn with_verbatim(self, is_whole: bool) -> Self {
        Self { is_verbatim: is_whole, ..self }
    }

    /// The whole result: an object.
    pub fn result(&self) -> &Raw {
        &self.result
    }

    /// The whole result: an object.
    pub fn into_result(self) -> Raw {
        self.result
    }

    /// Puts another result in the place of what the server wrote.
    pub fn set_result(&mut self, result: Raw) {
        (self.result, self.is_verbatim) = (result, false);
    }

    /// Whether it is known that a peer of the same rules can be given it as it is.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.is_verbatim
    }

    /// How long and for whom it may be kept, where its server says so.
    pub fn cache_hints(&self) -> Option<CacheHints> {
        let result = self.result.as_object()?;
        let says = result.get_many(["ttlMs", "cacheScope"]).iter().any(Option::is_some);
        says.then(|| CacheHints::read(result, self.rules))
    }

    /// Whether it tells that a tool failed.
    pub fn is_error(&self) -> bool {
        self.result.as_object().and_then(|result| result.get("isError")) == Some("true")
    }
}

/// Rules are written down as the name of their revision.
mod rules_by_name {
    use alloc::string::String;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::revision::{Revision, Rules};

    pub(super) fn serialize<S: Serializer>(
        rules: &Rules,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(rules.name)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<&'static Rules, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Revision::from_name(&name).map(Revision::rules);
        found.ok_or_else(|| D::Error::custom("no revision has this name"))
    }
}

/// What kind of result another server answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelayedKind {
    /// A tool's.
    Tool,
    /// A resource's contents.
    Contents,
    /// A rendered prompt.
    Prompt,
    /// One of no particular shape.
    Other,
}

/// Who the server is and what it has.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerInfo {
    /// Its name and version.
    pub identity: Arc<Implementation>,
    /// What it has.
    pub capabilities: ServerCapabilities,
    /// How a model should use it.
    pub instructions: Option<String>,
    /// How long this may be kept.
    pub cache: CacheHints,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Of what.
    pub kind: ListKind,
    /// The items.
    pub items: Items,
    /// Items of another server that are not among them, because they break the rules.
    pub excluded: Box<[ExcludedItem]>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// How long it may be kept.
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

/// Which notifications a listener wants or gets.
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
    /// News of these tasks.
    pub tasks: Vec<String>,
}

impl SubscriptionFilter {
    /// Whether the change is wanted.
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

/// Whether a subscription to `watched` is told of `uri`: the same resource or a part of it
/// (schema of every revision: the uri may be a sub-resource of the one subscribed to).
pub fn subscription_covers(watched: &str, uri: &str) -> bool {
    match uri.strip_prefix(watched) {
        Some(rest) => {
            rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '#', '?'])
        }
        None => false,
    }
}

/// What happens while a call runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It has come so far.
    Progress {
        /// How far.
        progress: f64,
        /// Out of how much.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// Something to note.
    Log {
        /// How serious.
        level: Level,
        /// Who notes it.
        logger: Option<String>,
        /// What.
        data: Raw,
    },
    /// A page that the client was asked to visit has done its part; this is the name of the visit.
    ElicitationCompleted(String),
}

/// What happens to a server, whoever is calling.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A list changed.
    List(ListKind),
    /// A resource changed.
    Resource(String),
    /// A task changed. Only those who follow it are told; that they may is checked when they begin to.
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
