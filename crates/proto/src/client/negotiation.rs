//! Negotiation: handles the response that opens the connection.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::outbox::{ClientEvent, FrameKind, NegotiationResult, Outbox};
use super::{ConnectionState, Machine, OpenMode};
use crate::dialect::VersionPolicy;
use crate::encode;
use crate::fault::{Fault, FaultKind};
use crate::lifecycle::read_implementation;
use crate::model::{
    CacheHints, Implementation, SKILLS_EXTENSION, ServerCapabilities, TASKS_EXTENSION,
};
use crate::operation::ServerInfo;
use crate::revision::{Revision, Rules, TaskModel};
use crate::wire::meta;
use crate::wire::{Object, Raw, unquote};

/// Maximum length of a server's version that a fault repeats.
const MAX_VERSION_CHARS: usize = 64;

impl Machine {
    /// Handles the result of `initialize` or `server/discover`.
    pub(super) fn take_negotiation_result(&mut self, result: Object<'_>, out: &mut Outbox) {
        let greeting = match self.open_mode {
            OpenMode::Handshake { .. } => self.read_handshake(result),
            OpenMode::Stateless { .. } => Ok(read_discovery(result, self.rules)),
        };
        match greeting {
            Ok(greeting) => {
                self.rules = greeting.rules;
                let handshake = self.state == ConnectionState::Opening;
                self.state = ConnectionState::Open;
                if handshake {
                    self.send_initialized(out);
                }
                out.push_event(ClientEvent::Opened(greeting));
                self.send_queued(out);
            }
            Err(fault) => self.fail_opening(fault, out),
        }
    }

    /// Ends a failed opening. A handshake cannot be repeated on the same connection; a stateless request can.
    pub(super) fn fail_opening(&mut self, fault: Fault, out: &mut Outbox) {
        out.push_event(ClientEvent::OpenFailed(fault.clone()));
        if self.state == ConnectionState::Opening {
            self.close(fault, out);
        }
    }

    /// Sends the notification that ends the handshake, if the dialect has one
    /// (2025-11-25 schema, `InitializedNotification`).
    fn send_initialized(&self, out: &mut Outbox) {
        if let Some(method) = &self.profile.dialect.initialized_notification {
            out.push_frame(FrameKind::Notification { about: None }, |bytes| {
                encode::write_notification(bytes, method, |_| {});
            });
        }
    }

    fn read_handshake(&self, result: Object<'_>) -> Result<NegotiationResult, Fault> {
        let version = result.string("protocolVersion").ok().flatten();
        let version = version.ok_or_else(|| {
            let detail = "the server's response to `initialize` has no `protocolVersion`";
            Fault::new(FaultKind::UnsupportedVersion, detail)
        })?;
        let rules = self.agreed_rules(&version)?;
        let identity = result.get("serverInfo").and_then(Object::new);
        Ok(negotiation_result(result, identity, rules, version.into_owned()))
    }

    /// The rules of the version in the server's result (2025-11-25 basic/lifecycle, version negotiation).
    fn agreed_rules(&self, version: &str) -> Result<&'static Rules, Fault> {
        let dialect = &self.profile.dialect;
        if matches!(&dialect.version, VersionPolicy::Fixed(fixed) if fixed == version) {
            return Ok(dialect.base_rules());
        }
        let is_spoken = |revision: &Revision| revision.rules().has_handshake();
        let revision = Revision::from_name(version).filter(is_spoken);
        revision.map(Revision::rules).ok_or_else(|| {
            let version: String = version.chars().take(MAX_VERSION_CHARS).collect();
            let spoken = Revision::ALL.into_iter().filter(is_spoken);
            let spoken: Vec<_> = spoken.map(|revision| revision.rules().name).collect();
            let detail = format!(
                "the server's response to `initialize` has the unsupported protocol version \
                    `{version}`; supported versions: {}",
                spoken.join(", ")
            );
            let data =
                Raw::from_value(&json!({"supported": [version], "requested": self.rules.name}));
            Fault::new(FaultKind::UnsupportedVersion, detail).with_data(data)
        })
    }
}

/// Reads the result of `server/discover` (2026-07-28 schema, `DiscoverResult`).
pub(super) fn read_discovery(result: Object<'_>, rules: &'static Rules) -> NegotiationResult {
    let about = result.get("_meta").and_then(Object::new);
    let identity = about.and_then(|about| about.get(meta::SERVER_INFO)).and_then(Object::new);
    let mut greeting = negotiation_result(result, identity, rules, rules.name.to_string());
    let supported = result.array("supportedVersions").ok().flatten().unwrap_or_default();
    greeting.supported_versions =
        supported.into_iter().filter_map(unquote).map(Cow::into_owned).collect();
    greeting.server_info.cache = CacheHints::read(result, rules);
    greeting
}

fn negotiation_result(
    result: Object<'_>,
    identity: Option<Object<'_>>,
    rules: &'static Rules,
    version: String,
) -> NegotiationResult {
    let capabilities = result.get("capabilities").and_then(Object::new).unwrap_or(Object::EMPTY);
    let known = identity.and_then(|identity| read_implementation(identity).ok());
    let instructions = result.string("instructions").ok().flatten().map(Cow::into_owned);
    NegotiationResult {
        rules,
        version,
        server_info: ServerInfo {
            identity: Arc::new(known.unwrap_or_else(unnamed_server)),
            capabilities: read_capabilities(capabilities, rules),
            instructions,
            cache: CacheHints::NONE,
        },
        capabilities: Raw::from_validated(capabilities.text()),
        identity: identity.map(|identity| Raw::from_validated(identity.text())),
        supported_versions: Vec::new(),
    }
}

/// The identity of a server that does not send one.
fn unnamed_server() -> Implementation {
    Implementation { name: "unnamed".into(), version: "0".into(), ..Implementation::default() }
}

/// Reads capabilities. `true` counts as `{}` and `false` as absent, because hand-written servers send booleans.
fn read_capabilities(given: Object<'_>, rules: &Rules) -> ServerCapabilities {
    let shown = |text: &str| text != "false" && text != "null";
    let has = |name| given.get(name).is_some_and(shown);
    let detail = |name: &str, inner: &str| {
        let object = given.get(name).and_then(Object::new);
        object.and_then(|object| object.get(inner)).is_some_and(shown)
    };
    let extension = |name: &str| rules.extensions && detail("extensions", name);
    ServerCapabilities {
        tools: has("tools"),
        resources: has("resources"),
        prompts: has("prompts"),
        completions: has("completions"),
        logging: has("logging"),
        list_changed: ["tools", "resources", "prompts"]
            .iter()
            .any(|name| detail(name, "listChanged")),
        subscribe: detail("resources", "subscribe"),
        tasks: match rules.tasks {
            TaskModel::Absent => false,
            TaskModel::ClientRequested => supports_tool_call_tasks(given),
            TaskModel::Extension => extension(TASKS_EXTENSION),
        },
        skills: extension(SKILLS_EXTENSION),
    }
}

/// Whether tool calls may be tasks (2025-11-25 basic/utilities/tasks, server capabilities).
fn supports_tool_call_tasks(given: Object<'_>) -> bool {
    let mut path = ["tasks", "requests", "tools", "call"].iter();
    path.try_fold(given.text(), |text, name| Object::new(text)?.get(name)).is_some()
}
