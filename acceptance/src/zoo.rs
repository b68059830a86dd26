//! Compares the behaviour of published servers with and without Creole in front.
//!
//! A [`Published`] server is started with the same command in every run: alone, behind `creole connect` and behind
//! `creole serve --http`. A [`ZooClient`] of either era performs the same [`ZooStep`]s each time and makes a [`Record`]
//! of everything that it receives. [`differences`] compares a record that was made through Creole with the one that was
//! made without, after the translations that [`compare`] documents. The client is our own and decodes nothing: an SDK
//! would repair errors that the test has to see.

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
