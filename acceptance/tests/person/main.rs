//! Tests of the binary's command line as a user sees it, at a terminal and in a pipe.
#![cfg(unix)]

mod arguments;
mod live_table;
mod look;
mod network;
mod setup;
mod working_folder;
