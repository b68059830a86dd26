//! One caller: its session, its calls and its stream.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::events::Events;
use super::history::{Call, HistoryResponse};
use super::pool::{PATIENCE, Pool};
use super::requests::{Era, Requests};
use super::wire::{Connection, Response};

/// A client of one era. All clients share the connections of the pool.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Arc<Pool>,
    requests: Requests,
}

/// An open stream of change notifications, on its own connection.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    events: Events,
    ready: Vec<Value>,
}

impl Client {
    /// A client that is ready to call. In the handshake era it has performed the handshake.
    pub async fn connect(pool: &Arc<Pool>, era: Era) -> Result<Self, String> {
        let requests = Requests::new(pool.server(), era);
        let requests = match era {
            Era::Modern => requests,
            Era::Legacy => {
                let session = Self::open_session(pool, &requests).await?;
                let requests = requests.in_session(session?);
                let confirmed = pool.exchange(&requests.initialized()).await?;
                if confirmed.head.status != 202 {
                    return Err(format!("initialized: {}", shown(&confirmed)));
                }
                requests
            }
        };
        Ok(Self { pool: Arc::clone(pool), requests })
    }

    /// Opens a session: its id, or the error response. The outer error is a broken connection.
    pub async fn open_session(
        pool: &Pool,
        requests: &Requests,
    ) -> Result<Result<String, String>, String> {
        let response = pool.exchange(&requests.initialize()).await?;
        let session = response.head.header("mcp-session-id");
        Ok(match (response.head.status, session) {
            (200, Some(session)) => Ok(session.to_owned()),
            _ => Err(shown(&response)),
        })
    }

    /// The request builder of this client.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Calls a tool. Returns every message that arrived for it.
    pub async fn call(
        &self,
        id: &Value,
        tool: &str,
        arguments: &Value,
    ) -> Result<Vec<Value>, String> {
        let response = self.pool.exchange(&self.requests.call(id, tool, arguments)).await?;
        messages(&response)
    }

    /// Calls `echo` with a nonce, always with the id 1, and records the responses.
    pub async fn echo(&self, tenant: usize, number: usize, nonce: String) -> Call {
        let arguments = json!({"message": nonce});
        self.noted(tenant, number, "echo", &arguments, nonce).await
    }

    /// Calls a tool whose correct response is `expected`, always with the id 1, and records the responses.
    pub async fn noted(
        &self,
        tenant: usize,
        number: usize,
        tool: &str,
        arguments: &Value,
        expected: String,
    ) -> Call {
        let id = json!(1);
        let (responses, failure) = match self.call(&id, tool, arguments).await {
            Ok(messages) => (messages.iter().filter_map(HistoryResponse::read).collect(), None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        Call { tenant, number, id, nonce: expected, answers: responses, failure }
    }

    /// Opens this client's stream of change notifications. In the stateless era it has this `id`.
    pub async fn listen(&self, id: &Value) -> Result<Stream, String> {
        let opened = async {
            let mut connection = Connection::open(self.pool.server()).await?;
            connection.send(&self.requests.listen(id)).await?;
            let head = connection.head().await?;
            if head.status != 200 || !head.has_header("content-type", "text/event-stream") {
                return Err(format!("no stream: {head:?}"));
            }
            Ok(Stream { connection, events: Events::default(), ready: Vec::new() })
        };
        match timeout(PATIENCE, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("no stream within {PATIENCE:?}")),
        }
    }

    /// Ends the session.
    pub async fn delete(&self) -> Result<Response, String> {
        self.pool.exchange(&self.requests.delete()).await
    }
}

impl Stream {
    /// The next message. `None` when the server has ended the stream.
    pub async fn next(&mut self) -> Result<Option<Value>, String> {
        while self.ready.is_empty() {
            let Some(piece) = self.connection.piece().await? else { return Ok(None) };
            self.ready = self.events.take(&piece)?;
        }
        Ok(Some(self.ready.remove(0)))
    }
}

/// The messages of a response, be it JSON or a stream.
fn messages(response: &Response) -> Result<Vec<Value>, String> {
    if response.head.status != 200 {
        return Err(shown(response));
    }
    if response.head.has_header("content-type", "text/event-stream") {
        return Events::default().take(&response.body);
    }
    let message = serde_json::from_slice(&response.body);
    message.map(|message| vec![message]).map_err(|error| format!("{error}: {}", shown(response)))
}

fn shown(response: &Response) -> String {
    let body = String::from_utf8_lossy(&response.body[..response.body.len().min(400)]);
    format!("status {}: {body}", response.head.status)
}
