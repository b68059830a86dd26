//! Opens sessions, one after the other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;
use super::requests::Requests;
use super::response::{self, Response};
use crate::dialect::Era;

/// A connection for single requests.
pub struct Caller {
    stream: TcpStream,
    received: Vec<u8>,
    whole: Vec<u8>,
}

impl Caller {
    /// Connects.
    pub fn connect(server: SocketAddr) -> Result<Self, String> {
        Ok(Self { stream: connect(server)?, received: Vec::new(), whole: Vec::new() })
    }

    /// Opens a session as a client of the legacy era does, and returns its id. A server without sessions returns none.
    pub fn open_session(&mut self, server: SocketAddr) -> Result<Option<String>, String> {
        let requests = Requests::new(Era::Legacy, server);
        let session = self.exchange(&requests.initialize(), 200, |response| {
            response.session.map(str::to_owned)
        })?;
        let confirmed = requests.in_session(session.clone()).initialized();
        self.exchange(&confirmed, 202, |_| ())?;
        Ok(session)
    }

    /// Sends a request and extracts a value from its response, which must have this status.
    pub fn exchange<T>(
        &mut self,
        request: &[u8],
        status: u16,
        take: impl FnOnce(&Response<'_>) -> T,
    ) -> Result<T, String> {
        let broken = |error| format!("the connection broke: {error}");
        self.stream.write_all(request).map_err(broken)?;
        loop {
            let mut buffer = [0; 16 * 1024];
            let count = self.stream.read(&mut buffer).map_err(broken)?;
            if count == 0 {
                return Err("the server closed the connection without a response".to_owned());
            }
            self.received.extend_from_slice(&buffer[..count]);
            if let Some(response) = response::find(&self.received, &mut self.whole)? {
                if response.status != status {
                    let body = String::from_utf8_lossy(response.body);
                    return Err(format!("status {} instead of {status}: {body}", response.status));
                }
                let (taken, length) = (take(&response), response.length);
                self.received.drain(..length);
                return Ok(taken);
            }
        }
    }
}

/// A blocking connection with a read timeout.
pub fn connect(server: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect_timeout(&server, PATIENCE)
        .map_err(|error| format!("cannot connect to {server}: {error}"))?;
    let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
    set.map_err(|error| format!("cannot set up a connection: {error}"))?;
    Ok(stream)
}
