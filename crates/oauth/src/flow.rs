//! Logins, from the refusal of a server to the tokens: of a person with a browser or at another device, and of a program.

pub mod attempt;
pub mod authorization;
pub mod device;
pub mod person;
pub mod program;

#[cfg(test)]
mod tests;
