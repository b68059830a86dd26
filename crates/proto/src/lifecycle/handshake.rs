//! The handshake generation: `initialize`, its answer, `initialized`, work.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::read_implementation;
use crate::dialect::{Dialect, Lifecycle, RepeatedInitializePolicy, VersionPolicy};
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::{ClientCapabilities, Level};
use crate::operation::{Change, subscription_covers};
use crate::revision::{Era, Revision, Rules};
use crate::wire::{Object, Raw};

/// What a session is sent until the client says what it wants: the server may choose.
const DEFAULT_LOG_LEVEL: Level = Level::Info;

/// How far the handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandshakePhase {
    /// Nothing was said.
    Created,
    /// `initialize` was received.
    Initializing,
    /// The client confirmed.
    Operating,
    /// The connection is over.
    Shutdown,
}

/// What a connection of the handshake generation remembers.
#[derive(Debug)]
pub struct HandshakeSession {
    /// How far the handshake has come.
    pub phase: HandshakePhase,
    /// The rules that were agreed on.
    pub rules: &'static Rules,
    /// What the client can be asked for, once it has said so: requests that stand alone need no room for it.
    pub capabilities: Option<Arc<ClientCapabilities>>,
    /// Who the client says it is, without pictures: a session is long, and there are many.
    pub client: Option<Raw>,
    /// The least serious log messages that are sent. Until the client sets it the server may choose.
    pub level: Level,
    /// Resources that are watched.
    pub subscribed_uris: BTreeSet<String>,
    /// Tasks that this session asked for and that are not over.
    pub tasks: BTreeSet<String>,
    /// The version that `initialize` was or will be answered with.
    pub version: Cow<'static, str>,
    /// Whether anything of this changed since somebody wrote it down.
    pub is_dirty: bool,
}

impl HandshakeSession {
    /// A session that nothing was said in.
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

    /// Whether this method may be used now.
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

    /// Takes what `initialize` says.
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
                let spoken = known.filter(|rules| rules.era == Era::Handshake);
                self.rules = spoken.unwrap_or_else(|| Revision::newest(Era::Handshake).rules());
                self.version = Cow::Borrowed(self.rules.name);
            }
        }
    }

    /// Takes the notification that ends the handshake; out of place it changes nothing.
    pub fn confirm(&mut self) {
        if self.phase == HandshakePhase::Initializing {
            self.phase = HandshakePhase::Operating;
            self.is_dirty = true;
        }
    }

    /// Sets the least serious log messages that are sent.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
        self.is_dirty = true;
    }

    /// Watches a resource; tells whether it was not watched before.
    pub fn subscribe(&mut self, uri: &str) -> bool {
        let is_new = self.subscribed_uris.insert(uri.to_string());
        self.is_dirty |= is_new;
        is_new
    }

    /// Watches it no longer; tells whether it was watched.
    pub fn unsubscribe(&mut self, uri: &str) -> bool {
        let was_watched = self.subscribed_uris.remove(uri);
        self.is_dirty |= was_watched;
        was_watched
    }

    /// Whether the change is told to this session.
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

/// Demands a member, by a path of one or two names.
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
