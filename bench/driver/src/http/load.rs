//! Generates load over HTTP from one thread: one request in flight on each of many connections. Every response is
//! checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{Timespec, epoll::Event};

use super::process::{Process, most_connections};
use super::requests::{Asked, Requests};
use super::sessions::{Caller, connect};
use super::{PATIENCE, SETTLE, response};
use crate::dialect::Era;
use crate::usage;

/// The parameters of one load sample.
pub struct Load {
    /// The era of the clients.
    pub era: Era,
    /// The request that they repeat.
    pub asked: Asked,
    /// The number of connections.
    pub connections: usize,
    /// The minimum number of sessions. Sessions beyond those of the clients are idle.
    pub crowd: usize,
    /// The duration of the load before the measurement.
    pub warmup: Duration,
    /// The duration of the measurement.
    pub measure: Duration,
    /// The server's address, if the server does not print it.
    pub address: Option<SocketAddr>,
}

/// The timeout for opening the idle sessions.
const CROWD_ALLOWANCE: Duration = Duration::from_secs(60);

/// Prints throughput, latency, processor time and memory of one server under load.
pub fn load(load: &Load, command: &[String]) -> Result<(), String> {
    most_connections();
    let allowed = load.warmup + load.measure + PATIENCE + CROWD_ALLOWANCE;
    let server = match load.address {
        Some(address) => Process::spawn_at(address, command, allowed)?,
        None => Process::spawn(command, allowed)?,
    };
    sample(load, &server).map_err(|error| server.explain(&error))
}

fn sample(load: &Load, server: &Process) -> Result<(), String> {
    if load.address.is_some() {
        wait_until_ready(load, server)?;
    }
    let mut caller = Caller::connect(server.address())?;
    let mut clients = Clients::connect(load, server, &mut caller)?;
    clients.run(Duration::ZERO)?;
    std::thread::sleep(SETTLE);
    let idle = usage::memory(server.id())?.resident;
    for _ in load.connections..load.crowd {
        caller.open_session(server.address())?;
    }

    clients.run(load.warmup)?;
    std::thread::sleep(SETTLE);
    let before = usage::processor_time(server.id())?;
    let mut outcome = clients.run(load.measure)?;
    std::thread::sleep(SETTLE);
    let after = usage::processor_time(server.id())?;
    let peak = usage::memory(server.id())?.peak;

    outcome.latencies.sort_unstable();
    println!("messages {}", outcome.latencies.len());
    println!("nanoseconds {}", load.measure.as_nanos());
    println!("answered {}", outcome.answered);
    println!("processor_nanoseconds {}", after.since(&before).as_nanos());
    println!("middle_nanoseconds {}", percentile(&outcome.latencies, 50));
    println!("slow_nanoseconds {}", percentile(&outcome.latencies, 99));
    println!("idle_bytes {idle}");
    println!("peak_bytes {peak}");
    Ok(())
}

