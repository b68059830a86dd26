//! Where the layers of a plan record the definitions of tools.

use creole::state::State;
use creole_gateway::layers::PinLocation;

use crate::instance_state::InstanceState;
use crate::plan::layer::LayerPlan;
use crate::plan::pins::PinPlan;
use crate::{Plan, RunError};

/// The servers and upstreams of a plan whose pins are shared.
pub(crate) fn servers_with_shared_pins(plan: &Plan) -> Vec<String> {
    let all = pin_plans(plan).into_iter();
    all.filter(|(plan, _)| **plan == PinPlan::Shared).map(|(_, server)| server.to_owned()).collect()
}

/// Where the pins of a plan are, with its state if replicas share them there.
///
/// # Errors
/// When the state or its keys cannot be read.
pub async fn open_pin_locations(plan: &Plan) -> Result<Vec<PinLocation>, RunError> {
    let state = match servers_with_shared_pins(plan).is_empty() || plan.state.is_none() {
        true => None,
        false => Some(InstanceState::open(plan).await?.state),
    };
    Ok(pin_locations(plan, state.as_ref()))
}

/// Where the pins of a plan are. Those that replicas share are in `state`.
pub(crate) fn pin_locations(plan: &Plan, state: Option<&State>) -> Vec<PinLocation> {
    let mut plans = pin_plans(plan);
    plans.sort_unstable();
    // One file has the tools of all servers that name it.
    plans.dedup_by(|one, other| match (one.0, other.0) {
        (PinPlan::File(one), PinPlan::File(other)) => one == other,
        _ => one == other,
    });
    let location = |(plan, server): (&PinPlan, &str)| match plan {
        PinPlan::File(file) => Some(PinLocation::File(file.clone())),
        PinPlan::Shared => {
            Some(PinLocation::State { state: state?.clone(), server: server.to_owned() })
        }
    };
    plans.into_iter().filter_map(location).collect()
}

/// The plans of all pin layers, each with the server or upstream that it is around.
fn pin_plans(plan: &Plan) -> Vec<(&PinPlan, &str)> {
    let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
    let servers = servers.map(|server| (&server.chain, &*server.name));
    let upstreams = plan.upstreams.iter().map(|upstream| (&upstream.chain, &*upstream.name));
    let layers = servers.chain(upstreams).flat_map(|(chain, name)| {
        chain.iter().filter_map(move |layer| match layer {
            LayerPlan::Pin(plan) => Some((plan, name)),
            _ => None,
        })
    });
    layers.collect()
}
