//! Sends one export request to a collector.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use creole::internal::fetch::{AllowedAddresses, FetchError, FetchRequest, Fetcher};
use http::header::{CONTENT_TYPE, RETRY_AFTER, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::time::timeout;

use super::encode::read_rejected;
use super::grpc;
use super::grpc::GrpcStatus;
use super::settings::{OtlpCollector, Protocol};

/// The maximum length of a response: a message about what was rejected.
const MAX_RESPONSE: usize = 64 * 1024;

/// The maximum length of a collector's text in our log.
const MAX_REASON: usize = 200;

/// What a collector did with a request that it accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    /// The number of items that it rejected, and why. They are not sent again.
    pub(super) rejected: Option<(u64, String)>,
}

/// Why a collector has not accepted a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// The request may be repeated, after this wait if the collector demands one.
    Retry(String, Option<Duration>),
    /// Repeating it is useless.
    Refused(String),
}

/// The result of sending one request.
pub(super) type Sending<'a> =
    Pin<Box<dyn Future<Output = Result<Accepted, SendError>> + Send + 'a>>;

/// Sends requests. Tests have one without a network.
pub(super) trait SendRequest: Send + Sync {
    /// Sends one request.
    fn send(&self, message: Vec<u8>) -> Sending<'_>;
}

/// Sends requests to a collector.
pub(super) struct CollectorClient {
    collector: OtlpCollector,
    fetcher: Fetcher,
}

impl CollectorClient {
    /// A client of this collector. It connects with its first request.
    pub(super) fn new(collector: OtlpCollector) -> Self {
        let is_encrypted = collector.url.scheme_str() == Some("https");
        let fetcher = Fetcher::new(AllowedAddresses::Anywhere, is_encrypted)
            .with_certificates(collector.certificates.clone());
        let fetcher = match collector.protocol {
            Protocol::HttpProtobuf => fetcher,
            Protocol::Grpc => fetcher.with_http2_only(),
        };
        Self { collector, fetcher }
    }

    fn request(&self, body: Bytes) -> FetchRequest {
        let OtlpCollector { url, headers, .. } = &self.collector;
        let mut headers = headers.clone();
        match self.collector.protocol {
            Protocol::HttpProtobuf => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            }
            Protocol::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
                let millis = self.collector.timeout.as_millis().min(99_999_999);
                if let Ok(value) = HeaderValue::from_str(&format!("{millis}m")) {
                    headers.insert(HeaderName::from_static("grpc-timeout"), value);
                }
            }
        }
        FetchRequest { method: Method::POST, url: url.clone(), headers, body }
    }

    async fn send_http(&self, message: Vec<u8>) -> Result<Accepted, SendError> {
        let request = self.request(message.into());
        let response = self.fetcher.fetch(&request, MAX_RESPONSE).await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() {
            return Ok(Accepted { rejected: rejected(response.body()) });
        }
        let reason = format!("the collector answered with status {}", status.as_u16());
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                SendError::Retry(reason, retry_after(response.headers(), SystemTime::now()))
            }
            _ => SendError::Refused(reason),
        })
    }

    async fn send_grpc(&self, message: Vec<u8>) -> Result<Accepted, SendError> {
        let request = self.request(grpc::frame(&message));
        let (response, trailers) =
            self.fetcher.fetch_with_trailers(&request, MAX_RESPONSE).await.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            let reason = format!("the collector answered with status {}", status.as_u16());
            return Err(match status {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => SendError::Retry(reason, None),
                _ => SendError::Refused(reason),
            });
        }
        match GrpcStatus::read(response.headers(), &trailers) {
            GrpcStatus::Accepted => {
                Ok(Accepted { rejected: rejected(&grpc::unframe(response.body())) })
            }
            GrpcStatus::Retry(code, after) => {
                let reason = format!("the collector answered with gRPC status {code}");
                Err(SendError::Retry(reason, after))
            }
            GrpcStatus::Refused(Some(code)) => {
                Err(SendError::Refused(format!("the collector answered with gRPC status {code}")))
            }
            GrpcStatus::Refused(None) => {
                Err(SendError::Refused("the collector's answer has no gRPC status".to_owned()))
            }
        }
    }
}

impl SendRequest for CollectorClient {
    fn send(&self, message: Vec<u8>) -> Sending<'_> {
        Box::pin(async move {
            let sending = async {
                match self.collector.protocol {
                    Protocol::HttpProtobuf => self.send_http(message).await,
                    Protocol::Grpc => self.send_grpc(message).await,
                }
            };
            timeout(self.collector.timeout, sending).await.unwrap_or_else(|_| {
                let seconds = self.collector.timeout.as_secs_f64();
                let reason = format!("the collector did not answer within {seconds} s");
                Err(SendError::Retry(reason, None))
            })
        })
    }
}

/// The items that the collector rejected. Its text is shortened: it is shown in the log.
fn rejected(response: &[u8]) -> Option<(u64, String)> {
    let (count, reason) = read_rejected(response)?;
    Some((count, super::attributes::shorten(&reason, MAX_REASON).to_owned()))
}

fn unreachable(error: FetchError) -> SendError {
    match error {
        FetchError::TooLong => SendError::Refused(error.to_string()),
        FetchError::NotPublic | FetchError::ConnectFailed(_) | FetchError::Unreachable(_) => {
            SendError::Retry(error.to_string(), None)
        }
    }
}

/// The wait that `Retry-After` demands, in seconds or until a time.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_or_a_time() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let wait = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:00 GMT"), None);
        assert_eq!((wait("soon"), wait("-1")), (None, None));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
