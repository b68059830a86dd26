//! The official revisions as rules: the only file that knows how revisions differ.
//!
//! Code elsewhere asks for a rule (`rules.batches`) and never compares versions, so a new revision is one
//! more row of this table.

use crate::fault::{DataShape, ErrorChannel, ErrorRow, FaultKind};
use crate::method::{Method, MethodSet};

/// An official revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The first published revision.
    V2024_11_05,
    /// Brought batches, annotations, audio and Streamable HTTP.
    V2025_03_26,
    /// Brought structured results and elicitation; removed batches.
    V2025_06_18,
    /// Brought elicitation by URL and tasks; argument errors became results.
    V2025_11_25,
    /// Removed the handshake: every request stands alone.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The revision of that date.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.rules().name == name)
    }

    /// The newest revision that opens with this kind of conversation.
    pub fn newest(era: Era) -> Self {
        let mut of_era = Self::ALL.into_iter().filter(|revision| revision.rules().era == era);
        of_era.next_back().unwrap_or(Self::V2025_11_25)
    }

    /// What holds in this revision.
    pub fn rules(self) -> &'static Rules {
        &RULES[self as usize]
    }
}

/// How a conversation is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first; the connection or session remembers what was agreed.
    Handshake,
    /// No opening: each request carries version and capabilities in `_meta`.
    Stateless,
}

/// How a server asks the client something in the middle of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRequestStyle {
    /// By a request of its own, while the call stays open.
    Inline,
    /// By ending the call with `input_required`; the client calls again with the answers.
    MultiRoundTrip,
}

/// What a tool result may carry besides content blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuredContent {
    /// Nothing.
    Absent,
    /// A JSON object.
    Object,
    /// Any JSON value.
    Any,
}

/// What the client may be asked to fill in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElicitationSupport {
    /// Nothing.
    Absent,
    /// A flat form.
    Form,
    /// A form with titled and multiple choices, or a page to visit that is named by an id.
    FormAndNamedUrl,
    /// A form with titled and multiple choices, or a page to visit.
    FormAndUrl,
}

/// What kind of tasks there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskModel {
    /// None.
    Absent,
    /// The client asks for a task; what it comes to is fetched by a request that waits
    /// (2025-11-25 basic/utilities/tasks).
    ClientRequested,
    /// The server makes a task where the client declares the extension; what it comes to is part of how it
    /// stands (SEP-2663, `io.modelcontextprotocol/tasks`).
    Extension,
}

/// What stands for the id in an error about a message whose id could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableId {
    /// `"id":null`, as JSON-RPC 2.0 says.
    Null,
    /// No member at all, as the newer schemas allow.
    Omit,
}

impl PartialEq for Rules {
    /// There is one set of rules per revision.
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
    }
}

/// What holds in one revision.
#[derive(Debug)]
pub struct Rules {
    /// The revision these rules are of.
    pub revision: Revision,
    /// Its name on the wire.
    pub name: &'static str,
    /// How a conversation is opened.
    pub era: Era,
    /// What a client may send.
    pub methods: MethodSet,
    /// Whether one frame may hold several messages.
    pub batches: bool,
    /// How the client is asked.
    pub input_request_style: InputRequestStyle,
    /// What the client may be asked to fill in.
    pub elicitation: ElicitationSupport,
    /// Whether results carry `resultType`.
    pub result_type: bool,
    /// Whether cacheable results carry `ttlMs` and `cacheScope`.
    pub cache_hints: bool,
    /// Whether results name the server in `_meta`.
    pub identity_in_results: bool,
    /// Whether list changes reach the client without being asked for.
    pub unsolicited_changes: bool,
    /// Whether the log level is set for the session; otherwise each request sets its own.
    pub session_log_level: bool,
    /// Whether there is a capability named `completions`.
    pub completions_capability: bool,
    /// Whether content may be audio.
    pub audio: bool,
    /// Whether content may be a link to a resource.
    pub resource_links: bool,
    /// What a tool result may carry besides content blocks.
    pub structured_content: StructuredContent,
    /// What kind of tasks there are.
    pub tasks: TaskModel,
    /// Whether capabilities may name extensions. The schema of 2025-11-25 has no place for them, and clients and
    /// servers put them there nevertheless.
    pub extensions: bool,
    /// Whether the client's sampling has capabilities of its own, such as tools.
    pub sampling_details: bool,
    /// Whether the codes from -32099 to -32000 mean only what the specification says
    /// (2026-07-28 basic, error codes).
    pub reserved_error_codes: bool,
    /// What stands for an id that could not be read.
    pub unreadable_id: UnreadableId,
    /// The HTTP statuses of answers that tell a fault; one that is not listed is told with 200.
    pub http_statuses: &'static [(FaultKind, u16)],
    /// Whether a client names the version in a header of each HTTP request after the handshake.
    pub version_header: bool,
    /// Whether a stream of events opens with an empty one, whose id says where to resume.
    pub primed_streams: bool,
    /// Errors that this revision encodes differently from [`crate::fault::COMMON_ERRORS`].
    pub errors: &'static [ErrorRow],
}

