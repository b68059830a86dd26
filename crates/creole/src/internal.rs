//! The interface for the other crates of this workspace: the gateway, the configuration, the tools and the command
//! line. It has no stability promise: any release may change or remove it.

/// The memory budget of bodies.
pub mod budget {
    pub use crate::budget::{Budget, max_connections};
}

/// Calls as transports and upstreams see them.
pub mod call {
    pub use crate::call::{
        CancelReason, Canceller, ClientChannel, ClientSession, ConnectionId, Origin,
    };
}

/// Panics that end a call only.
pub mod catch_panic {
    pub use crate::call::catch_panic::install_hook;
}

/// Tokens of files and programs.
#[cfg(feature = "http")]
pub mod credentials {
    use crate::client::credentials::Authorization;

    /// The token of an authorization, for a source whose token is not sent to its server.
    pub fn token_text(authorization: &Authorization) -> &str {
        authorization.secret()
    }
}

/// Endpoints, and the operations on all layers of a chain.
pub mod chain {
    pub use crate::chain::{
        BreakerChange, BreakerStatus, CircuitBreaker, Endpoint, ViewerClass, admits_unlisted,
        definitions_changed, reassign_names, resource_updated, rewrite_definition,
        rewrite_input_request, save_definitions, unmatched_patterns, viewer_class, withheld_fault,
    };
}

/// Connections to servers, below the level of [`Client`](crate::client::Client).
pub mod client {
    pub use crate::client::connection::{
        CloseReason, Connection, ConnectionSetup, OnInputRequest, OnLog, OnViolation,
        ServerNotification,
    };
    #[cfg(feature = "http")]
    pub use crate::client::connector::may_be_wrong_era;
    pub use crate::client::connector::{ClientOffer, Connector};
    pub use crate::client::era::EraSupport;
    pub use crate::client::pending_call::{
        CallEvent, CallStep, InputResponder, PendingCall, ServerInputRequest,
    };
    #[cfg(feature = "http")]
    pub use crate::client::transport::http::HttpServer;
    #[cfg(feature = "http")]
    pub use crate::client::transport::http::LegacySseServer;
    #[cfg(feature = "http")]
    pub use crate::client::transport::http::Proxies;
    #[cfg(feature = "http")]
    pub use crate::client::transport::http::ResumedServer;
    pub use crate::client::transport::{Exchange, Inbox, ResumePoint, TransportHandle};
}

/// Files of users and keys, as `creole passwd` changes them.
#[cfg(feature = "http")]
pub mod credential_files {
    pub use crate::auth::ParsedCredentials;
    pub use crate::auth::credential_files::credential_text::CredentialText;
    pub use crate::auth::credential_files::expiry::{Expiry, ParseExpiryError};
    pub use crate::auth::credential_files::file::{CredentialKind, read_credential_file};
    pub use crate::auth::credential_files::keys::NewKey;
    pub use crate::auth::secret::Secret;

    /// Passwords.
    pub mod password {
        pub use crate::auth::password::{check_strength, hash};
    }
}

/// HTTP requests of tools.
#[cfg(feature = "http")]
pub mod fetch {
    pub use crate::client::transport::http::fetch::{
        AllowedAddresses, FetchError, FetchRequest, Fetcher,
    };
}

/// The front matter of text files.
pub mod front_matter {
    pub use crate::item::front_matter::{FrontMatterDocument, FrontMatterError};
}

/// Handlers of HTTP requests beside the MCP endpoint.
#[cfg(feature = "http")]
pub mod http {
    pub use crate::auth::AuthDecision;
    pub use crate::auth::challenge::Challenge;
    pub use crate::serve::http::mcp::endpoint::inspect::InspectedSession;
    pub use crate::serve::http::mcp::response::McpBody;
    pub use crate::serve::http::web::handler::{
        Admission, Authenticate, ErrorResponse, HttpHandler,
    };
    pub use crate::serve::http::web::incoming::IncomingBody;
    pub use crate::serve::http::web::listener_metrics::ListenerMetrics;
    pub use crate::serve::http::web::public_documents::PublicDocuments;
    pub use crate::serve::http::web::request::{HeaderValues, RequestHead, RequestHeaders};
    pub use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
}

/// Input requests that cannot be sent.
pub mod input {
    pub use crate::input::{missing_capability, unsupported_input_fault};
}

