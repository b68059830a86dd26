//! Measures the memory of a gateway while it forwards a large result.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::process::Process;
use super::requests::{Asked, Requests};
use super::sessions::Caller;
use super::{PATIENCE, SETTLE};
use crate::dialect::Era;
use crate::large::TOOL;
use crate::usage;

/// The timeout for a gateway to start and to forward all results.
const ALLOWED: Duration = Duration::from_secs(60);

/// The number of times that the result is forwarded, one after the other.
const CALLS: u64 = 3;

/// Prints the memory of a gateway before and after it forwarded a tool result of `size` bytes.
pub fn memory(
    era: Era,
    size: usize,
    address: SocketAddr,
    command: &[String],
) -> Result<(), String> {
    let server = Process::spawn_at(address, command, ALLOWED)?;
    sample(era, size, &server).map_err(|error| server.explain(&error))
}

fn sample(era: Era, size: usize, server: &Process) -> Result<(), String> {
    let began = Instant::now();
    let (mut caller, mut requests) = loop {
        match ready(era, server) {
            Err(error) if began.elapsed() > PATIENCE || server.is_over() => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
            Ok(ready) => break ready,
        }
    };
    std::thread::sleep(SETTLE);
    let idle = usage::memory(server.id())?.resident;
    for id in 2..2 + CALLS {
        let mut request = Vec::new();
        requests.ask(&Asked::Call(TOOL.to_owned()), id, &mut request);
        let length = caller.exchange(&request, 200, |response| response.body.len())?;
        if length < size {
            return Err(format!(
                "the response has {length} bytes, fewer than the {size} of the result"
            ));
        }
    }
    println!("size {size}");
    println!("idle_bytes {idle}");
    println!("peak_bytes {}", usage::memory(server.id())?.peak);
    Ok(())
}

/// A client of a gateway that has connected to its upstream.
fn ready(era: Era, server: &Process) -> Result<(Caller, Requests), String> {
    let mut caller = Caller::connect(server.address())?;
    let session = match era {
        Era::Legacy => caller.open_session(server.address())?,
        Era::Modern => None,
    };
    let requests = Requests::new(era, server.address()).in_session(session);
    let mut request = Vec::new();
    requests.clone().ask(&Asked::List(1), 1, &mut request);
    let is_listed = caller.exchange(&request, 200, |response| {
        memchr::memmem::find(response.body, TOOL.as_bytes()).is_some()
    })?;
    if is_listed { Ok((caller, requests)) } else { Err("the tool is not listed".to_owned()) }
}
