//! The listener: accepts connections as long as there is room for them, until the server ends.

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
use crate::serve::http::web::tls::Certificates;

/// A listener that is bound and not yet served.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    limits: HttpLimits,
    certificates: Option<Arc<Certificates>>,
}

impl Listener {
    /// Binds an address; port 0 is any that is free.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(address: SocketAddr, limits: HttpLimits) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A server that is started again takes its port, although connections of the one before it are not forgotten.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(ACCEPT_QUEUE)?;
        Ok(Self { socket, limits, certificates: None })
    }

    /// The same listener, which speaks TLS.
    pub fn tls(mut self, certificates: Arc<Certificates>) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// The address that is bound, with its real port.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until the router's switch is set to drain, and the last connection has ended or time is up.
    pub async fn serve<A: HttpHandler>(self, router: Router<A>) {
        let drain = router.drain().clone();
        let limits = self.limits;
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

/// What connections share.
struct ListenerShared<A> {
    protocol: Arc<HyperBuilders>,
    router: Arc<Router<A>>,
    certificates: Option<Arc<Certificates>>,
    limits: HttpLimits,
}

/// Accepts until the server drains. What the system has accepted by then is served too.
async fn accept_all<A: HttpHandler>(
    socket: TcpListener,
    host: &Arc<ListenerShared<A>>,
    drain: &Drain,
) {
    let places = ConnectionSlots::new(&host.limits);
    let serving = async {
        loop {
            accept(&socket, &places, host, drain).await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = drain.wait_for(DrainStage::Draining) => {}
    }
    let queued = async {
        while let Ok(Ok((stream, address))) = timeout(Duration::ZERO, socket.accept()).await {
            let Some(place) = places.try_free() else { return };
            if let Some(place) = host.slot_for(&places, place, address) {
                spawn(stream, address, place, host, drain.watch());
            }
        }
    };
    // A client that never stops to connect must not hold up the end.
    let _ = timeout(IDLE_DRAIN, queued).await;
}

/// Waits for a place, then for a connection.
async fn accept<A: HttpHandler>(
    socket: &TcpListener,
    places: &ConnectionSlots,
    host: &Arc<ListenerShared<A>>,
    drain: &Drain,
) {
    let Some(place) = places.wait().await else { return };
    match socket.accept().await {
        Ok((stream, address)) => {
            if let Some(place) = host.slot_for(places, place, address) {
                spawn(stream, address, place, host, drain.watch());
            }
        }
        Err(error) if is_single_connection_error(&error) => {}
        Err(error) => {
            // Typically no more file descriptors: connections that end give some back.
            tracing::warn!(target: "creole::http", %error, "no connection can be accepted now");
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Whether only the connection that was about to be accepted is gone.
fn is_single_connection_error(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn spawn<A: HttpHandler>(
    stream: TcpStream,
    address: SocketAddr,
    place: ConnectionSlot,
    host: &Arc<ListenerShared<A>>,
    watch: DrainWatch,
) {
    set_socket_options(&stream, &host.limits);
    let pace = ConnectionTimeouts::new(host.limits);
    let socket = TimedSocket::new(stream, Arc::clone(&pace));
    let (router, protocol) = (Arc::clone(&host.router), Arc::clone(&host.protocol));
    let served = ConnectionParts {
        router,
        protocol,
        peer: PeerAddress(address),
        timeouts: pace,
        drain: watch,
        slot: place,
    };
    if host.certificates.is_some() {
        let host = Arc::clone(host);
        tokio::spawn(async move { host.serve_tls(socket, served).await });
    } else {
        // Apart from the other, so that what idles is as small as it can be.
        tokio::spawn(connection::serve(socket, served));
    }
}

impl<A: HttpHandler> ListenerShared<A> {
    /// The place for a connection from this address, unless that has too many.
    fn slot_for(
        &self,
        places: &ConnectionSlots,
        place: ConnectionSlot,
        from: SocketAddr,
    ) -> Option<ConnectionSlot> {
        let place = places.for_address(place, from.ip(), self.router.is_trusted_proxy(from.ip()));
        if place.is_none() {
            tracing::debug!(target: "creole::http", peer = %from.ip(), "an address has too many connections");
        }
        place
    }

    async fn serve_tls(&self, socket: TimedSocket, served: ConnectionParts<A>) {
        let Some(certificates) = &self.certificates else { return };
        // A handshake has more on its mind than a connection that rests.
        let handshake = Box::pin(timeout(self.limits.header_timeout, certificates.accept(socket)));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            _ = served.drain.wait_beyond(DrainStage::Draining) => return,
        };
        match shaken {
            Ok(Ok(stream)) => {
                served.timeouts.restart();
                connection::serve(Box::new(stream), served).await;
            }
            Ok(Err(error)) => {
                tracing::debug!(target: "creole::http", %error, "a TLS handshake failed");
            }
            Err(_) => tracing::debug!(target: "creole::http", "a TLS handshake took too long"),
        }
    }
}

/// Options of a socket; a connection works without them too, so what the system refuses is left.
fn set_socket_options(stream: &TcpStream, limits: &HttpLimits) {
    // The last piece of an answer must not wait for an acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    notice_the_lost(stream, limits);
}

/// Lets the system give up a client whose machine is gone, of which a stream that is idle learns nothing.
#[cfg(target_os = "linux")]
fn notice_the_lost(stream: &TcpStream, limits: &HttpLimits) {
    use rustix::net::sockopt;

    use crate::serve::http::mcp::stateless_exchange::KEEP_ALIVE;
    use crate::serve::http::web::limits::PROBE_INTERVAL;

    let unanswered = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, unanswered);
    let _ = sockopt::set_tcp_keepidle(stream, KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, PROBE_INTERVAL);
    let _ = sockopt::set_socket_keepalive(stream, true);
}

#[cfg(not(target_os = "linux"))]
fn notice_the_lost(_: &TcpStream, _: &HttpLimits) {}

/// Waits for the last connection, at most as long as calls may go on.
async fn wait_for_connections(drain: &Drain, patience: Duration) {
    tokio::select! {
        () = drain.wait_finished() => {}
        () = drain.wait_for(DrainStage::Ended) => {}
        () = sleep(patience) => {
            tracing::warn!(target: "creole::http", "connections were cut: their calls took too long");
        }
    }
    drain.end();
    // Whoever computes without ever waiting is not waited for.
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
