//! Tests of an upstream against servers in this process.

mod cancel;
mod era_change;
mod input_response;
mod list;
mod many_parked_calls;
mod records;
mod roots;
mod session;
mod slow_upstream;

use std::time::Duration;

use creole::proto::fault::FaultKind;
use creole::proto::model::ClientCapabilities;
use creole::proto::operation::Change;
use creole::proto::wire::Raw;
use tokio::time::Instant;

use super::*;
