//! Dialects: how one deployment deviates from the revision it is based on, as data.
//!
//! No code asks which dialect it is; it reads fields. A new dialect is a value, written here or in a
//! configuration file.

mod builtin;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::fault::{COMMON_ERRORS, ErrorRow, FaultKind};
use crate::method::{Method, MethodSet};
use crate::revision::{Era, Revision, Rules, TaskModel, UnreadableId};
use crate::wire::{Id, IdError};

pub use builtin::{BUILTIN_NAMES, Clause, builtin};

/// A word of a dialect: constant or loaded.
pub type DialectText = Cow<'static, str>;

/// How one deployment speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialect {
    /// Its name in configuration files.
    pub name: DialectText,
    /// One sentence for people.
    pub about: DialectText,
    /// The revision that holds before anything is negotiated, and where nothing is.
    pub base: Revision,
    /// Whether requests that carry version and capabilities in `_meta` are served without a handshake.
    pub stateless: bool,
    /// Whether a conversation may be opened by a handshake.
    pub handshake: bool,
    /// The version that `initialize` answers with.
    pub version: VersionPolicy,
    /// Members that `initialize` must carry; `clientInfo.name` reaches into an object.
    pub initialize_requires: Cow<'static, [DialectText]>,
    /// What must have happened before work is done.
    pub lifecycle: Lifecycle,
    /// Names of the notification that ends the handshake, besides the standard one.
    pub initialized_aliases: Cow<'static, [DialectText]>,
    /// The notification that a client ends the handshake with; `None` where there is none.
    pub confirmation: Option<DialectText>,
    /// What a second `initialize` does.
    pub repeated_initialize: RepeatedInitializePolicy,
    /// What a client may send; `None` leaves it to the revision.
    pub methods: Option<MethodSet>,
    /// How capabilities are written.
    pub capabilities: CapabilityShape,
    /// The capabilities that are always shown; `None` shows what the server has.
    pub advertise: Option<Cow<'static, [DialectText]>>,
    /// Capabilities that are never shown.
    pub conceal: Cow<'static, [DialectText]>,
    /// How much of a tool's definition is announced.
    pub definitions: DefinitionDetail,
    /// Errors that this dialect writes differently from its revision.
    pub errors: Cow<'static, [ErrorRow]>,
    /// Which numbers may be ids.
    pub ids: IdNumbers,
    /// What a message without an id is.
    pub missing_id: MissingIdPolicy,
    /// What a message with a null id is.
    pub null_id: NullIdPolicy,
    /// The id in the answer to a message that is refused as a whole although its id can be read.
    pub refused_id: RejectedIdPolicy,
    /// What stands for an id that could not be read.
    pub unreadable_id: UnreadableIdPolicy,
    /// What an array of messages is.
    pub batch: BatchPolicy,
    /// Whether a tool call must carry `arguments`.
    pub arguments_required: bool,
    /// When a tool result carries `isError`.
    pub is_error: IsErrorPolicy,
    /// Whether lists are cut into pages.
    pub paging: bool,
    /// What is done to the `additionalProperties` of announced schemas.
    pub schemas: SchemaPolicy,
    /// The longest message that is read, in bytes.
    pub max_message: usize,
    /// Whether answers over HTTP may be streams of events, for clients that take them.
    pub event_streams: bool,
    /// Whether errors of the protocol have statuses of their own over HTTP; else they are told with 200.
    pub error_statuses: bool,
    /// Whether every request is logged without being asked for.
    pub telemetry: bool,
}

/// The version that `initialize` answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// The one proposed if it is known, else the newest one with a handshake.
    Negotiate,
    /// Always this one.
    Fixed(DialectText),
}

/// What must have happened before work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Nothing: every request stands alone.
    None,
    /// `initialize` was received.
    Flag,
    /// `initialize` was answered and the client confirmed: created, initializing, operating, shut down.
    Strict,
}

/// What a second `initialize` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedInitializePolicy {
    /// It opens the conversation anew.
    Accept,
    /// It is refused, and the first one stands.
    Refuse,
}

/// How capabilities are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapabilityShape {
    /// Objects with `listChanged` and `subscribe`.
    Detailed,
    /// Empty objects: changes are not announced.
    Plain,
    /// Booleans, with these further flags.
    Flags(Cow<'static, [(DialectText, bool)]>),
}

/// How much of a tool's definition is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionDetail {
    /// All that there is.
    Full,
    /// Name, description and the schema of the arguments.
    Plain,
}

/// Which numbers may be ids, besides strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdNumbers {
    /// Integers, as MCP says.
    Integers,
    /// Any, as JSON-RPC 2.0 allows.
    Any,
}

/// What a message without an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingIdPolicy {
    /// A notification.
    Notification,
    /// An invalid request.
    Refuse,
}

