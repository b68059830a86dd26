//! Configuration of a Creole process: what was written, and what it means.
//!
//! [`config`] holds the form that a person writes, with the place of every word; [`plan`] turns it
//! into a [`Plan`], which is checked, resolved and never changes; [`presets`] are configuration files
//! that ship inside.
//!
//! ```
//! use creole_gateway::{ConfigSource, Plan};
//!
//! let plan = Plan::load(ConfigSource::Preset("bossman"), &["tasks"]).unwrap();
//! assert_eq!(plan.server.name, "bossman");
//! assert_eq!(plan.server.packs, ["tasks"]);
//! ```

pub mod federation;
pub mod layers;
pub mod upstream;

pub use creole_config::plan::Plan;
pub use creole_config::source::ConfigSource;
pub use creole_config::syntax::environment::Lookup;
pub use creole_config::syntax::error::ConfigError;
pub use creole_config::syntax::suggestions::nearest;
