//! Signatures, proofs and random texts.

pub mod dpop;
pub mod jose;
pub(crate) mod random;
