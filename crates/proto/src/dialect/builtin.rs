//! The built-in dialects. Each value has the clause that requires it.

use alloc::borrow::Cow;

use super::{
    BatchPolicy, CapabilityShape, DefinitionDetail, Dialect, DialectText, IdNumbers, IsErrorPolicy,
    Lifecycle, MissingIdPolicy, NullIdPolicy, RejectedIdPolicy, RepeatedInitializePolicy,
    SchemaPolicy, UnreadableIdPolicy, VersionPolicy,
};
use crate::fault::{DataShape, ErrorChannel, ErrorRow, FaultKind};
use crate::method::{Method, MethodSet};
use crate::revision::{Revision, Rules};

/// The names of the built-in dialects.
pub const BUILTIN_NAMES: &[&str] =
    &["spec", "bb-mcp-server", "mcp-chain", "bossman", "fpf-governance", "buddyboss"];

/// The justification of a value in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// The field of [`Dialect`].
    pub field: &'static str,
    /// The document and section that require it, paraphrased.
    pub demand: &'static str,
}

/// The built-in dialect with this name.
pub fn builtin(name: &str) -> Option<Dialect> {
    match name {
        "spec" => Some(spec()),
        "bb-mcp-server" => Some(bb_mcp_server()),
        "mcp-chain" => Some(mcp_chain()),
        "bossman" => Some(bossman()),
        "fpf-governance" => Some(fpf_governance()),
        "buddyboss" => Some(buddyboss()),
        _ => None,
    }
}

impl Clause {
    /// The clauses of a built-in dialect.
    pub fn of(dialect: &str) -> &'static [Self] {
        match dialect {
            "spec" => SPEC_CLAUSES,
            "bb-mcp-server" => BB_MCP_SERVER_CLAUSES,
            "mcp-chain" => MCP_CHAIN_CLAUSES,
            "bossman" => BOSSMAN_CLAUSES,
            "fpf-governance" => FPF_GOVERNANCE_CLAUSES,
            "buddyboss" => BUDDYBOSS_CLAUSES,
            _ => &[],
        }
    }
}

const MEBIBYTE: usize = 1_048_576;

/// The specification: tolerant on input, strict on output.
fn spec() -> Dialect {
    Dialect {
        name: "spec".into(),
        about: "The official specification in every revision, both eras on one connection.".into(),
        base: Rules::NEWEST_HANDSHAKE.revision,
        stateless: true,
        handshake: true,
        version: VersionPolicy::Negotiate,
        initialize_requires: dialect_texts(&[Cow::Borrowed("protocolVersion")]),
        lifecycle: Lifecycle::Flag,
        initialized_aliases: dialect_texts(&[Cow::Borrowed("initialized")]),
        initialized_notification: Some(Cow::Borrowed("notifications/initialized")),
        repeated_initialize: RepeatedInitializePolicy::Accept,
        methods: None,
        capabilities: CapabilityShape::Detailed,
        advertise: None,
        hidden_capabilities: dialect_texts(&[]),
        definitions: DefinitionDetail::Full,
        errors: Cow::Borrowed(&[]),
        ids: IdNumbers::Integers,
        missing_id: MissingIdPolicy::Notification,
        null_id: NullIdPolicy::Refuse,
        refused_id: RejectedIdPolicy::Echo,
        unreadable_id: UnreadableIdPolicy::ByRevision,
        batch: BatchPolicy::ByRevision,
        arguments_required: false,
        is_error: IsErrorPolicy::WhenTrue,
        paging: true,
        schemas: SchemaPolicy::AsWritten,
        max_message: MEBIBYTE,
        event_streams: true,
        error_statuses: true,
        telemetry: false,
    }
}

const SPEC_CLAUSES: &[Clause] = &[
    clause("stateless", "2026-07-28 basic/versioning: a server may serve both eras on one process"),
    clause(
        "version",
        "every handshake revision, lifecycle: echo a supported version, otherwise another one",
    ),
    clause("lifecycle", "every handshake revision, lifecycle: initialize comes first"),
    clause("initialized_aliases", "tolerance: hand-written clients send the bare name"),
    clause(
        "initialized_notification",
        "every handshake revision, lifecycle: the notification that ends it",
    ),
    clause("null_id", "every revision, base protocol: an id is never null"),
];

