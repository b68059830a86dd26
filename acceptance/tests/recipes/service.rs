//! A service that writes down what it is asked and answers what it was told to.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a service was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The method and the target, as they came.
    pub(crate) line: String,
    /// The head, in small letters where it is names.
    pub(crate) head: Vec<String>,
    pub(crate) body: String,
}

impl Asked {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let values = self.head.iter().filter_map(|line| line.split_once(": "));
        values.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// A running service; it ends with the test.
pub(crate) struct Service {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Service {
    /// A service that answers the requests, counted from zero, with these heads and bodies.
    pub(crate) fn start(answer: impl Fn(usize, &Asked) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let Some(asked) = read(&mut stream) else { continue };
                let number = {
                    let mut notes = notes.lock().unwrap();
                    notes.push(asked.clone());
                    notes.len() - 1
                };
                let _ = stream.get_mut().write_all(answer(number, &asked).as_bytes());
            }
        });
        Self { address, asked }
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// An answer of this status and type.
pub(crate) fn answer(status: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A good answer of JSON.
pub(crate) fn json(body: &str) -> String {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}

fn read(stream: &mut impl BufRead) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let line = lines.remove(0);
    let asked = Asked { line, head: lines, body: String::new() };
    let length = asked.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Asked { body: String::from_utf8(body).ok()?, ..asked })
}
