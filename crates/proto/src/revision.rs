//! The official revisions as rules. Only this file contains the differences between revisions.
//!
//! Other code reads a rule (`rules.batches`) and never compares versions. A new revision is one more row of this table.

mod era;

pub use self::era::{Era, PerEra};

use crate::fault::{DataShape, ErrorChannel, ErrorRow, FaultKind};
use crate::method::{Method, MethodSet};

/// An official revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The first published revision.
    V2024_11_05,
    /// Added batches, annotations, audio and Streamable HTTP.
    V2025_03_26,
    /// Added structured results and elicitation; removed batches.
    V2025_06_18,
    /// Added URL elicitation and tasks; argument errors became results.
    V2025_11_25,
    /// Removed the handshake: requests are independent (2026-07-28 basic, statelessness).
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

    /// The revision with this date.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.rules().name == name)
    }

    /// The rules of this revision.
    pub fn rules(self) -> &'static Rules {
        &RULES[self as usize]
    }
}

/// The request that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// `initialize`, which negotiates the revision (2025-11-25 basic/lifecycle, initialization).
    Initialize,
    /// `server/discover`, which a client may leave out: it only reports what the server supports
    /// (2026-07-28 schema, `DiscoverRequest`).
    Discover,
}

/// The way a client subscribes to changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionModel {
    /// With a request for each resource; list changes are announced without one
    /// (2025-11-25 server/resources, subscriptions).
    Requests,
    /// With one request that lists what is wanted; its response is the stream of notifications
    /// (2026-07-28 basic/patterns/subscriptions, receiving notifications).
    Stream,
}

/// What it means that the stream of a call breaks before its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenStream {
    /// The call goes on, and the client resumes the stream after the last event
    /// (2025-11-25 basic/transports, resumability and redelivery).
    Resumable,
    /// The call is cancelled (2026-07-28 basic/transports/streamable-http, cancellation).
    Cancels,
}

/// How a server requests input during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRequestStyle {
    /// With a separate request, while the call stays open (2025-11-25 schema, `ServerRequest`).
    Inline,
    /// By ending the call with `input_required`; the client retries it with the input responses
    /// (2026-07-28 basic/patterns/mrtr, basic workflow).
    MultiRoundTrip,
}

/// The structured content that a tool result may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuredContent {
    /// Nothing.
    Absent,
    /// A JSON object (2025-11-25 schema, `CallToolResult`).
    Object,
    /// Any JSON value (2026-07-28 schema, `CallToolResult`).
    Any,
}

/// The forms of elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElicitationSupport {
    /// None.
    Absent,
    /// A flat form (2025-06-18 client/elicitation, request schema).
    Form,
    /// A form with titled and multiple choices, or a URL elicitation with an id
    /// (2025-11-25 schema, `ElicitRequestURLParams`).
    FormAndNamedUrl,
    /// A form with titled and multiple choices, or a URL elicitation (2026-07-28 schema, `ElicitRequestURLParams`).
    FormAndUrl,
}

/// The task model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskModel {
    /// None.
    Absent,
    /// The client requests a task and fetches its result with a request that waits
    /// (2025-11-25 basic/utilities/tasks, creating tasks and retrieving task results).
    ClientRequested,
    /// The server creates a task if the client declares the extension. The state of a finished task contains its result
    /// (SEP-2663, capability negotiation and task status).
    Extension,
}

/// The scopes that a refusal for a missing scope names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeChallenge {
    /// Those that the operation needs. The client adds the ones that it has
    /// (2026-07-28 basic/authorization, scope challenge handling).
    Needed,
    /// Those that the operation needs and those that the token has. The client requests exactly these
    /// (2025-11-25 basic/authorization, runtime insufficient scope errors).
    Union,
}

/// The id in an error about a message whose id is unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableId {
    /// `"id":null` (JSON-RPC 2.0, section 5).
    Null,
    /// No `id` member, as newer schemas allow (2025-11-25 schema, `JSONRPCErrorResponse`).
    Omit,
}

impl PartialEq for Rules {
    /// Each revision has one set of rules, so comparing revisions suffices.
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
    }
}

