//! Logins of callers: their credentials, the users of the site that they name, and a limit on wrong passwords.

pub(crate) mod authenticate;
pub(crate) mod basic_credentials;
pub(crate) mod login_throttle;
pub(crate) mod users;
