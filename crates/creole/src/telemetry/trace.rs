//! Trace contexts, and how calls become parts of traces.

/// How calls become parts of traces: what is sampled, and whose context is trusted.
#[derive(Debug, Default)]
pub struct TraceSettings {}

/// The place of a call in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTrace {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span of the call.
    pub span_id: [u8; 8],
    /// The span of the caller.
    pub parent: Option<[u8; 8]>,
    /// Other spans that the call belongs to. At most [`MAX_LINKS`].
    pub links: Vec<Link>,
    /// Whether the spans of the call are exported.
    pub is_sampled: bool,
    /// The `tracestate` of the caller.
    pub tracestate: Option<Box<str>>,
}

/// The maximum number of links of one call.
pub const MAX_LINKS: usize = 16;

/// A span of a call that another call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
}
