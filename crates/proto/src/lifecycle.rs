//! The lifecycle rules of both eras: which messages are allowed in which state.

mod handshake;
mod record;
mod stateless;

pub use handshake::{HandshakePhase, HandshakeSession};
pub use stateless::{
    claimed_version, handshake_fault, is_stateless_request, read_caller, supported_rules,
    unsupported_version_fault,
};

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;

use crate::fault::{Fault, FaultKind};
use crate::model::{Implementation, is_icon_list};
use crate::wire::{FieldError, Object, Raw, as_required_string, as_string};

/// The raw progress token of a request: a string or an integer (2025-11-25 schema, `ProgressToken`).
pub fn progress_token(raw: Option<&str>) -> Result<Option<String>, Fault> {
    let Some(raw) = raw else { return Ok(None) };
    match crate::wire::Id::parse(raw) {
        Ok(_) => Ok(Some(raw.to_owned())),
        Err(_) => Err(Fault::new(
            FaultKind::InvalidParams,
            "`_meta.progressToken` must be a string or an integer",
        )),
    }
}

/// A client's `clientInfo` as received, completed with the required members that are missing
/// (2025-11-25 schema, `Implementation`).
pub(crate) fn complete_client_info(object: Object<'_>) -> Result<Raw, FieldError> {
    let [name, title, version] = object.get_many(["name", "title", "version"]);
    as_required_string("name", name)?;
    as_string("title", title)?;
    match as_string("version", version)? {
        Some(_) => Ok(Raw::from_validated(object.text())),
        None => Ok(Raw::from_value(&read_implementation(object)?)),
    }
}

/// Reads a client's or server's `Implementation`. Only `name` is required.
pub(crate) fn read_implementation(object: Object<'_>) -> Result<Implementation, FieldError> {
    let [name, title, version] = object.get_many(["name", "title", "version"]);
    // Later revisions added these members for display. An invalid one is ignored.
    let text = |name: &str| object.string(name).ok().flatten().map(Cow::into_owned);
    let icons = object.get("icons").filter(|icons| is_icon_list(icons));
    Ok(Implementation {
        name: as_required_string("name", name)?.into_owned(),
        title: as_string("title", title)?.map(Cow::into_owned),
        version: as_string("version", version)?.unwrap_or_default().into_owned(),
        description: text("description"),
        website_url: text("websiteUrl"),
        icons: icons.map(Raw::from_validated),
    })
}

impl From<FieldError> for Fault {
    fn from(error: FieldError) -> Self {
        Self::new(FaultKind::InvalidParams, alloc::format!("{error}"))
    }
}
