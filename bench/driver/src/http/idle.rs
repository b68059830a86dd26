//! Measures the cost of idle clients: open streams and sessions.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use memchr::memmem;

use super::process::{Process, most_connections};
use super::requests::Requests;
use super::response::Head;
use super::sessions::{Caller, connect};
use crate::dialect::Era;
use crate::usage;

/// The timeout of the whole sample. Ten thousand connections or sessions take seconds to open.
const ALLOWED: Duration = Duration::from_secs(120);

/// The time for the server to become idle.
const SETTLE: Duration = Duration::from_millis(500);

/// What each idle client holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One stream of change notifications each: `GET`, or `subscriptions/listen`.
    Streams,
    /// One session each, and no connection.
    Sessions,
}

impl Kind {
    /// Parses the name of a kind.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "streams" => Ok(Self::Streams),
            "sessions" => Ok(Self::Sessions),
            _ => Err(format!("`{word}` is neither `streams` nor `sessions`")),
        }
    }
}

/// Prints the memory of a server before and during `count` idle clients. The count is lower if the system does not
/// allow that many connections.
pub fn idle(era: Era, kind: Kind, count: usize, command: &[String]) -> Result<(), String> {
    let most = most_connections();
    let count = if kind == Kind::Streams { count.min(most) } else { count };
    let server = Process::spawn(command, ALLOWED)?;
    sample(era, kind, count, &server).map_err(|error| server.explain(&error))
}

fn sample(era: Era, kind: Kind, count: usize, server: &Process) -> Result<(), String> {
    let address = server.address();
    let mut caller = Caller::connect(address)?;
    // The first clients cause allocations that are not their own, so they are opened before the measurement.
    let mut streams = open(era, kind, 0..WARM, &mut caller, address)?;
    std::thread::sleep(SETTLE);
    let before = usage::memory(server.id())?.resident;
    streams.extend(open(era, kind, WARM..count, &mut caller, address)?);
    std::thread::sleep(SETTLE);
    let after = usage::memory(server.id())?.resident;
    let idle = usage::processor_time(server.id())?;
    std::thread::sleep(Duration::from_secs(1));
    let processor = usage::processor_time(server.id())?.since(&idle);
    for stream in &mut streams {
        check_open(stream)?;
    }
    println!("count {count}");
    println!("measured {}", count.saturating_sub(WARM));
    println!("before_bytes {before}");
    println!("after_bytes {after}");
    println!("processor_nanoseconds {}", processor.as_nanos());
    Ok(())
}

/// The number of clients that are opened before memory is read for the first time.
const WARM: usize = 50;

fn open(
    era: Era,
    kind: Kind,
    ids: std::ops::Range<usize>,
    caller: &mut Caller,
    server: SocketAddr,
) -> Result<Vec<TcpStream>, String> {
    let mut streams = Vec::new();
    for id in ids {
        let session = match era {
            Era::Legacy => caller.open_session(server)?,
            Era::Modern => None,
        };
        if kind == Kind::Sessions {
            session.ok_or("the server opened no session")?;
            continue;
        }
        let requests = Requests::new(era, server).in_session(session);
        streams.push(open_stream(era, &requests.listen(id), server)?);
    }
    Ok(streams)
}

/// Opens a stream and waits until the server has started it. In the modern era the server acknowledges the
/// subscription.
fn open_stream(era: Era, request: &[u8], server: SocketAddr) -> Result<TcpStream, String> {
    let mut stream = connect(server)?;
    let broken = |error| format!("cannot open a stream: {error}");
    stream.write_all(request).map_err(broken)?;
    let mut received = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).map_err(broken)?;
        received.extend_from_slice(&buffer[..count]);
        let head = Head::find(&received)?;
        let shown = || String::from_utf8_lossy(&received).into_owned();
        if count == 0 || head.as_ref().is_some_and(|it| it.status != 200 || !it.is_stream()) {
            return Err(format!("no stream: {}", shown()));
        }
        let is_acknowledged = memmem::find(&received, b"subscriptions/acknowledged").is_some();
        if head.is_some() && (era == Era::Legacy || is_acknowledged) {
            return Ok(stream);
        }
    }
}

fn check_open(stream: &mut TcpStream) -> Result<(), String> {
    stream.set_nonblocking(true).map_err(|error| error.to_string())?;
    match stream.read(&mut [0; 4096]) {
        Ok(0) => Err("the server ended a stream".to_owned()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(format!("a stream broke: {error}")),
    }
}
