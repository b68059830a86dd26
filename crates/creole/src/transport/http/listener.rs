//! The listener: accepts connections as long as there is room for them, until the server ends.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::answer::{Answer, Peer};
use super::connection::{self, Served};
use super::drain::{Drain, Stage, Watch};
use super::limits::{ACCEPT_PAUSE, GOODBYE, LAST_CALL, Limits, QUEUE};
use super::pace::Pace;
use super::places::{Place, Places};
use super::router::Router;
use super::socket::Socket;
use super::tls::Certificates;
use super::versions::Protocol;

/// A listener that is bound and not yet served.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    limits: Limits,
    certificates: Option<Arc<Certificates>>,
}

impl Listener {
    /// Binds an address; port 0 is any that is free.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A server that is started again takes its port, although connections of the one before it are not forgotten.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(QUEUE)?;
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
    pub async fn serve<A: Answer>(self, router: Router<A>) {
        let drain = router.drain().clone();
        let limits = self.limits;
        let host = Arc::new(Host {
            protocol: Arc::new(Protocol::new(&limits)),
            router: Arc::new(router),
            certificates: self.certificates,
            limits,
        });
        accept_all(self.socket, &host, &drain).await;
        finish(&drain, limits.drain_timeout).await;
    }
}

/// What connections share.
struct Host<A> {
    protocol: Arc<Protocol>,
    router: Arc<Router<A>>,
    certificates: Option<Arc<Certificates>>,
    limits: Limits,
}

/// Accepts until the server drains. What the system has accepted by then is served too.
async fn accept_all<A: Answer>(socket: TcpListener, host: &Arc<Host<A>>, drain: &Drain) {
    let places = Places::new(&host.limits);
    let serving = async {
        loop {
            accept(&socket, &places, host, drain).await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = drain.reached(Stage::Draining) => {}
    }
    let queued = async {
        while let Ok(Ok((stream, address))) = timeout(Duration::ZERO, socket.accept()).await {
            let Some(place) = places.free() else { return };
            if let Some(place) = host.place(&places, place, address) {
                spawn(stream, address, place, host, drain.watch());
            }
        }
    };
    // A client that never stops to connect must not hold up the end.
    let _ = timeout(LAST_CALL, queued).await;
}

/// Waits for a place, then for a connection.
async fn accept<A: Answer>(
    socket: &TcpListener,
    places: &Places,
    host: &Arc<Host<A>>,
    drain: &Drain,
) {
    let Some(place) = places.wait().await else { return };
    match socket.accept().await {
        Ok((stream, address)) => {
            if let Some(place) = host.place(places, place, address) {
                spawn(stream, address, place, host, drain.watch());
            }
        }
        Err(error) if is_of_one_connection(&error) => {}
        Err(error) => {
            // Typically no more file descriptors: connections that end give some back.
            tracing::warn!(target: "creole::http", %error, "no connection can be accepted now");
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Whether only the connection that was about to be accepted is gone.
fn is_of_one_connection(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn spawn<A: Answer>(
    stream: TcpStream,
    address: SocketAddr,
    place: Place,
    host: &Arc<Host<A>>,
    watch: Watch,
) {
    prepare(&stream, &host.limits);
    let pace = Pace::new(host.limits);
    let socket = Socket::new(stream, Arc::clone(&pace));
    let (router, protocol) = (Arc::clone(&host.router), Arc::clone(&host.protocol));
    let served = Served { router, protocol, peer: Peer(address), pace, watch, place };
    if host.certificates.is_some() {
        let host = Arc::clone(host);
        tokio::spawn(async move { host.encrypted(socket, served).await });
    } else {
        // Apart from the other, so that what idles is as small as it can be.
        tokio::spawn(connection::serve(socket, served));
    }
}

impl<A: Answer> Host<A> {
    /// The place for a connection from this address, unless that has too many.
    fn place(&self, places: &Places, place: Place, from: SocketAddr) -> Option<Place> {
        let place = places.of(place, from.ip(), self.router.trusts(from.ip()));
        if place.is_none() {
            tracing::debug!(target: "creole::http", peer = %from.ip(), "an address has too many connections");
        }
        place
    }

    async fn encrypted(&self, socket: Socket, served: Served<A>) {
        let Some(certificates) = &self.certificates else { return };
        // A handshake has more on its mind than a connection that rests.
        let handshake = Box::pin(timeout(self.limits.header_timeout, certificates.accept(socket)));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            _ = served.watch.beyond(Stage::Draining) => return,
        };
        match shaken {
            Ok(Ok(stream)) => {
                served.pace.restart();
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
fn prepare(stream: &TcpStream, limits: &Limits) {
    // The last piece of an answer must not wait for an acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    notice_the_lost(stream, limits);
}

/// Lets the system give up a client whose machine is gone, of which a stream that is idle learns nothing.
#[cfg(target_os = "linux")]
fn notice_the_lost(stream: &TcpStream, limits: &Limits) {
    use rustix::net::sockopt;

    use super::exchange::KEEP_ALIVE;
    use super::limits::PROBE;

    let unanswered = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, unanswered);
    let _ = sockopt::set_tcp_keepidle(stream, KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, PROBE);
    let _ = sockopt::set_socket_keepalive(stream, true);
}

#[cfg(not(target_os = "linux"))]
fn notice_the_lost(_: &TcpStream, _: &Limits) {}

/// Waits for the last connection, at most as long as calls may go on.
async fn finish(drain: &Drain, patience: Duration) {
    tokio::select! {
        () = drain.finished() => {}
        () = drain.reached(Stage::Ended) => {}
        () = sleep(patience) => {
            tracing::warn!(target: "creole::http", "connections were cut: their calls took too long");
        }
    }
    drain.end();
    // Whoever computes without ever waiting is not waited for.
    let _ = timeout(GOODBYE, drain.finished()).await;
}

#[cfg(test)]
mod tests {
    use super::super::tests::support::PATIENCE;
    use super::*;

    #[tokio::test]
    async fn many_connections_at_once_wait_to_be_accepted() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Limits::default()).await.unwrap();
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
