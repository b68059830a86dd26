//! Servers behind a gateway: our own in one era only, and puppets that do what a test says.

mod behind;
mod clients;
mod old_site;
mod puppet;
mod site;

pub use behind::{Behind, Speaks};
pub use clients::{Answering, Legacy, Modern};
pub use old_site::{Message, OldSite};
pub use puppet::{Heard, Puppet, Puppeteer, Show};
pub use site::{Site, Visit};
