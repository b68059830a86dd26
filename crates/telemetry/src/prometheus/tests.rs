//! Tests of the text formats.

use std::time::Duration;

use creole::internal::telemetry::metrics::{Metrics, table};

use super::{Format, write};

fn filled() -> Metrics {
    let metrics = Metrics::default();
    metrics.enable();
    metrics.add(&table::UPSTREAM_STARTS, &["a\"b\\c\nd", "ready"], 3);
    let histogram = metrics.histogram(&table::SERVER_SESSION_DURATION, &["2025-11-25", "tcp", ""]);
    histogram.record(Duration::from_millis(10));
    histogram.record_traced(Duration::from_millis(11), [0xab; 16], [0xcd; 8]);
    histogram.record(Duration::from_hours(7));
    // The handle is needed until the text is written, so it is kept for ever.
    std::mem::forget(histogram);
    metrics
}

fn lines_of(text: &str, prefix: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
}

#[test]
fn a_counter_has_its_suffix_in_the_family_of_the_text_format_only() {
    let snapshot = filled().collect();
    let text = write(&snapshot, Format::Text);
    assert!(text.contains("# TYPE creole_upstream_starts_total counter\n"), "{text}");
    let open = write(&snapshot, Format::OpenMetrics);
    assert!(open.contains("# TYPE creole_upstream_starts counter\n"), "{open}");
    for text in [text, open] {
        let sample = r#"creole_upstream_starts_total{upstream="a\"b\\c\nd",outcome="ready"} 3"#;
        assert_eq!(lines_of(&text, "creole_upstream_starts_total"), [sample]);
    }
}

#[test]
fn buckets_are_cumulative_and_contain_their_upper_bound() {
    let text = write(&filled().collect(), Format::Text);
    let buckets = lines_of(&text, "mcp_server_session_duration_seconds_bucket");
    let labels = r#"mcp_server_session_duration_seconds_bucket{mcp_protocol_version="2025-11-25",network_transport="tcp""#;
    assert_eq!(buckets[0], format!(r#"{labels},le="0.01"}} 1"#));
    assert_eq!(buckets[1], format!(r#"{labels},le="0.02"}} 2"#));
    assert_eq!(buckets[6], format!(r#"{labels},le="1.0"}} 2"#));
    assert_eq!(buckets[15], format!(r#"{labels},le="21600.0"}} 2"#));
    assert_eq!(buckets[16], format!(r#"{labels},le="+Inf"}} 3"#));
    assert_eq!(buckets.len(), 17);
    let count = lines_of(&text, "mcp_server_session_duration_seconds_count");
    assert!(count[0].ends_with("} 3"), "{count:?}");
    let sum = lines_of(&text, "mcp_server_session_duration_seconds_sum");
    assert!(sum[0].ends_with("} 25200.021"), "{sum:?}");
}

#[test]
fn only_openmetrics_has_exemplars_units_and_an_end() {
    let snapshot = filled().collect();
    let (text, open) = (write(&snapshot, Format::Text), write(&snapshot, Format::OpenMetrics));
    assert!(!text.contains("trace_id") && !text.contains("# UNIT") && !text.contains("# EOF"));
    let exemplar =
        format!("# {{trace_id=\"{}\",span_id=\"{}\"}} 0.011 ", "ab".repeat(16), "cd".repeat(8));
    assert_eq!(open.matches(&exemplar).count(), 1, "{open}");
    assert!(open.contains("# UNIT mcp_server_session_duration_seconds seconds\n"), "{open}");
    assert!(open.ends_with("# EOF\n"), "{open}");
}

#[test]
fn the_format_is_the_one_that_the_scraper_prefers() {
    let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                      version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let cases = [
        (prometheus, Format::OpenMetrics),
        ("application/openmetrics-text", Format::OpenMetrics),
        ("", Format::Text),
        ("*/*", Format::Text),
        ("text/plain", Format::Text),
        ("text/plain, application/openmetrics-text;q=0.5", Format::Text),
        ("application/openmetrics-text;q=0", Format::Text),
    ];
    for (accept, expected) in cases {
        assert_eq!(Format::from_accept(accept), expected, "{accept}");
    }
}
