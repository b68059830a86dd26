//! Published servers, spoken to directly and through Creole, and what differs between the two.
//!
//! A [`Published`] server is started with the same words in every conversation: alone, behind
//! `creole connect` and behind `creole serve --http`. A [`Client`] of either era performs the same
//! [`TranscriptStep`]s each time and makes a [`Record`] of all that it sees. [`differences`] compares a record
//! that was made through Creole with the one that was made without, after the translations that
//! [`compare`] documents. The client is our own and decodes nothing: an SDK would mend what the test
//! has to see.

mod answers;
mod client;
pub mod compare;
mod folder;
mod record;
mod server_route;
mod servers;
mod wire;

pub use self::client::{ZooClient, ZooEra};
pub use self::compare::differences;
pub use self::folder::Folder;
pub use self::record::{Record, RecordedStep, ZooStep, perform};
pub use self::server_route::ServerRoute;
pub use self::servers::{Package, Published};
