//! The files of the console, which are in the binary.

use std::sync::LazyLock;

use ::http::header::CACHE_CONTROL;
use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use creole::internal::seal::digest;
use creole_proto::wire::hex;

use crate::http::reply::Reply;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The first page.
const INDEX: &str = "index.html";
/// What the page has instead of the digest of all files.
const DIGEST_PLACE: &str = "{{digest}}";
/// Files under their digest never change.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// The start of the digest of all files. It is a part of their paths.
static DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (name, bytes) in FILES {
        all.extend_from_slice(&digest(name.as_bytes()));
        all.extend_from_slice(&digest(bytes));
    }
    hex(&digest(&all)[..8])
});

/// The file at a path, if there is one.
pub(crate) fn serve(path: &str) -> Option<Reply> {
    if matches!(path, "/" | "/console" | "/console/") {
        let text = String::from_utf8_lossy(file(INDEX)?).replace(DIGEST_PLACE, &DIGEST);
        return Some(reply("text/html; charset=utf-8", text.into(), "no-cache"));
    }
    let name = path.strip_prefix("/console/")?;
    let (name, cache) = match name.strip_prefix(DIGEST.as_str()).and_then(|it| it.strip_prefix('/'))
    {
        Some(name) => (name, IMMUTABLE),
        None => (name, "no-cache"),
    };
    Some(reply(media_type(name)?, Bytes::from_static(file(name)?), cache))
}

fn reply(kind: &'static str, bytes: Bytes, cache: &'static str) -> Reply {
    Reply::bytes(StatusCode::OK, kind, bytes).header(CACHE_CONTROL, HeaderValue::from_static(cache))
}

fn file(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => return None,
    })
}