/// Document 000: a small JSON-RPC server with three methods and the protocol version "1.0".
fn bb_mcp_server() -> Dialect {
    Dialect {
        name: "bb-mcp-server".into(),
        about: "Protocol \"1.0\": three methods, boolean capabilities, an initialized flag.".into(),
        base: Revision::V2024_11_05,
        stateless: false,
        handshake: true,
        version: VersionPolicy::Fixed("1.0".into()),
        initialize_requires: dialect_texts(&[
            Cow::Borrowed("protocolVersion"),
            Cow::Borrowed("clientInfo"),
            Cow::Borrowed("clientInfo.name"),
        ]),
        initialized_aliases: dialect_texts(&[]),
        initialized_notification: None,
        methods: Some(MethodSet::of(&[Method::Initialize, Method::ListTools, Method::CallTool])),
        capabilities: CapabilityShape::Flags(Cow::Borrowed(&[(
            Cow::Borrowed("dynamicToolRegistration"),
            false,
        )])),
        advertise: Some(dialect_texts(&[Cow::Borrowed("tools")])),
        definitions: DefinitionDetail::Plain,
        errors: Cow::Borrowed(BB_MCP_SERVER_ERRORS),
        ids: IdNumbers::Any,
        missing_id: MissingIdPolicy::Refuse,
        unreadable_id: UnreadableIdPolicy::Null,
        batch: BatchPolicy::Refuse,
        arguments_required: true,
        is_error: IsErrorPolicy::Never,
        paging: false,
        schemas: SchemaPolicy::Open,
        telemetry: true,
        ..spec()
    }
}

const TOOL_AND_ERROR: DataShape = DataShape::Members(Cow::Borrowed(&[
    (Cow::Borrowed("tool"), Cow::Borrowed("{tool}")),
    (Cow::Borrowed("error"), Cow::Borrowed("{detail}")),
    (Cow::Borrowed("stacktrace"), Cow::Borrowed("{trace}")),
]));

const BB_MCP_SERVER_ERRORS: &[ErrorRow] = &[
    protocol_error(FaultKind::Parse, -32700, "Parse error"),
    protocol_error(FaultKind::InvalidRequest, -32600, "Invalid Request"),
    protocol_error(FaultKind::MissingMethod, -32600, "Invalid Request"),
    protocol_error(FaultKind::MethodNotFound, -32601, "Method not found"),
    protocol_error(FaultKind::InvalidParams, -32602, "Invalid params"),
    protocol_error(FaultKind::Internal, -32603, "Internal error"),
    protocol_error(FaultKind::UnknownTool, -32000, "Tool not found"),
    row(FaultKind::ToolFailed, -32001, "Tool execution failed", TOOL_AND_ERROR),
    row(FaultKind::ToolPanicked, -32001, "Tool execution failed", TOOL_AND_ERROR),
    row(FaultKind::InputRefused, -32001, "Tool execution failed", TOOL_AND_ERROR),
    row(FaultKind::MissingCapability, -32001, "Tool execution failed", TOOL_AND_ERROR),
    row(FaultKind::InvalidArguments, -32002, "Invalid tool params", TOOL_AND_ERROR),
    protocol_error(FaultKind::NotInitialized, -32003, "Server not initialized"),
    protocol_error(FaultKind::Timeout, -32603, "Internal error"),
    protocol_error(FaultKind::Busy, -32603, "Internal error"),
];

const BB_MCP_SERVER_CLAUSES: &[Clause] = &[
    clause("base", "000 head: no official revision; the oldest one is the closest"),
    clause("stateless", "000 initialize: it must be called before any other method"),
    clause("initialized_aliases", "000 future extensions: there are no notifications"),
    clause("initialized_notification", "000 future extensions: there are no notifications"),
    clause("advertise", "000 initialize, response fields: tools is required"),
    clause("version", "000 initialize: request and result both have \"1.0\""),
    clause(
        "initialize_requires",
        "000 initialize, parameters: version and client name are required",
    ),
    clause("capabilities", "000 initialize, response fields: capabilities are booleans"),
    clause("lifecycle", "000 state management: a flag that every method but initialize checks"),
    clause("methods", "000 overview: three core methods"),
    clause("definitions", "000 tools/list, response fields: name, description, inputSchema"),
    clause("ids", "000 request format: the id is a string or a number"),
    clause(
        "missing_id",
        "000 request format: the id is required; notifications are a future extension",
    ),
    clause("batch", "000 future extensions: batches are not in version 1.0"),
    clause("arguments_required", "000 tools/call, parameters: arguments are required"),
    clause("is_error", "000 tools/call, success response: only content; failures are errors"),
    clause("paging", "000 tools/list, parameters: none"),
    clause("schemas", "000 tools/list, success response: the example schema is open"),
    clause("unreadable_id", "000 error response format: null if the id could not be determined"),
    clause("errors", "000 error codes: two tables, -32700 to -32603 and -32000 to -32003"),
    clause("telemetry", "000 telemetry: every request and response emits it"),
];

