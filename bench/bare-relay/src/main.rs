//! A bare relay on hyper: the lower bound that `cargo xtask bench gateway` compares with.
//!
//! It reads a body, sends it with the same headers over a pooled connection to the upstream, and returns the response.
//! It parses no JSON, checks no header and implements no protocol.
//!
//! `bare-relay FRONT BEHIND` takes the two addresses as `127.0.0.1:4711`.

mod pool;

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use pool::Pool;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Any error that ends a relayed call.
type Trouble = Box<dyn Error>;

fn main() -> Result<(), Trouble> {
    let mut arguments = std::env::args().skip(1);
    let mut address = || -> Result<SocketAddr, Trouble> {
        let word = arguments.next().ok_or("usage: bare-relay FRONT BEHIND")?;
        Ok(word.parse()?)
    };
    let (front, behind) = (address()?, address()?);
    let runtime = Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, serve(front, Rc::new(Pool::to(behind))))
}

async fn serve(front: SocketAddr, pool: Rc<Pool>) -> Result<(), Trouble> {
    let listener = TcpListener::bind(front).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let pool = Rc::clone(&pool);
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| answer(Rc::clone(&pool), request));
            let http = hyper::server::conn::http1::Builder::new();
            // The error of a client that disconnects is ignored.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    pool: Rc<Pool>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(relay(&pool, request).await.unwrap_or_else(|trouble| {
        let mut response = Response::new(Full::from(trouble.to_string()));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    }))
}

/// Relays one request. Both bodies are buffered completely, as in every gateway that inspects them.
async fn relay(pool: &Pool, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Trouble> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut behind = pool.take().await?;
    let response = behind.send_request(Request::from_parts(head, Full::new(body))).await?;
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    pool.put_back(behind);
    Ok(Response::from_parts(head, Full::new(body)))
}
