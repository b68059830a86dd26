//! The table of metrics. Names of metrics and labels exist only here and in `labels`.
//!
//! The names `mcp.*` and `gen_ai.*` are those of OpenTelemetry's semantic conventions for MCP
//! (semantic-conventions-genai, docs/gen-ai/mcp.md, status Development, read on 2026-11-16).

use super::boundaries::{OPERATION_BOUNDARIES, SESSION_BOUNDARIES, STATE_BOUNDARIES};
use super::definition::{MetricDef, Unit, counter, gauge, histogram};
use super::labels::{
    AUTH_METHOD, BUILD_TARGET, DECISION, END, ERA, ERROR_TYPE, FEATURES, FROM_ERA, HOW,
    HTTP_VERSION, KIND, LAYER, LISTENER, METHOD, METRIC_NAME, OUTCOME, PROMPT, PROTOCOL_VERSION,
    REASON, REVISION, SERVER, SIGNAL, STATE, STATUS, STATUS_CODE, TARGET, TO_ERA, TOOL, TRANSPORT,
    UPSTREAM, UPSTREAM_TRANSPORT, USE, VERB, VERSION,
};

/// Every metric, in the order of exports and documents.
pub static ALL: &[&MetricDef] = &[
    &SERVER_OPERATION_DURATION,
    &CLIENT_OPERATION_DURATION,
    &SERVER_SESSION_DURATION,
    &CLIENT_SESSION_DURATION,
    &CALLS_ACTIVE,
    &SESSIONS,
    &SESSIONS_LIMIT,
    &STREAMS,
    &CONNECTIONS,
    &CONNECTIONS_LIMIT,
    &MESSAGES_REFUSED,
    &HTTP_RESPONSES,
    &LAYER_DECISIONS,
    &UPSTREAM_STATE,
    &UPSTREAM_INFO,
    &UPSTREAM_STARTS,
    &UPSTREAM_CONNECTIONS,
    &UPSTREAM_ITEMS,
    &UPSTREAM_PROCESS_MEMORY,
    &UPSTREAM_PROCESS_CPU,
    &UPSTREAM_PROCESSES,
    &UPSTREAM_NOISE,
    &TRANSLATIONS,
    &PARKED_CALLS,
    &PARKED_ENDS,
    &TASKS,
    &INPUT_REQUESTS,
    &AUTH_ATTEMPTS,
    &STATE_UP,
    &STATE_OPERATIONS,
    &REPLICAS,
    &REPLICA_REQUESTS,
    &AUDIT_LINES,
    &AUDIT_LOST,
    &OTLP_EXPORTS,
    &OTLP_DROPPED,
    &TRACE_CONTEXT_INVALID,
    &CONFIG_RELOADS,
    &CONFIG_LOADED,
    &METRIC_SERIES,
    &METRIC_SERIES_OVERFLOW,
    &BUILD_INFO,
    &PROCESS_CPU,
    &PROCESS_MEMORY,
    &PROCESS_OPEN_FDS,
    &PROCESS_MAX_FDS,
    &PROCESS_START_TIME,
    &TOKIO_WORKERS,
    &TOKIO_ALIVE_TASKS,
    &TOKIO_QUEUE,
];

/// Duration of requests that clients sent, from their arrival to their response.
pub static SERVER_OPERATION_DURATION: MetricDef = histogram(
    "mcp_server_operation_duration_seconds",
    "mcp.server.operation.duration",
    &[SERVER, METHOD, TOOL, PROMPT, PROTOCOL_VERSION, TRANSPORT, ERROR_TYPE],
    "Duration of requests that clients sent, from their arrival to their response.",
    OPERATION_BOUNDARIES,
);
/// Duration of requests that were sent to upstreams, until their response.
pub static CLIENT_OPERATION_DURATION: MetricDef = histogram(
    "mcp_client_operation_duration_seconds",
    "mcp.client.operation.duration",
    &[UPSTREAM, METHOD, TOOL, PROMPT, PROTOCOL_VERSION, TRANSPORT, ERROR_TYPE],
    "Duration of requests that were sent to upstreams, until their response.",
    OPERATION_BOUNDARIES,
);
/// Duration of sessions of clients that ended.
pub static SERVER_SESSION_DURATION: MetricDef = histogram(
    "mcp_server_session_duration_seconds",
    "mcp.server.session.duration",
    &[PROTOCOL_VERSION, TRANSPORT, ERROR_TYPE],
    "Duration of sessions of clients that ended.",
    SESSION_BOUNDARIES,
);
/// Duration of sessions with upstreams that ended.
pub static CLIENT_SESSION_DURATION: MetricDef = histogram(
    "mcp_client_session_duration_seconds",
    "mcp.client.session.duration",
    &[PROTOCOL_VERSION, TRANSPORT, ERROR_TYPE, UPSTREAM],
    "Duration of sessions with upstreams that ended.",
    SESSION_BOUNDARIES,
);
/// Number of requests of clients that have no response yet.
pub static CALLS_ACTIVE: MetricDef = gauge(
    "creole_calls_active",
    "creole.calls.active",
    &[SERVER],
    "Number of requests of clients that have no response yet.",
);
/// Number of sessions of clients.
pub static SESSIONS: MetricDef =
    gauge("creole_sessions", "creole.sessions", &[SERVER], "Number of sessions of clients.");
