//! A small server that answers `echo` and commits one violation, for the tests of the checker.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The violation that the server commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misbehaviour {
    /// Nothing.
    None,
    /// Two concurrent calls get each other's response.
    Swaps,
    /// A stream contains the response twice.
    AnswersTwice,
    /// A second response follows the first.
    RespondsTwice,
    /// The response is the one to the previous call of any client.
    Remembers,
    /// The response has another id.
    ChangesId,
    /// The connection is closed without a response.
    Hangs,
    /// The call gets an error.
    Refuses,
}

type Waiting = (String, oneshot::Sender<String>);

struct Server {
    misdeed: Misbehaviour,
    /// A call that waits for another one to swap responses with.
    waiting: Mutex<Option<Waiting>>,
    last: Mutex<String>,
}

/// Starts the server; it ends with the runtime.
pub(crate) async fn start(misbehaviour: Misbehaviour) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Arc::new(Server {
        misdeed: misbehaviour,
        waiting: Mutex::default(),
        last: Mutex::default(),
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.serve(stream).await });
        }
    });
    address
}

impl Server {
    async fn serve(&self, mut stream: TcpStream) {
        let mut received = Vec::new();
        while let Some(body) = request(&mut stream, &mut received).await {
            let call: Value = serde_json::from_slice(&body).unwrap();
            let Some(response) = self.respond(&call).await else { return };
            if stream.write_all(response.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// The response, or `None` to close the connection.
    async fn respond(&self, call: &Value) -> Option<String> {
        let nonce = call["params"]["arguments"]["message"].as_str().unwrap().to_owned();
        let text = match self.misdeed {
            Misbehaviour::Swaps => self.swapped(nonce).await,
            Misbehaviour::Remembers => std::mem::replace(&mut *self.last.lock().unwrap(), nonce),
            _ => nonce,
        };
        let id =
            if self.misdeed == Misbehaviour::ChangesId { json!(2) } else { call["id"].clone() };
        let result = json!({"content": [{"type": "text", "text": text}], "resultType": "complete"});
        let returned = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let refusal =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no"}});
        match self.misdeed {
            Misbehaviour::Hangs => None,
            Misbehaviour::Refuses => Some(response("application/json", &refusal.to_string())),
            Misbehaviour::RespondsTwice => Some(response("application/json", &returned).repeat(2)),
            Misbehaviour::AnswersTwice => {
                let event = format!("event: message\ndata: {returned}\n\n");
                Some(response("text/event-stream", &event.repeat(2)))
            }
            _ => Some(response("application/json", &returned)),
        }
    }

    /// The nonce of a concurrent call, or the call's own if there is none.
    async fn swapped(&self, nonce: String) -> String {
        let receiver = {
            let mut waiting = self.waiting.lock().unwrap();
            match waiting.take() {
                Some((other, sender)) => {
                    if sender.send(nonce.clone()).is_ok() {
                        return other;
                    }
                    return nonce;
                }
                None => {
                    let (sender, receiver) = oneshot::channel();
                    *waiting = Some((nonce.clone(), sender));
                    receiver
                }
            }
        };
        match timeout(Duration::from_millis(200), receiver).await {
            Ok(Ok(other)) => other,
            _ => nonce,
        }
    }
}

fn response(kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Reads the body of the next request.
async fn request(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        let text = String::from_utf8_lossy(received).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("Content-Length: ").nth(1)?.split("\r\n").next()?;
            let length: usize = length.parse().ok()?;
            if body.len() >= length {
                let body = body.as_bytes()[..length].to_vec();
                received.drain(..head.len() + 4 + length);
                return Some(body);
            }
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 {
            return None;
        }
        received.extend_from_slice(&buffer[..count]);
    }
}
