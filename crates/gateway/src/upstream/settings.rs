//! The settings of an upstream.

mod naming;
mod origin;

pub use naming::{NameError, Naming};
pub use origin::SettingsOrigin;

use std::time::Duration;

use creole::client::Address;
use creole::internal::replicas::Replicas;
use creole::internal::telemetry::Telemetry;
use creole::internal::telemetry::trace::Propagation;
use creole::proto::client::ClientLimits;
use creole::proto::dialect::{Dialect, builtin};
use creole::proto::revision::Rules;

use crate::layers::{Chain, NamePatterns};

/// Which revision the gateway offers to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RevisionChoice {
    /// Detected: the era of the caller that a connection is for, if the upstream supports it.
    #[default]
    Detect,
    /// This revision.
    Revision(&'static Rules),
}

/// Which callers share a session with an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Each principal has its own.
    #[default]
    Principal,
    /// There is one caller, hence one session, in which the upstream may send input requests.
    Single,
    /// All callers share one. For upstreams that keep no state of their callers.
    Shared,
    /// Each session of a client has its own: the session of the handshake era, or the one that a call names. A call
    /// without a session gets one for itself.
    Session,
    /// Each call has its own. For upstreams that must not keep state between calls. An upstream of the stateless era is
    /// assumed to keep none.
    Request,
}

/// The settings of one upstream.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The endpoint address.
    pub address: Address,
    /// The revisions that the gateway offers.
    pub revisions: RevisionChoice,
    /// How the upstream deviates from its revision.
    pub dialect: Dialect,
    /// Whether the gateway switches to another dialect when it detects that the upstream uses one.
    pub detects_dialect: bool,
    /// How the gateway names the items of the upstream.
    pub naming: Naming,
    /// Which callers share a session.
    pub affinity: Affinity,
    /// Whether the gateway presents the upstream's identity as its own.
    pub transparent: bool,
    /// Whether the upstream may send input requests to callers.
    pub interactive: bool,
    /// How long callers wait for the upstream at startup.
    pub startup_timeout: Duration,
    /// How long a call may go without a message from the upstream, and how long it may take in total.
    pub limits: ClientLimits,
    /// How long a caller may take to return with its input responses.
    pub input_timeout: Duration,
    /// The maximum number of parked calls.
    pub max_parked_calls: usize,
    /// The maximum number of caller sessions. With several callers, one caller has at most half of them.
    pub max_sessions: usize,
    /// The layers around its calls.
    pub chain: Chain,
    /// The tools that each retry layer of the chain covers. Empty if a layer of the chain renames tools: the names of
    /// the retry layer may then be those of other tools here.
    pub retried_tools: Vec<NamePatterns>,
    /// The configuration that these settings come from, if they come from one.
    pub configuration: Option<SettingsOrigin>,
    /// The replicas that share the state, if there are any. A caller may return to any of them.
    pub replicas: Option<Replicas>,
    /// The telemetry of the process.
    pub telemetry: Telemetry,
    /// What of a trace context it gets.
    pub propagation: Propagation,
}

impl UpstreamSettings {
    /// Default settings for this address.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            revisions: RevisionChoice::default(),
            dialect: builtin("spec").expect("the dialect `spec` is built in"),
            detects_dialect: false,
            naming: Naming::UNPREFIXED,
            affinity: Affinity::default(),
            transparent: false,
            interactive: true,
            startup_timeout: Duration::from_secs(30),
            limits: ClientLimits::default(),
            input_timeout: Duration::from_secs(600),
            max_parked_calls: 1024,
            max_sessions: 64,
            chain: Chain::default(),
            retried_tools: Vec::new(),
            configuration: None,
            replicas: None,
            telemetry: Telemetry::default(),
            propagation: Propagation::default(),
        }
    }

    /// The name of the upstream in messages.
    pub(super) fn name(&self) -> &str {
        self.address.name()
    }

    /// A message with the host and the port of the upstream. The operator needs them; callers do not receive them.
    pub(super) fn with_address(&self, message: &str) -> String {
        let name = format!("`{}`", self.name());
        let location = match &self.address {
            Address::Http(target) => target.url().authority().map(|place| place.as_str()),
            Address::Child(_) => None,
        };
        match (location, message.strip_prefix(&name)) {
            (Some(location), Some(rest)) if location != self.name() => {
                format!("{name} ({location}){rest}")
            }
            _ => message.to_owned(),
        }
    }

    /// The maximum number of sessions of one caller, so that one caller cannot take all of them.
    pub(super) fn max_sessions_per_caller(&self) -> usize {
        match self.affinity {
            Affinity::Single => self.max_sessions,
            _ => self.max_sessions.div_ceil(2),
        }
    }

    /// Whether the settings are the same. An upstream without a configuration comes from the command line, which does not
    /// change.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        let treated =
            |settings: &Self| (settings.affinity, settings.input_timeout, settings.transparent);
        self.configuration == other.configuration
            && treated(self) == treated(other)
            && self.address.name() == other.address.name()
    }
}
