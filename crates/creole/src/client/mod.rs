//! Connections to other servers, of either era and over any transport.
//!
//! A [`Transport`] begins a [`Link`], a [`Connection`] drives the protocol machine over it. Calls are futures:
//! dropping one cancels it. What a server should not have said is counted and never reaches a caller.

mod callbacks;
mod calling;
mod connection;
mod dialer;
mod era;
pub mod http;
mod hub;
mod lines;
mod link;
mod noise;
pub mod probe;
mod simple;

pub use calling::{Asked, Calling, News, Reply, Step};
pub use connection::{Closed, Connection, Notice, OnLog, OnQuestion, Setup};
pub use dialer::{Dialer, Offer, Way};
pub use era::{Found, Memory};
pub use lines::{ChildServer, LineServer};
pub use link::{Inbox, Link, Transport};
pub use simple::{Client, ClientBuilder};
