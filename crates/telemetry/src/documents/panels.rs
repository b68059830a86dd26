//! The panels of the Grafana dashboard, as data.

/// A row of the dashboard.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

/// One panel.
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// The type of panel: `timeseries`, `state-timeline`, `table` or `stat`.
    pub(super) kind: &'static str,
    /// The unit, as Grafana names it.
    pub(super) unit: &'static str,
    /// Each query with its legend.
    pub(super) queries: &'static [(&'static str, &'static str)],
}

const fn panel(
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel { title, kind: "timeseries", unit, queries }
}

/// The rows, from what everybody looks at to what few do.
pub(super) const ROWS: &[Row] = &[
    Row { title: "Traffic", panels: TRAFFIC },
    Row { title: "Upstreams", panels: UPSTREAMS },
    Row { title: "Tools", panels: TOOLS },
    Row { title: "Bridge between the eras", panels: BRIDGE },
    Row { title: "Callers", panels: CALLERS },
    Row { title: "Replicas and state", panels: STATE },
    Row { title: "Process", panels: PROCESS },
];

const TRAFFIC: &[Panel] = &[
    panel(
        "Calls per second",
        "reqps",
        &[(
            "sum by (server, mcp_method_name) (rate(mcp_server_operation_duration_seconds_count[$__rate_interval]))",
            "{{server}} {{mcp_method_name}}",
        )],
    ),
    panel(
        "Error ratio",
        "percentunit",
        &[(
            "sum by (server) (rate(mcp_server_operation_duration_seconds_count{error_type!~\"|cancelled|unknown_tool\"}[$__rate_interval])) / sum by (server) (rate(mcp_server_operation_duration_seconds_count[$__rate_interval]))",
            "{{server}}",
        )],
    ),
    panel(
        "Duration of calls by protocol version",
        "s",
        &[
            (
                "histogram_quantile(0.5, sum by (le, mcp_protocol_version) (rate(mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"tools/call\"}[$__rate_interval])))",
                "p50 {{mcp_protocol_version}}",
            ),
            (
                "histogram_quantile(0.95, sum by (le, mcp_protocol_version) (rate(mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"tools/call\"}[$__rate_interval])))",
                "p95 {{mcp_protocol_version}}",
            ),
            (
                "histogram_quantile(0.99, sum by (le, mcp_protocol_version) (rate(mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"tools/call\"}[$__rate_interval])))",
                "p99 {{mcp_protocol_version}}",
            ),
        ],
    ),
    panel(
        "In flight",
        "short",
        &[
            ("creole_calls_active", "calls {{server}}"),
            ("creole_sessions", "sessions {{server}}"),
            ("creole_streams", "streams {{server}}"),
            ("sum by (listener) (creole_connections)", "connections {{listener}}"),
        ],
    ),
];

const UPSTREAMS: &[Panel] = &[
    Panel {
        title: "State",
        kind: "state-timeline",
        unit: "short",
        queries: &[("creole_upstream_state == 1", "{{upstream}} {{state}}")],
    },
    panel(
        "Duration of requests, p95",
        "s",
        &[(
            "histogram_quantile(0.95, sum by (le, upstream) (rate(mcp_client_operation_duration_seconds_bucket[$__rate_interval])))",
            "{{upstream}}",
        )],
    ),
    panel(
        "Starts",
        "short",
        &[("increase(creole_upstream_starts_total[$__rate_interval])", "{{upstream}} {{outcome}}")],
    ),
    panel(
        "Memory of the programs",
        "bytes",
        &[("creole_upstream_process_memory_bytes", "{{upstream}}")],
    ),
    panel(
        "CPU of the programs",
        "percentunit",
        &[("rate(creole_upstream_process_cpu_seconds_total[$__rate_interval])", "{{upstream}}")],
    ),
    panel("Connections", "short", &[("creole_upstream_connections", "{{upstream}} {{use}}")]),
    panel("Items", "short", &[("creole_upstream_items", "{{upstream}} {{kind}} {{state}}")]),
    Panel {
        title: "Versions",
        kind: "table",
        unit: "short",
        queries: &[("creole_upstream_info", "{{upstream}}")],
    },
];

