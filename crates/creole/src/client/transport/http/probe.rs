//! Sends one request that identifies a server, outside of any session.

use bytes::Bytes;
use creole_proto::fault::Fault;
use creole_proto::http::request_headers;
use creole_proto::revision::Rules;
use http::Method;
use tokio::time::{Duration, timeout};

use crate::client::transport::http::address::HttpAddress;
use crate::client::transport::http::conn::body_reader;
use crate::client::transport::http::conn::body_reader::EventStream;
use crate::client::transport::http::conn::request::HeaderList;
use crate::client::transport::http::conn::response::ResponseKind;

/// How long the body of the response may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The response.
pub(crate) struct ProbeResponse {
    pub(crate) status: u16,
    /// One message; empty if there was none.
    pub(crate) body: Bytes,
    /// The fault for the status, if the body holds no message.
    pub(crate) fault: Fault,
}

impl HttpAddress {
    /// Sends a message and returns its response.
    pub(crate) async fn probe(
        &self,
        message: &[u8],
        rules: &Rules,
        max_length: usize,
    ) -> Result<ProbeResponse, Fault> {
        let body = Bytes::copy_from_slice(message);
        let start = self.request_template(Method::POST, HeaderList::of_post());
        let request = start.request(request_headers(message, rules, &[]), body);
        let (head, body) = self.send_short(&request).await?;
        let fault = self.status_fault(&head);
        let read = async {
            match head.kind {
                ResponseKind::Events => {
                    first_message(EventStream::new(body, max_length, self.reserve_memory())).await
                }
                _ => {
                    let read =
                        body_reader::read_document(body, max_length, self.reserve_memory()).await;
                    read.unwrap_or_default().into_bytes().into()
                }
            }
        };
        let body = timeout(BODY_TIMEOUT, read).await.unwrap_or_default();
        Ok(ProbeResponse { status: head.status.as_u16(), body, fault })
    }
}

async fn first_message(mut events: EventStream) -> Bytes {
    while let Some(event) = events.next().await {
        if let Ok(event) = event
            && !event.data.is_empty()
        {
            return event.data.into();
        }
    }
    Bytes::new()
}
