//! Trace contexts in W3C's form: which calls are sampled, what is read from a request, and what an upstream gets.
//!
//! A malformed context counts as absent. It is never an error for the client, and it is never forwarded.

mod baggage;
mod call_trace;
mod context;
mod current;
mod ids;
mod incoming;
mod outgoing;
mod replica_trace;
mod settings;

pub use call_trace::{CallTrace, MAX_LINKS};
pub use context::{Link, SpanId, TraceContext, TraceId, hex};
pub use current::{CurrentSpan, current_span};
pub use ids::{new_span_id, new_trace_id};
pub use incoming::{IncomingTrace, TraceHeaders};
pub use outgoing::{OutgoingTrace, Propagation, ReceivedTrace};
pub use replica_trace::ReplicaTrace;
pub use settings::{ParentTrust, Sampler, TraceSettings};