/// Document 001: the front server of a chain, on the 2025-03-26 revision, with its own error codes.
fn mcp_chain() -> Dialect {
    Dialect {
        name: "mcp-chain".into(),
        about: "2025-03-26 with the bare `initialized`, one message per line and its own codes."
            .into(),
        base: Revision::V2025_03_26,
        stateless: false,
        handshake: true,
        version: VersionPolicy::Fixed("2025-03-26".into()),
        initialized_notification: Some(Cow::Borrowed("initialized")),
        capabilities: CapabilityShape::Plain,
        hidden_capabilities: dialect_texts(&[
            Cow::Borrowed("completions"),
            Cow::Borrowed("logging"),
        ]),
        errors: Cow::Borrowed(MCP_CHAIN_ERRORS),
        unreadable_id: UnreadableIdPolicy::Null,
        batch: BatchPolicy::Refuse,
        is_error: IsErrorPolicy::Always,
        ..spec()
    }
}

const MCP_CHAIN_ERRORS: &[ErrorRow] = &[
    protocol_error(FaultKind::Parse, -32700, "Parse error"),
    protocol_error_with_text(FaultKind::InvalidRequest, -32600, "Invalid Request", "{detail}"),
    protocol_error_with_text(FaultKind::MissingMethod, -32600, "Invalid Request", "{detail}"),
    protocol_error_with_text(FaultKind::NotInitialized, -32600, "Invalid Request", "{detail}"),
    protocol_error_with_text(
        FaultKind::MethodNotFound,
        -32601,
        "Method not found",
        "Unknown method: {method}",
    ),
    protocol_error_with_text(FaultKind::InvalidParams, -32602, "Invalid params", "{detail}"),
    protocol_error_with_text(FaultKind::InvalidArguments, -32602, "Invalid params", "{detail}"),
    protocol_error_with_text(FaultKind::Internal, -32603, "Internal error", "{detail}"),
    protocol_error_with_text(
        FaultKind::UnknownTool,
        -32001,
        "Tool not found",
        "Tool '{tool}' does not exist",
    ),
    protocol_error_with_text(
        FaultKind::ResourceNotFound,
        -32002,
        "Resource not found",
        "Resource '{uri}' does not exist",
    ),
    protocol_error_with_text(
        FaultKind::UnknownPrompt,
        -32003,
        "Prompt not found",
        "Prompt '{prompt}' does not exist",
    ),
    protocol_error_with_text(FaultKind::ToolFailed, -32004, "Tool execution failed", "{detail}"),
    protocol_error_with_text(FaultKind::ToolPanicked, -32004, "Tool execution failed", "{detail}"),
    protocol_error_with_text(FaultKind::InputRefused, -32004, "Tool execution failed", "{detail}"),
    protocol_error_with_text(FaultKind::ResourceDenied, -32005, "Resource access denied", "{uri}"),
];

const MCP_CHAIN_CLAUSES: &[Clause] = &[
    clause("stateless", "001 initialization sequence: the client must initialize the connection"),
    clause("base", "001 head: protocol version 2025-03-26"),
    clause("version", "001 initialization sequence, step 2: the server responds with 2025-03-26"),
    clause("initialize_requires", "001 example stdio flow: only the version is sent"),
    clause("lifecycle", "001 initialization sequence: initialize comes before any other operation"),
    clause("initialized_aliases", "001 initialization sequence, step 3: the bare name"),
    clause("initialized_notification", "001 initialization sequence, step 3: the bare name"),
    clause("batch", "001 stdio requirements: each line is exactly one message"),
    clause("capabilities", "001 capability declaration: empty objects for supported features"),
    clause("hidden_capabilities", "001 capability declaration: only tools, resources and prompts"),
    clause("is_error", "001 tools/call: the example result has isError false"),
    clause("unreadable_id", "001 error examples, parse error: id null"),
    clause("errors", "001 error handling: two lists of codes and examples with a string as data"),
];

