//! Whole-system tests.

pub mod conformance;
pub mod gateway;
pub mod http;
pub mod load;
pub mod peers;
pub mod process_under_test;
pub mod referee;
pub mod stage;
pub mod transcript;
