//! The targets for gateways, and whether a run met them.

use super::super::figures::Figures;
use super::super::statistics::{Spread, paired};
use super::contenders::{BARE, CREOLE, DIRECT, MCP_PROXY, MCP_REMOTE};
use super::lanes::{LANES, Lane, LaneProtocol};
use super::sample::GatewayMeasurements;

/// The result of one target.
pub(super) struct GatewayTarget {
    pub(super) lane: Lane,
    pub(super) wording: &'static str,
    pub(super) measured: String,
    pub(super) met: bool,
}

/// The maximum processor time per call of creole, as a share of another gateway's.
struct GatewayCpuShare {
    front: LaneProtocol,
    behind: LaneProtocol,
    of: &'static str,
    at_most: f64,
    wording: &'static str,
}

const SHARES: [GatewayCpuShare; 4] = [
    GatewayCpuShare {
        front: LaneProtocol::Http,
        behind: LaneProtocol::Http,
        of: BARE,
        at_most: 1.5,
        wording: "CPU at most 1.5 x bare relay",
    },
    GatewayCpuShare {
        front: LaneProtocol::Http,
        behind: LaneProtocol::Http,
        of: MCP_PROXY,
        at_most: 0.25,
        wording: "CPU at most 1/4 of the mcp-proxy crate",
    },
    GatewayCpuShare {
        front: LaneProtocol::Http,
        behind: LaneProtocol::Stdio,
        of: MCP_PROXY,
        at_most: 0.25,
        wording: "CPU at most 1/4 of the mcp-proxy crate",
    },
    GatewayCpuShare {
        front: LaneProtocol::Stdio,
        behind: LaneProtocol::Http,
        of: MCP_REMOTE,
        at_most: 1.0 / 40.0,
        wording: "CPU at most 1/40 of mcp-remote",
    },
];

/// The maximum time that the gateway may add to a call at one connection, in microseconds.
const ADDED_ALLOWANCE: f64 = 60.0;

/// The maximum cost of a call across eras, as a multiple of one within the client's era.
const ACROSS_ALLOWANCE: f64 = 1.3;

/// The maximum memory of a gateway while it forwards a large result, in multiples of its size.
const HELD_ALLOWANCE: f64 = 2.0;

/// Checks every target that this benchmark can check.
pub(super) fn verdicts(measurements: &GatewayMeasurements) -> Vec<GatewayTarget> {
    let mut results = Vec::new();
    for lane in LANES {
        let shares = SHARES.iter().filter(|gateway_cpu_share| {
            gateway_cpu_share.front == lane.front && gateway_cpu_share.behind == lane.behind
        });
        for share in shares {
            let ratio = processor_ratio(measurements, share.of, lane).median;
            let shown = format!("{ratio:.3}");
            results.extend(verdict(lane, share.wording, ratio, share.at_most, shown));
        }
        let added = added(measurements, CREOLE, lane, Figures::middle).median;
        if lane.front == LaneProtocol::Http {
            let text = "adds less than 60 µs to the p50 at one connection";
            let shown = format!("{added:.0} µs");
            results.extend(verdict(lane, text, added, ADDED_ALLOWANCE, shown));
        }
        if !lane.is_same_era() {
            let figures = |lane| widest(measurements, CREOLE, lane, Figures::processor);
            let ratio = paired(&figures(lane), &figures(lane.within_era()), |a, b| a / b).median;
            let text = "CPU at most 1.3 x that within the client's era";
            let shown = format!("{ratio:.3}");
            results.extend(verdict(lane, text, ratio, ACROSS_ALLOWANCE, shown));
        }
    }
    for usage in measurements.held.iter().filter(|usage| usage.name == CREOLE) {
        let text = "holds less than twice a result of 5 MB";
        let (sizes, shown) = (usage.sizes(), format!("{:.2} x", usage.sizes()));
        results.extend(verdict(usage.lane, text, sizes, HELD_ALLOWANCE, shown));
    }
    results
}

/// One figure of every repetition under the highest load.
pub(super) fn widest(
    measurements: &GatewayMeasurements,
    name: &str,
    lane: Lane,
    figure: fn(&Figures) -> f64,
) -> Vec<f64> {
    measurements.figures(name, lane, lane.front.widths()[1], figure)
}

/// Creole's processor time as a share of another gateway's, paired within a repetition. Not a number if one of them was
/// not measured.
pub(super) fn processor_ratio(measurements: &GatewayMeasurements, of: &str, lane: Lane) -> Spread {
    let figures = |name| widest(measurements, name, lane, Figures::processor);
    paired(&figures(CREOLE), &figures(of), |ours, theirs| ours / theirs)
}

/// The difference that a gateway adds to a figure at one call at a time. The upstream alone is measured in the client's
/// era.
pub(super) fn added(
    measurements: &GatewayMeasurements,
    name: &str,
    lane: Lane,
    figure: fn(&Figures) -> f64,
) -> Spread {
    let through = measurements.figures(name, lane, 1, figure);
    let direct = measurements.figures(DIRECT, lane.within_era(), 1, figure);
    paired(&through, &direct, |through, direct| through - direct)
}

fn verdict(
    lane: Lane,
    text: &'static str,
    measured: f64,
    at_most: f64,
    shown: String,
) -> Option<GatewayTarget> {
    let met = measured <= at_most;
    (!measured.is_nan()).then_some(GatewayTarget { lane, wording: text, measured: shown, met })
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::Figures;
    use super::super::contenders::{BARE, CREOLE, DIRECT};
    use super::super::lanes::{LANES, Lane};
    use super::super::sample::GatewayMeasurements;
    use super::verdicts;

    fn add(to: &mut GatewayMeasurements, name: &'static str, lane: Lane, cost: u32) {
        let text = format!(
            "answered 1\nprocessor_nanoseconds {}\nmiddle_nanoseconds {}\n",
            cost * 1000,
            cost * 1000
        );
        for width in lane.front.widths() {
            to.add(name, lane, width, Figures::of(&text));
        }
    }

    fn is_met(measurements: &GatewayMeasurements, lane: Lane, words: &str) -> Option<bool> {
        let results = verdicts(measurements);
        let mut found = results.iter().filter(|gateway_target| {
            gateway_target.lane == lane && gateway_target.wording.contains(words)
        });
        found.next().map(|target| target.met)
    }

    #[test]
    fn a_target_is_met_or_missed_or_not_measured() {
        let mut measurements = GatewayMeasurements::default();
        let (same, across) = (LANES[0], LANES[2]);
        for (name, lane, cost) in
            [(DIRECT, same, 30), (BARE, same, 20), (CREOLE, same, 40), (CREOLE, across, 50)]
        {
            add(&mut measurements, name, lane, cost);
        }
        assert_eq!(is_met(&measurements, same, "1.5 x bare"), Some(false));
        assert_eq!(is_met(&measurements, same, "of the mcp-proxy crate"), None);
        assert_eq!(is_met(&measurements, same, "adds less"), Some(true));
        assert_eq!(is_met(&measurements, across, "adds less"), Some(true));
        assert_eq!(is_met(&measurements, across, "1.3 x"), Some(true));
        assert_eq!(is_met(&measurements, LANES[1], "adds less"), None);
    }
}
