//! The handles that count in series.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use super::definition::{MetricDef, seconds};
use super::shards::{ShardedBuckets, ShardedSum};
use super::snapshot::{Exemplar, HistogramValue};
use crate::sync::Mutex;

/// A number that only grows. Clones count in the same series.
#[derive(Clone)]
pub struct Counter(pub(super) Arc<ShardedSum>);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.0.add(1);
    }

    /// Adds a number.
    #[inline]
    pub fn add(&self, number: u64) {
        self.0.add(number);
    }

    /// The value.
    pub fn value(&self) -> u64 {
        self.0.sum()
    }
}

/// A number that is set. Clones set the same series.
#[derive(Clone)]
pub struct Gauge(pub(super) Arc<AtomicI64>);

impl Gauge {
    /// Sets the number.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value.
    pub fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number of things that begin and end. Clones count in the same series.
#[derive(Clone)]
pub struct UpDownGauge(pub(super) Arc<ShardedSum>);

impl UpDownGauge {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.0.add(1);
    }

    /// Subtracts one.
    #[inline]
    pub fn decrement(&self) {
        self.0.add(u64::MAX);
    }

    /// Adds one until the guard is dropped.
    #[inline]
    pub fn hold(&self) -> GaugeGuard {
        self.increment();
        GaugeGuard(self.clone())
    }

    /// The value.
    pub fn value(&self) -> i64 {
        self.0.sum().cast_signed()
    }
}

/// One thing that an [`UpDownGauge`] counts until it is dropped.
pub struct GaugeGuard(UpDownGauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.decrement();
    }
}

/// Durations in buckets. Clones count in the same series.
#[derive(Clone)]
pub struct Histogram(pub(super) Arc<HistogramCells>);

/// The cells of a histogram.
pub(super) struct HistogramCells {
    boundaries: &'static [u64],
    buckets: ShardedBuckets,
    /// The last sampled call of each bucket; empty until there is one.
    exemplars: Mutex<Vec<Option<Exemplar>>>,
}

impl Histogram {
    /// Counts a duration.
    #[inline]
    pub fn record(&self, duration: Duration) {
        self.0.record(nanoseconds(duration));
    }

    /// Counts the duration of a call whose trace is exported.
    pub fn record_traced(&self, duration: Duration, trace_id: [u8; 16], span_id: [u8; 8]) {
        let bucket = self.0.record(nanoseconds(duration));
        let value = duration.as_secs_f64();
        let exemplar = Exemplar { trace_id, span_id, value, at: SystemTime::now() };
        let mut exemplars = self.0.exemplars.lock();
        if exemplars.is_empty() {
            exemplars.resize_with(self.0.boundaries.len() + 1, || None);
        }
        exemplars[bucket] = Some(exemplar);
    }

    /// The value.
    pub fn value(&self) -> HistogramValue {
        self.0.value()
    }
}

impl HistogramCells {
    pub(super) fn new(definition: &MetricDef) -> Self {
        Self {
            boundaries: definition.boundaries,
            buckets: ShardedBuckets::new(),
            exemplars: Mutex::default(),
        }
    }

    /// Counts a duration; returns its bucket. A bucket contains its upper bound.
    #[inline]
    fn record(&self, nanoseconds: u64) -> usize {
        // From the first one: a call whose cost matters is fast.
        let fits = self.boundaries.iter().position(|boundary| nanoseconds <= *boundary);
        let bucket = fits.unwrap_or(self.boundaries.len());
        self.buckets.add(bucket, nanoseconds);
        bucket
    }

    pub(super) fn value(&self) -> HistogramValue {
        let (counts, sum) = self.buckets.totals(self.boundaries.len() + 1);
        let count = counts.iter().sum();
        let exemplars = self.exemplars.lock().clone();
        HistogramValue { counts, count, sum: seconds(sum), exemplars }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
