//! Tests of calls that are not sampled, and of which a reader wants only those that fail.

use creole::internal::telemetry::trace::{ParentTrust, Sampler};
use creole::internal::telemetry::{CallEnd, TraceSettings};

use super::*;

/// Wants sampled calls, and others that failed.
struct SampledOrFailed {
    records: Arc<EndedRecords>,
    /// How often it was asked about a call that starts.
    asked: AtomicUsize,
}

impl RecordReader for SampledOrFailed {
    fn wants(&self, start: &CallStart<'_>) -> Detail {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match start.trace.is_some_and(|trace| trace.is_sampled) {
            true => Detail::Steps,
            false => Detail::None,
        }
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        self.records.call_ended(record);
    }

    fn wants_late(&self, end: &CallEnd) -> bool {
        end.outcome.error().is_some()
    }

    fn reads_unsampled(&self) -> bool {
        false
    }

    fn late_after(&self) -> Option<Duration> {
        Some(Duration::MAX)
    }
}

/// What a reader gets of a call that succeeds and of one that fails, if this share of the calls is sampled.
async fn reported_calls(ratio: f64) -> (Vec<Arc<CallRecord>>, usize) {
    let telemetry = Telemetry::default();
    let (sampler, parent) = (Sampler::new(ratio, true), ParentTrust::Auto);
    telemetry.set_tracing(Some(Arc::new(TraceSettings { sampler, parent, process: None })));
    let records = EndedRecords::new(Detail::None);
    let reader =
        Arc::new(SampledOrFailed { records: Arc::clone(&records), asked: AtomicUsize::new(0) });
    let _guard = telemetry.subscribe(Arc::clone(&reader) as _);
    let mut client = connect(&telemetry, greeter()).await;
    client.ask(call(1, "greet", json!({}))).await;
    client.ask(call(2, "fail", json!({}))).await;
    let calls = records.records().into_iter().filter(|record| record.method == "tools/call");
    (calls.collect(), reader.asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_failed_call_that_is_not_sampled_is_reported_with_its_name_and_request() {
    let (calls, asked) = reported_calls(0.0).await;
    assert_eq!(asked, 0, "no call is sampled, and the reader wants no others at their start");
    let [failed] = &calls[..] else { panic!("one call failed: {calls:?}") };
    assert_eq!((&*failed.server, &*failed.target), ("greeter", "fail"));
    assert_eq!(failed.request_id.as_deref(), Some("2"));
    assert_eq!(outcome(failed), CallOutcome::ToolError);
    assert!(failed.steps().is_empty());
}

#[tokio::test]
async fn every_call_that_is_sampled_is_reported() {
    let (calls, asked) = reported_calls(1.0).await;
    let targets: Vec<_> = calls.iter().map(|record| &*record.target).collect();
    assert_eq!(targets, ["greet", "fail"]);
    assert!(asked >= targets.len(), "{asked}");
}
