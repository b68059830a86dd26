//! Where a layer records the definitions of tools.

use std::path::PathBuf;

use creole_gateway::layers::Pin;

use crate::plan::layer_environment::{LayerEnvironment, LayerError};

/// Where a layer records the definitions of tools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PinPlan {
    /// In this file.
    File(PathBuf),
    /// In the state that replicas share.
    Shared,
}

impl PinPlan {
    pub(crate) fn build(
        &self,
        server: &str,
        environment: &LayerEnvironment,
    ) -> Result<Pin, LayerError> {
        match (self, &environment.pins) {
            (Self::File(file), _) => Pin::new(server, file).map_err(|error| {
                let file = file.display();
                LayerError::new(format!("cannot use the pin file `{file}`: {error}"))
            }),
            (Self::Shared, Some(pins)) => Ok(Pin::shared(server, pins)),
            (Self::Shared, None) => {
                let reason = "a `pin` layer with `shared = true` needs `[state]`, which stores the approved definitions";
                Err(LayerError::new(reason))
            }
        }
    }
}