/// Sends requests until the first response arrives: a gateway may listen before its upstream is ready.
fn wait_until_ready(load: &Load, server: &Process) -> Result<(), String> {
    let single = Load { connections: 1, asked: load.asked.clone(), ..*load };
    let began = Instant::now();
    loop {
        let asked = Caller::connect(server.address()).and_then(|mut caller| {
            Clients::connect(&single, server, &mut caller)?.run(Duration::ZERO).map(drop)
        });
        match asked {
            Err(error) if began.elapsed() > READY_ALLOWANCE || server.is_over() => {
                return Err(format!("no call succeeded, the last failed with: {error}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
            Ok(()) => return Ok(()),
        }
    }
}

/// The timeout for the start of a gateway. Those in Python and JavaScript take seconds.
const READY_ALLOWANCE: Duration = Duration::from_secs(30);

/// The given percentile of the sorted samples.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(0)
}

/// The result of a run.
struct Outcome {
    /// All responses, including those after the end of the measured time: the server used processor time for them too.
    answered: u64,
    /// The latency of each response within the measured time.
    latencies: Vec<u64>,
}

/// One connection and its request in flight.
struct Client {
    stream: TcpStream,
    requests: Requests,
    received: Vec<u8>,
    filled: usize,
    id: u64,
    sent: Instant,
}

struct Clients<'a> {
    load: &'a Load,
    clients: Vec<Client>,
    poll: OwnedFd,
    next_id: u64,
    /// The buffer in which chunked bodies are assembled.
    whole: Vec<u8>,
    /// The buffer in which requests are written.
    request: Vec<u8>,
}

impl<'a> Clients<'a> {
    fn connect(load: &'a Load, server: &Process, caller: &mut Caller) -> Result<Self, String> {
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
        let mut clients = Vec::new();
        for index in 0..load.connections {
            let session = match load.era {
                Era::Legacy => caller.open_session(server.address())?,
                Era::Modern => None,
            };
            let stream = connect(server.address())?;
            stream.set_nonblocking(true).map_err(|error| error.to_string())?;
            epoll::add(&poll, &stream, EventData::new_u64(index as u64), EventFlags::IN)
                .map_err(|error| error.to_string())?;
            clients.push(Client {
                stream,
                requests: Requests::new(load.era, server.address()).in_session(session),
                received: vec![0; 8 * 1024],
                filled: 0,
                id: 0,
                sent: Instant::now(),
            });
        }
        Ok(Self { load, clients, poll, next_id: 1, whole: Vec::new(), request: Vec::new() })
    }

    /// Keeps a request in flight on each connection for `duration`, then waits for the outstanding responses.
    fn run(&mut self, duration: Duration) -> Result<Outcome, String> {
        let began = Instant::now();
        let mut outcome = Outcome { answered: 0, latencies: Vec::with_capacity(1 << 16) };
        let mut waiting = self.clients.len();
        for index in 0..self.clients.len() {
            self.ask(index)?;
        }
        let mut events: Vec<Event> = Vec::with_capacity(self.clients.len());
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        while waiting > 0 {
            events.clear();
            let count = epoll::wait(&self.poll, spare_capacity(&mut events), Some(&patience))
                .map_err(|error| format!("cannot wait: {error}"))?;
            if count == 0 {
                return Err(format!("{waiting} requests got no response within {PATIENCE:?}"));
            }
            for event in &events {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                if !self.take_answer(index)? {
                    continue;
                }
                let now = Instant::now();
                outcome.answered += 1;
                if now.duration_since(began) < duration {
                    let latency = now.duration_since(self.clients[index].sent).as_nanos();
                    outcome.latencies.push(u64::try_from(latency).unwrap_or(u64::MAX));
                    self.ask(index)?;
                } else {
                    waiting -= 1;
                }
            }
        }
        Ok(outcome)
    }

    fn ask(&mut self, index: usize) -> Result<(), String> {
        let client = &mut self.clients[index];
        client.id = self.next_id;
        self.next_id += 1;
        self.request.clear();
        client.requests.ask(&self.load.asked, client.id, &mut self.request);
        client.sent = Instant::now();
        // The send buffer is empty, so a small request fits without blocking.
        let written = client.stream.write_all(&self.request);
        written.map_err(|error| format!("cannot write to the server: {error}"))
    }

    /// Reads the available bytes. Returns whether the response is complete; a complete response is checked.
    fn take_answer(&mut self, index: usize) -> Result<bool, String> {
        let client = &mut self.clients[index];
        if client.filled == client.received.len() {
            client.received.resize(client.filled * 2, 0);
        }
        match client.stream.read(&mut client.received[client.filled..]) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => client.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(format!("cannot read from the server: {error}")),
        }
        let received = &client.received[..client.filled];
        let Some(response) = response::find(received, &mut self.whole)? else { return Ok(false) };
        response::check(&response, &self.load.asked, client.id)?;
        if response.length != client.filled {
            return Err("the server wrote more than the response".to_owned());
        }
        client.filled = 0;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<u64> = (1..=200).collect();
        assert_eq!((percentile(&samples, 50), percentile(&samples, 99)), (100, 198));
        assert_eq!((percentile(&[7], 99), percentile(&[], 99)), (7, 0));
    }
}
