//! The stateless generation: every request brings its own version and capabilities in `_meta`.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::{Phase, introduction, progress_token};
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::meta;
use crate::method::Method;
use crate::model::{ClientCapabilities, Level, Tasking};
use crate::op::{Caller, Reentry};
use crate::revision::{Era, Revision, Rules};
use crate::wire::{Inside, Object, Raw, as_object, as_required_string, as_string};

/// The longest version that is repeated in an error.
const LONGEST_VERSION: usize = 64;

/// Whether a request is meant to stand alone: it says who is calling, or no session is open and only the
/// stateless revisions have its method. What is then missing is an error and not another era.
pub fn stands_alone(method: &str, inside: &Inside<'_>, phase: Phase, dialect: &Dialect) -> bool {
    let said = [inside.version, inside.capabilities, inside.client].iter().any(Option::is_some);
    let is_alone = said || phase == Phase::Created && is_of_this_era(method);
    dialect.stateless && (is_alone || !dialect.handshake)
}

/// The fault of a handshake where none is served: it names the versions that are
/// (2026-07-28 basic/versioning, error responses to clients of older revisions).
pub fn refused_handshake(
    method: &str,
    inside: &Inside<'_>,
    params: Object<'_>,
    dialect: &Dialect,
) -> Option<Fault> {
    if dialect.handshake || inside.version.is_some() {
        return None;
    }
    let is_handshake = Method::named(method) == Some(Method::Initialize);
    let proposed = || params.string("protocolVersion").ok().flatten().unwrap_or_default();
    is_handshake.then(|| unsupported(&proposed(), dialect))
}

/// The caller of a request that stands alone, and its progress token.
pub fn caller(inside: &Inside<'_>, dialect: &Dialect) -> Result<(Caller, Option<String>), Fault> {
    let (version, capabilities) = claims(inside)?;
    let client = as_object(meta::CLIENT_INFO, inside.client)?.map(introduction).transpose()?;
    let token = progress_token(inside.progress_token)?;
    let rules = supported(&version, dialect)?;
    let capabilities = ClientCapabilities::read(capabilities);
    let caller = Caller {
        rules,
        tasking: match capabilities.tasks && dialect.has_tasks(rules) {
            true => Tasking::Allowed,
            false => Tasking::Never,
        },
        capabilities: Arc::new(capabilities),
        client,
        log: log_level(inside.level)?,
        progress: token.is_some(),
        reentry: reentry(inside.answers, inside.state)?,
        beyond: None,
    };
    Ok((caller, token))
}

/// The version that a request claims; it also has to say what its client can be asked for.
pub fn claim<'a>(inside: &Inside<'a>) -> Result<Cow<'a, str>, Fault> {
    claims(inside).map(|(version, _)| version)
}

fn claims<'a>(inside: &Inside<'a>) -> Result<(Cow<'a, str>, Object<'a>), Fault> {
    let version = as_required_string(meta::PROTOCOL_VERSION, inside.version)?;
    let capabilities = as_object(meta::CLIENT_CAPABILITIES, inside.capabilities)?;
    let capabilities = capabilities.ok_or_else(|| {
        let detail = format!("`_meta` lacks `{}`", meta::CLIENT_CAPABILITIES);
        Fault::new(FaultKind::InvalidParams, detail)
    })?;
    Ok((version, capabilities))
}

fn is_of_this_era(method: &str) -> bool {
    let Some(method) = Method::named(method) else { return false };
    let has = |era| Revision::newest(era).rules().methods.contains(method);
    has(Era::Stateless) && !has(Era::Handshake)
}

/// The rules of a version that requests may stand alone in.
pub fn supported(version: &str, dialect: &Dialect) -> Result<&'static Rules, Fault> {
    let stateless = |revision: &Revision| revision.rules().era == Era::Stateless;
    let revision = Revision::named(version).filter(stateless);
    revision.map(Revision::rules).ok_or_else(|| unsupported(version, dialect))
}

/// The fault of a version that is not served, with those that are.
pub fn unsupported(version: &str, dialect: &Dialect) -> Fault {
    let supported: Vec<_> = dialect.revisions().map(|revision| revision.rules().name).collect();
    let requested: String = version.chars().take(LONGEST_VERSION).collect();
    let data = Raw::of(&json!({"supported": supported, "requested": requested}));
    Fault::new(FaultKind::UnsupportedVersion, "").with_data(data)
}

fn log_level(raw: Option<&str>) -> Result<Option<Level>, Fault> {
    let Some(name) = as_string(meta::LOG_LEVEL, raw)? else { return Ok(None) };
    match Level::named(&name) {
        Some(level) => Ok(Some(level)),
        None => Err(Fault::new(
            FaultKind::InvalidParams,
            format!("`{}` is not a log level", meta::LOG_LEVEL),
        )),
    }
}

/// Reads what a client brings when it calls again.
fn reentry(answers: Option<&str>, state: Option<&str>) -> Result<Option<Reentry>, Fault> {
    let answers = as_object("inputResponses", answers)?;
    if let Some((key, _)) = answers.iter().flat_map(|all| all.members()).find(is_no_object) {
        let detail = format!("`inputResponses.{key}` must be an object");
        return Err(Fault::new(FaultKind::InvalidParams, detail));
    }
    let state = as_string("requestState", state)?;
    if answers.is_none() && state.is_none() {
        return Ok(None);
    }
    Ok(Some(Reentry {
        answers: answers.map(|answers| Raw::trusted(answers.text())),
        state: state.map(Cow::into_owned),
    }))
}

fn is_no_object((_, value): &(Cow<'_, str>, &str)) -> bool {
    Object::new(value).is_none()
}
