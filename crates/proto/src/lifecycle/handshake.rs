//! The handshake era: the session's states from `initialize` to shutdown (2025-11-25 basic/lifecycle, initialization).

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::read_implementation;
use crate::dialect::{Dialect, Lifecycle, RepeatedInitializePolicy, VersionPolicy};
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::{ClientCapabilities, Level};
use crate::operation::{Change, subscription_covers};
use crate::revision::{Revision, Rules};
use crate::wire::{Object, Raw};

/// The log level until the client sets one; the specification leaves the choice to the server
/// (2025-11-25 schema, `LoggingMessageNotification`).
const DEFAULT_LOG_LEVEL: Level = Level::Info;

/// The state of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandshakePhase {
    /// Nothing was received.
    Created,
    /// `initialize` was received.
    Initializing,
    /// The client sent `notifications/initialized`.
    Operating,
    /// The connection is closed.
    Shutdown,
}

/// The state of a session of the handshake era.
#[derive(Debug)]
pub struct HandshakeSession {
    /// The state of the handshake.
    pub phase: HandshakePhase,
    /// The negotiated rules.
    pub rules: &'static Rules,
    /// The client's capabilities. `None` before the handshake, so that stateless requests allocate nothing for them.
    pub capabilities: Option<Arc<ClientCapabilities>>,
    /// The client's `Implementation` without icons, because sessions are long-lived and numerous.
    pub client: Option<Raw>,
    /// The minimum level of log messages that are sent.
    pub level: Level,
    /// The subscribed resources.
    pub subscribed_uris: BTreeSet<String>,
    /// Unfinished tasks that this session created.
    pub tasks: BTreeSet<String>,
    /// The version in the `initialize` result.
    pub version: Cow<'static, str>,
    /// Whether the session changed since its last record.
    pub is_dirty: bool,
}

impl HandshakeSession {
    /// A session in which nothing was received.
    pub fn new(dialect: &Dialect) -> Self {
        let rules = dialect.base_rules();
        Self {
            phase: HandshakePhase::Created,
            rules,
            capabilities: None,
            client: None,
            level: DEFAULT_LOG_LEVEL,
            subscribed_uris: BTreeSet::new(),
            tasks: BTreeSet::new(),
            version: Cow::Borrowed(rules.name),
            is_dirty: false,
        }
    }

    /// Checks whether the method is allowed in this state. A ping always is
    /// (2025-11-25 basic/lifecycle, initialization).
    pub fn check_method(&self, method: Method, dialect: &Dialect) -> Result<(), Fault> {
        match method {
            Method::Ping => Ok(()),
            Method::Initialize => self.check_initialize(dialect),
            _ => self.check_is_open(dialect),
        }
    }

    fn check_initialize(&self, dialect: &Dialect) -> Result<(), Fault> {
        if self.phase == HandshakePhase::Created
            || dialect.repeated_initialize == RepeatedInitializePolicy::Accept
        {
            return Ok(());
        }
        Err(Fault::new(FaultKind::AlreadyInitialized, "initialize was received already"))
    }

    fn check_is_open(&self, dialect: &Dialect) -> Result<(), Fault> {
        let (needed, hint) = match dialect.lifecycle {
            Lifecycle::None => return Ok(()),
            Lifecycle::Flag => (HandshakePhase::Initializing, "send initialize first"),
            Lifecycle::Strict if self.phase == HandshakePhase::Created => {
                (HandshakePhase::Operating, "the server is CREATED; send initialize first")
            }
            Lifecycle::Strict => (
                HandshakePhase::Operating,
                "the server is INITIALIZING; send notifications/initialized first",
            ),
        };
        match self.phase >= needed {
            true => Ok(()),
            false => Err(Fault::new(FaultKind::NotInitialized, hint)),
        }
    }