/// Document 002: a hand-written stdio server with a strict state machine.
fn bossman() -> Dialect {
    Dialect {
        name: "bossman".into(),
        about: "2025-03-26 with four strict states, batches, cancellation and closed schemas."
            .into(),
        base: Revision::V2025_03_26,
        stateless: false,
        handshake: true,
        version: VersionPolicy::Fixed("2025-03-26".into()),
        initialized_aliases: dialect_texts(&[]),
        lifecycle: Lifecycle::Strict,
        repeated_initialize: RepeatedInitializePolicy::Refuse,
        methods: Some(MethodSet::of(&[
            Method::Initialize,
            Method::Initialized,
            Method::Ping,
            Method::ListTools,
            Method::CallTool,
            Method::Cancelled,
            Method::SetLevel,
        ])),
        capabilities: CapabilityShape::Plain,
        advertise: Some(dialect_texts(&[Cow::Borrowed("tools"), Cow::Borrowed("logging")])),
        definitions: DefinitionDetail::Plain,
        errors: Cow::Borrowed(BOSSMAN_ERRORS),
        ids: IdNumbers::Any,
        unreadable_id: UnreadableIdPolicy::Null,
        batch: BatchPolicy::Accept,
        is_error: IsErrorPolicy::Always,
        paging: false,
        schemas: SchemaPolicy::Closed,
        ..spec()
    }
}

const BOSSMAN_ERRORS: &[ErrorRow] = &[
    protocol_error(FaultKind::InvalidArguments, -32602, "Invalid params: {detail}"),
    ErrorRow::fixed(
        FaultKind::ToolPanicked,
        ErrorChannel::ToolResult { fallback_code: -32603 },
        "error: {detail}",
        DataShape::None,
    ),
];

const BOSSMAN_CLAUSES: &[Clause] = &[
    clause("stateless", "002 lifecycle state machine: tools only when operating"),
    clause("version", "002 initialize handshake: the server responds with 2025-03-26"),
    clause("initialized_aliases", "002 messages the server handles: the full name only"),
    clause("unreadable_id", "002 error codes: null, as in JSON-RPC 2.0"),
    clause("base", "002 head: spec version 2025-03-26"),
    clause("lifecycle", "002 lifecycle state machine: created, initializing, operating, shut down"),
    clause(
        "repeated_initialize",
        "002 lifecycle state machine: a duplicate is refused with -32600",
    ),
    clause(
        "methods",
        "002 messages the server handles; logging is advertised, so its level can be set",
    ),
    clause("capabilities", "002 initialize handshake: tools and logging as empty objects"),
    clause("advertise", "002 initialize handshake: tools and logging"),
    clause("definitions", "002 tools/list: name, description, inputSchema"),
    clause("ids", "002 request id: a string or a number, returned unchanged"),
    clause("null_id", "002 request id: never null"),
    clause("batch", "002 batch: an array of requests and notifications"),
    clause("is_error", "002 tools/call: both results contain isError"),
    clause("paging", "002 messages the server handles: the list has only tools"),
    clause("schemas", "002 tool schemas: additionalProperties false on every object schema"),
    clause("max_message", "002 phase 3: at most one megabyte"),
    clause("errors", "002 two error flavours: bad params never reach the tool"),
];

/// Document 003: a governance server without a handshake requirement.
fn fpf_governance() -> Dialect {
    Dialect {
        name: "fpf-governance".into(),
        about: "The handshake revisions with exact JSON-RPC errors. No handshake is required."
            .into(),
        stateless: false,
        handshake: true,
        lifecycle: Lifecycle::None,
        unreadable_id: UnreadableIdPolicy::Null,
        ..spec()
    }
}

const FPF_GOVERNANCE_CLAUSES: &[Clause] = &[
    clause("stateless", "003 initialize handshake: capabilities come from initialize"),
    clause("lifecycle", "003 list tools, call hub tool: the server only has to be running"),
    clause("initialize_requires", "003 initialize handshake: the request is parsed by its types"),
    clause("unreadable_id", "003 error handling: null, as in JSON-RPC 2.0"),
];