const SESSION_METHODS: MethodSet = MethodSet::of(&[
    Method::Initialize,
    Method::Ping,
    Method::ListTools,
    Method::CallTool,
    Method::ListResources,
    Method::ListTemplates,
    Method::ReadResource,
    Method::Subscribe,
    Method::Unsubscribe,
    Method::ListPrompts,
    Method::GetPrompt,
    Method::Complete,
    Method::SetLevel,
    Method::Initialized,
    Method::Cancelled,
    Method::Progress,
    Method::RootsChanged,
]);

const CLIENT_REQUESTED_TASK_METHODS: MethodSet =
    MethodSet::of(&[Method::GetTask, Method::TaskResult, Method::ListTasks, Method::CancelTask]);

const STATELESS_METHODS: MethodSet = MethodSet::of(&[
    Method::Discover,
    Method::ListTools,
    Method::CallTool,
    Method::ListResources,
    Method::ListTemplates,
    Method::ReadResource,
    Method::ListPrompts,
    Method::GetPrompt,
    Method::Complete,
    Method::Listen,
    Method::GetTask,
    Method::UpdateTask,
    Method::CancelTask,
    Method::Cancelled,
]);

/// The skills extension is written against 2026-07-28 and later (SEP-2640, protocol revision): to an older
/// client the files of a skill are resources like any other.
const SKILLS_METHODS: MethodSet =
    MethodSet::of(&[Method::ListSkills, Method::GetSkill, Method::ReadDirectory]);

/// Until 2025-06-18 a tool's arguments were checked by the protocol, not by the tool (SEP-1303 changed it).
const INVALID_ARGUMENTS_AS_ERROR: ErrorRow = ErrorRow::fixed(
    FaultKind::InvalidArguments,
    ErrorChannel::ProtocolError(-32602),
    INVALID_ARGUMENTS_MESSAGE,
    DataShape::None,
);
const INVALID_ARGUMENTS_MESSAGE: &str = "Invalid arguments for tool {tool}: {detail}";

/// Until 2025-11-25 a missing resource had a code of its own.
const RESOURCE_NOT_FOUND_WITH_OWN_CODE: ErrorRow = ErrorRow::fixed(
    FaultKind::ResourceNotFound,
    ErrorChannel::ProtocolError(-32002),
    "Resource not found: {uri}",
    DataShape::FromFault,
);

/// Before 2026-07-28 there is no code for a capability that the client lacks: the model is told.
const MISSING_CAPABILITY_AS_RESULT: ErrorRow = ErrorRow::fixed(
    FaultKind::MissingCapability,
    ErrorChannel::ToolResult { fallback_code: -32603 },
    "{detail}",
    DataShape::None,
);

/// In 2025-11-25 a tool that only runs as a task does not exist for other calls (basic/utilities/tasks,
/// tool-level negotiation).
const TASK_REQUIRED_AS_METHOD_NOT_FOUND: ErrorRow = ErrorRow::fixed(
    FaultKind::TaskRequired,
    ErrorChannel::ProtocolError(-32601),
    "Method not found: {detail}",
    DataShape::None,
);

const ERRORS_BEFORE_2025_11_25: &[ErrorRow] =
    &[INVALID_ARGUMENTS_AS_ERROR, RESOURCE_NOT_FOUND_WITH_OWN_CODE, MISSING_CAPABILITY_AS_RESULT];

/// In a session a status tells of the message and not of what came of it: 404 would end the session.
const SESSION_STATUSES: &[(FaultKind, u16)] = &[
    (FaultKind::Parse, 400),
    (FaultKind::InvalidRequest, 400),
    (FaultKind::MissingMethod, 400),
    (FaultKind::NotInitialized, 400),
    (FaultKind::UnsupportedVersion, 400),
];

