//! Configuration of a Creole process: reads and checks it, builds its servers and reloads it.
//!
//! [`tables`] holds the configuration as written, with the position of every value. [`plan`] turns it into a [`Plan`],
//! which is checked, resolved and immutable. [`presets`] are the built-in configuration files.
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
pub mod syntax;
pub mod tables;
pub mod wordpress;

mod admin_process;
mod assemble;
mod effective_values;
mod instance;
mod instance_state;
mod logins;
mod pin_locations;
mod policy_cases;
mod redacted_text;
mod reload;
mod resources;
mod rule_lines;
mod script_layer;
mod source;
mod telemetry_export;
mod upstream_settings;

pub use creole_telemetry::otlp::LogSender;

pub use admin_process::{AdminProcess, admin_settings, runtime_folder};
pub use assemble::{
    AssemblyError, RunError, assemble, auth_settings, authenticator, packs, seal_keys, site,
};
pub use instance::{InstanceOptions, ServerInstance, attach_reaper};
pub use logins::login_store;
pub use pin_locations::open_pin_locations;
pub use plan::Plan;
pub use plan::layer::LayerError;
pub use policy_cases::{ExpectedDecision, PolicyCase, load_policy_cases};
pub use reload::{LoadFailure, ReloadHost, Reloader};
pub use resources::resources;
pub use script_layer::ScriptLayer;
pub use source::ConfigSource;
pub use syntax::environment::Lookup;
pub use syntax::error::ConfigError;
pub use syntax::suggestions::nearest;
pub use telemetry_export::{SetEventExport, TelemetryExport};
pub use upstream_settings::{preset_address, upstream_address, upstream_settings};
