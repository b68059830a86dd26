//! The parts of gRPC that one unary call needs: the prefix of a message, the status, and the wait that a status demands.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use prost::Message;

/// The status of a call that the collector accepted.
const OK: u32 = 0;
/// The collector has no room, and may demand a wait.
const RESOURCE_EXHAUSTED: u32 = 8;
/// The collector is not there.
const UNAVAILABLE: u32 = 14;

/// The length of the prefix: a flag for compression and the length of the message.
const PREFIX: usize = 5;

/// A message with its prefix.
pub(super) fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    // A request is far below 4 GiB: the queue is.
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(message);
    framed.freeze()
}

/// The message of a response. An incomplete or compressed one counts as empty: it only tells what was rejected.
pub(super) fn unframe(body: &Bytes) -> Bytes {
    match body.first_chunk::<PREFIX>() {
        Some([0, length @ ..]) => {
            let length = u32::from_be_bytes(*length) as usize;
            let is_whole = body.len() == PREFIX + length;
            if is_whole { body.slice(PREFIX..) } else { Bytes::new() }
        }
        _ => Bytes::new(),
    }
}

/// The status of a call: in the trailers, or in the headers of a response without a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GrpcStatus {
    /// The collector accepted the request.
    Accepted,
    /// The request may be repeated, after this wait if the collector demands one.
    Retry(u32, Option<Duration>),
    /// The collector refused the request, or there is no status.
    Refused(Option<u32>),
}

impl GrpcStatus {
    /// Reads the status.
    pub(super) fn read(headers: &HeaderMap, trailers: &HeaderMap) -> Self {
        let find = |name| trailers.get(name).or_else(|| headers.get(name));
        let code = find("grpc-status").and_then(|code| code.to_str().ok()?.parse().ok());
        let demanded =
            || find("grpc-status-details-bin").and_then(|it| demanded_wait(it.as_bytes()));
        match code {
            Some(OK) => Self::Accepted,
            Some(UNAVAILABLE) => Self::Retry(UNAVAILABLE, demanded()),
            Some(RESOURCE_EXHAUSTED) => match demanded() {
                Some(wait) => Self::Retry(RESOURCE_EXHAUSTED, Some(wait)),
                None => Self::Refused(Some(RESOURCE_EXHAUSTED)),
            },
            code => Self::Refused(code),
        }
    }
}

/// The details of a status (`google.rpc.Status`).
#[derive(Clone, PartialEq, Message)]
struct StatusDetails {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// One detail (`google.protobuf.Any`).
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// When to repeat a request (`google.rpc.RetryInfo`).
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// The wait that the details of a status demand.
fn demanded_wait(details: &[u8]) -> Option<Duration> {
    let padding = details.iter().rev().take_while(|byte| **byte == b'=').count();
    let bytes = STANDARD_NO_PAD.decode(&details[..details.len() - padding]).ok()?;
    let status = StatusDetails::decode(&*bytes).ok()?;
    let info = status.details.iter().find(|it| it.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&*info.value).ok()?.retry_delay?;
    let seconds = u64::try_from(delay.seconds).ok()?;
    Some(Duration::new(seconds, u32::try_from(delay.nanos).ok()?.min(999_999_999)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn status(code: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            "grpc-status".parse().unwrap(),
            HeaderValue::from_str(code).unwrap(),
        )])
    }

    fn with_delay(code: &str, seconds: i64) -> HeaderMap {
        let info = RetryInfo { retry_delay: Some(Delay { seconds, nanos: 5 }) };
        let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
        let details =
            StatusDetails { details: vec![Detail { type_url, value: info.encode_to_vec() }] };
        let mut headers = status(code);
        let text = STANDARD_NO_PAD.encode(details.encode_to_vec());
        headers.insert("grpc-status-details-bin", text.parse().unwrap());
        headers
    }

    #[test]
    fn only_a_missing_collector_and_a_demanded_wait_are_retried() {
        let none = HeaderMap::new();
        let wait = Some(Duration::new(7, 5));
        for (trailers, expected) in [
            (status("0"), GrpcStatus::Accepted),
            (status("14"), GrpcStatus::Retry(14, None)),
            (with_delay("14", 7), GrpcStatus::Retry(14, wait)),
            (with_delay("8", 7), GrpcStatus::Retry(8, wait)),
            (with_delay("8", -7), GrpcStatus::Refused(Some(8))),
            (status("8"), GrpcStatus::Refused(Some(8))),
            (status("3"), GrpcStatus::Refused(Some(3))),
            (status("x"), GrpcStatus::Refused(None)),
            (HeaderMap::new(), GrpcStatus::Refused(None)),
        ] {
            assert_eq!(GrpcStatus::read(&none, &trailers), expected);
            assert_eq!(GrpcStatus::read(&trailers, &none), expected);
        }
    }

    #[test]
    fn a_message_has_a_prefix() {
        let framed = frame(b"abc");
        assert_eq!(&framed[..], b"\0\0\0\0\x03abc");
        assert_eq!(&unframe(&framed)[..], b"abc");
        for broken in [&b"\0\0\0\0\x04abc"[..], b"\x01\0\0\0\x03abc", b"\0\0", b""] {
            assert!(unframe(&Bytes::copy_from_slice(broken)).is_empty());
        }
    }
}