/// The rules of one revision.
#[derive(Debug)]
pub struct Rules {
    /// The revision.
    pub revision: Revision,
    /// Its name on the wire.
    pub name: &'static str,
    /// The kind of lifecycle. It is a key: code that depends on a difference reads the rule that names it.
    pub era: Era,
    /// The request that opens a connection.
    pub opening: Opening,
    /// Whether a connection or session keeps state between requests: the negotiated revision, the client's capabilities,
    /// and its subscriptions (2025-11-25 basic/lifecycle, operation; 2026-07-28 basic, statelessness).
    pub has_sessions: bool,
    /// Whether each request carries the version, the client's capabilities and its name in `_meta`
    /// (2026-07-28 schema, `RequestMetaObject`).
    pub request_meta: bool,
    /// The methods that a client may send (schema of each revision, `ClientRequest` and `ClientNotification`).
    pub methods: MethodSet,
    /// Whether one frame may hold several messages (2025-03-26 basic, batching).
    pub batches: bool,
    /// How a server requests input.
    pub input_request_style: InputRequestStyle,
    /// The forms of elicitation.
    pub elicitation: ElicitationSupport,
    /// Whether results carry `resultType` (2026-07-28 basic, result responses).
    pub result_type: bool,
    /// Whether cacheable results carry `ttlMs` and `cacheScope` (2026-07-28 schema, `CacheableResult`).
    pub cache_hints: bool,
    /// Whether results name the server in `_meta` (2026-07-28 schema, `ResultMetaObject`).
    pub identity_in_results: bool,
    /// The way a client subscribes to changes.
    pub subscriptions: SubscriptionModel,
    /// Whether the server announces list changes without a subscription.
    pub unsolicited_changes: bool,
    /// Whether the session has a log level (2025-11-25 schema, `SetLevelRequest`); otherwise each request sets its own
    /// (2026-07-28 server/utilities/logging, per-request log level).
    pub session_log_level: bool,
    /// Whether the capability `completions` exists.
    pub completions_capability: bool,
    /// Whether content may be audio (2025-03-26 schema, `AudioContent`).
    pub audio: bool,
    /// Whether content may be a link to a resource (2025-06-18 schema, `ResourceLink`).
    pub resource_links: bool,
    /// The structured content that a tool result may have.
    pub structured_content: StructuredContent,
    /// The task model.
    pub tasks: TaskModel,
    /// Whether capabilities may name extensions. The schema of 2025-11-25 does not define them, but clients and servers
    /// send them.
    pub extensions: bool,
    /// Whether the client's sampling capability has members such as `tools` (2025-11-25 schema, `ClientCapabilities`).
    pub sampling_details: bool,
    /// Whether the specification reserves the codes from -32099 to -32020 and keeps those up to -32000 as legacy
    /// (2026-07-28 basic, error codes).
    pub reserved_error_codes: bool,
    /// The id in an error about a message whose id is unreadable.
    pub unreadable_id: UnreadableId,
    /// The HTTP statuses of responses with a fault. The status of other faults is 200.
    pub http_statuses: &'static [(FaultKind, u16)],
    /// Whether a client sends the version in a header of each HTTP request after the handshake
    /// (2025-06-18 basic/transports, protocol version header).
    pub version_header: bool,
    /// Whether headers of an HTTP request repeat its method, its subject and arguments
    /// (2026-07-28 basic/transports/streamable-http, request metadata).
    pub mirrored_headers: bool,
    /// Whether a server is its own authorization server, which no document names (2025-03-26 basic/authorization, server
    /// metadata discovery).
    pub own_authorization_server: bool,
    /// The scopes that a refusal for a missing scope names.
    pub scope_challenge: ScopeChallenge,
    /// What it means that the stream of a call breaks.
    pub broken_stream: BrokenStream,
    /// Whether an event stream starts with an empty event whose id is a resumption point
    /// (2025-11-25 basic/transports, sending messages to the server).
    pub primed_streams: bool,
    /// Errors that this revision encodes differently from [`crate::fault::COMMON_ERRORS`].
    pub errors: &'static [ErrorRow],
}

impl Rules {
    /// The rules of the newest stateless revision. Creole stores definitions, results and requests in its form.
    pub const CANONICAL: &'static Self = &RULES[Revision::V2026_07_28 as usize];

    /// The rules of the oldest revision.
    pub const OLDEST: &'static Self = &RULES[Revision::V2024_11_05 as usize];

