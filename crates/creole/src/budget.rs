//! The memory budget that all buffered bodies of requests and responses share.
//!
//! Each body has its own limit, but thousands of them may arrive slowly at the same time. So their memory is counted in
//! one place, and a body that needs more than is left is rejected. One caller gets at most three quarters, so that it
//! cannot take all of it. Counting takes no lock.

mod memory;

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A body up to this size is not counted: it has arrived with its head.
pub(crate) const SMALL_BODY_BYTES: usize = 8 * 1024;

/// The number of shares that callers are hashed to. Two callers of the same share count as one.
const SHARES: usize = 64;

/// The minimum budget, however little memory there is.
const MIN_BUDGET_BYTES: usize = 4 * 1024 * 1024;

/// Default maximum number of open connections.
const MAX_CONNECTIONS: usize = 12_000;

/// The share of the memory per connection. A connection that sends a body in pieces was measured to take 50 KiB beside
/// the body; other uses of the memory, such as bodies, need the rest.
const CONNECTION_BYTES: usize = 128 * 1024;

/// The default maximum number of connections: as many as fit into the memory that this process may use.
#[must_use]
pub fn max_connections() -> usize {
    max_connections_within(memory::available_memory())
}

fn max_connections_within(memory: usize) -> usize {
    (memory / CONNECTION_BYTES).clamp(1, MAX_CONNECTIONS)
}

/// A memory budget for bodies; clones share it.
#[derive(Clone)]
pub struct Budget(Arc<BudgetInner>);

struct BudgetInner {
    max_bytes: AtomicUsize,
    used: AtomicUsize,
    shares: [AtomicUsize; SHARES],
    hasher: RandomState,
}

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self(Arc::new(BudgetInner {
            max_bytes: AtomicUsize::new(max),
            used: AtomicUsize::new(0),
            shares: [const { AtomicUsize::new(0) }; SHARES],
            hasher: RandomState::new(),
        }))
    }

    /// The budget of this process: a quarter of the memory that it may use, unless it is [set](Self::set_max_bytes).
    #[must_use]
    pub fn of_process() -> Self {
        static PROCESS: OnceLock<Budget> = OnceLock::new();
        PROCESS
            .get_or_init(|| Self::new((memory::available_memory() / 4).max(MIN_BUDGET_BYTES)))
            .clone()
    }

    /// Changes the total; existing reservations stay.
    pub fn set_max_bytes(&self, max: usize) {
        self.0.max_bytes.store(max, Ordering::Relaxed);
    }

    /// The total number of bytes.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.0.max_bytes.load(Ordering::Relaxed)
    }

    /// The number of reserved bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// A reservation for a caller, which is empty at first.
    pub(crate) fn reserve_for(&self, caller: impl Hash) -> Reservation {
        let share = self.0.hasher.hash_one(caller) as usize % SHARES;
        Reservation { budget: self.clone(), share, bytes: 0 }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, max) = (self.used(), self.max_bytes());
        formatter.debug_struct("Budget").field("used", &used).field("most", &max).finish()
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of_process()
    }
}

/// The budget has no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

/// A part of the budget; dropping it returns the bytes.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Budget,
    share: usize,
    bytes: usize,
}

