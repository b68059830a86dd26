//! The alerts, as data: each with series that make it fire and series that do not.

/// One alert.
pub(super) struct Alert {
    pub(super) name: &'static str,
    pub(super) expression: &'static str,
    /// How long the expression must hold.
    pub(super) lasting: &'static str,
    /// `page` wakes somebody, `warn` waits for working hours, `info` is for a look.
    pub(super) severity: &'static str,
    /// What happens, and what to do.
    pub(super) summary: &'static str,
    /// Series, in the notation of Prometheus' unit tests, one value a minute. The alert fires on them.
    pub(super) firing: &'static [(&'static str, &'static str)],
    /// The labels of the alert that fires, besides its severity.
    pub(super) labels: &'static [(&'static str, &'static str)],
    /// Series on which it does not fire.
    pub(super) silent: &'static [(&'static str, &'static str)],
}

/// Every alert.
pub(super) const ALERTS: &[Alert] = &[
    Alert {
        name: "CreoleDown",
        expression: "up{job=\"creole\"} == 0",
        lasting: "2m",
        severity: "page",
        summary: "Prometheus cannot scrape Creole: the process has ended, or its admin listener is unreachable.",
        firing: &[("up{job=\"creole\", instance=\"a\"}", "0x60")],
        labels: &[("job", "creole"), ("instance", "a")],
        silent: &[("up{job=\"creole\", instance=\"b\"}", "1x60")],
    },
    Alert {
        name: "CreoleUpstreamNotReady",
        expression: "creole_upstream_state{state=\"ready\"} == 0",
        lasting: "5m",
        severity: "warn",
        summary: "An upstream has not been ready for five minutes; `creole status` names its last error.",
        firing: &[("creole_upstream_state{upstream=\"a\", state=\"ready\"}", "0x60")],
        labels: &[("upstream", "a"), ("state", "ready")],
        silent: &[
            ("creole_upstream_state{upstream=\"b\", state=\"ready\"}", "1x60"),
            ("creole_upstream_state{upstream=\"b\", state=\"open\"}", "0x60"),
        ],
    },
    Alert {
        name: "CreoleUpstreamRestarting",
        expression: "sum without (outcome) (increase(creole_upstream_starts_total[15m])) > 5",
        lasting: "0m",
        severity: "warn",
        summary: "An upstream was started more than five times in fifteen minutes; look for its exits in the log.",
        firing: &[("creole_upstream_starts_total{upstream=\"a\", outcome=\"failed\"}", "0+1x60")],
        labels: &[("upstream", "a")],
        silent: &[("creole_upstream_starts_total{upstream=\"b\", outcome=\"ready\"}", "1x60")],
    },
    Alert {
        name: "CreoleErrorRatio",
        expression: "sum by (server) (rate(mcp_server_operation_duration_seconds_count{error_type!~\"|cancelled|unknown_tool\"}[5m])) / sum by (server) (rate(mcp_server_operation_duration_seconds_count[5m])) > 0.05",
        lasting: "10m",
        severity: "page",
        summary: "More than five percent of the calls fail; the dashboard's row Tools shows which ones.",
        firing: &[
            ("mcp_server_operation_duration_seconds_count{server=\"a\"}", "0+90x60"),
            (
                "mcp_server_operation_duration_seconds_count{server=\"a\", error_type=\"tool_error\"}",
                "0+10x60",
            ),
        ],
        labels: &[("server", "a")],
        silent: &[
            ("mcp_server_operation_duration_seconds_count{server=\"b\"}", "0+50x60"),
            (
                "mcp_server_operation_duration_seconds_count{server=\"b\", error_type=\"unknown_tool\"}",
                "0+50x60",
            ),
            (
                "mcp_server_operation_duration_seconds_count{server=\"b\", error_type=\"tool_error\"}",
                "0+1x60",
            ),
        ],
    },
    Alert {
        name: "CreoleSlow",
        expression: "histogram_quantile(0.95, sum by (le, server) (rate(mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"tools/call\"}[5m]))) > 5",
        lasting: "10m",
        severity: "warn",
        summary: "One of twenty tool calls takes longer than five seconds.",
        firing: &[
            (
                "mcp_server_operation_duration_seconds_bucket{server=\"a\", mcp_method_name=\"tools/call\", le=\"5.0\"}",
                "0x60",
            ),
            (
                "mcp_server_operation_duration_seconds_bucket{server=\"a\", mcp_method_name=\"tools/call\", le=\"10.0\"}",
                "0+60x60",
            ),
            (
                "mcp_server_operation_duration_seconds_bucket{server=\"a\", mcp_method_name=\"tools/call\", le=\"+Inf\"}",
                "0+60x60",
            ),
        ],
        labels: &[("server", "a")],
        silent: &[
            (
                "mcp_server_operation_duration_seconds_bucket{server=\"b\", mcp_method_name=\"tools/call\", le=\"5.0\"}",
                "0+60x60",
            ),
            (
                "mcp_server_operation_duration_seconds_bucket{server=\"b\", mcp_method_name=\"tools/call\", le=\"10.0\"}",
                "0+60x60",
            ),
            (
                "mcp_server_operation_duration_seconds_bucket{server=\"b\", mcp_method_name=\"tools/call\", le=\"+Inf\"}",
                "0+60x60",
            ),
        ],
    },
    Alert {
        name: "CreoleStateDown",
        expression: "creole_state_up == 0",
        lasting: "1m",
        severity: "page",
        summary: "The state file or its disk fails: sessions and tasks cannot be kept.",
        firing: &[("creole_state_up{instance=\"a\"}", "0x60")],
        labels: &[("instance", "a")],
        silent: &[("creole_state_up{instance=\"b\"}", "1x60")],
    },
    Alert {
        name: "CreoleStateSlow",
        expression: "histogram_quantile(0.99, sum by (le, instance) (rate(creole_state_operations_seconds_bucket[5m]))) > 0.25",
        lasting: "10m",
        severity: "warn",
        summary: "One of a hundred operations on the state takes longer than a quarter of a second.",
        firing: &[
            ("creole_state_operations_seconds_bucket{instance=\"a\", le=\"0.25\"}", "0x60"),
            ("creole_state_operations_seconds_bucket{instance=\"a\", le=\"0.5\"}", "0+60x60"),
            ("creole_state_operations_seconds_bucket{instance=\"a\", le=\"+Inf\"}", "0+60x60"),
        ],
        labels: &[("instance", "a")],
        silent: &[
            ("creole_state_operations_seconds_bucket{instance=\"b\", le=\"0.25\"}", "0+60x60"),
            ("creole_state_operations_seconds_bucket{instance=\"b\", le=\"0.5\"}", "0+60x60"),
            ("creole_state_operations_seconds_bucket{instance=\"b\", le=\"+Inf\"}", "0+60x60"),
        ],
    },
    Alert {
        name: "CreoleStateFull",
        expression: "increase(creole_state_operations_seconds_count{outcome=\"full\"}[10m]) > 0",
        lasting: "0m",
        severity: "page",
        summary: "The state has no room: new sessions and tasks are refused.",
        firing: &[(
            "creole_state_operations_seconds_count{verb=\"write\", outcome=\"full\"}",
            "0+1x60",
        )],
        labels: &[("verb", "write"), ("outcome", "full")],
        silent: &[(
            "creole_state_operations_seconds_count{verb=\"write\", outcome=\"done\"}",
            "0+1x60",
        )],
    },
    Alert {
        name: "CreoleParkedLost",
        expression: "increase(creole_parked_ends_total{end=\"lost\"}[15m]) > 0",
        lasting: "0m",
        severity: "warn",
        summary: "Calls that waited for input were lost: a replica ended, or a client parked too many.",
        firing: &[("creole_parked_ends_total{end=\"lost\"}", "0+1x60")],
        labels: &[("end", "lost")],
        silent: &[("creole_parked_ends_total{end=\"resumed\"}", "0+1x60")],
    },
    Alert {
        name: "CreoleAuditLost",
        expression: "increase(creole_audit_lost_total[5m]) > 0",
        lasting: "0m",
        severity: "page",
        summary: "Audit lines were lost: the disk is full or too slow.",
        firing: &[("creole_audit_lost_total{instance=\"a\"}", "0+1x60")],
        labels: &[("instance", "a")],
        silent: &[("creole_audit_lost_total{instance=\"b\"}", "7x60")],
    },
    Alert {
        name: "CreoleToolDrift",
        expression: "creole_upstream_items{state=\"withheld\"} > 0",
        lasting: "0m",
        severity: "warn",
        summary: "An upstream changed tools that were pinned; review and approve them.",
        firing: &[(
            "creole_upstream_items{upstream=\"a\", kind=\"tools\", state=\"withheld\"}",
            "2x60",
        )],
        labels: &[("upstream", "a"), ("kind", "tools"), ("state", "withheld")],
        silent: &[
            ("creole_upstream_items{upstream=\"b\", kind=\"tools\", state=\"withheld\"}", "0x60"),
            ("creole_upstream_items{upstream=\"b\", kind=\"tools\", state=\"listed\"}", "9x60"),
        ],
    },
    Alert {
        name: "CreoleConfigRejected",
        expression: "increase(creole_config_reloads_total{outcome=\"refused\"}[15m]) > 0",
        lasting: "0m",
        severity: "warn",
        summary: "A changed configuration was rejected; the log names the line, and the previous one stays active.",
        firing: &[("creole_config_reloads_total{outcome=\"refused\"}", "0x20 1x40")],
        labels: &[("outcome", "refused")],
        silent: &[("creole_config_reloads_total{outcome=\"accepted\"}", "0+1x60")],
    },
    Alert {
        name: "CreoleGuessing",
        expression: "rate(creole_auth_attempts_total{outcome=\"wrong\"}[5m]) > 1",
        lasting: "10m",
        severity: "warn",
        summary: "More than one wrong password or key arrives each second.",
        firing: &[(
            "creole_auth_attempts_total{method=\"password\", outcome=\"wrong\"}",
            "0+120x60",
        )],
        labels: &[("method", "password"), ("outcome", "wrong")],
        silent: &[
            ("creole_auth_attempts_total{method=\"key\", outcome=\"wrong\"}", "0+30x60"),
            ("creole_auth_attempts_total{method=\"key\", outcome=\"granted\"}", "0+600x60"),
        ],
    },
    Alert {
        name: "CreoleNearLimit",
        expression: "creole_sessions / creole_sessions_limit > 0.9 or sum without (http_version) (creole_connections) / creole_connections_limit > 0.9 or process_open_fds{job=\"creole\"} / process_max_fds{job=\"creole\"} > 0.9",
        lasting: "5m",
        severity: "warn",
        summary: "Sessions, connections or file descriptors are near their limit.",
        firing: &[
            ("creole_connections{listener=\"a\", http_version=\"1.1\"}", "50x60"),
            ("creole_connections{listener=\"a\", http_version=\"2\"}", "45x60"),
            ("creole_connections_limit{listener=\"a\"}", "100x60"),
        ],
        labels: &[("listener", "a")],
        silent: &[
            ("creole_sessions{server=\"b\"}", "10x60"),
            ("creole_sessions_limit{server=\"b\"}", "100x60"),
            ("process_open_fds{job=\"creole\"}", "10x60"),
            ("process_max_fds{job=\"creole\"}", "1024x60"),
        ],
    },
    Alert {
        name: "CreoleSeriesOverflow",
        expression: "increase(creole_metric_series_overflow_total[1h]) > 0",
        lasting: "0m",
        severity: "info",
        summary: "A metric has too many series; further ones are not exported.",
        firing: &[("creole_metric_series_overflow_total{name=\"a\"}", "0+1x60")],
        labels: &[("name", "a")],
        silent: &[("creole_metric_series_overflow_total{name=\"b\"}", "3x60")],
    },
    Alert {
        name: "CreoleOtlpDropped",
        expression: "increase(creole_otlp_dropped_total[1h]) > 0",
        lasting: "0m",
        severity: "info",
        summary: "Spans, metrics or log records were dropped: the OTLP receiver is slow or unreachable.",
        firing: &[("creole_otlp_dropped_total{signal=\"traces\"}", "0+1x60")],
        labels: &[("signal", "traces")],
        silent: &[("creole_otlp_dropped_total{signal=\"logs\"}", "0x60")],
    },
];
