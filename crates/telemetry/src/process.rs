//! The metrics of the process itself: its build, its memory and CPU time, its runtime.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use creole::internal::process::own_usage;
use creole::internal::telemetry::metrics::{
    CollectedValues, CollectorGuard, Gauge, Metrics, table,
};
use tokio::runtime::Handle;

/// What is known of the program since its build.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo {
    /// Its version.
    pub version: &'static str,
    /// The commit that it was built from; empty if it is not known.
    pub revision: &'static str,
    /// Its optional features, separated by commas.
    pub features: &'static str,
}

/// Keeps the metrics of the process registered.
pub struct ProcessMetrics {
    _build: Gauge,
    _collector: CollectorGuard,
}

/// Registers the metrics of this process. Must be called within a tokio runtime.
#[must_use]
pub fn register(metrics: &Arc<Metrics>, build: BuildInfo) -> ProcessMetrics {
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let labels = [build.version, build.revision, &target, build.features];
    let info = metrics.gauge(&table::BUILD_INFO, &labels);
    info.set(1);
    let (started, runtime) = (seconds_since_epoch(), Handle::current());
    let collector = metrics.on_collect(move |values| {
        values.float(&table::PROCESS_START_TIME, &[], started);
        collect_process(values);
        collect_runtime(&runtime, values);
    });
    ProcessMetrics { _build: info, _collector: collector }
}

/// The time now, in seconds since 1970.
pub fn seconds_since_epoch() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Reports what the system tells; other systems than Linux tell nothing here.
fn collect_process(values: &mut CollectedValues) {
    if let Some(usage) = own_usage() {
        values.float(&table::PROCESS_CPU, &[], usage.cpu_seconds);
        let memory = i64::try_from(usage.memory_bytes).unwrap_or(i64::MAX);
        values.integer(&table::PROCESS_MEMORY, &[], memory);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        // One of them is the folder that is read.
        let open = i64::try_from(open.count().saturating_sub(1)).unwrap_or(i64::MAX);
        values.integer(&table::PROCESS_OPEN_FDS, &[], open);
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(max) = max_open_files(&limits) {
        values.integer(&table::PROCESS_MAX_FDS, &[], max);
    }
}

/// The soft limit of open files in `/proc/PID/limits`.
fn max_open_files(limits: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn collect_runtime(runtime: &Handle, values: &mut CollectedValues) {
    let metrics = runtime.metrics();
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    values.integer(&table::TOKIO_WORKERS, &[], number(metrics.num_workers()));
    values.integer(&table::TOKIO_ALIVE_TASKS, &[], number(metrics.num_alive_tasks()));
    values.integer(&table::TOKIO_QUEUE, &[], number(metrics.global_queue_depth()));
}

#[cfg(test)]
mod tests {
    use creole::internal::telemetry::metrics::SeriesValue;

    use super::*;

    #[test]
    fn the_limit_of_open_files_is_the_soft_one() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 4096                 files\n";
        assert_eq!(max_open_files(text), Some(1024));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn every_metric_of_the_process_has_a_value() {
        let metrics = Arc::new(Metrics::default());
        let build = BuildInfo { version: "1.2.3", revision: "", features: "a,b" };
        let _registered = register(&metrics, build);
        let snapshot = metrics.collect();
        let own = table::ALL.iter().filter(|metric| {
            metric.name.starts_with("process_") || metric.name.starts_with("tokio_")
        });
        for metric in own {
            let value = snapshot.value(metric, &[]);
            assert!(value.is_some(), "{}", metric.name);
        }
        let workers = snapshot.value(&table::TOKIO_WORKERS, &[]);
        assert_eq!(workers, Some(&SeriesValue::Integer(1)));
    }
}
