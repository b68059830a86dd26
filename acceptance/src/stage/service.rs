//! Builds the server of a transcript's header inside this process.

use std::path::Path;

use creole::Service;
use creole_config::{ConfigSource, Plan};
use creole_gateway::federation::Federation;
use creole_tools::PackOptions;

use super::stdio::repository;

/// The service for the arguments after `creole serve`, with its own data directory.
pub fn service(words: &[String], data: &Path) -> Result<Service, String> {
    let mut source = ConfigSource::Default;
    let mut debug = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--preset" => {
                let name = words.next().ok_or("--preset needs a name")?;
                source = ConfigSource::Preset(name);
            }
            "--debug" => debug = true,
            "--stdio" => {}
            flag if flag.starts_with('-') => {
                return Err(format!("{flag} is unknown to this stage"));
            }
            file => source = ConfigSource::File(Path::new(file)),
        }
    }
    let in_repository = match source {
        ConfigSource::File(file) => Some(repository().join(file)),
        _ => None,
    };
    let source = in_repository.as_deref().map_or(source, ConfigSource::File);
    let plan = Plan::load(source, &creole_config::packs()).map_err(|error| error.to_string())?;
    let options = PackOptions { data_dir: Some(data.to_owned()), ..PackOptions::default() };
    let server = creole_config::assemble(&plan, &options, &Federation::default())
        .map_err(|error| error.to_string())?;
    Ok(server.debug(debug).start())
}