/// Document 004: the tools of a WordPress site, one stateless POST per call.
fn buddyboss() -> Dialect {
    Dialect {
        name: "buddyboss".into(),
        about: "2025-11-25 by single POSTs: tools only, no session, JSON responses only.".into(),
        base: Revision::V2025_11_25,
        stateless: false,
        handshake: true,
        version: VersionPolicy::Fixed("2025-11-25".into()),
        initialize_requires: dialect_texts(&[]),
        lifecycle: Lifecycle::None,
        methods: Some(MethodSet::of(&[
            Method::Initialize,
            Method::Initialized,
            Method::ListTools,
            Method::CallTool,
        ])),
        capabilities: CapabilityShape::Plain,
        advertise: Some(dialect_texts(&[Cow::Borrowed("tools")])),
        errors: Cow::Borrowed(BUDDYBOSS_ERRORS),
        null_id: NullIdPolicy::Notification,
        refused_id: RejectedIdPolicy::Null,
        unreadable_id: UnreadableIdPolicy::Null,
        batch: BatchPolicy::Refuse,
        paging: false,
        event_streams: false,
        error_statuses: false,
        ..spec()
    }
}

const BUDDYBOSS_ERRORS: &[ErrorRow] = &[
    protocol_error(FaultKind::Parse, -32700, "Parse error"),
    protocol_error(FaultKind::InvalidRequest, -32600, "Invalid Request"),
    protocol_error(FaultKind::MissingMethod, -32601, "Method not found"),
    protocol_error(FaultKind::MethodNotFound, -32601, "Method not found"),
    protocol_error(FaultKind::InvalidParams, -32602, "Invalid params"),
    protocol_error(FaultKind::Internal, -32603, "Internal error"),
    protocol_error(FaultKind::UnknownTool, -32602, "Tool not found: {tool}"),
    tool_result(FaultKind::InvalidArguments, -32602, "Error: {detail}"),
    tool_result(FaultKind::ToolFailed, -32000, "Error: {detail}"),
    protocol_error(FaultKind::ToolPanicked, -32000, "Tool execution failed"),
    protocol_error(FaultKind::BackendUnavailable, -32002, "BuddyBoss not available"),
];

const BUDDYBOSS_CLAUSES: &[Clause] = &[
    clause("base", "004 protocol overview: spec version 2025-11-25"),
    clause("stateless", "004 supported methods: initialize carries the version"),
    clause("version", "004 initialize, notes: the server returns its supported version"),
    clause("initialize_requires", "004 PHP pattern: the handler gets only the id"),
    clause("lifecycle", "004 transport details: each request is self-contained"),
    clause("methods", "004 supported methods: four; any other is -32601"),
    clause("capabilities", "004 initialize, response: tools is an empty object"),
    clause("advertise", "004 initialize, notes: only tools; no resources, no prompts"),
    clause("null_id", "004 PHP pattern: a null id counts as missing, so it is a notification"),
    clause("refused_id", "004 PHP pattern: the response to an invalid request has a null id"),
    clause("unreadable_id", "004 PHP pattern: the response to a parse error has a null id"),
    clause("batch", "004 PHP pattern: an array has no `jsonrpc`, so it is an invalid request"),
    clause("is_error", "004 tools/call: only results with an error contain isError"),
    clause("paging", "004 tools/list, notes: all enabled tools are returned"),
    clause("event_streams", "004 transport details: JSON responses only"),
    clause("error_statuses", "004 PHP pattern: the server core returns a plain response"),
    clause("errors", "004 error codes: two tables, -32700 to -32603, -32000 and -32002"),
];

const fn clause(field: &'static str, demand: &'static str) -> Clause {
    Clause { field, demand }
}

const fn dialect_texts(list: &'static [DialectText]) -> Cow<'static, [DialectText]> {
    Cow::Borrowed(list)
}

const fn protocol_error(kind: FaultKind, code: i32, message: &'static str) -> ErrorRow {
    row(kind, code, message, DataShape::None)
}

const fn tool_result(kind: FaultKind, otherwise: i32, message: &'static str) -> ErrorRow {
    ErrorRow::fixed(
        kind,
        ErrorChannel::ToolResult { fallback_code: otherwise },
        message,
        DataShape::None,
    )
}

const fn protocol_error_with_text(
    kind: FaultKind,
    code: i32,
    message: &'static str,
    data: &'static str,
) -> ErrorRow {
    row(kind, code, message, DataShape::Text(Cow::Borrowed(data)))
}

const fn row(kind: FaultKind, code: i32, message: &'static str, data: DataShape) -> ErrorRow {
    ErrorRow::fixed(kind, ErrorChannel::ProtocolError(code), message, data)
}
