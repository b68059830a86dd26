//! The definition of a metric: its names, its kind, its unit, its labels.

/// A metric as data. The table has one constant for each.
#[derive(Debug)]
pub struct MetricDef {
    /// The name in Prometheus, with its unit, and with `_total` if it is a counter.
    pub name: &'static str,
    /// The name in OpenTelemetry, without them.
    pub otlp_name: &'static str,
    /// One sentence for people.
    pub help: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The unit.
    pub unit: Unit,
    /// All labels, in the order in which values are given. A label with an empty value is left out.
    pub labels: &'static [Label],
    /// The upper bounds of a histogram's buckets in nanoseconds, ascending. The last bucket has none.
    pub boundaries: &'static [u64],
}

/// A label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name in Prometheus.
    pub name: &'static str,
    /// The name of the attribute in OpenTelemetry.
    pub attribute: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Durations, counted in buckets.
    Histogram,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The unit in OpenTelemetry (UCUM).
    pub fn ucum(self) -> &'static str {
        match self {
            Self::Count => "1",
            Self::Seconds => "s",
            Self::Bytes => "By",
        }
    }
}

impl MetricDef {
    /// The position of a label.
    pub fn label_index(&self, label: &str) -> Option<usize> {
        self.labels.iter().position(|known| known.name == label)
    }
}

/// An upper bound of a bucket in seconds.
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// A counter of things.
pub(super) const fn counter(
    name: &'static str,
    otlp_name: &'static str,
    labels: &'static [Label],
    help: &'static str,
) -> MetricDef {
    let (kind, unit) = (MetricKind::Counter, Unit::Count);
    MetricDef { name, otlp_name, help, kind, unit, labels, boundaries: &[] }
}

/// A number of things.
pub(super) const fn gauge(
    name: &'static str,
    otlp_name: &'static str,
    labels: &'static [Label],
    help: &'static str,
) -> MetricDef {
    MetricDef { kind: MetricKind::Gauge, ..counter(name, otlp_name, labels, help) }
}

/// A histogram of durations.
pub(super) const fn histogram(
    name: &'static str,
    otlp_name: &'static str,
    labels: &'static [Label],
    help: &'static str,
    boundaries: &'static [u64],
) -> MetricDef {
    let (kind, unit) = (MetricKind::Histogram, Unit::Seconds);
    MetricDef { name, otlp_name, help, kind, unit, labels, boundaries }
}
