//! Cells that threads count in without sharing a cache line.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The maximum number of shards. More threads than that share them.
const MAX_SHARDS: usize = 16;

/// The number of values in one shard of a histogram: its buckets and its sum.
const HISTOGRAM_CELLS: usize = 24;

/// The position of a histogram's sum.
const SUM: usize = HISTOGRAM_CELLS - 1;

/// The maximum number of buckets of a histogram.
pub(super) const MAX_BUCKETS: usize = SUM;

/// The number of shards, a power of two: one for each processor.
fn shard_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.next_power_of_two().min(MAX_SHARDS)
    })
}

/// The number of this thread. Consecutive threads have consecutive numbers, so they use different shards.
#[inline]
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(0) };
    }
    NUMBER.with(|number| match number.get() {
        0 => {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            number.get()
        }
        number => number,
    })
}

#[derive(Default)]
#[repr(align(64))]
struct PaddedCell(AtomicU64);

/// A number that threads add to in cells of their own.
pub(super) struct ShardedSum(Box<[PaddedCell]>);

impl ShardedSum {
    pub(super) fn new() -> Self {
        Self((0..shard_count()).map(|_| PaddedCell::default()).collect())
    }

    /// Adds to the number. A negative number is added as its two's complement.
    #[inline]
    pub(super) fn add(&self, number: u64) {
        let cell = thread_number() & (self.0.len() - 1);
        self.0[cell].0.fetch_add(number, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, cell| sum.wrapping_add(cell.0.load(Ordering::Relaxed)))
    }
}

#[derive(Default)]
#[repr(align(64))]
struct HistogramShard([AtomicU64; HISTOGRAM_CELLS]);

/// Buckets of durations that threads count in cells of their own.
pub(super) struct ShardedBuckets(Box<[HistogramShard]>);

impl ShardedBuckets {
    pub(super) fn new() -> Self {
        Self((0..shard_count()).map(|_| HistogramShard::default()).collect())
    }

    /// Counts a duration in a bucket.
    #[inline]
    pub(super) fn add(&self, bucket: usize, nanoseconds: u64) {
        let shard = &self.0[thread_number() & (self.0.len() - 1)].0;
        shard[bucket.min(MAX_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        shard[SUM].fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The counts of the first buckets, and the sum of all durations in nanoseconds.
    pub(super) fn totals(&self, buckets: usize) -> (Vec<u64>, u64) {
        let total = |cell: usize| {
            let cells = self.0.iter().map(|shard| shard.0[cell].load(Ordering::Relaxed));
            cells.fold(0_u64, u64::wrapping_add)
        };
        ((0..buckets.min(MAX_BUCKETS)).map(total).collect(), total(SUM))
    }
}