const TOOLS: &[Panel] = &[
    panel(
        "Most called",
        "reqps",
        &[(
            "topk(10, sum by (server, gen_ai_tool_name) (rate(mcp_server_operation_duration_seconds_count{gen_ai_tool_name!=\"\"}[$__rate_interval])))",
            "{{server}} {{gen_ai_tool_name}}",
        )],
    ),
    panel(
        "Most errors",
        "reqps",
        &[(
            "topk(10, sum by (server, gen_ai_tool_name, error_type) (rate(mcp_server_operation_duration_seconds_count{gen_ai_tool_name!=\"\", error_type!=\"\"}[$__rate_interval])))",
            "{{server}} {{gen_ai_tool_name}} {{error_type}}",
        )],
    ),
    panel(
        "Slowest, p95",
        "s",
        &[(
            "topk(10, histogram_quantile(0.95, sum by (le, server, gen_ai_tool_name) (rate(mcp_server_operation_duration_seconds_bucket{gen_ai_tool_name!=\"\"}[$__rate_interval]))))",
            "{{server}} {{gen_ai_tool_name}}",
        )],
    ),
];

const BRIDGE: &[Panel] = &[
    panel(
        "Translations",
        "reqps",
        &[(
            "sum by (from_era, to_era, how) (rate(creole_translations_total[$__rate_interval]))",
            "{{from_era}} to {{to_era}}: {{how}}",
        )],
    ),
    panel("Parked calls", "short", &[("creole_parked_calls", "{{upstream}}")]),
    panel(
        "Ends of parked calls",
        "short",
        &[("sum by (end) (increase(creole_parked_ends_total[$__rate_interval]))", "{{end}}")],
    ),
    panel(
        "Input requests",
        "short",
        &[(
            "sum by (kind, outcome) (increase(creole_input_requests_total[$__rate_interval]))",
            "{{kind}} {{outcome}}",
        )],
    ),
];

const CALLERS: &[Panel] = &[
    panel(
        "Refused HTTP requests",
        "reqps",
        &[(
            "sum by (listener, code) (rate(creole_http_responses_total[$__rate_interval]))",
            "{{listener}} {{code}}",
        )],
    ),
    panel(
        "Refused messages",
        "reqps",
        &[(
            "sum by (server, reason) (rate(creole_messages_refused_total[$__rate_interval]))",
            "{{server}} {{reason}}",
        )],
    ),
    panel(
        "Decisions of layers",
        "reqps",
        &[(
            "sum by (server, upstream, layer, decision) (rate(creole_layer_decisions_total[$__rate_interval]))",
            "{{server}}{{upstream}} {{layer}} {{decision}}",
        )],
    ),
    panel(
        "Logins",
        "reqps",
        &[(
            "sum by (method, outcome) (rate(creole_auth_attempts_total[$__rate_interval]))",
            "{{method}} {{outcome}}",
        )],
    ),
];

const STATE: &[Panel] = &[
    panel(
        "Operations on the state",
        "ops",
        &[(
            "sum by (verb, outcome) (rate(creole_state_operations_seconds_count[$__rate_interval]))",
            "{{verb}} {{outcome}}",
        )],
    ),
    panel(
        "Duration of operations, p99",
        "s",
        &[(
            "histogram_quantile(0.99, sum by (le, verb) (rate(creole_state_operations_seconds_bucket[$__rate_interval])))",
            "{{verb}}",
        )],
    ),
    panel(
        "State and tasks",
        "short",
        &[
            ("sum by (status) (creole_tasks)", "tasks {{status}}"),
            ("creole_state_up", "state"),
            ("max(creole_replicas)", "replicas"),
        ],
    ),
];

const PROCESS: &[Panel] = &[
    panel("Memory", "bytes", &[("process_resident_memory_bytes", "{{instance}}")]),
    panel(
        "CPU",
        "percentunit",
        &[("rate(process_cpu_seconds_total[$__rate_interval])", "{{instance}}")],
    ),
    panel(
        "File descriptors",
        "short",
        &[("process_open_fds", "open {{instance}}"), ("process_max_fds", "maximum {{instance}}")],
    ),
    panel(
        "Runtime",
        "short",
        &[
            ("tokio_alive_tasks", "tasks {{instance}}"),
            ("tokio_global_queue_depth", "queue {{instance}}"),
        ],
    ),
    panel("Series", "short", &[("sum by (name) (creole_metric_series)", "{{name}}")]),
    Panel {
        title: "Program",
        kind: "table",
        unit: "short",
        queries: &[("creole_build_info", "{{version}}")],
    },
];
