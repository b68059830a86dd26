//! Random ids of traces and spans.
//!
//! Unlike ids of sessions they protect nothing: a fast generator makes them, and the system only its seed.

use std::cell::Cell;

use super::context::{SpanId, TraceId};
use crate::random::random_bytes;

thread_local! {
    /// The state of this thread's generator; zero before its first id.
    static STATE: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
}

/// A new id of a trace. Zero, which no trace has, if the system has no random bytes.
pub fn new_trace_id() -> TraceId {
    trace_id_of(new_span_id(), new_span_id())
}

/// The id of a trace with these halves.
pub(super) fn trace_id_of(first: [u8; 8], second: [u8; 8]) -> TraceId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&first);
    id[8..].copy_from_slice(&second);
    id
}

/// A new id of a span. Zero, which no span has, if the system has no random bytes.
pub fn new_span_id() -> SpanId {
    next_number().to_be_bytes()
}

/// The next number of this thread that is not zero (xoroshiro128++).
fn next_number() -> u64 {
    let mut state = STATE.get();
    if state == [0; 2] {
        let Ok(seed) = random_bytes::<16>() else { return 0 };
        let (first, second) = seed.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        // A generator whose state is zero has only one number.
        state = [number(first) | 1, number(second)];
    }
    loop {
        let [a, mut b] = state;
        let number = a.wrapping_add(b).rotate_left(17).wrapping_add(a);
        b ^= a;
        state = [a.rotate_left(49) ^ b ^ (b << 21), b.rotate_left(28)];
        if number != 0 {
            STATE.set(state);
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn ids_differ_also_between_threads() {
        let make = || (0..1000).map(|_| new_trace_id()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(make)).collect();
        let ids: BTreeSet<TraceId> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.len(), 4000);
        assert!(ids.iter().all(|id| id[..8] != [0; 8] && id[8..] != [0; 8]));
    }
}
