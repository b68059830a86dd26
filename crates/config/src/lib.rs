//! Configuration of a Creole process: what was written, and what it means.
//!
//! [`tables`] holds the form that a person writes, with the place of every word; [`plan`] turns it
//! into a [`Plan`], which is checked, resolved and never changes; [`presets`] are configuration files
//! that ship inside.
//!
//! ```
//! use creole_config::{ConfigSource, Plan};
//!
//! let plan = Plan::load(ConfigSource::Preset("bossman"), &["tasks"]).unwrap();
//! assert_eq!(plan.server.name, "bossman");
//! assert_eq!(plan.server.packs, ["tasks"]);
//! ```
pub mod describe;
pub mod plan;
pub mod presets;
pub(crate) mod script_layer;
pub(crate) mod source;
pub(crate) mod syntax;
pub mod tables;
pub(crate) mod upstream_settings;
