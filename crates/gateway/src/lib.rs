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

pub mod config;
pub mod federation;
pub mod layers;
pub mod plan;
pub mod presets;
pub mod upstream;

mod config_source;

pub use config::environment::Lookup;
pub use config::error::ConfigError;
pub use config::suggestions::nearest;
pub use config_source::ConfigSource;
pub use plan::Plan;
