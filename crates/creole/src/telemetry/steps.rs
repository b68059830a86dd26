//! The steps of a call: layers, requests to upstreams, input requests.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::revision::Rules;

use crate::telemetry::facts::Transport;
use crate::telemetry::outcome::ErrorType;

/// The maximum number of steps of one call.
pub const MAX_STEPS: usize = 64;

/// One step of a call.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number within the call.
    pub index: u16,
    /// The step that it is a part of. `None`: the call itself.
    pub parent: Option<u16>,
    /// When it started, since the start of the call.
    pub start: Duration,
    /// How long it took, or has taken until now. A [parked](StepKind::Parked) step lies before the call: it ended when
    /// the call started.
    pub duration: Duration,
    /// How long a layer waited for the rest of the chain.
    pub passed: Duration,
    /// Whether it has ended.
    pub is_ended: bool,
    /// Its span, if the call is sampled.
    pub span_id: Option<[u8; 8]>,
    /// What happened.
    pub kind: StepKind,
    /// Why it failed.
    pub error: Option<ErrorType>,
}

/// What happens in a step.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// A layer of a chain handled the call.
    Layer {
        /// Its kind, such as `cache`.
        kind: &'static str,
        /// What it did.
        decision: Decision,
        /// How often it passed the call on.
        attempts: u16,
    },
    /// A request was sent to an upstream.
    UpstreamRequest {
        /// The configured name of the upstream.
        upstream: Arc<str>,
        /// The method.
        method: &'static str,
        /// The upstream's own name of the tool or prompt, or the URI.
        target: Arc<str>,
        /// The rules of the upstream's revision.
        rules: &'static Rules,
        /// The upstream's transport.
        transport: Transport,
        /// The host and the port of the upstream, if it is reached over HTTP.
        server: Option<(Arc<str>, u16)>,
        /// How the call was translated between the eras.
        translation: Translation,
        /// The code of the upstream's error.
        code: Option<i64>,
    },
    /// An input request was sent to the client.
    InputRequest {
        /// Its method, such as `elicitation/create`.
        kind: &'static str,
        /// The round of the call, from 1.
        round: u16,
    },
    /// The call of an upstream waited for the client to return with its input responses.
    Parked {
        /// How the waiting ended.
        end: ParkedEnd,
    },
    /// An upstream was started or connected to.
    UpstreamStart {
        /// The configured name of the upstream.
        upstream: Arc<str>,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
}

/// What a layer did with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It passed the call on.
    Passed,
    /// It refused the call, or replaced its outcome by a fault.
    Refused,
    /// It answered the call itself.
    Answered,
    /// It changed the call or its outcome.
    Changed,
    /// It passed the call on more than once.
    Retried,
}

impl Decision {
    /// The word for metrics, traces and the console.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::Answered => "answered",
            Self::Changed => "changed",
            Self::Retried => "retried",
        }
    }
}

/// How a call is translated between the eras of its client and of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Not: both are of the same era.
    None,
    /// From the handshake era to an upstream of the stateless era.
    Raised,
    /// From the stateless era to an upstream of the handshake era.
    Lowered,
    /// As `Lowered`, and the upstream's call waits while the client gets its input requests.
    Parked,
    /// As `Raised`, and the client was asked for input before the upstream was called again.
    Driven,
}

impl Translation {
    /// The word for metrics, traces and the console.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Raised => "raised",
            Self::Lowered => "lowered",
            Self::Parked => "parked",
            Self::Driven => "driven",
        }
    }
}

/// How the waiting of a parked call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkedEnd {
    /// The client returned.
    Resumed,
    /// The client did not return in time.
    Expired,
    /// Another replica continued the call, because that of the call was gone.
    TakenOver,
    /// The upstream's call was lost.
    Lost,
}

impl ParkedEnd {
    /// The word for metrics, traces and the console.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Expired => "expired",
            Self::TakenOver => "taken_over",
            Self::Lost => "lost",
        }
    }
}
