//! Tests of the registry and of the bounds of its series.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::revision::Revision;

use super::operations::MAX_LABELLED_ITEMS;
use super::{
    MAX_SERIES_PER_METRIC, MetricKind, Metrics, NetworkTransport, Operations, SeriesValue,
    Snapshot, Unit, table,
};

fn count_of(snapshot: &Snapshot, labels: &[&str]) -> Option<u64> {
    match snapshot.value(&table::SERVER_OPERATION_DURATION, labels)? {
        SeriesValue::Histogram(value) => Some(value.count),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_names_of_the_table_follow_the_rules_of_prometheus() {
    let mut names = HashSet::new();
    for metric in table::ALL {
        let name = metric.name;
        assert!(names.insert(name), "{name} is there twice");
        let is_plain =
            |text: &str| text.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '_'));
        assert!(is_plain(name), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == MetricKind::Counter, "{name}");
        let unit = match metric.unit {
            Unit::Count => "",
            Unit::Seconds => "_seconds",
            Unit::Bytes => "_bytes",
        };
        assert!(name.trim_end_matches("_total").ends_with(unit), "{name}");
        assert!(metric.help.ends_with('.') && !metric.help.contains(['"', '\\', '\n']), "{name}");
        let labels: HashSet<_> = metric.labels.iter().map(|label| label.name).collect();
        assert_eq!(labels.len(), metric.labels.len(), "{name}");
        assert!(labels.iter().all(|label| is_plain(label) && *label != "le"), "{name}");
        assert_eq!(metric.boundaries.is_empty(), metric.kind != MetricKind::Histogram, "{name}");
        assert!(metric.boundaries.is_sorted_by(|left, right| left < right), "{name}");
        assert!(metric.boundaries.len() < super::shards::MAX_BUCKETS, "{name}");
    }
}

#[test]
fn threads_count_in_one_series() {
    let metrics = Metrics::default();
    let (counter, gauge) =
        (metrics.counter(&table::AUDIT_LINES, &[]), metrics.up_down(&table::SESSIONS, &["s"]));
    let histogram = metrics.histogram(&table::STATE_OPERATIONS, &["get", "done"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    counter.increment();
                    gauge.increment();
                    histogram.record(Duration::from_millis(2));
                }
                (0..999).for_each(|_| gauge.decrement());
            });
        }
    });
    let snapshot = metrics.collect();
    assert_eq!(snapshot.value(&table::AUDIT_LINES, &[]), Some(&SeriesValue::Integer(8000)));
    assert_eq!(snapshot.value(&table::SESSIONS, &["s"]), Some(&SeriesValue::Integer(8)));
    let Some(SeriesValue::Histogram(value)) =
        snapshot.value(&table::STATE_OPERATIONS, &["get", "done"])
    else {
        panic!("no histogram");
    };
    assert_eq!((value.count, value.sum), (8000, 16.0));
}

#[test]
fn a_series_ends_with_its_last_handle_and_begins_again_at_zero() {
    let metrics = Metrics::default();
    let value = |metrics: &Metrics| {
        metrics.collect().value(&table::UPSTREAM_STARTS, &["a", "ready"]).cloned()
    };
    let first = metrics.counter(&table::UPSTREAM_STARTS, &["a", "ready"]);
    let second = metrics.counter(&table::UPSTREAM_STARTS, &["a", "ready"]);
    first.increment();
    drop(first);
    second.increment();
    assert_eq!(value(&metrics), Some(SeriesValue::Integer(2)));
    drop(second);
    assert_eq!(value(&metrics), None);
    let third = metrics.counter(&table::UPSTREAM_STARTS, &["a", "ready"]);
    assert_eq!(value(&metrics), Some(SeriesValue::Integer(0)));
    drop(third);
}

#[test]
fn values_that_are_collected_disappear_with_their_guard() {
    let metrics = Metrics::default();
    let report = |metrics: &Metrics, count: i64| {
        metrics.on_collect(move |values| values.integer(&table::PARKED_CALLS, &["a"], count))
    };
    let (one, two) = (report(&metrics, 1), report(&metrics, 2));
    let value = |metrics: &Metrics| metrics.collect().value(&table::PARKED_CALLS, &["a"]).cloned();
    assert_eq!(value(&metrics), Some(SeriesValue::Integer(3)));
    drop(one);
    assert_eq!(value(&metrics), Some(SeriesValue::Integer(2)));
    drop(two);
    assert_eq!(value(&metrics), None);
}