    /// Handles the params of `initialize` (2025-11-25 schema, `InitializeRequestParams`).
    pub fn initialize(
        &mut self,
        params: Option<Object<'_>>,
        dialect: &Dialect,
    ) -> Result<(), Fault> {
        let params = params.unwrap_or(Object::EMPTY);
        for path in dialect.initialize_requires.iter() {
            require(params, path)?;
        }
        let proposed = params.string("protocolVersion")?;
        let capabilities = params.object("capabilities")?.map(ClientCapabilities::read);
        let client = params.object("clientInfo")?.map(read_implementation).transpose()?;
        self.negotiate(proposed, dialect);
        let rules = self.rules;
        self.capabilities = capabilities.map(|it| Arc::new(it.in_revision(rules)));
        self.client = client.as_ref().map(Raw::from_value);
        self.level = DEFAULT_LOG_LEVEL;
        self.subscribed_uris.clear();
        self.tasks.clear();
        self.phase = HandshakePhase::Initializing;
        self.is_dirty = true;
        Ok(())
    }

    fn negotiate(&mut self, proposed: Option<Cow<'_, str>>, dialect: &Dialect) {
        match &dialect.version {
            VersionPolicy::Fixed(version) => {
                self.rules = dialect.base_rules();
                self.version = version.clone();
            }
            VersionPolicy::Negotiate => {
                let known = proposed.as_deref().and_then(Revision::from_name).map(Revision::rules);
                let spoken = known.filter(|rules| rules.has_handshake());
                self.rules = spoken.unwrap_or(Rules::NEWEST_HANDSHAKE);
                self.version = Cow::Borrowed(self.rules.name);
            }
        }
    }

    /// Handles the notification that ends the handshake. In another state it has no effect.
    pub fn confirm(&mut self) {
        if self.phase == HandshakePhase::Initializing {
            self.phase = HandshakePhase::Operating;
            self.is_dirty = true;
        }
    }

    /// The handshake has ended at another process. Nothing has to be recorded: that process does it.
    pub fn confirm_elsewhere(&mut self) {
        if self.phase == HandshakePhase::Initializing {
            self.phase = HandshakePhase::Operating;
        }
    }

    /// Takes over the log level and the subscriptions of a newer record, unless there are unrecorded changes. Returns the
    /// resources that are not subscribed to any more.
    pub fn refresh(&mut self, newer: Self) -> Option<Vec<String>> {
        if self.is_dirty {
            return None;
        }
        self.level = newer.level;
        let former = core::mem::replace(&mut self.subscribed_uris, newer.subscribed_uris);
        Some(former.into_iter().filter(|uri| !self.subscribed_uris.contains(uri)).collect())
    }

    /// Sets the minimum level of log messages that are sent.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
        self.is_dirty = true;
    }

    /// Subscribes to a resource. Returns whether the subscription is new.
    pub fn subscribe(&mut self, uri: &str) -> bool {
        let is_new = self.subscribed_uris.insert(uri.to_string());
        self.is_dirty |= is_new;
        is_new
    }

    /// Ends a subscription. Returns whether it existed.
    pub fn unsubscribe(&mut self, uri: &str) -> bool {
        let was_watched = self.subscribed_uris.remove(uri);
        self.is_dirty |= was_watched;
        was_watched
    }

    /// Whether the session is notified of the change.
    pub fn is_subscribed_to(&self, change: &Change) -> bool {
        self.phase == HandshakePhase::Operating
            && match change {
                Change::List(_) => self.rules.unsolicited_changes,
                Change::Resource(uri) => {
                    self.subscribed_uris.iter().any(|watched| subscription_covers(watched, uri))
                }
                Change::Task(task) => self.tasks.contains(&task.id),
            }
    }
}

/// Requires a member, given by a path of one or two names.
fn require(params: Object<'_>, path: &str) -> Result<(), Fault> {
    let present = match path.split_once('.') {
        None => params.get(path).is_some(),
        Some((outer, inner)) => {
            params.object(outer)?.is_some_and(|object| object.get(inner).is_some())
        }
    };
    match present {
        true => Ok(()),
        false => Err(Fault::new(FaultKind::InvalidParams, format!("`{path}` is missing"))),
    }
}
