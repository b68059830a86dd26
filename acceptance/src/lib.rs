//! Whole-system tests.

pub mod canaries;
pub mod conformance;
#[cfg(target_os = "linux")]
pub mod drop_packets;
pub mod gateway;
pub mod http;
pub mod load;
#[cfg(unix)]
pub mod oauth;
pub mod peers;
pub mod process_under_test;
pub mod referee;
pub mod replicas;
pub mod stage;
pub mod transcript;
pub mod zoo;
