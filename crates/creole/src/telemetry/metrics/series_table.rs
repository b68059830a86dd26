//! All series of a process, by metric and label values, and the bounds of their number.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::collector::CollectedValues;
use super::definition::{MetricDef, MetricKind};
use super::instruments::{Counter, Gauge, Histogram, HistogramCells, UpDownGauge};
use super::shards::ShardedSum;
use super::snapshot::{FamilySnapshot, SeriesSnapshot, SeriesValue, Snapshot};
use super::table;
use crate::sync::Mutex;

/// The maximum number of series of one metric.
pub const MAX_SERIES_PER_METRIC: usize = 5_000;

/// The maximum number of all series.
pub const MAX_SERIES: usize = 50_000;

type LabelValues = Arc<[Arc<str>]>;

/// All series. It holds them weakly: handles own them.
pub(super) struct SeriesTable {
    families: Mutex<Families>,
    started_at: SystemTime,
}

#[derive(Default)]
struct Families {
    by_name: HashMap<&'static str, Family>,
    /// The number of series, with those that ended since they were last removed.
    count: usize,
}

#[derive(Default)]
struct Family {
    series: BTreeMap<LabelValues, Entry>,
    /// The number of series that were refused.
    overflow: u64,
}

struct Entry {
    cells: WeakCells,
    started_at: SystemTime,
}

enum WeakCells {
    Counter(Weak<ShardedSum>),
    Gauge(Weak<AtomicI64>),
    UpDown(Weak<ShardedSum>),
    Histogram(Weak<HistogramCells>),
}

/// The cells of a series while they are read.
enum Cells {
    Counter(Arc<ShardedSum>),
    Gauge(Arc<AtomicI64>),
    UpDown(Arc<ShardedSum>),
    Histogram(Arc<HistogramCells>),
}

impl SeriesTable {
    pub(super) fn new() -> Self {
        Self { families: Mutex::default(), started_at: SystemTime::now() }
    }

    /// A counter; `None` beyond the bounds.
    pub(super) fn counter(
        &self,
        definition: &'static MetricDef,
        labels: &[&str],
    ) -> Option<Counter> {
        debug_assert_eq!(definition.kind, MetricKind::Counter, "{}", definition.name);
        let find = |cells: &WeakCells| match cells {
            WeakCells::Counter(cells) => cells.upgrade(),
            _ => None,
        };
        let make = || Arc::new(ShardedSum::new());
        self.series(definition, labels, find, make, |new| WeakCells::Counter(Arc::downgrade(new)))
            .map(Counter)
    }

    /// A gauge that is set; `None` beyond the bounds.
    pub(super) fn gauge(&self, definition: &'static MetricDef, labels: &[&str]) -> Option<Gauge> {
        debug_assert_eq!(definition.kind, MetricKind::Gauge, "{}", definition.name);
        let find = |cells: &WeakCells| match cells {
            WeakCells::Gauge(cells) => cells.upgrade(),
            _ => None,
        };
        self.series(definition, labels, find, Arc::default, |new| {
            WeakCells::Gauge(Arc::downgrade(new))
        })
        .map(Gauge)
    }

    /// A gauge of things that begin and end; `None` beyond the bounds.
    pub(super) fn up_down(
        &self,
        definition: &'static MetricDef,
        labels: &[&str],
    ) -> Option<UpDownGauge> {
        debug_assert_eq!(definition.kind, MetricKind::Gauge, "{}", definition.name);
        let find = |cells: &WeakCells| match cells {
            WeakCells::UpDown(cells) => cells.upgrade(),
            _ => None,
        };
        let make = || Arc::new(ShardedSum::new());
        self.series(definition, labels, find, make, |new| WeakCells::UpDown(Arc::downgrade(new)))
            .map(UpDownGauge)
    }

