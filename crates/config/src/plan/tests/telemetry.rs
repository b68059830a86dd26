//! Tests of the table `[telemetry]` and of the variables `OTEL_…`.

use std::time::Duration;

use creole::internal::telemetry::trace::{ParentTrust, Sampler};
use creole_telemetry::otlp::{PrincipalNames, Protocol};

use super::*;
use crate::plan::telemetry::TelemetryPlan;

/// The plan of a file in this environment.
fn with_variables(text: &str, variables: &[(&str, &str)]) -> TelemetryPlan {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
    };
    let text = format!("[server]\n{text}");
    Plan::read(&text, Path::new(""), PACKS, &lookup)
        .map_err(|problem| problem.into_error("creole.toml", &text).to_string())
        .unwrap_or_else(|shown| panic!("\n{shown}"))
        .telemetry
}

fn urls(plan: &TelemetryPlan) -> [Option<&str>; 3] {
    [
        plan.traces.as_ref().map(|(to, _)| &*to.url),
        plan.metrics.as_ref().map(|(to, _)| &*to.url),
        plan.logs.as_ref().map(|(to, _)| &*to.url),
    ]
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");

#[test]
fn without_an_endpoint_nothing_is_exported() {
    for text in ["", "[telemetry]", "[telemetry.traces]\nsample = 1"] {
        let plan = with_variables(text, &[]);
        assert!(!plan.exports() && plan.has_tool_labels && plan.warnings.is_empty(), "{text}");
    }
    assert!(!with_variables("[telemetry.metrics]\ntools = false", &[]).has_tool_labels);
}

#[test]
fn the_table_sets_everything() {
    let plan = with_variables(
        r#"
        [telemetry]
        endpoint = "http://127.0.0.1:4318/base/"
        headers = { Authorization = "Bearer x" }
        attributes = { "deployment.environment.name" = "prod", "service.name" = "gate" }
        timeout_seconds = 3
        [telemetry.traces]
        sample = 1
        parent = "link"
        slow_ms = 5
        errors = false
        payloads = true
        principals = "hash"
        [telemetry.metrics]
        interval_seconds = 7
        "#,
        &[ENDPOINT, ("OTEL_SERVICE_NAME", "other"), ("OTEL_TRACES_SAMPLER", "always_off")],
    );
    let base = "http://127.0.0.1:4318/base";
    let expected = ["traces", "metrics", "logs"].map(|signal| format!("{base}/v1/{signal}"));
    assert_eq!(urls(&plan), expected.each_ref().map(|url| Some(&**url)));
    assert!(!plan.exports_events);
    let (collector, traces) = plan.traces.as_ref().unwrap();
    assert_eq!(
        (collector.protocol, collector.timeout),
        (Protocol::HttpProtobuf, Duration::from_secs(3))
    );
    assert_eq!(collector.headers[0].1.0, "Bearer x");
    assert!(!format!("{plan:?}").contains("Bearer"));
    assert!(collector.collector().is_ok());
    assert_eq!(traces.settings.sampler, Sampler::new(1.0, true));
    assert_eq!(traces.settings.parent, ParentTrust::Link);
    assert_eq!(traces.spans.principals, PrincipalNames::Hash);
    assert!(traces.spans.has_payloads && !traces.spans.keeps_errors);
    assert_eq!(traces.spans.slow, Some(Duration::from_millis(5)));
    assert_eq!(plan.metrics.as_ref().unwrap().1, Duration::from_secs(7));
    let attribute = |key: &str| {
        let found = plan.resource.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(attribute("service.name"), Some("gate"));
    assert_eq!(attribute("deployment.environment.name"), Some("prod"));
    assert_eq!(attribute("telemetry.sdk.name"), Some("creole"));
}

#[test]
fn a_signal_can_be_left_out() {
    let endpoint = "[telemetry]\nendpoint = \"http://c\"\nprotocol = \"grpc\"\n";
    let text = format!("{endpoint}[telemetry.traces]\notlp = false\n[telemetry.logs]\notlp = true");
    let plan = with_variables(&text, &[]);
    let service = "http://c/opentelemetry.proto.collector";
    let metrics = format!("{service}.metrics.v1.MetricsService/Export");
    let logs = format!("{service}.logs.v1.LogsService/Export");
    assert_eq!(urls(&plan), [None, Some(&*metrics), Some(&*logs)]);
    assert!(plan.exports_events);
}

#[test]
fn the_environment_alone_switches_the_export_on() {
    let plan = with_variables(
        "",
        &[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://m/own"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y=1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_SERVICE_NAME", "gate"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=no,zone=b%2C1"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
            ("OTEL_BSP_SCHEDULE_DELAY", "20"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
            ("OTEL_LOGS_EXPORTER", "otlp"),
            ("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ],
    );
    let logs = "http://c:4318/v1/logs";
    assert_eq!(urls(&plan), [Some("http://c:4318/v1/traces"), Some("https://m/own"), Some(logs)]);
    let (collector, traces) = plan.traces.as_ref().unwrap();
    assert_eq!(collector.headers[0].0, "x-key");
    assert_eq!(collector.headers[0].1.0, "a b");
    assert_eq!(collector.timeout, Duration::from_millis(250));
    assert_eq!(traces.settings.sampler, Sampler::new(0.5, false));
    assert!(traces.settings.process.is_some());
    assert_eq!((traces.spans.batches.max_queue, traces.spans.batches.max_batch), (100, 100));
    assert_eq!(traces.spans.batches.delay, Duration::from_millis(20));
    assert_eq!(plan.metrics.as_ref().unwrap().1, Duration::from_millis(1500));
    assert!(plan.exports_events && plan.warnings.is_empty(), "{:?}", plan.warnings);
    assert!(plan.resource.contains(&("service.name".to_owned(), "gate".to_owned())));
    assert!(plan.resource.contains(&("zone".to_owned(), "b,1".to_owned())));
}

#[test]
fn the_environment_switches_signals_and_everything_off() {
    let off = with_variables("", &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]);
    assert!(off.traces.is_none() && off.metrics.is_some());
    let table = "[telemetry]\nendpoint = \"http://c\"";
    for text in ["", table] {
        let disabled = with_variables(text, &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]);
        assert!(!disabled.exports(), "{text}");
    }
    assert!(with_variables("", &[ENDPOINT, ("OTEL_SDK_DISABLED", "1")]).exports());
}

#[test]
fn a_variable_that_cannot_be_used_is_reported_and_never_an_error() {
    let plan = with_variables(
        "",
        &[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "c:4318"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_METRICS_EXPORTER", "otlp,console"),
            ("TRACEPARENT", "x"),
        ],
    );
    assert!(plan.traces.is_some() && plan.metrics.is_none());
    let names = [
        "OTEL_TRACES_SAMPLER ",
        "OTEL_BSP_SCHEDULE_DELAY",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    ];
    for name in names {
        assert!(plan.warnings.iter().any(|it| it.contains(name)), "{name}: {:?}", plan.warnings);
    }
    assert!(plan.warnings.iter().all(|it| !it.contains("secret")), "{:?}", plan.warnings);
}

#[test]
fn invalid_values_of_the_table_are_refused_with_their_position() {
    for (text, expected) in [
        ("endpoint = \"c:4318\"", "invalid URL"),
        ("endpoint = \"http://u:p@c\"", "user name or a password"),
        ("headers = { Host = \"x\" }", "`Host` is set by the transport"),
        ("endpoint = \"http://c\"\nca_file = \"x\"", "only valid for `https://`"),
        ("[telemetry.traces]\nsample = 1.5", "`sample` is 1.5"),
        ("[telemetry.traces]\nsample = -0.1", "`sample` is -0.1"),
        ("attributes = { \" \" = \"x\" }", "an attribute has no name"),
        ("[upstreams.a]\nurl = \"http://a\"\nbaggage = [\"a b\"]", "no name of a baggage"),
        ("[upstreams.a]\nurl = \"http://a\"\npropagate = false\nbaggage = [\"a\"]", "no effect"),
    ] {
        let error = refusal(&format!("[server]\n[telemetry]\n{text}"));
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(error.location.is_some(), "{text}");
    }
}

#[test]
fn an_upstream_gets_the_context_without_baggage_by_default() {
    let text = "[server]\n[upstreams.a]\nurl = \"http://a\"\n[upstreams.b]\nurl = \"http://b\"\n\
        propagate = false\n[upstreams.c]\nurl = \"http://c\"\nbaggage = [\"tenant\"]";
    let plan = plan(text);
    let shown: Vec<_> = plan
        .upstreams
        .iter()
        .map(|it| (it.propagation.is_enabled, it.propagation.baggage.len()))
        .collect();
    assert_eq!(shown, [(true, 0), (false, 0), (true, 1)]);
}
