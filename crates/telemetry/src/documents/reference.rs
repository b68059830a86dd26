//! The reference of the metrics.

use std::fmt::Write;

use creole::internal::telemetry::metrics::{
    MAX_LABELLED_ITEMS, MAX_SERIES, MAX_SERIES_PER_METRIC, MetricDef, MetricKind, table,
};

use super::alerts::ALERTS;

/// The reference as Markdown.
pub fn metrics_reference() -> String {
    let mut text = format!("{}\n", INTRODUCTION.trim());
    text.push_str("\n## Metrics\n\n");
    text.push_str("| name | kind | labels | what it counts |\n|---|---|---|---|\n");
    for metric in table::ALL {
        let MetricDef { name, kind, labels, help, .. } = metric;
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<_> = labels.iter().map(|label| format!("`{}`", label.name)).collect();
        _ = writeln!(text, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
    }
    text.push_str("\n## Names in OpenTelemetry\n\n");
    text.push_str("Over OTLP the same metrics have these names and attributes.\n\n");
    text.push_str("| name | name over OTLP | attributes |\n|---|---|---|\n");
    for metric in table::ALL {
        let attributes: Vec<_> =
            metric.labels.iter().map(|label| format!("`{}`", label.attribute)).collect();
        let attributes = attributes.join(", ");
        _ = writeln!(text, "| `{}` | `{}` | {attributes} |", metric.name, metric.otlp_name);
    }
    _ = write!(
        text,
        "\n## Bounds\n\nThe values of labels are Creole's own words: a text of a client never becomes \
         one. A method that is not in the protocol is `_OTHER`. A tool or prompt that is not listed has no \
         label. {MAX_LABELLED_ITEMS} tools and as many prompts of each server and of each upstream have series of \
         their own; the others share `_overflow`. A metric has at most {MAX_SERIES_PER_METRIC} series, and all \
         metrics together have {MAX_SERIES}: further ones are counted in \
         `creole_metric_series_overflow_total` and logged once. A series disappears with its upstream or tool.\n",
    );
    text.push_str("\n## Alerts\n\n| alert | severity | what it says |\n|---|---|---|\n");
    for alert in ALERTS {
        _ = writeln!(text, "| `{}` | {} | {} |", alert.name, alert.severity, alert.summary);
    }
    text
}

const INTRODUCTION: &str = "
# Metrics

`GET /metrics` on the admin listener gives these metrics: as Prometheus text 0.0.4, or as OpenMetrics 1.0 to a scraper
that prefers it. Only OpenMetrics has exemplars: the trace of the last sampled call of each bucket. The MCP listener has
no such path.

`packaging/grafana/creole.json` is a dashboard for Grafana, and `packaging/prometheus/creole.rules.yml` has alert rules.
The rules expect the job name `creole`:

```yaml
scrape_configs:
  - job_name: creole
    static_configs:
      - targets: [\"127.0.0.1:9464\"]
```

An error on the server's side is a failure of the server: `error_type` is `tool_error` for a tool that reports a failure,
the code of the JSON-RPC error, `cancelled`, or `unknown_tool`. Requests that are wrong in themselves (the codes -32700,
-32600, -32601, -32602 and -32002) have no `error_type`, as OpenTelemetry's conventions for MCP say. On the client's side,
that is, of requests to upstreams, every code is an error. A code that Creole does not know is `_OTHER`.
";
