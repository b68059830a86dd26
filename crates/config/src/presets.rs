//! Presets: configuration files that are built into the binary.
//!
//! The files are in this crate because a published crate contains only files below its own folder. `presets` at the
//! root of the repository links here.

use crate::syntax::error::ConfigError;
use crate::syntax::suggestions::suggestion;

/// The preset that is used if none is named.
pub const DEFAULT: &str = "default";

/// A built-in configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// Every preset.
pub const ALL: &[Preset] = &[
    Preset { name: DEFAULT, text: include_str!("../presets/default.toml") },
    Preset { name: "bb-mcp-server", text: include_str!("../presets/bb-mcp-server.toml") },
    Preset { name: "mcp-chain", text: include_str!("../presets/mcp-chain.toml") },
    Preset { name: "bossman", text: include_str!("../presets/bossman.toml") },
    Preset { name: "fpf-governance", text: include_str!("../presets/fpf-governance.toml") },
    Preset { name: "buddyboss", text: include_str!("../presets/buddyboss.toml") },
    Preset { name: "everything", text: include_str!("../presets/everything.toml") },
];

/// The preset of that name.
pub fn find(name: &str) -> Result<&'static Preset, ConfigError> {
    ALL.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|preset| preset.name).collect();
        let help = suggestion(name, "the known presets", &names);
        ConfigError::without_location(format!("unknown preset `{name}`"), Some(help))
    })
}

impl Preset {
    /// Its description: the first line of the file.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_begins_with_a_sentence_about_itself() {
        for preset in ALL {
            assert!(preset.text.starts_with("# "), "{}", preset.name);
            assert!(preset.about().ends_with('.'), "{}", preset.name);
        }
    }
}
