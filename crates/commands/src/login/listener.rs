//! The listener that a browser returns to after a login: on this machine only, for one address, within limits.

mod page;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::page::Page;

/// The path of the redirect address.
const PATH: &str = "/callback";

/// The maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// How long a connection may take.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of open connections. A browser opens a few, and leaves some of them unused.
const MAX_CONNECTIONS: usize = 16;

/// The pause after the system refused a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener on 127.0.0.1.
#[derive(Debug)]
pub(crate) struct RedirectListener {
    listener: TcpListener,
    redirect_uri: String,
    port: u16,
    /// How long a connection may take.
    timeout: Duration,
}

impl RedirectListener {
    /// Listens on a port; 0 is any free one.
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let port = listener.local_addr()?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
        Ok(Self { listener, redirect_uri, port, timeout: CONNECTION_TIMEOUT })
    }

    /// Listens on the port of an earlier redirect address if it is free, otherwise on any free port.
    pub(crate) async fn bind_again(registered: Option<&str>) -> io::Result<Self> {
        let port = registered.and_then(registered_port);
        if let Some(port) = port
            && let Ok(listener) = Self::bind(port).await
        {
            return Ok(listener);
        }
        Self::bind(0).await
    }

    /// The address that the browser returns to.
    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the first query that is expected. Other requests get an error page.
    pub(crate) async fn wait_for_query(&self, is_expected: impl Fn(&str) -> bool) -> String {
        let (found, mut queries) = mpsc::channel::<Arrival>(1);
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.accept(&places) => {
                    let (stream, place) = accepted;
                    let (found, port, most) = (found.clone(), self.port, self.timeout);
                    connections.spawn(async move {
                        let _place = place;
                        // A browser that is too slow or goes away may try again.
                        let _ = timeout(most, serve(stream, port, found)).await;
                    });
                }
                Some(arrival) = queries.recv() => {
                    let Arrival { query, mut stream } = arrival;
                    let is_right = is_expected(&query);
                    let page = if is_right { Page::of_response(&query) } else { Page::OtherLogin };
                    let _ = timeout(self.timeout, page.send(&mut stream)).await;
                    if is_right {
                        return query;
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn accept(
        &self,
        places: &Arc<Semaphore>,
    ) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return (stream, place),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// The port of a redirect address of this listener.
fn registered_port(address: &str) -> Option<u16> {
    let rest = address.strip_prefix("http://127.0.0.1:")?;
    rest.strip_suffix(PATH)?.parse().ok().filter(|port| *port != 0)
}

/// A query that arrived, and the browser that waits for a page.
struct Arrival {
    query: String,
    stream: TcpStream,
}

/// Reads one request, and passes its query on or answers with an error page.
async fn serve(mut stream: TcpStream, port: u16, found: mpsc::Sender<Arrival>) -> io::Result<()> {
    let page = match read_head(&mut stream).await? {
        None => Page::TooLong,
        Some(head) => match query(&head, port) {
            Ok(query) => {
                // The receiver lives as long as this task.
                let _ = found.send(Arrival { query, stream }).await;
                return Ok(());
            }
            Err(page) => page,
        },
    };
    page.send(&mut stream).await
}

/// The head of a request; `None` if it is too long or not text.
async fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(String::from_utf8(head).ok());
        }
        if head.len() > MAX_HEAD {
            return Ok(None);
        }
        match stream.read(&mut chunk).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&chunk[..count]),
        }
    }
}

/// The query of a request for the redirect address.
fn query(head: &str, port: u16) -> Result<String, Page> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let is_own_host = |host: &str| {
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host == format!("{name}:{port}"))
    };
    // Another name would be that of a website whose name leads to this machine.
    if !hosts.next().is_some_and(is_own_host) || hosts.next().is_some() {
        return Err(Page::OtherHost);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (path == PATH, method == "GET") {
        (false, _) => Err(Page::NotFound),
        (true, false) => Err(Page::OtherMethod),
        (true, true) => Ok(query.to_owned()),
    }
}

#[cfg(test)]
mod tests;