impl Reservation {
    /// Grows the reservation to this size, if it is smaller.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else {
            return Ok(());
        };
        let inner = &*self.budget.0;
        let max = inner.max_bytes.load(Ordering::Relaxed);
        try_add(&inner.used, more, max)?;
        if let Err(refused) = try_add(&inner.shares[self.share], more, max - max / 4) {
            inner.used.fetch_sub(more, Ordering::Relaxed);
            return Err(refused);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Shrinks the reservation to this size.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if less > 0 {
            self.bytes -= less;
            self.budget.0.used.fetch_sub(less, Ordering::Relaxed);
            self.budget.0.shares[self.share].fetch_sub(less, Ordering::Relaxed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// The reservation of a buffer. A small buffer reserves nothing.
pub(crate) struct BufferReservation<F> {
    reserve: Option<F>,
    reservation: Option<Reservation>,
}

impl<F: FnOnce() -> Reservation> BufferReservation<F> {
    /// Empty at first; when the buffer is no longer small, `hold` creates the reservation.
    pub(crate) fn new(hold: F) -> Self {
        Self { reserve: Some(hold), reservation: None }
    }

    /// Grows the reservation to that of a buffer of this size, if it is smaller.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        if bytes <= SMALL_BODY_BYTES {
            return Ok(());
        }
        if let Some(hold) = self.reserve.take() {
            self.reservation = Some(hold());
        }
        self.reservation.as_mut().map_or(Ok(()), |reservation| reservation.grow_to(bytes))
    }

    /// Resizes the reservation to that of a buffer of this size.
    pub(crate) fn resize_to(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        if let Some(reservation) = &mut self.reservation {
            reservation.shrink_to(if bytes <= SMALL_BODY_BYTES { 0 } else { bytes });
        }
        self.grow_to(bytes)
    }

    /// The reservation, if there ever was one.
    pub(crate) fn into_reservation(self) -> Option<Reservation> {
        self.reservation
    }
}

fn try_add(counter: &AtomicUsize, more: usize, max: usize) -> Result<(), BudgetExhausted> {
    let before = counter.fetch_add(more, Ordering::Relaxed);
    if before.checked_add(more).is_some_and(|used| used <= max) {
        return Ok(());
    }
    counter.fetch_sub(more, Ordering::Relaxed);
    Err(BudgetExhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two callers of different shares.
    fn two(budget: &Budget) -> (Reservation, Reservation) {
        let first = budget.reserve_for(0);
        let mut others = (1..).map(|caller| budget.reserve_for(caller));
        let second = others.find(|reservation| reservation.share != first.share).unwrap();
        (first, second)
    }

    #[test]
    fn reserved_memory_is_bounded_and_released() {
        let budget = Budget::new(1000);
        let (mut first, mut second) = two(&budget);
        assert_eq!(first.grow_to(700), Ok(()));
        assert_eq!(first.grow_to(500), Ok(()), "the reservation is already this large");
        assert_eq!(second.grow_to(300), Ok(()));
        assert_eq!(second.grow_to(301), Err(BudgetExhausted));
        assert_eq!(budget.used(), 1000);
        drop(first);
        assert_eq!((budget.used(), second.grow_to(700)), (300, Ok(())));
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_large_buffer_reserves_its_size() {
        let budget = Budget::new(4 * SMALL_BODY_BYTES);
        let mut reservation = BufferReservation::new(|| budget.reserve_for(0));
        for (bytes, expected) in [
            (SMALL_BODY_BYTES, 0),
            (SMALL_BODY_BYTES + 1, SMALL_BODY_BYTES + 1),
            (3 * SMALL_BODY_BYTES, 3 * SMALL_BODY_BYTES),
            (2 * SMALL_BODY_BYTES, 2 * SMALL_BODY_BYTES),
            (1, 0),
        ] {
            assert_eq!((reservation.resize_to(bytes), budget.used()), (Ok(()), expected));
        }
        assert_eq!(
            (reservation.resize_to(4 * SMALL_BODY_BYTES), budget.used()),
            (Err(BudgetExhausted), 0)
        );
        assert_eq!(
            (reservation.grow_to(2 * SMALL_BODY_BYTES), reservation.grow_to(1)),
            (Ok(()), Ok(()))
        );
        drop(reservation.into_reservation());
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_caller_does_not_get_all_of_it() {
        let budget = Budget::new(1000);
        let (mut first, mut second) = two(&budget);
        assert_eq!(first.grow_to(751), Err(BudgetExhausted));
        assert_eq!(first.grow_to(750), Ok(()));
        assert_eq!(
            budget.reserve_for(0).grow_to(1),
            Err(BudgetExhausted),
            "the same caller once more"
        );
        assert_eq!(second.grow_to(250), Ok(()));
    }

    #[test]
    fn a_changed_budget_applies_from_then_on() {
        let budget = Budget::new(1000);
        let mut reservation = budget.reserve_for(0);
        assert_eq!(reservation.grow_to(700), Ok(()));
        budget.set_max_bytes(100);
        assert_eq!(reservation.grow_to(701), Err(BudgetExhausted));
        drop(reservation);
        assert_eq!(budget.reserve_for(0).grow_to(75), Ok(()));
    }

    #[test]
    fn little_memory_allows_fewer_connections() {
        for (mebibytes, expected) in
            [(0, 1), (64, 512), (256, 2048), (1500, 12_000), (24_000, 12_000)]
        {
            assert_eq!(max_connections_within(mebibytes * 1024 * 1024), expected);
        }
    }

    #[test]
    fn a_process_has_a_budget_by_itself() {
        let budget = Budget::of_process();
        assert!(budget.max_bytes() >= MIN_BUDGET_BYTES, "{budget:?}");
        assert!(Arc::ptr_eq(&budget.0, &Budget::default().0));
    }
}
