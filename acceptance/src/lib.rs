//! Whole-system tests.

pub mod peers;
pub mod process_under_test;
pub mod stage;
pub mod transcript;
