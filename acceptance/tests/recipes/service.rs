//! A service that records its requests and sends the configured responses.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use creole_acceptance::http::ServiceRequest;

/// A running service; it ends with the test.
pub(crate) struct Service {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<ServiceRequest>>>,
}

impl Service {
    /// A service that sends these responses to its requests, which are counted from zero.
    pub(crate) fn start(
        answer: impl Fn(usize, &ServiceRequest) -> String + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let Some(request) = ServiceRequest::read(&mut stream) else { continue };
                let number = {
                    let mut notes = notes.lock().unwrap();
                    notes.push(request.clone());
                    notes.len() - 1
                };
                let _ = stream.get_mut().write_all(answer(number, &request).as_bytes());
            }
        });
        Self { address, asked: requests }
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<ServiceRequest> {
        self.asked.lock().unwrap().clone()
    }
}

/// A response with this status and header lines.
pub(crate) fn answer(status: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A successful response with JSON.
pub(crate) fn json(body: &str) -> String {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}
