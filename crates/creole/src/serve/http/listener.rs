//! The listener: accepts connections while slots are free, until the server shuts down.

#[cfg(unix)]
pub(crate) mod unix;

use std::io;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::serve::http::conn::connection;
use crate::serve::http::conn::connection::ConnectionParts;
use crate::serve::http::conn::hyper_connections::HyperBuilders;
use crate::serve::http::conn::socket::TimedSocket;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::web::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::serve::http::web::drain::{Drain, DrainStage, DrainWatch};
use crate::serve::http::web::handler::{HttpHandler, PeerAddress};
use crate::serve::http::web::limits::{
    ACCEPT_PAUSE, ACCEPT_QUEUE, CLOSE_TIMEOUT, HttpLimits, IDLE_DRAIN,
};
use crate::serve::http::web::router::Router;
use crate::serve::http::web::tls::{Certificates, client_certificate};

/// A listener that is bound and not yet serving.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    limits: HttpLimits,
    certificates: Option<Arc<Certificates>>,
}

impl Listener {
    /// Binds an address; port 0 selects a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(address: SocketAddr, limits: HttpLimits) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restarted server can bind its port although the system still holds connections of the previous process.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(ACCEPT_QUEUE)?;
        Ok(Self { socket, limits, certificates: None })
    }

    /// Takes a socket that listens already, such as one that the process inherits.
    ///
    /// # Errors
    /// When the socket cannot be used without blocking.
    pub fn from_socket(socket: std::net::TcpListener, limits: HttpLimits) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: TcpListener::from_std(socket)?, limits, certificates: None })
    }

    /// The same listener with TLS.
    pub fn tls(mut self, certificates: Arc<Certificates>) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// The bound address with its actual port.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until the router's [`Drain`] starts, and the last connection has ended or the drain timeout expires.
    pub async fn serve<A: HttpHandler>(self, router: Router<A>) {
        let drain = router.drain().clone();
        let limits = self.limits;
        if let Some(metrics) = router.metrics() {
            metrics.set_limit(limits.connections);
        }
        let host = Arc::new(ListenerShared {
            protocol: Arc::new(HyperBuilders::new(&limits)),
            router: Arc::new(router),
            certificates: self.certificates,
            limits,
        });
        accept_all(self.socket, &host, &drain).await;
        wait_for_connections(&drain, limits.drain_timeout).await;
    }
}

/// State that all connections share.
struct ListenerShared<A> {
    protocol: Arc<HyperBuilders>,
    router: Arc<Router<A>>,
    certificates: Option<Arc<Certificates>>,
    limits: HttpLimits,
}

