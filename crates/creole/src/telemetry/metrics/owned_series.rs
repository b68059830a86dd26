//! Series that exist until their owner ends, for events that are too rare to hold a handle for each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::definition::MetricDef;
use super::instruments::{Counter, Histogram};
use super::series_table::SeriesTable;
use crate::sync::Mutex;

type Key = (&'static str, Box<[Box<str>]>);

/// The series of one owner, by name and label values. They disappear when it is dropped.
pub struct OwnedSeries {
    table: Arc<SeriesTable>,
    counters: Mutex<HashMap<Key, Counter>>,
    histograms: Mutex<HashMap<Key, Histogram>>,
}

impl OwnedSeries {
    pub(super) fn new(table: &Arc<SeriesTable>) -> Self {
        let table = Arc::clone(table);
        Self { table, counters: Mutex::default(), histograms: Mutex::default() }
    }

    /// Adds one to a counter.
    pub fn count(&self, definition: &'static MetricDef, labels: &[&str]) {
        self.add(definition, labels, 1);
    }

    /// Adds a number to a counter. Zero makes the series visible.
    pub fn add(&self, definition: &'static MetricDef, labels: &[&str], number: u64) {
        let mut counters = self.counters.lock();
        let key = key(definition, labels);
        if let Some(counter) = counters.get(&key) {
            return counter.add(number);
        }
        // A counter beyond the bounds is not kept: its events are counted as an overflow.
        if let Some(counter) = self.table.counter(definition, labels) {
            counter.add(number);
            counters.insert(key, counter);
        }
    }

    /// Counts a duration in a histogram.
    pub fn record(&self, definition: &'static MetricDef, labels: &[&str], duration: Duration) {
        let mut histograms = self.histograms.lock();
        let key = key(definition, labels);
        if let Some(histogram) = histograms.get(&key) {
            return histogram.record(duration);
        }
        if let Some(histogram) = self.table.histogram(definition, labels) {
            histogram.record(duration);
            histograms.insert(key, histogram);
        }
    }
}

fn key(definition: &MetricDef, labels: &[&str]) -> Key {
    (definition.name, labels.iter().map(|value| Box::from(*value)).collect())
}
