//! Dialects: the deviations of a deployment from its base revision, as data.
//!
//! The code reads a dialect's fields and never its name. A new dialect is a value, defined in [`builtin()`] or in a
//! configuration file.

mod builtin;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::fault::{COMMON_ERRORS, ErrorRow, FaultKind};
use crate::method::{Method, MethodSet};
use crate::revision::{Era, PerEra, Revision, Rules, TaskModel, UnreadableId};
use crate::wire::{Id, IdError};

pub use builtin::{BUILTIN_NAMES, Clause, builtin};

/// A text in a dialect: a constant or loaded from a file.
pub type DialectText = Cow<'static, str>;

/// The protocol deviations of one deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialect {
    /// Its name in configuration files.
    pub name: DialectText,
    /// A one-sentence description.
    pub about: DialectText,
    /// The revision in force before negotiation, and where there is no negotiation.
    pub base: Revision,
    /// Whether requests with the version and capabilities in `_meta` are served without a handshake
    /// (2026-07-28 basic, `_meta`).
    pub stateless: bool,
    /// Whether a handshake may open a connection.
    pub handshake: bool,
    /// The version in the `initialize` result.
    pub version: VersionPolicy,
    /// Members that `initialize` must carry. A dotted path such as `clientInfo.name` names a nested member.
    pub initialize_requires: Cow<'static, [DialectText]>,
    /// The steps that must precede operations.
    pub lifecycle: Lifecycle,
    /// Additional names of the notification that ends the handshake.
    pub initialized_aliases: Cow<'static, [DialectText]>,
    /// The notification with which a client ends the handshake; `None` if there is none.
    pub initialized_notification: Option<DialectText>,
    /// The treatment of a second `initialize`.
    pub repeated_initialize: RepeatedInitializePolicy,
    /// The methods that a client may send; `None` means those of the revision.
    pub methods: Option<MethodSet>,
    /// The encoding of capabilities.
    pub capabilities: CapabilityShape,
    /// The capabilities that are always announced; `None` announces those that the server has.
    pub advertise: Option<Cow<'static, [DialectText]>>,
    /// Capabilities that are never announced.
    pub hidden_capabilities: Cow<'static, [DialectText]>,
    /// The members of a tool definition that are announced.
    pub definitions: DefinitionDetail,
    /// Errors whose encoding differs from that of the revision.
    pub errors: Cow<'static, [ErrorRow]>,
    /// The numbers that are valid ids.
    pub ids: IdNumbers,
    /// The treatment of a message without an id.
    pub missing_id: MissingIdPolicy,
    /// The treatment of a message with a null id.
    pub null_id: NullIdPolicy,
    /// The id in the response to a rejected message whose id is readable.
    pub refused_id: RejectedIdPolicy,
    /// The id in the response to a message whose id is unreadable.
    pub unreadable_id: UnreadableIdPolicy,
    /// The treatment of an array of messages.
    pub batch: BatchPolicy,
    /// Whether a tool call must carry `arguments`.
    pub arguments_required: bool,
    /// When a tool result carries `isError`.
    pub is_error: IsErrorPolicy,
    /// Whether lists are paginated (2025-11-25 schema, `PaginatedResult`).
    pub paging: bool,
    /// The treatment of `additionalProperties` in announced schemas.
    pub schemas: SchemaPolicy,
    /// Maximum size of a message, in bytes.
    pub max_message: usize,
    /// Whether HTTP responses may be event streams, for clients that accept them.
    pub event_streams: bool,
    /// Whether protocol errors have their own HTTP statuses; otherwise their status is 200.
    pub error_statuses: bool,
    /// Whether every request is logged by default.
    pub telemetry: bool,
}

/// The version in the `initialize` result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// The proposed one if it is supported, else the newest one with a handshake
    /// (2025-11-25 basic/lifecycle, version negotiation).
    Negotiate,
    /// Always this one.
    Fixed(DialectText),
}

/// The steps that must precede operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// None: requests are independent.
    None,
    /// `initialize` was received.
    Flag,
    /// `initialize` succeeded and the client confirmed it. The states are created, initializing, operating and shut
    /// down (2025-11-25 basic/lifecycle, initialization).
    Strict,
}

/// The treatment of a second `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedInitializePolicy {
    /// It starts a new session.
    Accept,
    /// It is refused, and the first one remains in force.
    Refuse,
}

/// The encoding of capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapabilityShape {
    /// Objects with `listChanged` and `subscribe` (2025-11-25 schema, `ServerCapabilities`).
    Detailed,
    /// Empty objects, without announcements of changes.
    Plain,
    /// Booleans, with these additional flags.
    Flags(Cow<'static, [(DialectText, bool)]>),
}

/// The members of a tool definition that are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionDetail {
    /// All members.
    Full,
    /// Name, description and input schema.
    Plain,
}

/// The numbers that are valid ids. Strings are always valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdNumbers {
    /// Integers, as MCP requires (2025-11-25 schema, `RequestId`).
    Integers,
    /// Any number, as JSON-RPC 2.0 allows (JSON-RPC 2.0, section 4).
    Any,
}

/// The treatment of a message without an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingIdPolicy {
    /// It is a notification (JSON-RPC 2.0, section 4.1).
    Notification,
    /// It is an invalid request.
    Refuse,
}

/// The treatment of a message with a null id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullIdPolicy {
    /// It is an invalid request, as MCP requires (2025-11-25 basic, requests).
    Refuse,
    /// It is a notification.
    Notification,
}

/// The id in the response to a rejected message whose id is readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectedIdPolicy {
    /// The id of the message.
    Echo,
    /// Always null.
    Null,
}

