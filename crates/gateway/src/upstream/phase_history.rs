//! The last phases of an upstream, for operators.

use std::collections::VecDeque;
use std::time::SystemTime;

use creole::internal::chain::BreakerChange;
use creole::internal::sync::Mutex;

/// How many changes are kept.
const MAX_CHANGES: usize = 100;

/// Whether an upstream can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamPhase {
    /// It has not started.
    Waiting,
    /// It starts for the first time.
    Starting,
    /// It can be used.
    Ready,
    /// It failed, and the next start is planned.
    Backoff,
    /// Its circuit breaker refuses calls.
    Open,
}

/// An upstream entered a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseChange {
    /// When.
    pub at: SystemTime,
    /// The phase from then on.
    pub phase: UpstreamPhase,
}

/// The last phases of an upstream, without its circuit breaker.
pub(crate) struct PhaseHistory(Mutex<VecDeque<PhaseChange>>);

impl PhaseHistory {
    /// A history that begins now.
    pub(super) fn new() -> Self {
        let first = PhaseChange { at: SystemTime::now(), phase: UpstreamPhase::Waiting };
        Self(Mutex::new(VecDeque::from([first])))
    }

    /// Records a phase, unless it is that of before.
    pub(super) fn enter(&self, phase: UpstreamPhase) {
        let mut changes = self.0.lock();
        if changes.back().is_some_and(|last| last.phase == phase) {
            return;
        }
        if changes.len() >= MAX_CHANGES {
            changes.pop_front();
        }
        changes.push_back(PhaseChange { at: SystemTime::now(), phase });
    }

    /// The phases with those of the circuit breaker, oldest first.
    pub(super) fn with_breaker(&self, breaker: &[BreakerChange]) -> Vec<PhaseChange> {
        let own: Vec<PhaseChange> = self.0.lock().iter().copied().collect();
        merge(&own, breaker)
    }
}

/// Merges the phases of an upstream with those of its circuit breaker, which matter while it is ready.
fn merge(own: &[PhaseChange], breaker: &[BreakerChange]) -> Vec<PhaseChange> {
    let own = own.iter().map(|change| (change.at, Some(change.phase), None));
    let breaker = breaker.iter().map(|change| (change.at, None, Some(change.is_open)));
    let mut changes: Vec<_> = own.chain(breaker).collect();
    changes.sort_by_key(|(at, ..)| *at);
    let (mut phase, mut is_open) = (UpstreamPhase::Waiting, false);
    let mut merged: Vec<PhaseChange> = Vec::new();
    for (at, next_phase, next_open) in changes {
        phase = next_phase.unwrap_or(phase);
        is_open = next_open.unwrap_or(is_open);
        let shown = match phase {
            UpstreamPhase::Ready if is_open => UpstreamPhase::Open,
            phase => phase,
        };
        if merged.last().is_none_or(|last| last.phase != shown) {
            merged.push(PhaseChange { at, phase: shown });
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    #[test]
    fn an_open_breaker_is_shown_while_the_upstream_is_ready() {
        let own =
            [(1, UpstreamPhase::Ready), (5, UpstreamPhase::Backoff), (9, UpstreamPhase::Ready)]
                .map(|(second, phase)| PhaseChange { at: at(second), phase });
        let breaker = [(3, true), (7, false)]
            .map(|(second, is_open)| BreakerChange { at: at(second), is_open });
        let phases: Vec<_> =
            merge(&own, &breaker).into_iter().map(|it| (it.at, it.phase)).collect();
        let expected = [
            (at(1), UpstreamPhase::Ready),
            (at(3), UpstreamPhase::Open),
            (at(5), UpstreamPhase::Backoff),
            (at(9), UpstreamPhase::Ready),
        ];
        assert_eq!(phases, expected);
        assert_eq!(merge(&own, &[]).len(), 3);
    }

    #[test]
    fn a_history_is_bounded_and_has_no_phase_twice_in_a_row() {
        let history = PhaseHistory::new();
        for _ in 0..MAX_CHANGES {
            history.enter(UpstreamPhase::Backoff);
            history.enter(UpstreamPhase::Backoff);
            history.enter(UpstreamPhase::Ready);
        }
        assert_eq!(history.with_breaker(&[]).len(), MAX_CHANGES);
    }
}
