//! The registry of the metrics of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use super::collector::{CollectedValues, CollectorGuard, Collectors};
use super::definition::MetricDef;
use super::instruments::{Counter, Gauge, Histogram, HistogramCells, UpDownGauge};
use super::owned_series::OwnedSeries;
use super::series_table::SeriesTable;
use super::shards::ShardedSum;
use super::snapshot::Snapshot;

/// The metrics of a process. Off until [`enable`](Self::enable) is called: then calls are counted too.
pub struct Metrics {
    is_enabled: AtomicBool,
    has_tool_labels: AtomicBool,
    pub(super) table: Arc<SeriesTable>,
    /// The series of events that have no other owner.
    permanent: OwnedSeries,
    collectors: Collectors,
}

impl Default for Metrics {
    fn default() -> Self {
        let table = Arc::new(SeriesTable::new());
        Self {
            is_enabled: AtomicBool::new(false),
            has_tool_labels: AtomicBool::new(true),
            permanent: OwnedSeries::new(&table),
            collectors: Collectors::default(),
            table,
        }
    }
}

impl Metrics {
    /// Starts to count.
    pub fn enable(&self) {
        self.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Whether metrics are counted.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Sets whether tools and prompts are labels. It holds for items that are added later.
    pub fn set_tool_labels(&self, has_tool_labels: bool) {
        self.has_tool_labels.store(has_tool_labels, Ordering::Relaxed);
    }

    pub(super) fn has_tool_labels(&self) -> bool {
        self.has_tool_labels.load(Ordering::Relaxed)
    }

    /// A counter with these label values. Beyond the bounds it counts in no series.
    pub fn counter(&self, definition: &'static MetricDef, labels: &[&str]) -> Counter {
        let counter = self.table.counter(definition, labels);
        counter.unwrap_or_else(|| Counter(Arc::new(ShardedSum::new())))
    }

    /// A gauge that is set.
    pub fn gauge(&self, definition: &'static MetricDef, labels: &[&str]) -> Gauge {
        self.table.gauge(definition, labels).unwrap_or_else(|| Gauge(Arc::new(AtomicI64::new(0))))
    }

    /// A gauge of things that begin and end.
    pub fn up_down(&self, definition: &'static MetricDef, labels: &[&str]) -> UpDownGauge {
        let gauge = self.table.up_down(definition, labels);
        gauge.unwrap_or_else(|| UpDownGauge(Arc::new(ShardedSum::new())))
    }

    /// A histogram.
    pub fn histogram(&self, definition: &'static MetricDef, labels: &[&str]) -> Histogram {
        let histogram = self.table.histogram(definition, labels);
        histogram.unwrap_or_else(|| Histogram(Arc::new(HistogramCells::new(definition))))
    }

    /// Counts a rare event in a series that exists as long as the process, if metrics are counted.
    pub fn count(&self, definition: &'static MetricDef, labels: &[&str]) {
        self.add(definition, labels, 1);
    }

    /// The same for several events at once. Zero makes the series visible.
    pub fn add(&self, definition: &'static MetricDef, labels: &[&str], number: u64) {
        if self.is_enabled() {
            self.permanent.add(definition, labels, number);
        }
    }

    /// Counts a duration in a histogram that exists as long as the process, if metrics are counted.
    pub fn record(&self, definition: &'static MetricDef, labels: &[&str], duration: Duration) {
        if self.is_enabled() {
            self.permanent.record(definition, labels, duration);
        }
    }

    /// Series for rare events that disappear with their owner.
    pub fn owned_series(&self) -> OwnedSeries {
        OwnedSeries::new(&self.table)
    }

    /// Registers a function that reports values at each collection, until the guard is dropped. It must not block.
    pub fn on_collect(
        &self,
        function: impl Fn(&mut CollectedValues) + Send + Sync + 'static,
    ) -> CollectorGuard {
        self.collectors.register(function)
    }

    /// The values of all series. No call waits for it.
    pub fn collect(&self) -> Snapshot {
        self.table.snapshot(self.collectors.collect())
    }
}
