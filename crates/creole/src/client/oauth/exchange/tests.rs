//! Limits of the requests of logins: addresses, redirects and sizes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use creole_oauth::error::OAuthError;
use creole_oauth::http::document::MAX_DOCUMENT_BYTES;
use creole_oauth::http::exchange::{Body, Exchange as _, Reach, Request, Response};
use creole_oauth::web_url::WebUrl;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{HttpExchange, max_age};

/// A server that answers every request with this text, and counts its connections.
async fn server(answer: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut head = vec![0; 4_096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (origin, count)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

async fn send(url: &str, reach: Reach, body: Option<Body>) -> Result<Response, OAuthError> {
    let url = WebUrl::parse(url).unwrap();
    HttpExchange::default().send(Request { url, reach, headers: Vec::new(), body }).await
}

#[tokio::test]
async fn a_document_cannot_lead_into_a_private_network() {
    let (origin, count) = server(answer("200 OK", "", "{}")).await;
    let port = origin.rsplit_once(':').unwrap().1;
    let names = ["127.0.0.1", "localhost", "a.localhost", "127.1", "0x7f.1", "0.0.0.0"];
    for host in names.into_iter().chain(["[::1]", "[::ffff:127.0.0.1]"]) {
        let error = send(&format!("http://{host}:{port}/"), Reach::Public, None).await.unwrap_err();
        assert!(matches!(error, OAuthError::Unreachable { .. }), "{host}: {error}");
    }
    for url in ["https://10.0.0.1/", "https://169.254.169.254/latest", "https://[fd00::1]/"] {
        let error = send(url, Reach::Public, None).await.unwrap_err().to_string();
        assert!(error.ends_with("the address is not public"), "{error}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 0);
    assert_eq!(send(&origin, Reach::Anywhere, None).await.unwrap().body, b"{}");
}

#[tokio::test]
async fn redirects_to_other_origins_and_of_posts_are_not_followed() {
    let (elsewhere, count) = server(answer("200 OK", "", "{}")).await;
    let moved = answer("302 Found", &format!("location: {elsewhere}/x\r\n"), "");
    let (origin, _) = server(moved).await;
    assert_eq!(send(&origin, Reach::Anywhere, None).await.unwrap().status, 302);
    let form = Some(Body::Form("a=b".to_owned()));
    assert_eq!(send(&origin, Reach::Anywhere, form).await.unwrap().status, 302);
    assert_eq!(count.load(Ordering::Relaxed), 0);

    // A loop within the origin ends.
    let (origin, count) = server(answer("302 Found", "location: /again\r\n", "")).await;
    assert_eq!(send(&origin, Reach::Anywhere, None).await.unwrap().status, 302);
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_response_that_is_too_long_is_not_read() {
    let (origin, _) = server(answer("200 OK", "", &"x".repeat(MAX_DOCUMENT_BYTES + 1))).await;
    let error = send(&format!("{origin}/?secret=canary"), Reach::Anywhere, None).await.unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("the response is longer than 64 KiB"), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn the_age_of_a_response_is_that_of_its_header() {
    let age = |value: &str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("cache-control", value.parse().unwrap());
        max_age(&headers)
    };
    for (value, expected) in [
        ("max-age=600", Some(600)),
        ("public, Max-Age=\"60\", must-revalidate", Some(60)),
        ("no-store", Some(0)),
        ("max-age=600, no-cache", Some(0)),
        ("max-age=x", None),
        ("s-maxage=5", None),
        ("public", None),
    ] {
        assert_eq!(age(value), expected, "{value}");
    }
    assert_eq!(max_age(&http::HeaderMap::new()), None);
}
