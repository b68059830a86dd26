//! Which calls are sampled, and whose contexts are trusted.

use super::call_trace::CallTrace;
use super::context::{Link, SpanId, TraceId};
use super::ids::{new_span_id, trace_id_of};
use super::incoming::IncomingTrace;

/// The settings of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// Which calls are sampled.
    pub sampler: Sampler,
    /// Whose context is the parent of a call.
    pub parent: ParentTrust,
    /// The span of the process that started this one: a link of each call without a context.
    pub process: Option<Link>,
}

/// Whose context is the parent of a call. Others become links, and their sampled flag does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentTrust {
    /// That of an authenticated principal, and of the program that started a server on stdio.
    #[default]
    Auto,
    /// That of every client.
    Client,
    /// That of no client.
    Link,
}

/// Decides which calls are sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// The traces below this number are sampled.
    bound: u64,
    /// Whether the flag of a trusted parent decides instead.
    follows_parent: bool,
}

impl Sampler {
    /// Samples this share of the traces: from 0 to 1.
    pub fn new(ratio: f64, follows_parent: bool) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "the ratio is between 0 and 1, and its last bits do not matter"
        )]
        let bound = match ratio {
            ratio if ratio >= 1.0 => u64::MAX,
            ratio if ratio > 0.0 => (ratio * (1u64 << 63) as f64) as u64,
            _ => 0,
        };
        Self { bound, follows_parent }
    }

    /// Whether a trace is sampled. All processes with the same ratio decide alike.
    fn takes(self, trace_id: &TraceId) -> bool {
        let [.., a, b, c, d, e, f, g, h] = *trace_id;
        self.takes_half([a, b, c, d, e, f, g, h])
    }

    /// The same, by the second half of the id.
    #[inline]
    pub(in crate::telemetry) fn takes_half(self, half: SpanId) -> bool {
        self.bound == u64::MAX || u64::from_be_bytes(half) >> 1 < self.bound
    }

    /// The sampler as a number, for [`from_bound`](Self::from_bound).
    pub(in crate::telemetry) fn bound(self) -> u64 {
        self.bound
    }

    /// A sampler of new traces, which have no parent.
    #[inline]
    pub(in crate::telemetry) fn from_bound(bound: u64) -> Self {
        Self { bound, follows_parent: false }
    }
}

impl TraceSettings {
    /// The trace of a call with this context. `is_known` says that the caller is authenticated or started this process.
    /// A new trace has `new_half` as the second half of its id. `None` if the call is not sampled and has no context.
    pub fn start_call(
        &self,
        received: IncomingTrace,
        is_known: bool,
        new_half: SpanId,
    ) -> Option<CallTrace> {
        let IncomingTrace { parent, tracestate, other, .. } = received;
        match parent {
            Some(parent) if self.trusts(is_known) => {
                let is_sampled = match self.sampler.follows_parent {
                    true => parent.is_sampled(),
                    false => self.sampler.takes(&parent.trace_id),
                };
                Some(CallTrace {
                    trace_id: parent.trace_id,
                    span_id: if is_sampled { new_span_id() } else { [0; 8] },
                    parent: Some(parent.span_id),
                    links: other.into_iter().collect(),
                    is_sampled,
                    tracestate,
                    ..CallTrace::default()
                })
            }
            _ => {
                let links = parent.into_iter().chain(other);
                if self.sampler.takes_half(new_half) && new_half != [0; 8] {
                    let trace_id = trace_id_of(new_span_id(), new_half);
                    let process = self.process.filter(|_| parent.is_none());
                    return Some(CallTrace {
                        trace_id,
                        span_id: new_span_id(),
                        links: links.chain(process).collect(),
                        is_sampled: true,
                        ..CallTrace::default()
                    });
                }
                // The audit log names the client's trace also if no span is recorded.
                let trace_id = parent?.trace_id;
                Some(CallTrace { trace_id, links: links.collect(), ..CallTrace::default() })
            }
        }
    }
}

