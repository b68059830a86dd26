//! One request that asks a server who it is, outside of any conversation.

use bytes::Bytes;
use creole_proto::fault::Fault;
use creole_proto::http::request_headers;
use creole_proto::revision::Rules;
use http::Method;
use tokio::time::{Duration, timeout};

use super::answer::Kind;
use super::target::Target;
use super::wire::{self, Events};
use super::{fault, head};

/// How long the body of the answer may take.
const BODY: Duration = Duration::from_secs(10);

/// What came back.
pub(in crate::client) struct Heard {
    pub(in crate::client) status: u16,
    /// One message; nothing if there was none.
    pub(in crate::client) body: Bytes,
    /// What the status says if the body says nothing.
    pub(in crate::client) fault: Fault,
}

impl Target {
    /// Sends a message and brings its answer.
    pub(in crate::client) async fn probe(
        &self,
        message: &[u8],
        rules: &Rules,
        longest: usize,
    ) -> Result<Heard, Fault> {
        let body = Bytes::copy_from_slice(message);
        let start = self.start(Method::POST, head::posting());
        let request = start.request(request_headers(message, rules, &[]), body);
        let (head, body) = self.send(&request).await?;
        let fault = fault::refused(self, &head);
        let read = async {
            match head.kind {
                Kind::Events => first_message(Events::new(body, longest, self.hold())).await,
                _ => {
                    let read = wire::document(body, longest, self.hold()).await;
                    read.unwrap_or_default().into_bytes().into()
                }
            }
        };
        let body = timeout(BODY, read).await.unwrap_or_default();
        Ok(Heard { status: head.status.as_u16(), body, fault })
    }
}

async fn first_message(mut events: Events) -> Bytes {
    while let Some(event) = events.next().await {
        if let Ok(event) = event
            && !event.data.is_empty()
        {
            return event.data.into();
        }
    }
    Bytes::new()
}