/// 2026-07-28 basic/transports/streamable-http, protocol version header and server validation.
const STATELESS_STATUSES: &[(FaultKind, u16)] = &[
    (FaultKind::Parse, 400),
    (FaultKind::InvalidRequest, 400),
    (FaultKind::MissingMethod, 400),
    (FaultKind::UnsupportedVersion, 400),
    (FaultKind::HeaderMismatch, 400),
    (FaultKind::MissingCapability, 400),
    (FaultKind::TaskRequired, 400),
    (FaultKind::MethodNotFound, 404),
];

const RULES_2024_11_05: Rules = Rules {
    revision: Revision::V2024_11_05,
    name: "2024-11-05",
    era: Era::Handshake,
    methods: SESSION_METHODS,
    batches: false,
    input_request_style: InputRequestStyle::Inline,
    elicitation: ElicitationSupport::Absent,
    result_type: false,
    cache_hints: false,
    identity_in_results: false,
    unsolicited_changes: true,
    session_log_level: true,
    completions_capability: false,
    audio: false,
    resource_links: false,
    structured_content: StructuredContent::Absent,
    tasks: TaskModel::Absent,
    extensions: false,
    sampling_details: false,
    reserved_error_codes: false,
    unreadable_id: UnreadableId::Null,
    http_statuses: SESSION_STATUSES,
    version_header: false,
    primed_streams: false,
    errors: ERRORS_BEFORE_2025_11_25,
};

static RULES: [Rules; 5] = [
    RULES_2024_11_05,
    Rules {
        revision: Revision::V2025_03_26,
        name: "2025-03-26",
        batches: true,
        completions_capability: true,
        audio: true,
        ..RULES_2024_11_05
    },
    Rules {
        revision: Revision::V2025_06_18,
        name: "2025-06-18",
        elicitation: ElicitationSupport::Form,
        completions_capability: true,
        audio: true,
        resource_links: true,
        structured_content: StructuredContent::Object,
        version_header: true,
        ..RULES_2024_11_05
    },
    Rules {
        revision: Revision::V2025_11_25,
        name: "2025-11-25",
        methods: SESSION_METHODS.union(CLIENT_REQUESTED_TASK_METHODS),
        elicitation: ElicitationSupport::FormAndNamedUrl,
        completions_capability: true,
        audio: true,
        resource_links: true,
        structured_content: StructuredContent::Object,
        tasks: TaskModel::ClientRequested,
        extensions: true,
        sampling_details: true,
        unreadable_id: UnreadableId::Omit,
        version_header: true,
        primed_streams: true,
        errors: &[
            RESOURCE_NOT_FOUND_WITH_OWN_CODE,
            MISSING_CAPABILITY_AS_RESULT,
            TASK_REQUIRED_AS_METHOD_NOT_FOUND,
        ],
        ..RULES_2024_11_05
    },
    Rules {
        revision: Revision::V2026_07_28,
        name: "2026-07-28",
        era: Era::Stateless,
        methods: STATELESS_METHODS.union(SKILLS_METHODS),
        batches: false,
        input_request_style: InputRequestStyle::MultiRoundTrip,
        elicitation: ElicitationSupport::FormAndUrl,
        result_type: true,
        cache_hints: true,
        identity_in_results: true,
        unsolicited_changes: false,
        session_log_level: false,
        completions_capability: true,
        audio: true,
        resource_links: true,
        structured_content: StructuredContent::Any,
        tasks: TaskModel::Extension,
        extensions: true,
        sampling_details: true,
        reserved_error_codes: true,
        unreadable_id: UnreadableId::Omit,
        http_statuses: STATELESS_STATUSES,
        version_header: true,
        primed_streams: false,
        errors: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_in_the_order_of_the_enum() {
        for revision in Revision::ALL {
            assert_eq!(revision.rules().revision, revision);
            assert_eq!(Revision::from_name(revision.rules().name), Some(revision));
        }
    }

    #[test]
    fn each_era_has_a_newest_revision() {
        assert_eq!(Revision::newest(Era::Handshake).rules().name, "2025-11-25");
        assert_eq!(Revision::newest(Era::Stateless).rules().name, "2026-07-28");
    }
}
