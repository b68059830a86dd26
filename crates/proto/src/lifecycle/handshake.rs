//! The handshake generation: `initialize`, its answer, `initialized`, work.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::implementation;
use crate::dialect::{Dialect, Lifecycle, Repeated, VersionAnswer};
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::{ClientCapabilities, Level};
use crate::op::{Change, covers};
use crate::revision::{Era, Revision, Rules};
use crate::wire::{Object, Raw};

/// What a session is sent until the client says what it wants: the server may choose.
const FIRST_LEVEL: Level = Level::Info;

/// How far the handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
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
pub struct Session {
    /// How far the handshake has come.
    pub phase: Phase,
    /// The rules that were agreed on.
    pub rules: &'static Rules,
    /// What the client can be asked for, once it has said so: requests that stand alone need no room for it.
    pub capabilities: Option<Arc<ClientCapabilities>>,
    /// Who the client says it is, without pictures: a session is long, and there are many.
    pub client: Option<Raw>,
    /// The least serious log messages that are sent. Until the client sets it the server may choose.
    pub level: Level,
    /// Resources that are watched.
    pub watched: BTreeSet<String>,
    /// Tasks that this session asked for and that are not over.
    pub tasks: BTreeSet<String>,
    /// The version that `initialize` was or will be answered with.
    pub version: Cow<'static, str>,
    /// Whether anything of this changed since somebody wrote it down.
    pub changed: bool,
}

impl Session {
    /// A session that nothing was said in.
    pub fn new(dialect: &Dialect) -> Self {
        let rules = dialect.base_rules();
        Self {
            phase: Phase::Created,
            rules,
            capabilities: None,
            client: None,
            level: FIRST_LEVEL,
            watched: BTreeSet::new(),
            tasks: BTreeSet::new(),
            version: Cow::Borrowed(rules.name),
            changed: false,
        }
    }

    /// Whether this method may be used now.
    pub fn gate(&self, method: Method, dialect: &Dialect) -> Result<(), Fault> {
        match method {
            Method::Ping => Ok(()),
            Method::Initialize => self.gate_initialize(dialect),
            _ => self.gate_work(dialect),
        }
    }

    fn gate_initialize(&self, dialect: &Dialect) -> Result<(), Fault> {
        if self.phase == Phase::Created || dialect.repeated_initialize == Repeated::Accept {
            return Ok(());
        }
        Err(Fault::new(FaultKind::AlreadyInitialized, "initialize was received already"))
    }

    fn gate_work(&self, dialect: &Dialect) -> Result<(), Fault> {
        let (needed, hint) = match dialect.lifecycle {
            Lifecycle::None => return Ok(()),
            Lifecycle::Flag => (Phase::Initializing, "send initialize first"),
            Lifecycle::Strict if self.phase == Phase::Created => {
                (Phase::Operating, "the server is CREATED; send initialize first")
            }
            Lifecycle::Strict => (
                Phase::Operating,
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
        let client = params.object("clientInfo")?.map(implementation).transpose()?;
        self.negotiate(proposed, dialect);
        let rules = self.rules;
        self.capabilities = capabilities.map(|it| Arc::new(it.in_revision(rules)));
        self.client = client.as_ref().map(Raw::of);
        self.level = FIRST_LEVEL;
        self.watched.clear();
        self.tasks.clear();
        self.phase = Phase::Initializing;
        self.changed = true;
        Ok(())
    }

    fn negotiate(&mut self, proposed: Option<Cow<'_, str>>, dialect: &Dialect) {
        match &dialect.version {
            VersionAnswer::Fixed(version) => {
                self.rules = dialect.base_rules();
                self.version = version.clone();
            }
            VersionAnswer::Negotiate => {
                let known = proposed.as_deref().and_then(Revision::named).map(Revision::rules);
                let spoken = known.filter(|rules| rules.era == Era::Handshake);
                self.rules = spoken.unwrap_or_else(|| Revision::newest(Era::Handshake).rules());
                self.version = Cow::Borrowed(self.rules.name);
            }
        }
    }

    /// Takes the notification that ends the handshake; out of place it changes nothing.
    pub fn confirm(&mut self) {
        if self.phase == Phase::Initializing {
            self.phase = Phase::Operating;
            self.changed = true;
        }
    }

    /// Sets the least serious log messages that are sent.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
        self.changed = true;
    }

    /// Watches a resource; tells whether it was not watched before.
    pub fn watch(&mut self, uri: &str) -> bool {
        let is_new = self.watched.insert(uri.to_string());
        self.changed |= is_new;
        is_new
    }

    /// Watches it no longer; tells whether it was watched.
    pub fn unwatch(&mut self, uri: &str) -> bool {
        let was_watched = self.watched.remove(uri);
        self.changed |= was_watched;
        was_watched
    }

    /// Whether the change is told to this session.
    pub fn wants(&self, change: &Change) -> bool {
        self.phase == Phase::Operating
            && match change {
                Change::List(_) => self.rules.unsolicited_changes,
                Change::Resource(uri) => self.watched.iter().any(|watched| covers(watched, uri)),
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