/// Maximum number of HTTP sessions.
pub static SESSIONS_LIMIT: MetricDef = gauge(
    "creole_sessions_limit",
    "creole.sessions.limit",
    &[SERVER],
    "Maximum number of HTTP sessions.",
);
/// Number of open event streams to clients.
pub static STREAMS: MetricDef = gauge(
    "creole_streams",
    "creole.streams",
    &[SERVER],
    "Number of open event streams to clients.",
);
/// Number of open HTTP connections of clients.
pub static CONNECTIONS: MetricDef = gauge(
    "creole_connections",
    "creole.connections",
    &[LISTENER, HTTP_VERSION],
    "Number of open HTTP connections of clients.",
);
/// Maximum number of HTTP connections of clients.
pub static CONNECTIONS_LIMIT: MetricDef = gauge(
    "creole_connections_limit",
    "creole.connections.limit",
    &[LISTENER],
    "Maximum number of HTTP connections of clients.",
);
/// Number of messages that were refused before a request could be read from them.
pub static MESSAGES_REFUSED: MetricDef = counter(
    "creole_messages_refused_total",
    "creole.messages.refused",
    &[SERVER, REASON],
    "Number of messages that were refused before a request could be read from them.",
);
/// Number of HTTP requests that were refused before a message was read.
pub static HTTP_RESPONSES: MetricDef = counter(
    "creole_http_responses_total",
    "creole.http.responses",
    &[LISTENER, STATUS_CODE],
    "Number of HTTP requests that were refused before a message was read.",
);
/// Number of calls that a layer did not simply pass on.
pub static LAYER_DECISIONS: MetricDef = counter(
    "creole_layer_decisions_total",
    "creole.layer.decisions",
    &[SERVER, UPSTREAM, LAYER, DECISION],
    "Number of calls that a layer did not simply pass on.",
);
/// State of an upstream: exactly one state is 1.
pub static UPSTREAM_STATE: MetricDef = gauge(
    "creole_upstream_state",
    "creole.upstream.state",
    &[UPSTREAM, STATE],
    "State of an upstream: exactly one state is 1.",
);
/// What an upstream speaks; always 1.
pub static UPSTREAM_INFO: MetricDef = gauge(
    "creole_upstream_info",
    "creole.upstream.info",
    &[UPSTREAM, ERA, VERSION, UPSTREAM_TRANSPORT],
    "What an upstream speaks; always 1.",
);
/// Number of attempts to open the gateway's own session with an upstream.
pub static UPSTREAM_STARTS: MetricDef = counter(
    "creole_upstream_starts_total",
    "creole.upstream.starts",
    &[UPSTREAM, OUTCOME],
    "Number of attempts to open the gateway's own session with an upstream.",
);
/// Number of open connections to an upstream.
pub static UPSTREAM_CONNECTIONS: MetricDef = gauge(
    "creole_upstream_connections",
    "creole.upstream.connections",
    &[UPSTREAM, USE],
    "Number of open connections to an upstream.",
);
/// Number of items that an upstream announces.
pub static UPSTREAM_ITEMS: MetricDef = gauge(
    "creole_upstream_items",
    "creole.upstream.items",
    &[UPSTREAM, KIND, STATE],
    "Number of items that an upstream announces.",
);
/// Resident memory of the processes of an upstream.
pub static UPSTREAM_PROCESS_MEMORY: MetricDef = MetricDef {
    unit: Unit::Bytes,
    ..gauge(
        "creole_upstream_process_memory_bytes",
        "creole.upstream.process.memory",
        &[UPSTREAM],
        "Resident memory of the processes of an upstream.",
    )
};
/// CPU time of the processes of an upstream that run now.
pub static UPSTREAM_PROCESS_CPU: MetricDef = MetricDef {
    unit: Unit::Seconds,
    ..counter(
        "creole_upstream_process_cpu_seconds_total",
        "creole.upstream.process.cpu",
        &[UPSTREAM],
        "CPU time of the processes of an upstream that run now.",
    )
};
/// Number of processes of an upstream, with the ones that they started.
pub static UPSTREAM_PROCESSES: MetricDef = gauge(
    "creole_upstream_processes",
    "creole.upstream.processes",
    &[UPSTREAM],
    "Number of processes of an upstream, with the ones that they started.",
);
/// Number of lines and messages of an upstream that could not be used.
pub static UPSTREAM_NOISE: MetricDef = counter(
    "creole_upstream_noise_total",
    "creole.upstream.noise",
    &[UPSTREAM, KIND],
    "Number of lines and messages of an upstream that could not be used.",
);
/// Number of forwarded requests, by the era of the client, the era of the upstream and the translation between them.
pub static TRANSLATIONS: MetricDef = counter(
    "creole_translations_total",
    "creole.translations",
    &[FROM_ERA, TO_ERA, HOW],
    "Number of forwarded requests, by the era of the client, the era of the upstream and the translation between them.",
);
/// Number of upstream calls that wait for a client to return with its input.
pub static PARKED_CALLS: MetricDef = gauge(
    "creole_parked_calls",
    "creole.parked_calls",
    &[UPSTREAM],
    "Number of upstream calls that wait for a client to return with its input.",
);
/// Number of parked calls that ended.
pub static PARKED_ENDS: MetricDef = counter(
    "creole_parked_ends_total",
    "creole.parked.ends",
    &[END],
    "Number of parked calls that ended.",
);
/// Number of tasks of this process.
pub static TASKS: MetricDef =
    gauge("creole_tasks", "creole.tasks", &[STATUS], "Number of tasks of this process.");
