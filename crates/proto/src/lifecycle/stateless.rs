//! The stateless generation: every request brings its own version and capabilities in `_meta`.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::{implementation, progress_token};
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::meta;
use crate::model::{ClientCapabilities, Level};
use crate::op::{Caller, Reentry};
use crate::revision::{Era, Revision, Rules};
use crate::wire::{Object, Raw, as_object, as_required_string, as_string};

/// The longest version that is repeated in an error.
const LONGEST_VERSION: usize = 64;

/// Whether a request claims a version in its `_meta`; a claim makes it stateless, whatever it says.
pub fn claims_version(meta: Option<&str>) -> bool {
    let meta = meta.and_then(Object::new);
    meta.is_some_and(|meta| meta.get(meta::PROTOCOL_VERSION).is_some())
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
