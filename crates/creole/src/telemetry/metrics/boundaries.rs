//! The upper bounds of the buckets of histograms, in nanoseconds.

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// The boundaries that the conventions advise, and four in front of them: a call takes 50 µs here.
pub(super) const OPERATION_BOUNDARIES: &[u64] = &[
    100 * MICROSECOND,
    500 * MICROSECOND,
    MILLISECOND,
    5 * MILLISECOND,
    10 * MILLISECOND,
    20 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    200 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    120 * SECOND,
    300 * SECOND,
];

/// The boundaries that the conventions advise, and two behind them.
pub(super) const SESSION_BOUNDARIES: &[u64] = &[
    10 * MILLISECOND,
    20 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    200 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    120 * SECOND,
    300 * SECOND,
    1_800 * SECOND,
    21_600 * SECOND,
];

/// The boundaries for operations on the state.
pub(super) const STATE_BOUNDARIES: &[u64] = &[
    10 * MICROSECOND,
    100 * MICROSECOND,
    500 * MICROSECOND,
    MILLISECOND,
    5 * MILLISECOND,
    10 * MILLISECOND,
    25 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    250 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    5 * SECOND,
];
