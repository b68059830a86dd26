//! Values that are read only when the metrics are collected.

use std::sync::{Arc, Weak};

use super::definition::{MetricDef, MetricKind};
use super::snapshot::SeriesValue;
use crate::sync::Mutex;

type Collect = dyn Fn(&mut CollectedValues) + Send + Sync;

/// The functions that report values at a collection.
#[derive(Default)]
pub(super) struct Collectors(Mutex<Vec<Weak<Collect>>>);

/// Keeps a function that reports values registered. Its series disappear when the guard is dropped.
#[must_use]
pub struct CollectorGuard {
    _function: Arc<Collect>,
}

/// The values that the functions of a collection report.
#[derive(Default)]
pub struct CollectedValues(pub(super) Vec<CollectedValue>);

pub(super) struct CollectedValue {
    pub(super) definition: &'static MetricDef,
    pub(super) labels: Arc<[Arc<str>]>,
    pub(super) value: SeriesValue,
}

impl Collectors {
    pub(super) fn register(
        &self,
        function: impl Fn(&mut CollectedValues) + Send + Sync + 'static,
    ) -> CollectorGuard {
        let function: Arc<Collect> = Arc::new(function);
        let mut functions = self.0.lock();
        functions.retain(|known| known.strong_count() > 0);
        functions.push(Arc::downgrade(&function));
        CollectorGuard { _function: function }
    }

    /// Runs every function. None runs under the lock.
    pub(super) fn collect(&self) -> CollectedValues {
        let functions: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let mut values = CollectedValues::default();
        functions.iter().for_each(|function| function(&mut values));
        values
    }
}

impl CollectedValues {
    /// Reports the value of a counter or a gauge. Equal labels are added up.
    pub fn integer(&mut self, definition: &'static MetricDef, labels: &[&str], value: i64) {
        self.push(definition, labels, SeriesValue::Integer(value));
    }

    /// Reports the value of a counter or a gauge that is no integer.
    pub fn float(&mut self, definition: &'static MetricDef, labels: &[&str], value: f64) {
        self.push(definition, labels, SeriesValue::Float(value));
    }

    fn push(&mut self, definition: &'static MetricDef, labels: &[&str], value: SeriesValue) {
        debug_assert_ne!(definition.kind, MetricKind::Histogram, "{}", definition.name);
        debug_assert_eq!(definition.labels.len(), labels.len(), "{}", definition.name);
        let labels = labels.iter().map(|value| Arc::from(*value)).collect();
        self.0.push(CollectedValue { definition, labels, value });
    }
}
