//! The figures of one sample, as the load generator prints them.

use std::collections::HashMap;

/// The figures of one sample, by the driver's names.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(HashMap<String, f64>);

impl Figures {
    /// Reads `name value` lines.
    pub(super) fn of(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Self(
            pairs
                .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    /// The number of requests answered within the time.
    pub(super) fn messages(&self) -> f64 {
        self.get("messages")
    }

    /// Requests per second.
    pub(super) fn per_second(&self) -> f64 {
        self.get("messages") * 1e9 / self.get("nanoseconds")
    }

    /// Processor time per request, in microseconds.
    pub(super) fn processor(&self) -> f64 {
        self.get("processor_nanoseconds") / 1e3 / self.get("answered")
    }

    /// The median response time in microseconds.
    pub(super) fn middle(&self) -> f64 {
        self.get("middle_nanoseconds") / 1e3
    }

    /// The 99th percentile of the response time in microseconds.
    pub(super) fn slow(&self) -> f64 {
        self.get("slow_nanoseconds") / 1e3
    }

    /// Memory before the load, in megabytes.
    pub(super) fn idle_memory(&self) -> f64 {
        self.get("idle_bytes") / 1e6
    }

    /// Peak memory, in megabytes.
    pub(super) fn peak_memory(&self) -> f64 {
        self.get("peak_bytes") / 1e6
    }

    /// The number of idle clients.
    pub(super) fn count(&self) -> f64 {
        self.get("count")
    }

    /// Memory for each idle client, in kilobytes.
    pub(super) fn each(&self) -> f64 {
        (self.get("after_bytes") - self.get("before_bytes")) / self.get("measured") / 1e3
    }

    /// Memory with all idle clients, in megabytes.
    pub(super) fn crowded_memory(&self) -> f64 {
        self.get("after_bytes") / 1e6
    }

    /// Processor time in an idle second, in milliseconds.
    pub(super) fn idle_processor(&self) -> f64 {
        self.get("processor_nanoseconds") / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn processor_time_is_shared_by_all_that_were_answered() {
        let figures = Figures::of("messages 9\nanswered 10\nprocessor_nanoseconds 50000\n");
        assert!((figures.processor() - 5.0).abs() < 1e-9);
        assert!(figures.middle().is_nan());
    }
}