/// What a message with a null id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullIdPolicy {
    /// An invalid request, as MCP says.
    Refuse,
    /// A notification.
    Notification,
}

/// The id in the answer to a refused message whose id can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectedIdPolicy {
    /// The message's own.
    Echo,
    /// Always null.
    Null,
}

/// What stands for an id that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableIdPolicy {
    /// What the revision says.
    ByRevision,
    /// `"id":null`.
    Null,
}

/// What an array of messages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPolicy {
    /// What the negotiated revision says.
    ByRevision,
    /// A batch.
    Accept,
    /// An invalid request.
    Refuse,
}

/// When a tool result carries `isError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsErrorPolicy {
    /// Always.
    Always,
    /// Only when it is true.
    WhenTrue,
    /// Never: failures are protocol errors.
    Never,
}

/// What is done to the `additionalProperties` of announced schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Schemas are announced as the tool wrote them.
    AsWritten,
    /// `additionalProperties: false` and `required` are added to each object schema that lacks them.
    Closed,
    /// `additionalProperties: false` is taken out: unknown arguments are ignored.
    Open,
}

impl Dialect {
    /// Whether each message is as good as the first, so that over HTTP there is nothing to keep in between.
    pub fn is_sessionless(&self) -> bool {
        self.lifecycle == Lifecycle::None
    }

    /// The rules that hold before anything is negotiated.
    pub fn base_rules(&self) -> &'static Rules {
        self.base.rules()
    }

    /// The method of that name, if this dialect has it under these rules.
    pub fn method(&self, name: &str, rules: &Rules) -> Option<Method> {
        let aliased = || self.initialized_aliases.iter().any(|alias| alias == name);
        let method =
            Method::from_name(name).or_else(|| aliased().then_some(Method::Initialized))?;
        let methods = match rules.era {
            Era::Handshake => self.methods.unwrap_or(rules.methods),
            Era::Stateless => rules.methods,
        };
        methods.contains(method).then_some(method)
    }

    /// The revisions that are served, newest first.
    pub fn revisions(&self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().rev().filter(|revision| self.serves_era(revision.rules().era))
    }

    /// Whether conversations of this era are served.
    pub fn serves_era(&self, era: Era) -> bool {
        match era {
            Era::Handshake => self.handshake,
            Era::Stateless => self.stateless,
        }
    }

    /// How a kind of fault is written under these rules.
    pub fn error_row(&self, kind: FaultKind, rules: &'static Rules) -> &ErrorRow {
        let special = |kind: FaultKind| {
            let mut rows = self.errors.iter().chain(rules.errors);
            rows.find(|row| row.kind == kind)
        };
        // Who has no words for what is withheld says that it is not there, in the same words: nothing shows that it is.
        let veil =
            || special(FaultKind::ResourceNotFound).filter(|_| kind == FaultKind::ResourceDenied);
        special(kind).or_else(veil).unwrap_or(&COMMON_ERRORS[kind as usize])
    }

    /// What stands for an id that could not be read.
    pub fn unreadable_id(&self, rules: &Rules) -> UnreadableId {
        match self.unreadable_id {
            UnreadableIdPolicy::ByRevision => rules.unreadable_id,
            UnreadableIdPolicy::Null => UnreadableId::Null,
        }
    }

    /// Reads an id.
    pub fn parse_id(&self, raw: &str) -> Result<Id, IdError> {
        match self.ids {
            IdNumbers::Integers => Id::parse(raw),
            IdNumbers::Any => Id::parse_number(raw),
        }
    }

    /// Whether an array of messages is a batch under these rules.
    pub fn accepts_batches(&self, rules: &Rules) -> bool {
        match self.batch {
            BatchPolicy::ByRevision => rules.batches,
            BatchPolicy::Accept => true,
            BatchPolicy::Refuse => false,
        }
    }

    /// Whether a capability is shown, given whether the server has it.
    pub fn shows_capability(&self, capability: &str, has: bool) -> bool {
        let listed = |words: &[DialectText]| words.iter().any(|word| word == capability);
        match &self.advertise {
            Some(always) => listed(always),
            None => has && !listed(&self.conceal),
        }
    }

    /// Whether calls may become tasks under these rules, if the server has tools for it.
    pub fn has_tasks(&self, rules: &Rules) -> bool {
        rules.tasks != TaskModel::Absent
            && self.shows_capability("tasks", true)
            && self.method(Method::GetTask.name(), rules).is_some()
    }

    /// Whether list and resource changes may be announced to a session.
    pub fn announces_changes(&self) -> bool {
        self.capabilities == CapabilityShape::Detailed
    }

    /// Refuses a dialect that contradicts itself.
    pub fn validate(&self) -> Result<(), DialectError> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push("`name` is empty");
        }
        if self.version == VersionPolicy::Fixed("".into()) {
            problems.push("`version` is empty");
        }
        let handshake = self.base.rules().era == Era::Handshake;
        if !handshake {
            problems.push("`base` must be a revision with a handshake");
        }
        let has = |method| self.methods.is_none_or(|methods| methods.contains(method));
        if self.lifecycle != Lifecycle::None && !has(Method::Initialize) {
            problems.push("`lifecycle` asks for a handshake, but `methods` has no initialize");
        }
        if self.lifecycle == Lifecycle::Strict && !has(Method::Initialized) {
            problems.push("`lifecycle` is strict, but `methods` has no notifications/initialized");
        }
        if self.missing_id == MissingIdPolicy::Refuse && self.lifecycle == Lifecycle::Strict {
            problems.push(
                "`lifecycle` is strict and waits for a notification that `missing_id` refuses",
            );
        }
        if self.max_message < 1024 {
            problems.push("`max_message` is below 1024 bytes, too short for any handshake");
        }
        if !self.handshake && !self.stateless {
            problems.push("neither `handshake` nor `stateless` is served, so nothing is");
        }
        if has_duplicate_rows(&self.errors) {
            problems.push("`errors` names a kind twice");
        }
        match problems.first() {
            None => Ok(()),
            Some(problem) => Err(DialectError { dialect: self.name.clone().into(), problem }),
        }
    }
}

