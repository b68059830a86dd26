//! A bare JSON-RPC responder on hyper: the lower bound that `cargo xtask bench http` compares with.
//!
//! It reads a body, parses it with serde_json and writes the response. It checks no header, no version and no session,
//! and has no tool other than `echo`. `--tools N` prepares a list of N tools at the start, and every client gets the
//! same bytes. A GET and `subscriptions/listen` get a stream on which nothing follows the first event. Other arguments
//! are ignored, so that `--creole bare-http` measures the noise of the benchmark itself.

mod answer;
mod body;

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::rc::Rc;

use answer::Responder;
use body::Reply;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args();
    let _ = arguments.find(|argument| argument == "--tools");
    let tools = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let responder = Rc::new(Responder::with_tools(tools));

    let runtime = Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, serve(responder))
}

async fn serve(responder: Rc<Responder>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    writeln!(io::stderr(), "bare-http: `bare` listens on http://{address}/mcp")?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let responder = Rc::clone(&responder);
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| respond(Rc::clone(&responder), request));
            let http = hyper::server::conn::http1::Builder::new();
            // The error of a client that disconnects is ignored.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(
    responder: Rc<Responder>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Infallible> {
    if request.method() == Method::GET {
        return Ok(stream(Bytes::from_static(b": open\n\n")));
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    Ok(match responder.answer(&body.to_bytes()) {
        Ok(answer::Answer::Json(bytes)) => json(bytes),
        Ok(answer::Answer::Session(bytes)) => {
            let mut response = json(bytes);
            response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("bare"));
            response
        }
        Ok(answer::Answer::Stream(first)) => stream(first),
        Ok(answer::Answer::Nothing) => status(StatusCode::ACCEPTED),
        Err(_) => status(StatusCode::BAD_REQUEST),
    })
}

fn json(bytes: Bytes) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Some(bytes)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn stream(first: Bytes) -> Response<Reply> {
    let mut response = Response::new(Reply::Open(Some(first)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn status(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(None));
    *response.status_mut() = status;
    response
}