    /// A histogram; `None` beyond the bounds.
    pub(super) fn histogram(
        &self,
        definition: &'static MetricDef,
        labels: &[&str],
    ) -> Option<Histogram> {
        debug_assert_eq!(definition.kind, MetricKind::Histogram, "{}", definition.name);
        let find = |cells: &WeakCells| match cells {
            WeakCells::Histogram(cells) => cells.upgrade(),
            _ => None,
        };
        let make = || Arc::new(HistogramCells::new(definition));
        self.series(definition, labels, find, make, |new| WeakCells::Histogram(Arc::downgrade(new)))
            .map(Histogram)
    }

    /// The series with these labels, or a new one.
    fn series<T>(
        &self,
        definition: &'static MetricDef,
        labels: &[&str],
        find: impl Fn(&WeakCells) -> Option<Arc<T>>,
        make: impl FnOnce() -> Arc<T>,
        downgrade: impl FnOnce(&Arc<T>) -> WeakCells,
    ) -> Option<Arc<T>> {
        debug_assert_eq!(definition.labels.len(), labels.len(), "{}", definition.name);
        let labels: LabelValues = labels.iter().map(|value| Arc::from(*value)).collect();
        let mut families = self.families.lock();
        if let Some(entry) = families.family(definition).series.get(&labels)
            && let Some(cells) = find(&entry.cells)
        {
            return Some(cells);
        }
        families.admit(definition)?;
        let cells = make();
        let entry = Entry { cells: downgrade(&cells), started_at: SystemTime::now() };
        if families.family(definition).series.insert(labels, entry).is_none() {
            families.count += 1;
        }
        Some(cells)
    }

    /// The values of all series and of what was collected, in the order of the metric table.
    pub(super) fn snapshot(&self, collected: CollectedValues) -> Snapshot {
        let (families, overflows) = self.families.lock().read();
        // The values are read without the lock, so that a call never waits for it longer than for a copy of pointers.
        let read =
            |series: SeriesCells| series.into_iter().map(ReadSeries::into_snapshot).collect();
        let mut by_name: HashMap<&'static str, Vec<SeriesSnapshot>> =
            families.into_iter().map(|(name, series)| (name, read(series))).collect();
        for value in collected.0 {
            let family = by_name.entry(value.definition.name).or_default();
            add_collected(family, value.labels, self.started_at, value.value);
        }
        self.add_own_metrics(&mut by_name, &overflows);
        let families = table::ALL.iter().filter_map(|definition| {
            let series = by_name.remove(definition.name).filter(|series| !series.is_empty())?;
            Some(FamilySnapshot { definition, series })
        });
        Snapshot { taken_at: SystemTime::now(), families: families.collect() }
    }

    /// Adds the metrics about the number of series.
    fn add_own_metrics(
        &self,
        by_name: &mut HashMap<&'static str, Vec<SeriesSnapshot>>,
        overflows: &BTreeMap<&'static str, u64>,
    ) {
        let series = |name: &str, value: u64| SeriesSnapshot {
            labels: Arc::from([Arc::from(name)]),
            started_at: self.started_at,
            value: SeriesValue::Integer(value.cast_signed()),
        };
        let mut counts: Vec<_> =
            by_name.iter().map(|(name, all)| series(name, all.len() as u64)).collect();
        counts.sort_by(|left, right| left.labels.cmp(&right.labels));
        let refused = overflows.iter().map(|(name, refused)| series(name, *refused)).collect();
        by_name.insert(table::METRIC_SERIES.name, counts);
        by_name.insert(table::METRIC_SERIES_OVERFLOW.name, refused);
    }
}

impl Families {
    fn family(&mut self, definition: &'static MetricDef) -> &mut Family {
        self.by_name.entry(definition.name).or_default()
    }

    /// Whether a further series fits; counts it as an overflow if not.
    fn admit(&mut self, definition: &'static MetricDef) -> Option<()> {
        let is_full = |families: &mut Self| {
            families.count >= MAX_SERIES
                || families.family(definition).series.len() >= MAX_SERIES_PER_METRIC
        };
        if is_full(self) {
            self.remove_ended();
        }
        if !is_full(self) {
            return Some(());
        }
        let family = self.family(definition);
        family.overflow += 1;
        if family.overflow == 1 {
            tracing::warn!(
                metric = definition.name,
                "a metric has too many series: further ones are only counted in \
                 creole_metric_series_overflow_total"
            );
        }
        None
    }