/// Number of input requests to clients.
pub static INPUT_REQUESTS: MetricDef = counter(
    "creole_input_requests_total",
    "creole.input_requests",
    &[KIND, OUTCOME],
    "Number of input requests to clients.",
);
/// Number of HTTP requests whose credentials were checked.
pub static AUTH_ATTEMPTS: MetricDef = counter(
    "creole_auth_attempts_total",
    "creole.auth.attempts",
    &[AUTH_METHOD, OUTCOME],
    "Number of HTTP requests whose credentials were checked.",
);
/// Whether the last operation on the state succeeded.
pub static STATE_UP: MetricDef = gauge(
    "creole_state_up",
    "creole.state.up",
    &[],
    "Whether the last operation on the state succeeded.",
);
/// Duration of operations on the state that processes share.
pub static STATE_OPERATIONS: MetricDef = histogram(
    "creole_state_operations_seconds",
    "creole.state.operations",
    &[VERB, OUTCOME],
    "Duration of operations on the state that processes share.",
    STATE_BOUNDARIES,
);
/// Number of replicas that share the state, with this one.
pub static REPLICAS: MetricDef = gauge(
    "creole_replicas",
    "creole.replicas",
    &[],
    "Number of replicas that share the state, with this one.",
);
/// Number of requests to other replicas.
pub static REPLICA_REQUESTS: MetricDef = counter(
    "creole_replica_requests_total",
    "creole.replica_requests",
    &[TARGET, OUTCOME],
    "Number of requests to other replicas.",
);
/// Number of audit lines that were written.
pub static AUDIT_LINES: MetricDef = counter(
    "creole_audit_lines_total",
    "creole.audit.lines",
    &[],
    "Number of audit lines that were written.",
);
/// Number of audit lines that were lost.
pub static AUDIT_LOST: MetricDef = counter(
    "creole_audit_lost_total",
    "creole.audit.lost",
    &[],
    "Number of audit lines that were lost.",
);
/// Number of OTLP export requests.
pub static OTLP_EXPORTS: MetricDef = counter(
    "creole_otlp_exports_total",
    "creole.otlp.exports",
    &[SIGNAL, OUTCOME],
    "Number of OTLP export requests.",
);
/// Number of spans, metrics and log records that were not exported.
pub static OTLP_DROPPED: MetricDef = counter(
    "creole_otlp_dropped_total",
    "creole.otlp.dropped",
    &[SIGNAL],
    "Number of spans, metrics and log records that were not exported.",
);
/// Number of malformed trace contexts of clients.
pub static TRACE_CONTEXT_INVALID: MetricDef = counter(
    "creole_trace_context_invalid_total",
    "creole.trace_context.invalid",
    &[],
    "Number of malformed trace contexts of clients.",
);
/// Number of reloads of the configuration.
pub static CONFIG_RELOADS: MetricDef = counter(
    "creole_config_reloads_total",
    "creole.config.reloads",
    &[OUTCOME],
    "Number of reloads of the configuration.",
);
/// Time at which the running configuration was loaded, in seconds since 1970.
pub static CONFIG_LOADED: MetricDef = MetricDef {
    unit: Unit::Seconds,
    ..gauge(
        "creole_config_loaded_timestamp_seconds",
        "creole.config.loaded_timestamp",
        &[],
        "Time at which the running configuration was loaded, in seconds since 1970.",
    )
};
/// Number of series of each metric.
pub static METRIC_SERIES: MetricDef = gauge(
    "creole_metric_series",
    "creole.metric.series",
    &[METRIC_NAME],
    "Number of series of each metric.",
);
/// Number of series that were refused because a metric has too many.
pub static METRIC_SERIES_OVERFLOW: MetricDef = counter(
    "creole_metric_series_overflow_total",
    "creole.metric.series_overflow",
    &[METRIC_NAME],
    "Number of series that were refused because a metric has too many.",
);
/// The running program; always 1.
pub static BUILD_INFO: MetricDef = gauge(
    "creole_build_info",
    "creole.build.info",
    &[VERSION, REVISION, BUILD_TARGET, FEATURES],
    "The running program; always 1.",
);
/// CPU time of the process.
pub static PROCESS_CPU: MetricDef = MetricDef {
    unit: Unit::Seconds,
    ..counter("process_cpu_seconds_total", "process.cpu.time", &[], "CPU time of the process.")
};
/// Resident memory of the process.
pub static PROCESS_MEMORY: MetricDef = MetricDef {
    unit: Unit::Bytes,
    ..gauge(
        "process_resident_memory_bytes",
        "process.memory.usage",
        &[],
        "Resident memory of the process.",
    )
};
/// Number of open file descriptors.
pub static PROCESS_OPEN_FDS: MetricDef = gauge(
    "process_open_fds",
    "process.open_file_descriptor.count",
    &[],
    "Number of open file descriptors.",
);
/// Maximum number of open file descriptors.
pub static PROCESS_MAX_FDS: MetricDef = gauge(
    "process_max_fds",
    "process.open_file_descriptor.limit",
    &[],
    "Maximum number of open file descriptors.",
);
/// Time at which the process started, in seconds since 1970.
pub static PROCESS_START_TIME: MetricDef = MetricDef {
    unit: Unit::Seconds,
    ..gauge(
        "process_start_time_seconds",
        "process.start_time",
        &[],
        "Time at which the process started, in seconds since 1970.",
    )
};
/// Number of worker threads of the runtime.
pub static TOKIO_WORKERS: MetricDef =
    gauge("tokio_workers", "tokio.workers", &[], "Number of worker threads of the runtime.");
/// Number of tasks of the runtime that have not ended.
pub static TOKIO_ALIVE_TASKS: MetricDef = gauge(
    "tokio_alive_tasks",
    "tokio.alive_tasks",
    &[],
    "Number of tasks of the runtime that have not ended.",
);
/// Number of tasks that wait in the queue of the runtime.
pub static TOKIO_QUEUE: MetricDef = gauge(
    "tokio_global_queue_depth",
    "tokio.global_queue_depth",
    &[],
    "Number of tasks that wait in the queue of the runtime.",
);
