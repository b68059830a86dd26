//! The state of a server instance, and the keys that protect what leaves the process.

use creole::state::{State, StateProtection};
use creole::{Sealer, Secrets};

use crate::assemble::seal_keys;
use crate::plan::state::StatePlan;
use crate::{Plan, RunError};

/// The state of a server instance.
pub(crate) struct InstanceState {
    /// Keeps everything that outlives a request.
    pub(crate) state: State,
    /// Encrypts and authenticates the values that clients hold.
    pub(crate) sealer: Sealer,
    /// Encrypts and authenticates what is stored on the network.
    pub(crate) protection: Option<StateProtection>,
}

impl InstanceState {
    /// Opens the state of a plan.
    pub(crate) async fn open(plan: &Plan) -> Result<Self, RunError> {
        let secrets = seal_keys(plan)?;
        let Some(state_plan) = &plan.state else {
            let sealer = Sealer::random();
            secrets.iter().for_each(|secrets| sealer.set_secrets(secrets));
            return Ok(Self { state: State::default(), sealer, protection: None });
        };
        let refused = |error| {
            RunError::Refused(match state_plan {
                StatePlan::File(file) => {
                    format!("cannot use the state file `{}`: {error}", file.display())
                }
                StatePlan::Store(_) => format!("cannot use the state store {state_plan}: {error}"),
            })
        };
        let state = state_plan.open().await.map_err(refused)?;
        match (state_plan, secrets) {
            (StatePlan::Store(_), Some(secrets)) => Ok(Self::protected(state, &secrets)),
            (_, secrets) => {
                // All replicas share the key: a client may bring a cursor or a request state to another one.
                let sealer =
                    Sealer::from_state(&state, &plan.server.name).await.map_err(refused)?;
                secrets.iter().for_each(|secrets| sealer.set_secrets(secrets));
                Ok(Self { state, sealer, protection: None })
            }
        }
    }

    /// The state in a store, which may be unavailable: nothing is read from it here.
    fn protected(state: State, secrets: &Secrets) -> Self {
        let (sealer, protection) = (Sealer::random(), StateProtection::new(secrets));
        sealer.set_secrets(secrets);
        Self { state: state.protected(protection.clone()), sealer, protection: Some(protection) }
    }
}
