//! How a connection to a server is set up, and what it reports outside of calls.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use creole_proto::client::{OpenMode, Profile, ProtocolViolation};
use creole_proto::fault::Fault;
use creole_proto::model::ClientCapabilities;
use creole_proto::operation::{Change, Event};

use super::call_slot::ServerInputRequest;

/// A notification of a server that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerNotification {
    /// A list or a resource changed.
    Changed(Change),
    /// A URL elicitation is complete; the id is the elicitation's.
    ElicitationComplete(String),
    /// A log message.
    Log(Event),
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq)]
pub struct CloseReason {
    /// The fault of the calls that begin now.
    pub fault: Fault,
    /// Whether only the session is lost: the server is reachable, and a new session may be opened.
    pub session_lost: bool,
    /// Whether this side closed it.
    pub by_us: bool,
}

/// Handles an input request that belongs to no known call.
pub type OnInputRequest = Arc<dyn Fn(ServerInputRequest) + Send + Sync>;

/// Handles a log message that belongs to no known call.
pub type OnLog = Arc<dyn Fn(Event) + Send + Sync>;

/// Hears of a message that violates the protocol.
pub type OnViolation = Arc<dyn Fn(&ProtocolViolation) + Send + Sync>;

/// How a connection is set up.
pub struct ConnectionSetup {
    /// The server's dialect, our identity, and the limits.
    pub profile: Arc<Profile>,
    /// How the session is opened.
    pub opening: OpenMode,
    /// Handles input requests that belong to no known call; without it they are refused. Must not block.
    pub on_input_request: Option<OnInputRequest>,
    /// Handles log messages that belong to no known call; without it they are among the notifications. Must not block.
    pub on_log: Option<OnLog>,
    /// Hears of messages that violate the protocol. Must not block.
    pub on_violation: Option<OnViolation>,
    /// The ids of calls continue after this number.
    pub after_id: u64,
    /// The messages that were already exchanged on the transport, if it was used before.
    pub prior_messages: Option<PriorMessages>,
}

/// The messages that were exchanged on a transport before.
#[derive(Debug)]
pub struct PriorMessages {
    /// The server's messages, one each. The response to the opening request is among them, so it is not sent again.
    pub messages: Vec<Vec<u8>>,
    /// The highest id of a request that was sent: late responses to those belong to no call.
    pub last_request_id: u64,
}

impl ConnectionSetup {
    /// A setup that refuses input requests outside of calls.
    pub fn new(profile: Arc<Profile>, mode: OpenMode) -> Self {
        Self {
            profile,
            opening: mode,
            on_input_request: None,
            on_log: None,
            on_violation: None,
            after_id: 0,
            prior_messages: None,
        }
    }
}

impl fmt::Debug for ConnectionSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Setup").field("opening", &self.opening).finish_non_exhaustive()
    }
}

/// The input requests that a connection accepts, and their handlers.
#[derive(Clone, Default)]
pub struct ClientOffer {
    /// The capabilities that are sent to a server of the handshake era.
    pub capabilities: Arc<ClientCapabilities>,
    /// Handles input requests that belong to no known call.
    pub on_input_request: Option<OnInputRequest>,
    /// Handles log messages that belong to no known call.
    pub on_log: Option<OnLog>,
    /// Hears of messages that violate the protocol.
    pub on_violation: Option<OnViolation>,
    /// Environment entries of a program that is started for the connection. Those of the program itself win.
    pub environment: Vec<(OsString, OsString)>,
}

impl fmt::Debug for ClientOffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Offer");
        shown.field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}