/// The id in the response to a message whose id is unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableIdPolicy {
    /// As in the revision.
    ByRevision,
    /// `"id":null` (JSON-RPC 2.0, section 5).
    Null,
}

/// The treatment of an array of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPolicy {
    /// As in the negotiated revision.
    ByRevision,
    /// It is a batch (2025-03-26 basic, batching).
    Accept,
    /// It is an invalid request.
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

/// The treatment of `additionalProperties` in announced schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Schemas are announced as the tool wrote them.
    AsWritten,
    /// `additionalProperties: false` and `required` are added to each object schema that lacks them.
    Closed,
    /// `additionalProperties: false` is removed: unknown arguments are ignored.
    Open,
}

impl Dialect {
    /// Whether no message depends on an earlier one, so that HTTP needs no session.
    pub fn is_sessionless(&self) -> bool {
        self.lifecycle == Lifecycle::None
    }

    /// The rules in force before negotiation.
    pub fn base_rules(&self) -> &'static Rules {
        self.base.rules()
    }

    /// Looks up a method by name among those of this dialect and these rules.
    pub fn method(&self, name: &str, rules: &Rules) -> Option<Method> {
        let aliased = || self.initialized_aliases.iter().any(|alias| alias == name);
        let method =
            Method::from_name(name).or_else(|| aliased().then_some(Method::Initialized))?;
        // A dialect describes a server with a handshake.
        let own = self.methods.filter(|_| rules.has_handshake());
        let methods = own.unwrap_or(rules.methods);
        methods.contains(method).then_some(method)
    }

    /// The served revisions, newest first.
    pub fn revisions(&self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().rev().filter(|revision| self.serves_era(revision.rules().era))
    }

    /// Whether connections of this era are served.
    pub fn serves_era(&self, era: Era) -> bool {
        PerEra { handshake: self.handshake, stateless: self.stateless }.get(era)
    }

    /// The era that is served, if it is only one.
    pub fn only_era(&self) -> Option<Era> {
        let served = PerEra::from_fn(|era| self.serves_era(era).then_some(era));
        served.handshake.xor(served.stateless)
    }

    /// The encoding of a kind of fault under these rules.
    pub fn error_row(&self, kind: FaultKind, rules: &'static Rules) -> &ErrorRow {
        let special = |kind: FaultKind| {
            let mut rows = self.errors.iter().chain(rules.errors);
            rows.find(|row| row.kind == kind)
        };
        // A dialect without an encoding for denied resources reports them with its encoding for missing ones. The
        // response does not reveal that the resource exists.
        let veil =
            || special(FaultKind::ResourceNotFound).filter(|_| kind == FaultKind::ResourceDenied);
        special(kind).or_else(veil).unwrap_or(&COMMON_ERRORS[kind as usize])
    }

    /// The id in an error about a message whose id is unreadable.
    pub fn unreadable_id(&self, rules: &Rules) -> UnreadableId {
        match self.unreadable_id {
            UnreadableIdPolicy::ByRevision => rules.unreadable_id,
            UnreadableIdPolicy::Null => UnreadableId::Null,
        }
    }

    /// Parses an id.
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

    /// Whether a capability is announced, given whether the server has it.
    pub fn shows_capability(&self, capability: &str, has: bool) -> bool {
        let listed = |words: &[DialectText]| words.iter().any(|word| word == capability);
        match &self.advertise {
            Some(always) => listed(always),
            None => has && !listed(&self.hidden_capabilities),
        }
    }

    /// Whether calls may become tasks under these rules, if the server has tools that support it.
    pub fn has_tasks(&self, rules: &Rules) -> bool {
        rules.tasks != TaskModel::Absent
            && self.shows_capability("tasks", true)
            && self.method(Method::GetTask.name(), rules).is_some()
    }

    /// Whether list and resource changes may be announced to a session.
    pub fn announces_changes(&self) -> bool {
        self.capabilities == CapabilityShape::Detailed
    }

    /// Rejects a dialect that contradicts itself.
    pub fn validate(&self) -> Result<(), DialectError> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push("`name` is empty");
        }
        if self.version == VersionPolicy::Fixed("".into()) {
            problems.push("`version` is empty");
        }
        if !self.base.rules().has_handshake() {
            problems.push("`base` must be a revision with a handshake");
        }
        let has = |method| self.methods.is_none_or(|methods| methods.contains(method));
        if self.lifecycle != Lifecycle::None && !has(Method::Initialize) {
            problems.push("`lifecycle` requires a handshake, but `methods` has no initialize");
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
            problems.push("neither `handshake` nor `stateless` is enabled");
        }
        if has_duplicate_rows(&self.errors) {
            problems.push("`errors` has a duplicate kind");
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
    /// The contradiction.
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
    fn withheld_items_are_distinguished_only_by_dialects_with_their_own_error() {
        for name in BUILTIN_NAMES {
            let dialect = builtin(name).unwrap();
            for revision in Revision::ALL {
                let row = |kind| {
                    let row = dialect.error_row(kind, revision.rules());
                    (row.channel, row.message.clone(), row.data.clone())
                };
                let is_notified =
                    row(FaultKind::ResourceDenied) != row(FaultKind::ResourceNotFound);
                let has_words =
                    dialect.errors.iter().any(|row| row.kind == FaultKind::ResourceDenied);
                assert_eq!(is_notified, has_words, "{name} {revision:?}");
            }
        }
    }

    #[test]
    fn errors_that_no_client_can_cause_have_the_code_of_document_004() {
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