#[test]
fn a_metric_has_a_bounded_number_of_series() {
    let metrics = Metrics::default();
    let handles: Vec<_> = (0..MAX_SERIES_PER_METRIC + 7)
        .map(|number| metrics.counter(&table::UPSTREAM_STARTS, &[&number.to_string(), "ready"]))
        .collect();
    handles.iter().for_each(super::Counter::increment);
    let snapshot = metrics.collect();
    let name = table::UPSTREAM_STARTS.name;
    assert_eq!(snapshot.family(name).map(|it| it.series.len()), Some(MAX_SERIES_PER_METRIC));
    let own = |definition| snapshot.value(definition, &[name]).cloned();
    assert_eq!(own(&table::METRIC_SERIES), Some(SeriesValue::Integer(5000)));
    assert_eq!(own(&table::METRIC_SERIES_OVERFLOW), Some(SeriesValue::Integer(7)));
    drop(handles);
    let again = metrics.counter(&table::UPSTREAM_STARTS, &["new", "ready"]);
    let snapshot = metrics.collect();
    assert_eq!(snapshot.family(name).map(|it| it.series.len()), Some(1), "there is room again");
    drop(again);
}

#[test]
fn tools_beyond_the_bound_share_the_overflow_series() {
    let metrics = Arc::new(Metrics::default());
    let operations = Operations::of_server(&metrics, "s");
    let tools: Vec<_> = (0..500).map(|number| operations.tool(&format!("t{number}"))).collect();
    let rules = Revision::V2025_11_25.rules();
    let count = |tool: &super::OperationSeries, error| {
        tool.record(rules, NetworkTransport::Tcp, error, Duration::from_millis(1), None);
    };
    tools.iter().for_each(|tool| count(tool, ""));
    count(operations.method("tools/call"), "unknown_tool");
    count(operations.method("made/up"), "");
    let snapshot = metrics.collect();
    let labels = |method, tool, error| ["s", method, tool, "", "2025-11-25", "tcp", error];
    assert_eq!(count_of(&snapshot, &labels("tools/call", "t199", "")), Some(1));
    assert_eq!(count_of(&snapshot, &labels("tools/call", "t200", "")), None);
    assert_eq!(count_of(&snapshot, &labels("tools/call", "_overflow", "")), Some(300));
    assert_eq!(count_of(&snapshot, &labels("tools/call", "", "unknown_tool")), Some(1));
    assert_eq!(count_of(&snapshot, &labels("_OTHER", "", "")), Some(1));
    let series = snapshot.family(table::SERVER_OPERATION_DURATION.name).map(|it| it.series.len());
    assert_eq!(series, Some(MAX_LABELLED_ITEMS + 3));
}

#[test]
fn the_series_of_a_tool_end_with_its_entry() {
    let metrics = Arc::new(Metrics::default());
    let operations = Operations::of_upstream(&metrics, "u");
    let tool = operations.tool("echo");
    let record = |tool: &super::OperationSeries, error| {
        let rules = Revision::V2026_07_28.rules();
        tool.record(rules, NetworkTransport::Pipe, error, Duration::from_micros(50), None);
    };
    record(&tool, "");
    record(&tool, "tool_error");
    record(&tool, "tool_error");
    let same = operations.tool("echo");
    drop(tool);
    let series = || {
        metrics.collect().family(table::CLIENT_OPERATION_DURATION.name).map(|it| it.series.len())
    };
    assert_eq!(series(), Some(2), "a list that is replaced continues its series");
    drop(same);
    assert_eq!(series(), None);
}

#[test]
fn without_tool_labels_a_tool_has_no_series_of_its_own() {
    let metrics = Arc::new(Metrics::default());
    metrics.set_tool_labels(false);
    let operations = Operations::of_server(&metrics, "s");
    let tool = operations.tool("echo");
    let rules = Revision::V2025_11_25.rules();
    tool.record(rules, NetworkTransport::Pipe, "", Duration::from_micros(50), None);
    let labels = ["s", "tools/call", "", "", "2025-11-25", "pipe", ""];
    assert_eq!(count_of(&metrics.collect(), &labels), Some(1));
}
