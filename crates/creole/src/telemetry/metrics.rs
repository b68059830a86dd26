//! The metrics of a process: the table of their names, and the registry of their series.
//!
//! A series is one metric with one set of label values. A handle ([`Counter`], [`Gauge`], [`UpDownGauge`],
//! [`Histogram`]) counts in a series without a lock, and each thread counts in a cell of its own. A series exists while
//! a handle of it exists, so it disappears with the upstream or the tool that holds the handle.
//!
//! The values of labels are the server's own words: methods of the protocol, names of listed items, names of the
//! configuration. A text of a client never becomes one, and the number of series has bounds.

mod boundaries;
mod collector;
mod definition;
mod instruments;
mod labels;
mod operations;
mod owned_series;
mod registry;
mod series_table;
mod server_metrics;
mod shards;
mod snapshot;
pub mod table;
#[cfg(test)]
mod tests;

pub use collector::{CollectedValues, CollectorGuard};
pub use definition::{Label, MetricDef, MetricKind, Unit};
pub use instruments::{Counter, Gauge, GaugeGuard, Histogram, UpDownGauge};
pub use operations::{
    MAX_LABELLED_ITEMS, NetworkTransport, OperationSeries, Operations, TracedCall,
};
pub use owned_series::OwnedSeries;
pub use registry::Metrics;
pub use series_table::{MAX_SERIES, MAX_SERIES_PER_METRIC};
pub(crate) use server_metrics::{ServerMetrics, SessionMeter};
pub use snapshot::{
    Exemplar, FamilySnapshot, HistogramValue, SeriesSnapshot, SeriesValue, Snapshot,
};

/// The value of a label whose real value is not in the protocol's or the server's own list.
pub const OTHER: &str = "_OTHER";

/// The value of a tool's or prompt's label beyond the bound of a server.
pub const OVERFLOW: &str = "_overflow";