    /// Removes the series without a handle.
    fn remove_ended(&mut self) {
        for family in self.by_name.values_mut() {
            family.series.retain(|_, entry| entry.cells.is_alive());
        }
        self.count = self.by_name.values().map(|family| family.series.len()).sum();
    }

    /// The cells of all series, and the number of refused series of each metric.
    fn read(&mut self) -> (HashMap<&'static str, SeriesCells>, BTreeMap<&'static str, u64>) {
        self.remove_ended();
        let cells = |family: &Family| {
            let read = family.series.iter().filter_map(|(labels, entry)| {
                let cells = entry.cells.upgrade()?;
                Some(ReadSeries { labels: Arc::clone(labels), started_at: entry.started_at, cells })
            });
            read.collect()
        };
        let by_name = self.by_name.iter().map(|(name, family)| (*name, cells(family))).collect();
        let refused = self.by_name.iter().filter(|(_, family)| family.overflow > 0);
        (by_name, refused.map(|(name, family)| (*name, family.overflow)).collect())
    }
}

/// The series of one metric while they are read.
type SeriesCells = Vec<ReadSeries>;

struct ReadSeries {
    labels: LabelValues,
    started_at: SystemTime,
    cells: Cells,
}

impl ReadSeries {
    fn into_snapshot(self) -> SeriesSnapshot {
        let Self { labels, started_at, cells } = self;
        SeriesSnapshot { labels, started_at, value: cells.value() }
    }
}

/// Adds a collected value to the sorted series of its metric. Beyond the bound it is left out.
fn add_collected(
    family: &mut Vec<SeriesSnapshot>,
    labels: LabelValues,
    started_at: SystemTime,
    value: SeriesValue,
) {
    match family.binary_search_by(|known| known.labels.cmp(&labels)) {
        Ok(index) => add_value(&mut family[index].value, &value),
        Err(_) if family.len() >= MAX_SERIES_PER_METRIC => {}
        Err(index) => family.insert(index, SeriesSnapshot { labels, started_at, value }),
    }
}

fn add_value(sum: &mut SeriesValue, value: &SeriesValue) {
    *sum = match (&*sum, value) {
        (SeriesValue::Integer(left), SeriesValue::Integer(right)) => {
            SeriesValue::Integer(left.saturating_add(*right))
        }
        (SeriesValue::Float(left), SeriesValue::Float(right)) => SeriesValue::Float(left + right),
        _ => return,
    };
}

impl WeakCells {
    fn is_alive(&self) -> bool {
        match self {
            Self::Counter(cells) | Self::UpDown(cells) => cells.strong_count() > 0,
            Self::Gauge(cells) => cells.strong_count() > 0,
            Self::Histogram(cells) => cells.strong_count() > 0,
        }
    }

    fn upgrade(&self) -> Option<Cells> {
        match self {
            Self::Counter(cells) => cells.upgrade().map(Cells::Counter),
            Self::Gauge(cells) => cells.upgrade().map(Cells::Gauge),
            Self::UpDown(cells) => cells.upgrade().map(Cells::UpDown),
            Self::Histogram(cells) => cells.upgrade().map(Cells::Histogram),
        }
    }
}

impl Cells {
    fn value(self) -> SeriesValue {
        match self {
            Self::Counter(cells) => SeriesValue::Integer(Counter(cells).value().cast_signed()),
            Self::Gauge(cells) => SeriesValue::Integer(Gauge(cells).value()),
            Self::UpDown(cells) => SeriesValue::Integer(UpDownGauge(cells).value()),
            Self::Histogram(cells) => SeriesValue::Histogram(cells.value()),
        }
    }
}