impl TraceSettings {
    /// The trace of a call that was not sampled, and gets a span at its end: that of a trusted client.
    pub fn late_call(&self, received: IncomingTrace, is_known: bool) -> Option<CallTrace> {
        let never = Self { sampler: Sampler::new(0.0, false), ..self.clone() };
        never.start_call(received, is_known, new_span_id())
    }

    /// Whether the context of a caller is the parent of its calls.
    fn trusts(&self, is_known: bool) -> bool {
        match self.parent {
            ParentTrust::Auto => is_known,
            ParentTrust::Client => true,
            ParentTrust::Link => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::TraceContext;
    use super::*;

    fn settings(ratio: f64, parent: ParentTrust) -> TraceSettings {
        TraceSettings { sampler: Sampler::new(ratio, true), parent, process: None }
    }

    fn received(flags: u8) -> IncomingTrace {
        let parent = TraceContext { flags, ..TraceContext::sampled([1; 16], [2; 8]) };
        IncomingTrace {
            parent: Some(parent),
            tracestate: Some("a=1".into()),
            ..IncomingTrace::default()
        }
    }

    #[test]
    fn the_flag_of_a_known_caller_decides() {
        for (ratio, flags) in [(0.0, 1), (1.0, 0)] {
            let call =
                settings(ratio, ParentTrust::Auto).start_call(received(flags), true, new_span_id());
            let call = call.unwrap();
            assert_eq!(call.is_sampled, flags == 1);
            assert_eq!((call.trace_id, call.parent), ([1; 16], Some([2; 8])));
            assert_eq!(call.tracestate.as_deref(), Some("a=1"));
            assert_eq!(call.span_id == [0; 8], flags == 0);
        }
    }

    #[test]
    fn the_flag_of_a_stranger_does_not_count_and_its_context_is_a_link() {
        let none =
            settings(0.0, ParentTrust::Auto).start_call(received(1), false, new_span_id()).unwrap();
        assert!(!none.is_sampled && none.span_id == [0; 8] && none.trace_id == [1; 16]);
        let all =
            settings(1.0, ParentTrust::Auto).start_call(received(0), false, new_span_id()).unwrap();
        assert!(all.is_sampled && all.trace_id != [1; 16] && all.parent.is_none());
        assert_eq!((all.links[0].span_id, all.tracestate), ([2; 8], None));
        let forced = settings(0.0, ParentTrust::Client)
            .start_call(received(1), false, new_span_id())
            .unwrap();
        assert!(forced.is_sampled && forced.trace_id == [1; 16]);
        let linked =
            settings(1.0, ParentTrust::Link).start_call(received(1), true, new_span_id()).unwrap();
        assert!(linked.is_sampled && linked.parent.is_none() && linked.links.len() == 1);
    }

    #[test]
    fn a_call_without_context_is_sampled_by_the_ratio_and_links_to_the_process() {
        let process = TraceContext::sampled([7; 16], [8; 8]);
        let mut settings = settings(0.25, ParentTrust::Auto);
        settings.process = Some(process);
        let calls = (0..4000)
            .filter_map(|_| settings.start_call(IncomingTrace::default(), true, new_span_id()));
        let sampled: Vec<_> = calls.collect();
        assert!((800..1200).contains(&sampled.len()), "{}", sampled.len());
        assert!(sampled.iter().all(|call| call.is_sampled && call.links == [process]));
        settings.sampler = Sampler::new(0.0, true);
        assert!(settings.start_call(IncomingTrace::default(), true, new_span_id()).is_none());
    }

    #[test]
    fn a_sampler_without_parents_judges_every_trace_by_its_id() {
        let sampler = Sampler::new(0.5, false);
        let [low, high] = [0x10, 0xf0].map(|byte| [byte; 16]);
        assert!(sampler.takes(&low) && !sampler.takes(&high));
        let settings = TraceSettings { sampler, ..settings(1.0, ParentTrust::Client) };
        assert!(settings.start_call(received(0), true, new_span_id()).unwrap().is_sampled);
        assert!(Sampler::new(1.0, true).takes(&[0xff; 16]) && !Sampler::new(0.0, true).takes(&low));
    }
}