fn has_duplicate_rows(rows: &[ErrorRow]) -> bool {
    let repeated = |(position, row): (usize, &ErrorRow)| {
        rows[..position].iter().any(|earlier| earlier.kind == row.kind)
    };
    rows.iter().enumerate().any(repeated)
}

/// A dialect that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectError {
    /// The dialect's name.
    pub dialect: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl fmt::Display for DialectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "dialect `{}`: {}", self.dialect, self.problem)
    }
}

impl core::error::Error for DialectError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_dialect_is_free_of_contradictions() {
        for name in BUILTIN_NAMES {
            let dialect = builtin(name).unwrap();
            assert_eq!(dialect.name, *name);
            dialect.validate().unwrap();
        }
    }

    #[test]
    fn a_strict_lifecycle_without_its_notification_is_refused() {
        let mut dialect = builtin("bossman").unwrap();
        dialect.methods = Some(MethodSet::of(&[Method::Initialize, Method::ListTools]));
        assert!(dialect.validate().unwrap_err().problem.contains("notifications/initialized"));
    }

    #[test]
    fn a_dialect_overrides_the_revision_and_the_revision_overrides_custom() {
        let spec = builtin("spec").unwrap();
        let bossman = builtin("bossman").unwrap();
        let old = Revision::V2025_03_26.rules();
        let new = Revision::V2025_11_25.rules();
        let code = |dialect: &Dialect, rules| {
            dialect.error_row(FaultKind::InvalidArguments, rules).channel
        };
        use crate::fault::ErrorChannel;
        assert_eq!(code(&spec, old), ErrorChannel::ProtocolError(-32602));
        assert_eq!(code(&spec, new), ErrorChannel::ToolResult { fallback_code: -32602 });
        assert_eq!(code(&bossman, new), ErrorChannel::ProtocolError(-32602));
    }

    #[test]
    fn what_is_withheld_is_told_apart_only_where_a_dialect_has_words_for_it() {
        for name in BUILTIN_NAMES {
            let dialect = builtin(name).unwrap();
            for revision in Revision::ALL {
                let row = |kind| {
                    let row = dialect.error_row(kind, revision.rules());
                    (row.channel, row.message.clone(), row.data.clone())
                };
                let is_told = row(FaultKind::ResourceDenied) != row(FaultKind::ResourceNotFound);
                let has_words =
                    dialect.errors.iter().any(|row| row.kind == FaultKind::ResourceDenied);
                assert_eq!(is_told, has_words, "{name} {revision:?}");
            }
        }
    }

    #[test]
    fn what_no_client_can_cause_has_the_code_of_document_004() {
        use crate::fault::{ErrorChannel, Fault};
        let buddyboss = builtin("buddyboss").unwrap();
        let told = |kind| {
            let row = buddyboss.error_row(kind, buddyboss.base_rules());
            (row.channel, row.format_message(&Fault::new(kind, "secret detail")))
        };
        let internal = (ErrorChannel::ProtocolError(-32603), "Internal error".into());
        assert_eq!(told(FaultKind::Internal), internal);
        let panicked = (ErrorChannel::ProtocolError(-32000), "Tool execution failed".into());
        assert_eq!(told(FaultKind::ToolPanicked), panicked);
    }

    #[test]
    fn the_bare_name_of_the_notification_is_an_alias() {
        let spec = builtin("spec").unwrap();
        assert_eq!(spec.method("initialized", spec.base_rules()), Some(Method::Initialized));
        assert_eq!(spec.method("rpc.discover", spec.base_rules()), None);
    }
}
