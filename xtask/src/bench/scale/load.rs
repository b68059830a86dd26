//! The load: connections to all replicas, which are used in turns.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::connection::{Connection, Response};
use super::messages::{CallKind, Message, initialize, initialized, next_round};

/// The number of clients. Each has a connection to every replica.
const CLIENTS: usize = 8;

/// Clients with open connections.
pub(super) struct Load {
    clients: Vec<Client>,
}

struct Client {
    kind: CallKind,
    connections: ReplicaConnections,
    /// The first message of each call.
    call: Message,
}

/// One connection to each replica. Each message goes to the next replica.
struct ReplicaConnections {
    connections: Vec<Connection>,
    next: usize,
}

impl Load {
    /// Connects all clients, and opens their sessions.
    pub(super) fn open(kind: CallKind, addresses: &[SocketAddr]) -> Result<Self, String> {
        let clients = (0..CLIENTS).map(|number| Client::open(kind, addresses, number));
        Ok(Self { clients: clients.collect::<Result<_, _>>()? })
    }

    /// The number of connections.
    pub(super) fn connections(&self) -> usize {
        self.clients.iter().map(|client| client.connections.connections.len()).sum()
    }

    /// Makes this many calls, each client its share. Returns how long that took.
    pub(super) fn run(&mut self, calls: usize) -> Result<Duration, String> {
        let started = Instant::now();
        let share = calls / CLIENTS;
        thread::scope(|scope| {
            let running: Vec<_> =
                self.clients.iter_mut().map(|client| scope.spawn(|| client.run(share))).collect();
            running.into_iter().try_for_each(|client| {
                client.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))
            })
        })?;
        Ok(started.elapsed())
    }
}

impl Client {
    fn open(kind: CallKind, addresses: &[SocketAddr], number: usize) -> Result<Self, String> {
        let connections = addresses.iter().map(|address| Connection::open(*address));
        let connections = connections.collect::<Result<_, _>>()?;
        let mut connections = ReplicaConnections { connections, next: number % addresses.len() };
        let session = match kind {
            CallKind::Stateless | CallKind::Parked => None,
            CallKind::Session => Some(open_session(&mut connections)?),
        };
        Ok(Self { kind, connections, call: kind.call(session.as_deref()) })
    }

    fn run(&mut self, calls: usize) -> Result<(), String> {
        (0..calls).try_for_each(|_| self.make_call())
    }

    /// Makes one call. A call that requests input takes a second message.
    fn make_call(&mut self) -> Result<(), String> {
        let mut response = self.connections.post(&self.call)?;
        if self.kind == CallKind::Parked {
            let next = next_round(&response.body)
                .ok_or_else(|| format!("no input was requested: {}", response.body))?;
            response = self.connections.post(&next)?;
        }
        if response.status != 200 || !response.body.contains(self.kind.result()) {
            return Err(format!("a call got {}: {}", response.status, response.body));
        }
        Ok(())
    }
}

impl ReplicaConnections {
    fn post(&mut self, message: &Message) -> Result<Response, String> {
        let index = self.next;
        self.next = (index + 1) % self.connections.len();
        self.connections[index].post(&message.fields, &message.body)
    }
}

/// Opens a session and returns its id.
fn open_session(connections: &mut ReplicaConnections) -> Result<String, String> {
    let opened = connections.post(&initialize())?;
    let session = opened.session.ok_or(format!("no session was opened: {}", opened.body))?;
    connections.post(&initialized(&session))?;
    Ok(session)
}
