//! The values of all series at one moment, which the writers of Prometheus text and OTLP read.

use std::sync::Arc;
use std::time::SystemTime;

use super::definition::MetricDef;

/// All metrics that have a series, in the order of the table.
#[derive(Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub taken_at: SystemTime,
    /// The metrics.
    pub families: Vec<FamilySnapshot>,
}

/// One metric with its series.
#[derive(Debug)]
pub struct FamilySnapshot {
    /// The metric.
    pub definition: &'static MetricDef,
    /// Its series, sorted by their label values. There is at least one.
    pub series: Vec<SeriesSnapshot>,
}

/// One series.
#[derive(Debug)]
pub struct SeriesSnapshot {
    /// The label values, in the order of the definition. An empty one is left out of exports.
    pub labels: Arc<[Arc<str>]>,
    /// When the series began.
    pub started_at: SystemTime,
    /// Its value.
    pub value: SeriesValue,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesValue {
    /// The value of a counter or a gauge.
    Integer(i64),
    /// The value of a counter or a gauge.
    Float(f64),
    /// The value of a histogram.
    Histogram(HistogramValue),
}

/// The value of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramValue {
    /// The number of durations in each bucket alone. The last bucket has no upper bound.
    pub counts: Vec<u64>,
    /// The number of all durations.
    pub count: u64,
    /// The sum of all durations in seconds.
    pub sum: f64,
    /// The last sampled call of each bucket; empty if there is none.
    pub exemplars: Vec<Option<Exemplar>>,
}

/// A call in a bucket whose trace is exported.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// The id of its trace.
    pub trace_id: [u8; 16],
    /// The id of its span.
    pub span_id: [u8; 8],
    /// Its duration in seconds.
    pub value: f64,
    /// When it ended.
    pub at: SystemTime,
}

impl Snapshot {
    /// The metric of this name.
    pub fn family(&self, name: &str) -> Option<&FamilySnapshot> {
        self.families.iter().find(|family| family.definition.name == name)
    }

    /// The value of the series whose labels have these values, in the order of the definition.
    pub fn value(&self, definition: &MetricDef, labels: &[&str]) -> Option<&SeriesValue> {
        let family = self.family(definition.name)?;
        let is_it = |series: &&SeriesSnapshot| {
            series.labels.iter().map(|value| &**value).eq(labels.iter().copied())
        };
        family.series.iter().find(is_it).map(|series| &series.value)
    }
}
