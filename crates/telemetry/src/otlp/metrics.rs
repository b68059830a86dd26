//! Metrics: the values of all series, as OTLP has them.

use std::sync::Arc;
use std::time::Duration;

use creole::internal::telemetry::metrics::{
    Exemplar, FamilySnapshot, HistogramValue, MetricDef, MetricKind, Metrics, SeriesSnapshot,
    SeriesValue, Snapshot,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar as ExemplarMessage, Gauge, Histogram, HistogramDataPoint,
    Metric, NumberDataPoint, Sum, exemplar,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::attributes::text_attribute;
use super::backoff::Backoff;
use super::batches::ExportReport;
use super::client::{SendError, SendRequest};
use super::encode::{Sender, unix_nanos};

/// Exports all metrics from time to time, and a last time when the process ends.
pub(super) struct MetricExport {
    pub(super) metrics: Arc<Metrics>,
    pub(super) sender: Sender,
    pub(super) client: Arc<dyn SendRequest>,
    pub(super) interval: Duration,
    pub(super) report: ExportReport,
    /// Becomes true when the process ends.
    pub(super) stop: watch::Receiver<bool>,
}

impl MetricExport {
    /// Runs until the signal to stop.
    pub(super) async fn run(mut self) {
        let mut due = Instant::now() + self.interval;
        while !self.wait_until(due).await {
            due = Instant::now() + self.interval;
            if self.export_before(due).await {
                break;
            }
        }
        // The report says how it ended.
        let _ = self.export().await;
    }

    /// Exports, and repeats a failed request while the next export is not due. Returns whether the process ends.
    async fn export_before(&mut self, due: Instant) -> bool {
        let mut backoff = Backoff::default();
        while let Err(SendError::Retry(_, after)) = self.export().await {
            let again = Instant::now() + backoff.next_wait(after);
            if again >= due {
                return false;
            }
            if self.wait_until(again).await {
                return true;
            }
        }
        false
    }

    /// Sends the values of this moment. Values are sums since the start: a lost request loses nothing.
    async fn export(&mut self) -> Result<(), SendError> {
        let metrics = messages(&self.metrics.collect());
        if metrics.is_empty() {
            return Ok(());
        }
        let number = metrics.len() as u64;
        let sent = self.client.send(self.sender.metrics(metrics)).await;
        self.report.ended(&sent);
        if let Err(SendError::Refused(_)) = sent {
            self.report.dropped(number);
        }
        sent.map(drop)
    }

    /// Waits until this time. Returns whether the process ends.
    async fn wait_until(&mut self, time: Instant) -> bool {
        tokio::select! {
            () = sleep_until(time) => false,
            _ = self.stop.wait_for(|stops| *stops) => true,
        }
    }
}

/// The messages of a snapshot.
fn messages(snapshot: &Snapshot) -> Vec<Metric> {
    let time = unix_nanos(snapshot.taken_at);
    snapshot.families.iter().map(|family| message(family, time)).collect()
}

fn message(family: &FamilySnapshot, time: u64) -> Metric {
    let definition = family.definition;
    let cumulative = AggregationTemporality::Cumulative.into();
    let numbers = || family.series.iter().filter_map(|it| number_point(definition, it, time));
    let data = match definition.kind {
        MetricKind::Counter => Data::Sum(Sum {
            data_points: numbers().collect(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        MetricKind::Gauge => Data::Gauge(Gauge { data_points: numbers().collect() }),
        MetricKind::Histogram => Data::Histogram(Histogram {
            data_points: family
                .series
                .iter()
                .filter_map(|it| histogram_point(definition, it, time))
                .collect(),
            aggregation_temporality: cumulative,
        }),
    };
    Metric {
        name: definition.otlp_name.to_owned(),
        description: definition.help.to_owned(),
        unit: definition.unit.ucum().to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn number_point(
    definition: &MetricDef,
    series: &SeriesSnapshot,
    time: u64,
) -> Option<NumberDataPoint> {
    let value = match series.value {
        SeriesValue::Integer(number) => Value::AsInt(number),
        SeriesValue::Float(number) => Value::AsDouble(number),
        SeriesValue::Histogram(_) => return None,
    };
    Some(NumberDataPoint {
        attributes: attributes(definition, series),
        start_time_unix_nano: unix_nanos(series.started_at),
        time_unix_nano: time,
        value: Some(value),
        ..NumberDataPoint::default()
    })
}

fn histogram_point(
    definition: &MetricDef,
    series: &SeriesSnapshot,
    time: u64,
) -> Option<HistogramDataPoint> {
    let SeriesValue::Histogram(HistogramValue { counts, count, sum, exemplars }) = &series.value
    else {
        return None;
    };
    let seconds = |nanos: &u64| Duration::from_nanos(*nanos).as_secs_f64();
    Some(HistogramDataPoint {
        attributes: attributes(definition, series),
        start_time_unix_nano: unix_nanos(series.started_at),
        time_unix_nano: time,
        count: *count,
        sum: Some(*sum),
        bucket_counts: counts.clone(),
        explicit_bounds: definition.boundaries.iter().map(seconds).collect(),
        exemplars: exemplars.iter().flatten().map(exemplar_message).collect(),
        ..HistogramDataPoint::default()
    })
}

fn exemplar_message(exemplar: &Exemplar) -> ExemplarMessage {
    ExemplarMessage {
        time_unix_nano: unix_nanos(exemplar.at),
        trace_id: exemplar.trace_id.to_vec(),
        span_id: exemplar.span_id.to_vec(),
        value: Some(exemplar::Value::AsDouble(exemplar.value)),
        ..ExemplarMessage::default()
    }
}

/// The labels that have a value.
fn attributes(definition: &MetricDef, series: &SeriesSnapshot) -> Vec<KeyValue> {
    let labels = definition.labels.iter().zip(&*series.labels);
    let given = labels.filter(|(_, value)| !value.is_empty());
    given.map(|(label, value)| text_attribute(label.attribute, value)).collect()
}

#[cfg(test)]
mod tests {
    use creole::internal::telemetry::metrics::table;

    use super::*;

    #[test]
    fn a_snapshot_becomes_sums_gauges_and_histograms() {
        let metrics = Arc::new(Metrics::default());
        metrics.enable();
        let counter = metrics.counter(&table::OTLP_EXPORTS, &["traces", "success"]);
        counter.add(3);
        let gauge = metrics.gauge(&table::CALLS_ACTIVE, &["main"]);
        gauge.set(2);
        let labels = ["main", "tools/call", "echo", "", "2026-07-28", "pipe", ""];
        let histogram = metrics.histogram(&table::SERVER_OPERATION_DURATION, &labels);
        histogram.record(Duration::from_millis(3));
        let made = messages(&metrics.collect());
        let find = |name: &str| made.iter().find(|metric| metric.name == name).unwrap();

        let Some(Data::Sum(sum)) = &find("creole.otlp.exports").data else { panic!("{made:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        assert_eq!(sum.data_points[0].value, Some(Value::AsInt(3)));
        let keys: Vec<&str> =
            sum.data_points[0].attributes.iter().map(|attribute| &*attribute.key).collect();
        assert_eq!(keys.len(), 2);

        let Some(Data::Gauge(gauge)) = &find("creole.calls.active").data else { panic!() };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsInt(2)));

        let metric = find("mcp.server.operation.duration");
        let Some(Data::Histogram(histogram)) = &metric.data else { panic!() };
        let point = &histogram.data_points[0];
        assert_eq!((metric.unit.as_str(), point.count), ("s", 1));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), 1);
        let keys: Vec<&str> = point.attributes.iter().map(|it| &*it.key).collect();
        assert!(keys.contains(&"gen_ai.tool.name") && !keys.contains(&"error.type"), "{keys:?}");
    }
}
