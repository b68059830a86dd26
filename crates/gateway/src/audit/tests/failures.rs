//! Tests of logs that cannot be written: lost lines are counted, and a required log refuses calls.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use creole::internal::telemetry::Telemetry;
use creole::internal::telemetry::metrics::{SeriesValue, table};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::Outcome;
use creole_test_wait::eventually;
use serde_json::Value;

use super::{AuditFileSettings, audit, settings};
use crate::audit::file::AuditFile;
use crate::audit::{
    Audit, AuditExport, AuditExporter, AuditScope, AuditSettings, AuditTarget, verify,
};
use crate::layers::testing::{FlakyTools, call};

/// A collector that can be full.
#[derive(Default)]
struct Collector {
    is_full: AtomicBool,
    refused: AtomicUsize,
    lines: Mutex<Vec<Value>>,
}

impl Collector {
    fn target(self: &Arc<Self>) -> AuditTarget {
        let collector = Arc::clone(self);
        AuditTarget::Exporter(AuditExporter::new(move |export: AuditExport| {
            if collector.is_full.load(Ordering::SeqCst) {
                collector.refused.fetch_add(1, Ordering::SeqCst);
                return false;
            }
            collector.lines.lock().unwrap().push(serde_json::from_str(&export.line).unwrap());
            true
        }))
    }

    fn outcomes(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        let word = |line: &Value| match line["lost"].as_u64() {
            Some(lost) => format!("lost {lost}"),
            None => line["outcome"].as_str().unwrap().to_owned(),
        };
        lines.iter().map(word).collect()
    }
}

fn no_fault() -> Fault {
    Fault::new(FaultKind::BackendUnavailable, "")
}

#[tokio::test]
async fn a_required_log_that_cannot_be_written_refuses_calls_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Arc::new(Collector::default());
    let to = collector.target();
    let settings = AuditSettings { to, required: true, ..settings(folder.path()) };
    let (service, tools) = FlakyTools::serve(audit(settings), no_fault(), 0);
    collector.is_full.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let Outcome::Fail(fault) = call(&service, "ann", "read", "{}").await else { panic!() };
        assert_eq!(fault.kind, FaultKind::BackendUnavailable);
    }
    assert_eq!(tools.calls(), 0, "no call runs without a line");
    collector.is_full.store(false, Ordering::SeqCst);
    assert!(matches!(call(&service, "ann", "read", "{}").await, Outcome::Complete(_)));
    assert_eq!(tools.calls(), 1);
    drop(service);
    assert_eq!(collector.outcomes(), ["lost 3", "started", "ok"]);
}

#[tokio::test]
async fn lost_lines_are_counted_and_reported_when_lines_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Arc::new(Collector::default());
    let settings = AuditSettings { to: collector.target(), ..settings(folder.path()) };
    let telemetry = Telemetry::default();
    telemetry.enable_metrics();
    let audit = Audit::new("acme", settings, AuditScope::Layer, &telemetry).unwrap();
    let (service, tools) = FlakyTools::serve(audit, no_fault(), 0);
    collector.is_full.store(true, Ordering::SeqCst);
    for number in 0..3 {
        assert!(matches!(call(&service, "ann", "read", "{}").await, Outcome::Complete(_)));
        eventually("the line is lost", || collector.refused.load(Ordering::SeqCst) > number).await;
    }
    assert_eq!(tools.calls(), 3, "calls do not depend on the log");
    collector.is_full.store(false, Ordering::SeqCst);
    // The count is written without a further call.
    eventually("the count is written", || !collector.lines.lock().unwrap().is_empty()).await;
    call(&service, "ann", "read", "{}").await;
    drop(service);
    assert_eq!(collector.outcomes(), ["lost 3", "ok"]);
    let snapshot = telemetry.metrics().collect();
    assert_eq!(snapshot.value(&table::AUDIT_LOST, &[]), None, "the log has ended");
}

#[tokio::test]
async fn written_and_lost_lines_are_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Arc::new(Collector::default());
    let settings = AuditSettings { to: collector.target(), ..settings(folder.path()) };
    let telemetry = Telemetry::default();
    telemetry.enable_metrics();
    let audit = Audit::new("acme", settings, AuditScope::Layer, &telemetry).unwrap();
    let (service, _) = FlakyTools::serve(audit, no_fault(), 0);
    let value = |definition| match telemetry.metrics().collect().value(definition, &[]) {
        Some(SeriesValue::Integer(value)) => *value,
        _ => 0,
    };
    call(&service, "ann", "read", "{}").await;
    eventually("a written line", || value(&table::AUDIT_LINES) == 1).await;
    collector.is_full.store(true, Ordering::SeqCst);
    call(&service, "ann", "read", "{}").await;
    eventually("a lost line", || value(&table::AUDIT_LOST) == 1).await;
    assert_eq!(value(&table::AUDIT_LINES), 1);
    let snapshot = telemetry.metrics().collect();
    let decision = snapshot.value(&table::LAYER_DECISIONS, &["", "acme", "audit", "lost"]);
    assert_eq!(decision, Some(&SeriesValue::Integer(1)));
}

/// A file system that is always full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_device_refuses_the_calls_of_a_required_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = "/dev/full".into();
    let to = AuditTarget::File(AuditFileSettings { path, ..super::file_settings(folder.path()) });
    for (required, runs) in [(true, 0), (false, 2)] {
        let settings = AuditSettings { to: to.clone(), required, ..settings(folder.path()) };
        let (service, tools) = FlakyTools::serve(audit(settings), no_fault(), 0);
        for _ in 0..2 {
            call(&service, "ann", "read", "{}").await;
        }
        assert_eq!(tools.calls(), runs);
    }
}

/// A write that fails in the middle of a line leaves no part of it.
#[cfg(target_os = "linux")]
#[test]
fn a_write_that_fails_leaves_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let settings = super::file_settings(folder.path());
    let mut file = AuditFile::open(&settings, true).unwrap();
    assert_eq!(file.write(["{\"n\":1}"].into_iter()).0, 1);
    // The file cannot grow, because it became a device that is full.
    std::fs::rename(&settings.path, folder.path().join("aside")).unwrap();
    std::os::unix::fs::symlink("/dev/full", &settings.path).unwrap();
    let (written, result) = file.write(["{\"n\":2}"].into_iter());
    assert_eq!((written, result.unwrap_err().kind()), (0, std::io::ErrorKind::StorageFull));
    std::fs::remove_file(&settings.path).unwrap();
    std::fs::rename(folder.path().join("aside"), &settings.path).unwrap();
    assert_eq!(file.write(["{\"n\":3}"].into_iter()).0, 1);
    let found = verify(&[settings.path], None).unwrap();
    assert_eq!((found.first_break, found.lines), (None, 2));
}
