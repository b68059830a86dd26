//! The span of the sampled call that this thread polls, for the log events that the call causes.

use std::cell::Cell;

use super::context::TraceContext;

thread_local! {
    static CURRENT: Cell<Option<TraceContext>> = const { Cell::new(None) };
}

/// The span of the call that this thread polls, if the call is sampled.
pub fn current_span() -> Option<TraceContext> {
    CURRENT.get()
}

/// Makes a span the current one of this thread until it is dropped.
#[derive(Debug)]
pub struct CurrentSpan {
    before: Option<TraceContext>,
}

impl CurrentSpan {
    /// Makes this span the current one.
    pub fn enter(span: TraceContext) -> Self {
        Self { before: CURRENT.replace(Some(span)) }
    }
}

impl Drop for CurrentSpan {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_call_gives_the_outer_one_back() {
        let [outer, inner] = [1, 2].map(|number| TraceContext::sampled([number; 16], [number; 8]));
        assert_eq!(current_span(), None);
        {
            let _outer = CurrentSpan::enter(outer);
            {
                let _inner = CurrentSpan::enter(inner);
                assert_eq!(current_span(), Some(inner));
            }
            assert_eq!(current_span(), Some(outer));
        }
        assert_eq!(current_span(), None);
    }
}
