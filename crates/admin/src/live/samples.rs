//! Rates and latencies of the last minutes, from samples of the metrics.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use creole::internal::sync::Mutex;
use creole::internal::telemetry::Telemetry;
use creole::internal::telemetry::metrics::{MetricDef, SeriesValue, Snapshot, table};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::clock;

/// The time between two samples while somebody visits the API.
pub(crate) const STEP: Duration = Duration::from_secs(1);
/// The time between two samples otherwise.
const COARSE_STEP: Duration = Duration::from_secs(15);
/// The number of points in a series.
pub(crate) const POINTS: usize = 60;
/// What the latencies of an upstream are computed over.
const LATENCY_SPAN: Duration = Duration::from_secs(5 * 60);

/// Samples of the metrics.
#[derive(Default)]
pub(crate) struct Samples(Mutex<Rings>);

#[derive(Default)]
struct Rings {
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
}

/// The counters at one moment.
#[derive(Clone)]
struct Sample {
    at: Instant,
    wall: SystemTime,
    counters: Counters,
}

/// Counters of calls since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    /// By server.
    pub(crate) servers: BTreeMap<String, CallCounter>,
    /// By upstream.
    pub(crate) upstreams: BTreeMap<String, CallCounter>,
}

/// The calls of one server or upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallCounter {
    /// How many ended.
    pub(crate) calls: u64,
    /// How many of them failed.
    pub(crate) errors: u64,
    /// How many were at most that long, in seconds; each number contains those before it.
    pub(crate) buckets: Vec<(f64, u64)>,
}

impl CallCounter {
    /// Adds another counter.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        for (mine, (_, count)) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.1 += count;
        }
    }

    /// What was counted since an earlier moment. A counter that started again counts from zero.
    fn since(&self, before: Option<&Self>) -> Self {
        let Some(before) = before.filter(|before| before.calls <= self.calls) else {
            return self.clone();
        };
        let earlier = |index: usize| before.buckets.get(index).map_or(0, |(_, count)| *count);
        let buckets = self.buckets.iter().enumerate();
        Self {
            calls: self.calls - before.calls,
            errors: self.errors.saturating_sub(before.errors),
            buckets: buckets
                .map(|(index, (bound, count))| (*bound, count.saturating_sub(earlier(index))))
                .collect(),
        }
    }

    /// The duration in milliseconds that this share of the calls did not exceed, interpolated within its bucket.
    pub(crate) fn quantile_ms(&self, share: f64) -> Option<f64> {
        let total = self.buckets.last()?.1;
        if total == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a quantile is an estimate")]
        let (rank, as_number) = (share * total as f64, |count: u64| count as f64);
        let mut below = (0.0, 0);
        for &(bound, count) in &self.buckets {
            if as_number(count) >= rank && count > below.1 {
                if bound.is_infinite() {
                    return Some(below.0 * 1e3);
                }
                let within = (rank - as_number(below.1)) / as_number(count - below.1);
                return Some(((below.0 + (bound - below.0) * within) * 1e6).round() / 1e3);
            }
            below = (bound, count);
        }
        Some(below.0 * 1e3)
    }
}

/// What happened in a span of time.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Rates {
    /// Ended calls per second.
    pub(crate) calls_per_second: f64,
    /// The share of failed calls, from 0 to 1.
    pub(crate) error_ratio: f64,
    /// The median of the durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_ms: Option<f64>,
    /// The duration that 95 % of the calls did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p95_ms: Option<f64>,
    /// The duration that 99 % of the calls did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_ms: Option<f64>,
}

impl Rates {
    fn new(counted: &CallCounter, span: Duration) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rate is an estimate")]
        let (calls, errors) = (counted.calls as f64, counted.errors as f64);
        let rounded = |number: f64| (number * 1e4).round() / 1e4;
        Self {
            calls_per_second: match span.is_zero() {
                true => 0.0,
                false => rounded(calls / span.as_secs_f64()),
            },
            error_ratio: if calls > 0.0 { rounded(errors / calls) } else { 0.0 },
            p50_ms: counted.quantile_ms(0.5),
            p95_ms: counted.quantile_ms(0.95),
            p99_ms: counted.quantile_ms(0.99),
        }
    }
}

/// A series of points, oldest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Points {
    /// The time between two points.
    step_ms: u64,
    /// The time of the last point.
    end: String,
    /// Calls that ended before each point and after the one before.
    calls: Vec<u64>,
    /// Those that failed.
    errors: Vec<u64>,
    /// The duration that 95 % of them did not exceed.
    p95_ms: Vec<Option<f64>>,
}

