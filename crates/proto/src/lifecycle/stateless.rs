//! The stateless era: each request carries its version and capabilities in `_meta`
//! (2026-07-28 schema, `RequestMetaObject`).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::{HandshakePhase, complete_client_info, progress_token};
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::{ClientCapabilities, Level, TaskPreference};
use crate::operation::{Caller, InputResponses};
use crate::revision::{Revision, Rules};
use crate::wire::meta;
use crate::wire::{Object, ParamMembers, Raw, as_object, as_required_string, as_string};

/// Maximum length of a version that an error repeats.
const MAX_VERSION_CHARS: usize = 64;

/// Whether a request belongs to the stateless era: it has one of the reserved `_meta` members, or no session is open
/// and only stateless revisions have its method. A member that is missing then is an error and does not select the
/// other era.
pub fn is_stateless_request(
    method: &str,
    inside: &ParamMembers<'_>,
    phase: HandshakePhase,
    dialect: &Dialect,
) -> bool {
    let said = [inside.protocol_version, inside.capabilities, inside.client_info]
        .iter()
        .any(Option::is_some);
    let is_alone = said || phase == HandshakePhase::Created && is_stateless_method(method);
    dialect.stateless && (is_alone || !dialect.handshake)
}

/// The fault for a handshake where none is served. It names the served versions
/// (2026-07-28 basic/versioning, backward compatibility with initialization-based versions).
pub fn handshake_fault(
    method: &str,
    inside: &ParamMembers<'_>,
    params: Object<'_>,
    dialect: &Dialect,
) -> Option<Fault> {
    if dialect.handshake || inside.protocol_version.is_some() {
        return None;
    }
    let is_handshake = Method::from_name(method) == Some(Method::Initialize);
    let proposed = || params.string("protocolVersion").ok().flatten().unwrap_or_default();
    is_handshake.then(|| unsupported_version_fault(&proposed(), dialect))
}

/// Reads the caller of a stateless request, and its progress token.
pub fn read_caller(
    inside: &ParamMembers<'_>,
    dialect: &Dialect,
) -> Result<(Caller, Option<String>), Fault> {
    let (version, capabilities) = claimed_version_and_capabilities(inside)?;
    let client =
        as_object(meta::CLIENT_INFO, inside.client_info)?.map(complete_client_info).transpose()?;
    let token = progress_token(inside.progress_token)?;
    let rules = supported_rules(&version, dialect)?;
    let capabilities = ClientCapabilities::read(capabilities);
    let caller = Caller {
        rules,
        task_preference: match capabilities.tasks && dialect.has_tasks(rules) {
            true => TaskPreference::Allowed,
            false => TaskPreference::Never,
        },
        capabilities: Arc::new(capabilities),
        client,
        log: log_level(inside.log_level)?,
        progress: token.is_some(),
        input_responses: read_input_responses(inside.input_responses, inside.request_state)?,
        extra: None,
    };
    Ok((caller, token))
}

/// The version of a stateless request. The request must also declare the client's capabilities
/// (2026-07-28 basic, `_meta`).
pub fn claimed_version<'a>(inside: &ParamMembers<'a>) -> Result<Cow<'a, str>, Fault> {
    claimed_version_and_capabilities(inside).map(|(version, _)| version)
}

fn claimed_version_and_capabilities<'a>(
    inside: &ParamMembers<'a>,
) -> Result<(Cow<'a, str>, Object<'a>), Fault> {
    let version = as_required_string(meta::PROTOCOL_VERSION, inside.protocol_version)?;
    let capabilities = as_object(meta::CLIENT_CAPABILITIES, inside.capabilities)?;
    let capabilities = capabilities.ok_or_else(|| {
        let detail = format!("`_meta` lacks `{}`", meta::CLIENT_CAPABILITIES);
        Fault::new(FaultKind::InvalidParams, detail)
    })?;
    Ok((version, capabilities))
}

fn is_stateless_method(method: &str) -> bool {
    let Some(method) = Method::from_name(method) else { return false };
    let has = |rules: &Rules| rules.methods.contains(method);
    has(Rules::CANONICAL) && !has(Rules::NEWEST_HANDSHAKE)
}

/// The rules of a version, if it is of the stateless era and served.
pub fn supported_rules(version: &str, dialect: &Dialect) -> Result<&'static Rules, Fault> {
    let stateless = |revision: &Revision| revision.rules().request_meta;
    let revision = Revision::from_name(version).filter(stateless);
    revision.map(Revision::rules).ok_or_else(|| unsupported_version_fault(version, dialect))
}

/// The fault for a version that is not served, with the served ones as data
/// (2026-07-28 schema, `UnsupportedProtocolVersionError`).
pub fn unsupported_version_fault(version: &str, dialect: &Dialect) -> Fault {
    let supported: Vec<_> = dialect.revisions().map(|revision| revision.rules().name).collect();
    let requested: String = version.chars().take(MAX_VERSION_CHARS).collect();
    let data = Raw::from_value(&json!({"supported": supported, "requested": requested}));
    Fault::new(FaultKind::UnsupportedVersion, "").with_data(data)
}

fn log_level(raw: Option<&str>) -> Result<Option<Level>, Fault> {
    let Some(name) = as_string(meta::LOG_LEVEL, raw)? else { return Ok(None) };
    match Level::from_name(&name) {
        Some(level) => Ok(Some(level)),
        None => Err(Fault::new(
            FaultKind::InvalidParams,
            format!("`{}` is not a log level", meta::LOG_LEVEL),
        )),
    }
}

/// Reads the input responses and the request state of a retry (2026-07-28 schema, `InputResponseRequestParams`).
fn read_input_responses(
    answers: Option<&str>,
    state: Option<&str>,
) -> Result<Option<InputResponses>, Fault> {
    let responses = as_object("inputResponses", answers)?;
    if let Some((key, _)) = responses.iter().flat_map(|all| all.members()).find(is_no_object) {
        let detail = format!("`inputResponses.{key}` must be an object");
        return Err(Fault::new(FaultKind::InvalidParams, detail));
    }
    let state = as_string("requestState", state)?;
    if responses.is_none() && state.is_none() {
        return Ok(None);
    }
    Ok(Some(InputResponses {
        responses: responses.map(|responses| Raw::from_validated(responses.text())),
        request_state: state.map(Cow::into_owned),
    }))
}

fn is_no_object((_, value): &(Cow<'_, str>, &str)) -> bool {
    Object::new(value).is_none()
}