    /// The rules of the newest revision with a handshake.
    pub const NEWEST_HANDSHAKE: &'static Self = &RULES[Revision::V2025_11_25 as usize];
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

/// The skills extension requires 2026-07-28 or later (SEP-2640, protocol revision). For an older client the files of a
/// skill are ordinary resources.
const SKILLS_METHODS: MethodSet =
    MethodSet::of(&[Method::ListSkills, Method::GetSkill, Method::ReadDirectory]);

/// Up to 2025-06-18 invalid tool arguments are a protocol error, from 2025-11-25 a tool error (SEP-1303).
const INVALID_ARGUMENTS_AS_ERROR: ErrorRow = ErrorRow::fixed(
    FaultKind::InvalidArguments,
    ErrorChannel::ProtocolError(-32602),
    INVALID_ARGUMENTS_MESSAGE,
    DataShape::None,
);
const INVALID_ARGUMENTS_MESSAGE: &str = "Invalid arguments for tool {tool}: {detail}";

/// Up to 2025-11-25 a missing resource has its own code (2025-11-25 server/resources, error handling).
const RESOURCE_NOT_FOUND_WITH_OWN_CODE: ErrorRow = ErrorRow::fixed(
    FaultKind::ResourceNotFound,
    ErrorChannel::ProtocolError(-32002),
    "Resource not found: {uri}",
    DataShape::FromFault,
);

/// Before 2026-07-28 no code exists for a missing client capability. A tool result reports it to the model.
const MISSING_CAPABILITY_AS_RESULT: ErrorRow = ErrorRow::fixed(
    FaultKind::MissingCapability,
    ErrorChannel::ToolResult { fallback_code: -32603 },
    "{detail}",
    DataShape::None,
);

/// A tool that runs only as a task does not exist for other calls
/// (2025-11-25 basic/utilities/tasks, tool-level negotiation).
const TASK_REQUIRED_AS_METHOD_NOT_FOUND: ErrorRow = ErrorRow::fixed(
    FaultKind::TaskRequired,
    ErrorChannel::ProtocolError(-32601),
    "Method not found: {detail}",
    DataShape::None,
);

const ERRORS_BEFORE_2025_11_25: &[ErrorRow] =
    &[INVALID_ARGUMENTS_AS_ERROR, RESOURCE_NOT_FOUND_WITH_OWN_CODE, MISSING_CAPABILITY_AS_RESULT];

/// In a session the status describes the message, not the outcome of the request: 404 would end the session
/// (2025-11-25 basic/transports, session management).
const SESSION_STATUSES: &[(FaultKind, u16)] = &[
    (FaultKind::Parse, 400),
    (FaultKind::InvalidRequest, 400),
    (FaultKind::MissingMethod, 400),
    (FaultKind::NotInitialized, 400),
    (FaultKind::UnsupportedVersion, 400),
];

/// The status describes the fault
/// (2026-07-28 basic/transports/streamable-http, protocol version header and server validation).
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
    opening: Opening::Initialize,
    has_sessions: true,
    request_meta: false,
    methods: SESSION_METHODS,
    batches: false,
    input_request_style: InputRequestStyle::Inline,
    elicitation: ElicitationSupport::Absent,
    result_type: false,
    cache_hints: false,
    identity_in_results: false,
    subscriptions: SubscriptionModel::Requests,
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
    mirrored_headers: false,
    own_authorization_server: false,
    scope_challenge: ScopeChallenge::Union,
    broken_stream: BrokenStream::Resumable,
    primed_streams: false,
    errors: ERRORS_BEFORE_2025_11_25,
};

static RULES: [Rules; 5] = [
    RULES_2024_11_05,
    Rules {
        revision: Revision::V2025_03_26,
        name: "2025-03-26",
        batches: true,
        own_authorization_server: true,
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
        opening: Opening::Discover,
        has_sessions: false,
        request_meta: true,
        methods: STATELESS_METHODS.union(SKILLS_METHODS),
        batches: false,
        input_request_style: InputRequestStyle::MultiRoundTrip,
        elicitation: ElicitationSupport::FormAndUrl,
        result_type: true,
        cache_hints: true,
        identity_in_results: true,
        subscriptions: SubscriptionModel::Stream,
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
        mirrored_headers: true,
        own_authorization_server: false,
        scope_challenge: ScopeChallenge::Needed,
        broken_stream: BrokenStream::Cancels,
        primed_streams: false,
        errors: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_enum() {
        for revision in Revision::ALL {
            assert_eq!(revision.rules().revision, revision);
            assert_eq!(Revision::from_name(revision.rules().name), Some(revision));
        }
    }
}