impl Samples {
    /// Takes a sample, if one is due.
    pub(crate) fn take(&self, telemetry: &Telemetry, is_visited: bool) {
        let now = Instant::now();
        let is_due = |ring: &VecDeque<Sample>| {
            // Ticks are not exact.
            ring.back().is_none_or(|last| now - last.at + STEP / 2 >= COARSE_STEP)
        };
        let is_coarse = is_due(&self.0.lock().coarse);
        if !is_visited && !is_coarse {
            return;
        }
        let counters = read_counters(&telemetry.metrics().collect());
        self.add(Sample { at: now, wall: SystemTime::now(), counters }, is_visited, is_coarse);
    }

    fn add(&self, sample: Sample, is_visited: bool, is_coarse: bool) {
        let mut rings = self.0.lock();
        if !is_visited {
            rings.fine.clear();
        }
        if is_coarse {
            push(&mut rings.coarse, sample.clone());
        }
        if is_visited {
            push(&mut rings.fine, sample);
        }
    }

    /// The counters now, and the rates of a minute and of a quarter of an hour.
    pub(crate) fn rates(&self, now: &Counters) -> (Rates, Rates) {
        let rings = self.0.lock();
        (whole_rates(&rings.fine, now), whole_rates(&rings.coarse, now))
    }

    /// The points of a minute and of a quarter of an hour.
    pub(crate) fn points(&self, now: &Counters) -> (Points, Points) {
        let rings = self.0.lock();
        (points(&rings.fine, STEP, now), points(&rings.coarse, COARSE_STEP, now))
    }

    /// The rates of an upstream over the last five minutes.
    pub(crate) fn upstream_rates(&self, name: &str, now: &Counters) -> Rates {
        let Some(counter) = now.upstreams.get(name) else { return Rates::default() };
        let rings = self.0.lock();
        let moment = Instant::now();
        let is_within = |sample: &&Sample| moment - sample.at <= LATENCY_SPAN;
        let first = rings.coarse.iter().find(is_within).or_else(|| rings.coarse.back());
        let before = first.and_then(|sample| sample.counters.upstreams.get(name));
        let span = first.map_or(Duration::ZERO, |sample| moment - sample.at);
        Rates::new(&counter.since(before), span)
    }
}

fn push(ring: &mut VecDeque<Sample>, sample: Sample) {
    if ring.len() > POINTS {
        ring.pop_front();
    }
    ring.push_back(sample);
}

fn total(counters: &Counters) -> CallCounter {
    let mut sum = CallCounter::default();
    counters.servers.values().for_each(|counter| sum.add(counter));
    sum
}

fn whole_rates(ring: &VecDeque<Sample>, now: &Counters) -> Rates {
    let first = ring.front();
    let before = first.map(|sample| total(&sample.counters));
    let span = first.map_or(Duration::ZERO, |sample| sample.at.elapsed());
    let counted = match &before {
        Some(before) => total(now).since(Some(before)),
        None => CallCounter::default(),
    };
    Rates::new(&counted, span)
}

fn points(ring: &VecDeque<Sample>, step: Duration, now: &Counters) -> Points {
    let totals: Vec<CallCounter> = ring.iter().map(|sample| total(&sample.counters)).collect();
    let mut steps: Vec<CallCounter> =
        totals.windows(2).map(|pair| pair[1].since(Some(&pair[0]))).collect();
    // The running step.
    steps
        .push(totals.last().map_or_else(CallCounter::default, |last| total(now).since(Some(last))));
    let mut series = vec![CallCounter::default(); POINTS.saturating_sub(steps.len())];
    let skipped = steps.len().saturating_sub(POINTS);
    series.extend(steps.into_iter().skip(skipped));
    let end = ring.back().map_or_else(SystemTime::now, |sample| sample.wall + step);
    Points {
        step_ms: u64::try_from(step.as_millis()).unwrap_or_default(),
        end: clock::text(end.min(SystemTime::now())),
        calls: series.iter().map(|counter| counter.calls).collect(),
        errors: series.iter().map(|counter| counter.errors).collect(),
        p95_ms: series.iter().map(|counter| counter.quantile_ms(0.95)).collect(),
    }
}

