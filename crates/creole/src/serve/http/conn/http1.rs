//! HTTP/1 without hyper: the fast path for short requests, and the writer for streaming responses.
//!
//! # Why they exist beside hyper
//!
//! - **Fast path** ([`fast_path`]). Nearly every MCP request is an HTTP/1.1 `POST` with a `Content-Length`. hyper does
//!   much work that such a request does not need and makes a call about a fifth more expensive. The fast path reads
//!   these requests and writes their responses itself.
//! - **Streaming writer** ([`streaming`]). hyper keeps two buffers of 8 KiB per HTTP/1 connection, also while a
//!   response is silent for hours. It also cannot find out whether a client that closed its sending side still reads.
//!   So a response that is marked [`detach::Streaming`] is written here, as the last response of its connection, and
//!   has `Connection: close`. The same holds for every event stream on a connection that hyper reads.
//!
//! # What falls back to hyper
//!
//! Every connection that is not HTTP/2 starts on the fast path. The first request that does not qualify goes to hyper,
//! with the connection and every byte that was read, and the connection stays there. A request qualifies if all of this
//! holds:
//!
//! - the method is `POST`, the version is HTTP/1.1, and the target starts with `/`;
//! - it has exactly one `Content-Length`, which consists of digits only;
//! - it has no `Transfer-Encoding`, `Expect` or `Upgrade`, and its `Connection` is absent, `close` or `keep-alive`;
//! - its head has at most 48 fields, parses without error, and arrives in at most 8 reads.
//!
//! The fast path never rejects a request. Malformed requests go to hyper too, so that one parser alone decides what is
//! rejected. The limit on the length of a head applies before both, in [`screened_stream`](super::screened_stream),
//! which also guards both against request smuggling.
//!
//! # How a response leaves hyper
//!
//! A streaming response can also answer a request that hyper reads, such as a `GET`. The request then puts the response
//! into a [`detach::DetachSlot`] and never completes. The connection takes the stream back from hyper and the streaming
//! writer finishes it. HTTP/2 responses stay with hyper, because other requests share their connection. So do responses
//! to `HEAD` and to requests with `Expect`.
//!
//! # Shared parts
//!
//! [`response_writer`] and [`response_head`] write responses for both, with heads in hyper's form. [`wake_batching`](crate::serve::http::web::wake_batching)
//! makes responses that are ready at the same time go out together: waking a client costs more than writing to it.

pub(crate) mod date;
pub(crate) mod detach;
pub(crate) mod fast_path;
pub(crate) mod response_head;
pub(crate) mod response_writer;
pub(crate) mod streaming;