/// Media types.
pub mod media {
    pub use crate::item::media::{detect, from_file_name, resource_contents};
}

/// Child processes.
pub mod process {
    pub use crate::process::{
        Child, ChildInput, ChildOutput, Exit, ProcessUsage, ProgramMeter, Reaper, RestartDecision,
        RestartPolicy, StderrTail, own_usage, run_reaper,
    };
}

/// Patterns for names and URIs.
pub mod name_patterns {
    pub use crate::name_patterns::NamePatterns;
}

/// Items of other servers in a registry.
pub mod registry {
    pub use crate::registry::{
        Announcement, InspectedItem, ItemSource, NameCollision, Recipients, RemoteItem,
        RemoteServer, SessionList, SessionLists, UnlistedItem, WithheldTool,
    };
}

/// The replacement of a running server.
pub mod replacement {
    pub use crate::server::replacement::{ReplacedServer, Replacement};
}

/// Tokens for services that are no MCP servers.
#[cfg(feature = "http")]
pub mod oauth {
    pub use crate::client::oauth::client_credentials::ServiceClient;
}

/// Processes that share a state.
pub mod replicas {
    pub use crate::replicas::{
        OtherReplica, Registration, ReplicaDescription, ReplicaError, ReplicaRequest,
        ReplicaResponder, ReplicaResponses, Replicas, Requester,
    };
}

/// The validation of values.
pub mod schema {
    pub use crate::schema::{SchemaError, Violation};
}

/// The scopes that calls need, which an [`Origin`](call::Origin) carries.
pub mod scopes {
    pub use crate::scopes::{
        ExpandedScopes, ScopeDenial, ScopeRule, ScopeRules, insufficient_scope_fault,
    };
}

/// Digests.
pub mod seal {
    pub use crate::secrets::digest;
}

/// The limits of skills.
pub mod skill {
    pub use crate::item::skill::{MANIFEST, MAX_BYTES, MAX_FILES};
}

/// Locks that ignore poisoning.
pub mod sync {
    pub use crate::sync::{Mutex, RwLock};
}

/// Ids of tasks.
pub mod task {
    pub use crate::task::{InspectedTask, random_id};
}

/// Records of calls, and their readers.
pub mod telemetry {
    pub use crate::telemetry::error_type::client_error_type;
    pub use crate::telemetry::facts::{RequestFacts, Transport, Via};
    pub use crate::telemetry::frames::{
        CapturedFrame, FrameDirection, FrameRedactor, MAX_FRAME_BYTES, MAX_FRAMES,
    };
    pub use crate::telemetry::metrics::Metrics;
    pub use crate::telemetry::outcome::{CallEnd, CallOutcome, ErrorType};
    pub use crate::telemetry::record::{
        CallRecord, CallStart, Detail, EarlierCall, FrameTap, PayloadView, ReaderGuard,
        RecordGuard, RecordReader, RefusedClientRequest, StepGuard,
    };
    pub use crate::telemetry::steps::{
        Decision, MAX_STEPS, ParkedEnd, Step, StepKind, Translation,
    };
    pub use crate::telemetry::trace;
    pub use crate::telemetry::trace::{CallTrace, Link, MAX_LINKS, TraceSettings};
    pub use crate::telemetry::{Modes, Telemetry};

    /// Metrics: the table of their names, and the registry of their series.
    pub mod metrics {
        pub use crate::telemetry::metrics::{
            CollectedValues, CollectorGuard, Counter, Exemplar, FamilySnapshot, Gauge, GaugeGuard,
            Histogram, HistogramValue, Label, MAX_LABELLED_ITEMS, MAX_SERIES,
            MAX_SERIES_PER_METRIC, MetricDef, MetricKind, Metrics, NetworkTransport, OTHER,
            OVERFLOW, OperationSeries, Operations, OwnedSeries, SeriesSnapshot, SeriesValue,
            Snapshot, TracedCall, Unit, UpDownGauge, table,
        };
    }
}

/// TLS to servers that are no HTTP servers.
#[cfg(feature = "http")]
pub mod tls {
    pub use crate::client::transport::http::conn::connect_failure::describe_connect_failure;
    #[cfg(feature = "postgres")]
    pub use crate::tls::postgres::PostgresTls;
    pub use crate::tls::{Encrypted, TlsClient};
}