/// Reads the counters of calls.
pub(crate) fn read_counters(snapshot: &Snapshot) -> Counters {
    Counters {
        servers: by_first_label(snapshot, &table::SERVER_OPERATION_DURATION, |_| true),
        // The gateway fetches lists for itself.
        upstreams: by_first_label(snapshot, &table::CLIENT_OPERATION_DURATION, |method| {
            !method.ends_with("/list")
        }),
    }
}

/// The histograms of a metric with these methods, added up by the first label.
fn by_first_label(
    snapshot: &Snapshot,
    metric: &MetricDef,
    is_counted: impl Fn(&str) -> bool,
) -> BTreeMap<String, CallCounter> {
    let mut counters: BTreeMap<String, CallCounter> = BTreeMap::new();
    let error_label = metric.label_index("error_type");
    let method_label = metric.label_index("mcp_method_name");
    let family = snapshot.family(metric.name);
    for series in family.into_iter().flat_map(|family| &family.series) {
        let SeriesValue::Histogram(value) = &series.value else { continue };
        let Some(name) = series.labels.first() else { continue };
        let method = method_label.and_then(|index| series.labels.get(index));
        if !method.is_none_or(|method| is_counted(method)) {
            continue;
        }
        let is_error = error_label
            .and_then(|index| series.labels.get(index))
            .is_some_and(|value| !value.is_empty());
        let bounds =
            metric.boundaries.iter().map(|bound| Duration::from_nanos(*bound).as_secs_f64());
        let mut sum = 0;
        let buckets = bounds.chain([f64::INFINITY]).zip(&value.counts).map(|(bound, count)| {
            sum += count;
            (bound, sum)
        });
        let counter = CallCounter {
            calls: value.count,
            errors: if is_error { value.count } else { 0 },
            buckets: buckets.collect(),
        };
        counters.entry(name.to_string()).or_default().add(&counter);
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(calls: u64, errors: u64, buckets: &[(f64, u64)]) -> CallCounter {
        CallCounter { calls, errors, buckets: buckets.to_vec() }
    }

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        let counted = counter(100, 0, &[(0.01, 50), (0.02, 100), (f64::INFINITY, 100)]);
        assert_eq!(counted.quantile_ms(0.5), Some(10.0));
        assert_eq!(counted.quantile_ms(0.75), Some(15.0));
        assert_eq!(counter(0, 0, &[(0.01, 0), (f64::INFINITY, 0)]).quantile_ms(0.5), None);
        let slow = counter(1, 0, &[(0.01, 0), (f64::INFINITY, 1)]);
        assert_eq!(slow.quantile_ms(0.5), Some(10.0), "the last bound is all that is known");
    }

    #[tokio::test(start_paused = true)]
    async fn rates_and_points_are_those_of_the_kept_samples() {
        let samples = Samples::default();
        let at = |calls: u64| {
            let counter = counter(calls, calls / 10, &[(0.01, calls), (f64::INFINITY, calls)]);
            let of = |name: &str| BTreeMap::from([(name.to_owned(), counter.clone())]);
            Counters { servers: of("team"), upstreams: of("wiki") }
        };
        for second in 0..=100 {
            let (wall, at) = (SystemTime::now(), at(second * 10));
            let sample = Sample { at: Instant::now(), wall, counters: at };
            samples.add(sample, true, second % 15 == 0);
            tokio::time::advance(STEP).await;
        }
        let now = at(1010);
        let (minute, _) = samples.rates(&now);
        assert_eq!((minute.calls_per_second, minute.error_ratio), (10.0, 0.1));
        let (fine, coarse) = samples.points(&now);
        assert_eq!((fine.calls.len(), coarse.calls.len()), (POINTS, POINTS));
        assert!(fine.calls.iter().all(|calls| *calls == 10), "{fine:?}");
        assert_eq!(coarse.calls[53..], [0, 150, 150, 150, 150, 150, 150, 110][1..]);
        let upstream = samples.upstream_rates("wiki", &now);
        assert_eq!((upstream.calls_per_second, upstream.p95_ms), (10.0, Some(9.5)));
        assert_eq!(samples.upstream_rates("other", &now).p95_ms, None);
    }

    #[test]
    fn a_counter_that_starts_again_counts_from_zero() {
        let (before, after) = (counter(9, 3, &[(1.0, 9)]), counter(2, 1, &[(1.0, 2)]));
        assert_eq!(after.since(Some(&before)), after);
    }
}