/// Accepts until the server drains. Connections that the system has accepted by then are served too.
async fn accept_all<A: HttpHandler>(
    socket: TcpListener,
    host: &Arc<ListenerShared<A>>,
    drain: &Drain,
) {
    let slots = ConnectionSlots::new(&host.limits);
    let serving = async {
        loop {
            accept(&socket, &slots, host, drain).await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = drain.wait_for(DrainStage::Draining) => {}
    }
    let queued = async {
        while let Ok(Ok((stream, address))) = timeout(Duration::ZERO, socket.accept()).await {
            let Some(slot) = slots.try_free() else { return };
            if let Some(slot) = host.slot_for(&slots, slot, address) {
                spawn(stream, address, slot, host, drain.watch());
            }
        }
    };
    // A client that connects without pause must not delay the shutdown.
    let _ = timeout(IDLE_DRAIN, queued).await;
}

/// Waits for a slot, then for a connection.
async fn accept<A: HttpHandler>(
    socket: &TcpListener,
    slots: &ConnectionSlots,
    host: &Arc<ListenerShared<A>>,
    drain: &Drain,
) {
    let Some(slot) = slots.wait().await else { return };
    match socket.accept().await {
        Ok((stream, address)) => {
            if let Some(slot) = host.slot_for(slots, slot, address) {
                spawn(stream, address, slot, host, drain.watch());
            }
        }
        Err(error) if is_single_connection_error(&error) => {}
        Err(error) => {
            // Typically there are no more file descriptors; connections that end free some.
            tracing::warn!(target: "creole::http", %error, "cannot accept a connection");
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Whether the error concerns only the connection that was about to be accepted.
fn is_single_connection_error(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn spawn<A: HttpHandler>(
    stream: TcpStream,
    address: SocketAddr,
    slot: ConnectionSlot,
    host: &Arc<ListenerShared<A>>,
    watch: DrainWatch,
) {
    set_socket_options(&stream, &host.limits);
    let timeouts = ConnectionTimeouts::new(host.limits);
    let socket = TimedSocket::new(stream, Arc::clone(&timeouts));
    let (router, protocol) = (Arc::clone(&host.router), Arc::clone(&host.protocol));
    let served = ConnectionParts {
        router,
        protocol,
        peer: PeerAddress(address).into(),
        timeouts,
        drain: watch,
        slot,
    };
    if host.certificates.is_some() {
        let host = Arc::clone(host);
        tokio::spawn(async move { host.serve_tls(socket, served).await });
    } else {
        // Spawned separately from the TLS case, so that the task of an idle connection is as small as possible.
        tokio::spawn(connection::serve(socket, served));
    }
}

impl<A: HttpHandler> ListenerShared<A> {
    /// The slot for a connection from this address, unless the address has its maximum.
    fn slot_for(
        &self,
        slots: &ConnectionSlots,
        slot: ConnectionSlot,
        from: SocketAddr,
    ) -> Option<ConnectionSlot> {
        let place = slots.for_address(slot, from.ip(), self.router.is_trusted_proxy(from.ip()));
        if place.is_none() {
            tracing::debug!(target: "creole::http", peer = %from.ip(), "connection refused: too many connections from one address");
        }
        place
    }

    async fn serve_tls(&self, socket: TimedSocket<TcpStream>, mut served: ConnectionParts<A>) {
        let Some(certificates) = &self.certificates else { return };
        // Boxed: the state of a handshake is larger than that of an idle connection.
        let handshake = Box::pin(timeout(self.limits.header_timeout, certificates.accept(socket)));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            _ = served.drain.wait_beyond(DrainStage::Draining) => return,
        };
        match shaken {
            Ok(Ok(stream)) => {
                served.timeouts.restart();
                served.peer.certificate = client_certificate(&stream);
                connection::serve(Box::new(stream), served).await;
            }
            Ok(Err(error)) => {
                tracing::debug!(target: "creole::http", %error, "a TLS handshake failed");
            }
            Err(_) => tracing::debug!(target: "creole::http", "a TLS handshake took too long"),
        }
    }
}

/// Sets socket options. Errors are ignored, because a connection works without them too.
fn set_socket_options(stream: &TcpStream, limits: &HttpLimits) {
    // The last piece of a response must not wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    notice_the_lost(stream, limits);
}

/// Lets the system detect and drop a client whose machine has vanished, which an idle stream would not notice.
#[cfg(target_os = "linux")]
fn notice_the_lost(stream: &TcpStream, limits: &HttpLimits) {
    use rustix::net::sockopt;

    use crate::serve::http::web::limits::{KEEP_ALIVE, PROBE_INTERVAL};

    let unanswered = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, unanswered);
    let _ = sockopt::set_tcp_keepidle(stream, KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, PROBE_INTERVAL);
    let _ = sockopt::set_socket_keepalive(stream, true);
}

#[cfg(not(target_os = "linux"))]
fn notice_the_lost(_: &TcpStream, _: &HttpLimits) {}

/// Waits for the last connection, at most for the drain timeout.
async fn wait_for_connections(drain: &Drain, patience: Duration) {
    tokio::select! {
        () = drain.wait_finished() => {}
        () = drain.wait_for(DrainStage::Ended) => {}
        () = sleep(patience) => {
            tracing::warn!(target: "creole::http", "connections were closed: their calls did not end before the drain timeout");
        }
    }
    drain.end();
    // A handler that computes without ever waiting is not waited for.
    let _ = timeout(CLOSE_TIMEOUT, drain.wait_finished()).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::http::tests::support::PATIENCE;

    #[tokio::test]
    async fn many_connections_at_once_wait_to_be_accepted() {
        let listener =
            Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
        let address = listener.address().unwrap();
        let mut open = Vec::new();
        let all = async {
            for _ in 0..400 {
                open.push(TcpStream::connect(address).await.unwrap());
            }
        };
        timeout(PATIENCE, all).await.expect("all of them are in the queue");
    }
}
