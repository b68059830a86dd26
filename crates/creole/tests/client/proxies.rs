//! Tests of servers behind proxies: tunnels for TLS, forwarding for plain HTTP, and the errors.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ::http::{HeaderMap, Method, Uri};
use bytes::Bytes;
use creole::client::HttpAddress;
use creole::internal::client::{HttpServer, Proxies};
use creole::internal::fetch::{AllowedAddresses, FetchRequest, Fetcher};
use creole::proto::fault::Fault;
use creole::proto::revision::Era;
use creole::serve::http::{HttpLimits, Listener};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::encrypted::{router, serve, serve_recording};
use crate::support::{call, open, text, tool};

/// The proxy credentials `ann:pa@ss`.
const SHOWN: &str = "proxy-authorization: Basic YW5uOnBhQHNz";

/// A proxy for the tests.
struct Proxy {
    address: SocketAddr,
    /// The heads of the received requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// A proxy that serves its requests, or else sends this response to each.
    async fn start(answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let proxy = Self { address, heads: Arc::clone(&heads) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, Arc::clone(&heads), answer));
            }
        });
        proxy
    }

    /// The settings of an environment that names this proxy for both schemes.
    fn named(&self, no_proxy: &str) -> Proxies {
        named(self.address, no_proxy)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn named(address: SocketAddr, no_proxy: &str) -> Proxies {
    let url = format!("http://ann:pa%40ss@{address}");
    Proxies::read(|name| match name {
        "all_proxy" => Some(url.clone()),
        "no_proxy" => Some(no_proxy.to_owned()),
        _ => None,
    })
}

/// Reads the head of a request and responds to it, opens a tunnel or forwards it, and then closes.
async fn carry(mut client: TcpStream, heads: Arc<Mutex<Vec<String>>>, answer: Option<&str>) {
    let mut read = Vec::new();
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        if client.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let end = read.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    heads.lock().unwrap().push(head.clone());
    let words: Vec<&str> = head.split(' ').collect();
    if let Some(answer) = answer {
        client.write_all(answer.as_bytes()).await.unwrap();
    } else if words[0] == "CONNECT" {
        let mut server = TcpStream::connect(words[1]).await.unwrap();
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        _ = copy_bidirectional(&mut client, &mut server).await;
    } else {
        let location = words[1].strip_prefix("http://").unwrap();
        let (host, path) = location.split_once('/').unwrap();
        let mut server = TcpStream::connect(host).await.unwrap();
        let (_, rest) = head.split_once("\r\n").unwrap();
        let kept = rest.lines().filter(|line| !line.starts_with("proxy-")).collect::<Vec<_>>();
        let first = format!("{} /{path} HTTP/1.1\r\nconnection: close\r\n", words[0]);
        server.write_all(format!("{first}{}\r\n", kept.join("\r\n")).as_bytes()).await.unwrap();
        server.write_all(&read[end..]).await.unwrap();
        _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

async fn plain() -> SocketAddr {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    let address = listener.address().unwrap();
    tokio::spawn(listener.serve(router()));
    address
}

async fn echoed(target: HttpAddress, era: Era) -> Result<String, Fault> {
    let connection = open(HttpServer::new(target), era).await?;
    let outcome = call(&connection, tool("echo", json!({"message": "hello"}))).await;
    connection.close().await;
    Ok(text(outcome))
}

#[tokio::test]
async fn an_encrypted_server_is_called_through_a_tunnel_in_both_eras() {
    let (address, certificate) = serve(3000).await;
    let proxy = Proxy::start(None).await;
    let url = format!("https://localhost:{}/mcp", address.port());
    for era in [Era::Handshake, Era::Stateless] {
        let trusted = Some(certificate.as_bytes());
        let target = HttpAddress::with_proxies(proxy.named(""), "web", &url, trusted).unwrap();
        assert_eq!(echoed(target, era).await.unwrap(), "hello");
    }
    let heads = proxy.heads();
    let host = format!("localhost:{}", address.port());
    let expected = format!("CONNECT {host} HTTP/1.1\r\nhost: {host}\r\n{SHOWN}\r\n\r\n");
    assert!(heads.len() >= 2 && heads.iter().all(|head| *head == expected), "{heads:?}");
}

#[tokio::test]
async fn a_plain_server_is_called_by_forwarded_requests_in_both_eras() {
    let address = plain().await;
    let proxy = Proxy::start(None).await;
    let url = format!("http://{address}/mcp");
    for era in [Era::Handshake, Era::Stateless] {
        let target = HttpAddress::with_proxies(proxy.named(""), "web", &url, None).unwrap();
        assert_eq!(echoed(target, era).await.unwrap(), "hello");
    }
    let heads = proxy.heads();
    let first = format!("POST {url} HTTP/1.1\r\nhost: {address}\r\n{SHOWN}\r\n");
    assert!(heads.len() >= 4 && heads[0].starts_with(&first), "{heads:?}");
    assert!(heads.iter().all(|head| head.contains(SHOWN)), "{heads:?}");
}

#[tokio::test]
async fn credentials_of_a_proxy_never_reach_the_server() {
    let (address, certificate, mut seen) = serve_recording().await;
    let proxy = Proxy::start(None).await;
    let url = format!("https://localhost:{}/mcp", address.port());
    let trusted = Some(certificate.as_bytes());
    let target = HttpAddress::with_proxies(proxy.named(""), "web", &url, trusted).unwrap();
    assert!(echoed(target, Era::Stateless).await.is_err());
    let request = seen.recv().await.unwrap().to_lowercase();
    assert!(request.starts_with("post /mcp http/1.1\r\n"), "{request}");
    assert!(!request.contains("proxy-") && !request.contains("basic "), "{request}");
}

#[tokio::test]
async fn hosts_of_no_proxy_are_connected_to_directly() {
    let (address, dead) = (plain().await, ([127, 0, 0, 1], 1).into());
    let url = format!("http://{address}/mcp");
    for no_proxy in ["127.0.0.1", "10.0.0.0/8, 127.0.0.0/8", "*"] {
        let target = HttpAddress::with_proxies(named(dead, no_proxy), "web", &url, None).unwrap();
        assert_eq!(echoed(target, Era::Stateless).await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn an_error_of_a_proxy_is_reported_as_one_of_the_proxy() {
    let dead = named(([127, 0, 0, 1], 1).into(), "");
    let answers = [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "requires valid credentials"),
        (
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
            "refused the connection to it (status 403)",
        ),
        ("220 mail ready\r\n", "did not respond with HTTP"),
    ];
    let mut rows = vec![(dead, "127.0.0.1:1".to_owned(), "refuses connections")];
    for (answer, reason) in answers {
        let proxy = Proxy::start(Some(answer)).await;
        rows.push((proxy.named(""), proxy.address.to_string(), reason));
    }
    for (proxies, location, reason) in rows {
        let target =
            HttpAddress::with_proxies(proxies, "web", "https://far.example/mcp", None).unwrap();
        let fault = echoed(target, Era::Stateless).await.unwrap_err();
        let begin = format!("`web` cannot be reached: the proxy {location} ");
        assert!(
            fault.detail.starts_with(&begin) && fault.detail.contains(reason),
            "{}",
            fault.detail
        );
        assert!(
            !fault.detail.contains("ann:") && !fault.detail.contains("ss@"),
            "{}",
            fault.detail
        );
    }
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_is_never_gone_around() {
    let socks = Proxies::read(|name| (name == "all_proxy").then(|| "socks5://p:1".to_owned()));
    let fault =
        HttpAddress::with_proxies(socks.clone(), "web", "http://127.0.0.1:1/", None).unwrap_err();
    assert!(fault.detail.contains("the unsupported scheme `socks5`"), "{}", fault.detail);
    let fetcher = Fetcher::with_proxies(socks, AllowedAddresses::Anywhere, false);
    let reason = fetcher.fetch(&sent("http://127.0.0.1:1/"), 9).await.unwrap_err().to_string();
    assert!(reason.contains("socks5"), "{reason}");
}

fn sent(url: &str) -> FetchRequest {
    let url: Uri = url.parse().unwrap();
    FetchRequest { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() }
}

#[tokio::test]
async fn a_service_is_fetched_through_a_proxy_that_resolves_its_name() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
    let proxy = Proxy::start(Some(answer)).await;
    let fetcher =
        Fetcher::with_proxies(proxy.named("direct.example"), AllowedAddresses::Public, false);
    let mut request = sent("http://no-such-name.example/x?y=1");
    request.headers.insert("proxy-authorization", "mine".parse().unwrap());
    let response = fetcher.fetch(&request, 100).await.unwrap();
    assert_eq!(response.body().as_ref(), b"hello");
    let heads = proxy.heads();
    assert!(
        heads[0].starts_with("GET http://no-such-name.example/x?y=1 HTTP/1.1\r\n"),
        "{heads:?}"
    );
    assert!(heads[0].contains(SHOWN) && !heads[0].contains("mine"), "{heads:?}");
}
