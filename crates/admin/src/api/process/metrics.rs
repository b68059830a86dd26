//! The metrics as text.

use ::http::StatusCode;
use ::http::header::ACCEPT;
use creole::internal::http::RequestHead;
use creole_telemetry::prometheus::{Format, write};

use crate::Admin;
use crate::http::reply::Reply;

/// The metrics, in the form that the client accepts.
pub(crate) fn text(admin: &Admin, head: &RequestHead) -> Reply {
    let accept: Vec<&str> = head
        .headers
        .get_all(ACCEPT.as_str())
        .filter_map(|value| std::str::from_utf8(value).ok())
        .collect();
    let format = Format::from_accept(&accept.join(","));
    let text = write(&admin.telemetry.metrics().collect(), format);
    Reply::bytes(StatusCode::OK, format.content_type(), text.into())
}
