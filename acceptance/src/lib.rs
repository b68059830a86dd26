//! Whole-system tests.

pub mod peers;
pub mod stage;
pub mod transcript;
