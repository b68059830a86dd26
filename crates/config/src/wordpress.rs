//! The WordPress site of a configuration.
//!
//! Without the feature `wordpress` there is no value of these types, and a configuration that names a site is refused.

#[cfg(feature = "wordpress")]
mod supported;
#[cfg(not(feature = "wordpress"))]
mod unsupported;

#[cfg(feature = "wordpress")]
pub use supported::{Site, SiteGate, SiteSettings};
#[cfg(feature = "wordpress")]
pub(crate) use supported::{add_pack, is_pack, pack_names};
#[cfg(not(feature = "wordpress"))]
pub use unsupported::{Site, SiteGate, SiteSettings};
#[cfg(not(feature = "wordpress"))]
pub(crate) use unsupported::{add_pack, is_pack, pack_names};

/// Why a program without the feature `wordpress` refuses a site.
pub const MISSING_SUPPORT: &str = "this program was built without WordPress support";
/// What to do about it.
pub const MISSING_SUPPORT_HELP: &str = "build it with the feature `wordpress`";
