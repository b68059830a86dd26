//! A proxy in front of a store, whose answers arrive late.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use creole_test_wait::blocking::delay;

/// A proxy for connections to one server. Its threads end with their connections.
pub struct SlowProxy {
    address: SocketAddr,
    shared: Arc<SharedProxy>,
}

#[derive(Default)]
struct SharedProxy {
    delay_ms: AtomicU64,
    /// The bytes of the clients, as far as they are recorded.
    recorded: Mutex<Vec<u8>>,
    /// How many late answers have arrived.
    late: AtomicUsize,
}

/// Bytes of the server, and when the client gets them.
type DelayedBytes = (Instant, Vec<u8>, bool);

impl SlowProxy {
    /// A proxy that delays nothing yet.
    ///
    /// # Panics
    /// When it has no port.
    #[track_caller]
    #[must_use]
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::<SharedProxy>::default();
        let proxy = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is gone is a closed connection.
                if let Ok(server) = TcpStream::connect(server) {
                    serve(&proxy, client, server);
                }
            }
        });
        Self { address, shared }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Delays all answers from now on.
    pub fn delay_by(&self, delay: Duration) {
        let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.shared.recorded().clear();
        self.shared.late.store(0, Ordering::SeqCst);
        self.shared.delay_ms.store(milliseconds, Ordering::SeqCst);
    }

    /// How many late answers have arrived since the delay began.
    #[must_use]
    pub fn late_answers(&self) -> usize {
        self.shared.late.load(Ordering::SeqCst)
    }

    /// How often the clients have sent these bytes since the delay began.
    #[must_use]
    pub fn sent(&self, word: &[u8]) -> usize {
        self.shared
            .recorded()
            .windows(word.len())
            .filter(|it| it.eq_ignore_ascii_case(word))
            .count()
    }
}

impl SharedProxy {
    fn recorded(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.load(Ordering::SeqCst))
    }
}

fn serve(proxy: &Arc<SharedProxy>, client: TcpStream, server: TcpStream) {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
    let (to_server, to_client) = (clone(&server), clone(&client));
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("an option");
    }
    let recorder = Arc::clone(proxy);
    thread::spawn(move || forward(client, to_server, &recorder));
    let (sender, receiver) = channel();
    let proxy = (Arc::clone(proxy), Arc::clone(proxy));
    thread::spawn(move || collect(server, &sender, &proxy.0));
    thread::spawn(move || deliver(to_client, &receiver, &proxy.1));
}

/// From the client, at once.
fn forward(mut client: TcpStream, mut server: TcpStream, proxy: &SharedProxy) {
    let mut chunk = [0; 16_384];
    while let Ok(length @ 1..) = client.read(&mut chunk) {
        if !proxy.delay().is_zero() {
            proxy.recorded().extend_from_slice(&chunk[..length]);
        }
        if server.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    // It may be closed already.
    _ = server.shutdown(Shutdown::Both);
}

/// From the server, with the time at which the client gets it.
fn collect(mut server: TcpStream, sender: &Sender<DelayedBytes>, proxy: &SharedProxy) {
    let mut chunk = [0; 16_384];
    while let Ok(length @ 1..) = server.read(&mut chunk) {
        let wait = proxy.delay();
        let bytes = (Instant::now() + wait, chunk[..length].to_vec(), !wait.is_zero());
        if sender.send(bytes).is_err() {
            return;
        }
    }
}

fn deliver(mut client: TcpStream, receiver: &Receiver<DelayedBytes>, proxy: &SharedProxy) {
    while let Ok((due, bytes, is_late)) = receiver.recv() {
        delay(due.saturating_duration_since(Instant::now()));
        if client.write_all(&bytes).is_err() {
            break;
        }
        if is_late {
            proxy.late.fetch_add(1, Ordering::SeqCst);
        }
    }
    // It may be closed already.
    _ = client.shutdown(Shutdown::Both);
}
