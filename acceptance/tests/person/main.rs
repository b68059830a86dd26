//! What a person meets on the command line, by the real binary: at a terminal and in a pipe.
#![cfg(unix)]

mod arguments;
mod look;
mod network;
mod place;
mod setup;
