//! Tests of the listener that a browser returns to.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{MAX_CONNECTIONS, MAX_HEAD, RedirectListener, registered_port};

/// The response to a request.
async fn send(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // The listener may answer before it has read all of a long request.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}

async fn get(port: u16, target: &str) -> String {
    send(port, &format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")).await
}

#[tokio::test]
async fn the_first_expected_query_ends_the_wait() {
    let listener = RedirectListener::bind(0).await.unwrap();
    let port = listener.port;
    assert_eq!(listener.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));
    let browser = tokio::spawn(async move {
        let other = get(port, "/callback?code=stolen&state=other").await;
        let icon = get(port, "/favicon.ico").await;
        let right = get(port, "/callback?code=c&state=s").await;
        [other, icon, right]
    });
    let query = listener.wait_for_query(|query| query.contains("state=s")).await;
    assert_eq!(query, "code=c&state=s");
    let [other, icon, right] = browser.await.unwrap();
    assert!(other.starts_with("HTTP/1.1 400 ") && other.contains("still waiting"), "{other}");
    assert!(icon.starts_with("HTTP/1.1 404 "), "{icon}");
    assert!(right.starts_with("HTTP/1.1 200 "), "{right}");
    for part in ["Cache-Control: no-store", "default-src 'none'", "no-referrer"] {
        assert!(right.contains(part), "{part}");
    }
    for page in [other, icon, right] {
        assert!(!page.contains("stolen") && !page.contains("code=c") && !page.contains("<script"));
    }
}

#[tokio::test]
async fn only_a_get_of_this_host_is_a_response() {
    let listener = RedirectListener::bind(0).await.unwrap();
    let port = listener.port;
    let browser = tokio::spawn(async move {
        let host = format!("Host: 127.0.0.1:{port}");
        let requests = [
            "GET /callback?state=s HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            "GET /callback?state=s HTTP/1.1\r\n\r\n".to_owned(),
            format!("GET /callback?state=s HTTP/1.1\r\n{host}\r\n{host}\r\n\r\n"),
            format!("POST /callback?state=s HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("GET /callback/?state=s HTTP/1.1\r\n{host}\r\n\r\n"),
            format!("GET /callback?state=s{} HTTP/1.1\r\n", "a".repeat(MAX_HEAD + 4096)),
        ];
        let mut statuses = Vec::new();
        for request in requests {
            let response = send(port, &request).await;
            statuses.push(response.split(' ').nth(1).unwrap_or_default().to_owned());
        }
        get(port, "/callback?last").await;
        statuses
    });
    assert_eq!(listener.wait_for_query(|_| true).await, "last");
    let statuses = browser.await.unwrap();
    assert_eq!(statuses[..5], ["403", "403", "403", "405", "404"]);
    // A connection that is closed with unread input may lose the page.
    assert!(["431", ""].contains(&statuses[5].as_str()), "{statuses:?}");
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_browser() {
    let mut listener = RedirectListener::bind(0).await.unwrap();
    listener.timeout = Duration::from_millis(300);
    let port = listener.port;
    let browser = tokio::spawn(async move {
        let mut idle = Vec::new();
        for _ in 0..2 * MAX_CONNECTIONS {
            idle.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        get(port, "/callback?late").await
    });
    assert_eq!(listener.wait_for_query(|_| true).await, "late");
    assert!(browser.await.unwrap().contains("received"));
}

#[tokio::test]
async fn the_registered_port_is_used_again_if_it_is_free() {
    let first = RedirectListener::bind(0).await.unwrap();
    let address = first.redirect_uri().to_owned();
    let second = RedirectListener::bind_again(Some(&address)).await.unwrap();
    assert_ne!(second.redirect_uri(), address);
    drop(first);
    let third = RedirectListener::bind_again(Some(&address)).await.unwrap();
    assert_eq!(third.redirect_uri(), address);
}

#[test]
fn another_address_has_no_port_of_ours() {
    assert_eq!(registered_port("http://127.0.0.1:4001/callback"), Some(4001));
    for other in ["http://127.0.0.1/callback", "http://h:1/callback", "http://127.0.0.1:0/callback"]
    {
        assert_eq!(registered_port(other), None, "{other}");
    }
}
