//! The stateless generation: every request brings its own version and capabilities in `_meta`.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::{Phase, implementation, progress_token};
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::meta;
use crate::method::Method;
use crate::model::{ClientCapabilities, Level};
use crate::op::{Caller, Reentry};
use crate::revision::{Era, Revision, Rules};
use crate::wire::{Object, Raw, as_object, as_required_string, as_string};

/// The longest version that is repeated in an error.
const LONGEST_VERSION: usize = 64;

/// Whether a request is meant to stand alone: its `_meta` says who is calling, or no session is open and
/// only the stateless revisions have its method. What is then missing is an error and not another era.
pub fn stands_alone(method: &str, meta: Option<&str>, phase: Phase, dialect: &Dialect) -> bool {
    let meta = meta.and_then(Object::new).unwrap_or(Object::EMPTY);
    let claims = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO];
    dialect.stateless
        && (meta.pick(claims).iter().any(Option::is_some)
            || phase == Phase::Created && is_of_this_era(method))
}

fn is_of_this_era(method: &str) -> bool {
    let Some(method) = Method::named(method) else { return false };
    let has = |era| Revision::newest(era).rules().methods.contains(method);
    has(Era::Stateless) && !has(Era::Handshake)
}

/// Reads who is calling from the `_meta` of a request that claims a version.
pub fn open(meta: Object<'_>, dialect: &Dialect) -> Result<(Caller, Option<String>), Fault> {
    let [version, capabilities, client, level, token] = meta.pick([
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES,
        meta::CLIENT_INFO,
        meta::LOG_LEVEL,
        meta::PROGRESS_TOKEN,
    ]);
    let version = as_required_string(meta::PROTOCOL_VERSION, version)?;
    let capabilities = as_object(meta::CLIENT_CAPABILITIES, capabilities)?.ok_or_else(|| {
        Fault::new(
            FaultKind::InvalidParams,
            format!("`_meta` lacks `{}`", meta::CLIENT_CAPABILITIES),
        )
    })?;
    let client = as_object(meta::CLIENT_INFO, client)?.map(implementation).transpose()?;
    let token = progress_token(token)?;
    let caller = Caller {
        rules: supported(&version, dialect)?,
        capabilities: Arc::new(ClientCapabilities::read(capabilities)),
        client: client.map(Arc::new),
        log: log_level(level)?,
        progress: token.is_some(),
        reentry: None,
    };
    Ok((caller, token))
}

fn supported(version: &str, dialect: &Dialect) -> Result<&'static Rules, Fault> {
    let stateless = |revision: &Revision| revision.rules().era == Era::Stateless;
    if let Some(revision) = Revision::named(version).filter(stateless) {
        return Ok(revision.rules());
    }
    let supported: Vec<_> = dialect.revisions().map(|revision| revision.rules().name).collect();
    let requested: String = version.chars().take(LONGEST_VERSION).collect();
    let data = Raw::of(&json!({"supported": supported, "requested": requested}));
    Err(Fault::new(FaultKind::UnsupportedVersion, "").with_data(data))
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
pub fn reentry(answers: Option<&str>, state: Option<&str>) -> Result<Option<Reentry>, Fault> {
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
