//! Where a configuration comes from, and how its text is read.

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::presets;
use crate::syntax::error::ConfigError;
use crate::tables::enums::LogFormat;

/// The maximum size of a configuration file, in bytes.
const MAX_BYTES: u64 = 1_048_576;

/// Where a configuration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource<'a> {
    /// A file.
    File(&'a Path),
    /// A built-in configuration, by its name.
    Preset(&'a str),
    /// The preset that is used if none is named.
    Default,
}

impl ConfigSource<'_> {
    /// Its name in errors.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Preset(name) => format!("preset {name}"),
            Self::Default => format!("preset {}", presets::DEFAULT),
        }
    }

    /// The folder that relative paths start at: the folder of the file, or the working directory.
    pub fn folder(&self) -> &Path {
        match self {
            Self::File(path) => path.parent().unwrap_or(Path::new("")),
            Self::Preset(_) | Self::Default => Path::new(""),
        }
    }

    /// The log format of the file, as far as the file can be read. `None` for presets.
    pub fn log_format(&self) -> Option<LogFormat> {
        let Self::File(_) = self else { return None };
        let document: toml::Table = self.text().ok()?.parse().ok()?;
        match document.get("log")?.get("format")?.as_str()? {
            "json" => Some(LogFormat::Json),
            "text" => Some(LogFormat::Text),
            _ => None,
        }
    }

    /// The text of the configuration.
    pub fn text(&self) -> Result<String, ConfigError> {
        match self {
            Self::File(path) => read(path),
            Self::Preset(name) => presets::find(name).map(|preset| preset.text.to_owned()),
            Self::Default => presets::find(presets::DEFAULT).map(|preset| preset.text.to_owned()),
        }
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    if path.as_os_str().is_empty() {
        return Err(ConfigError::without_location(
            "the name of the configuration file is empty",
            None,
        ));
    }
    let bytes = read_bytes(path).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("`{}` is larger than {MAX_BYTES} bytes", path.display());
        return Err(ConfigError::without_location(message, None));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(path, &error))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> ConfigError {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => ConfigError::without_location(
            format!("the file `{shown}` does not exist"),
            Some(format!("`creole config show > {shown}` creates one")),
        ),
        ErrorKind::IsADirectory => ConfigError::without_location(
            format!("`{shown}` is a directory, not a configuration file"),
            None,
        ),
        ErrorKind::PermissionDenied => {
            ConfigError::without_location(format!("no permission to read the file `{shown}`"), None)
        }
        _ => {
            ConfigError::without_location(format!("cannot read the file `{shown}`: {error}"), None)
        }
    }
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> ConfigError {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
    let message = format!("`{}` is not UTF-8 text (line {line})", path.display());
    ConfigError::without_location(message, Some("save the file as UTF-8".to_owned()))
}
