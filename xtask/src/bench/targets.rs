//! The targets for stdio, from the performance design, and whether a run met them.

use super::sample::{Era, EraRow, Measurements};
use super::statistics::{Spread, median, paired};

/// The result of one target.
pub(super) struct TargetResult {
    pub(super) era: Era,
    pub(super) wording: String,
    pub(super) measured: String,
    pub(super) met: bool,
}

/// The maximum processor time per message of creole, as a share of another server's.
struct CpuShare {
    window: usize,
    of: &'static str,
    at_most: f64,
    wording: &'static str,
}

const SHARES: [CpuShare; 5] = [
    CpuShare { window: 1, of: BARE, at_most: 1.6, wording: "at most 1.6 x bare line echo" },
    CpuShare { window: 1, of: RMCP, at_most: 0.25, wording: "at most 1/4 of rmcp" },
    CpuShare { window: 64, of: BARE, at_most: 2.0, wording: "at most 2 x bare line echo" },
    CpuShare { window: 64, of: RMCP, at_most: 0.125, wording: "at most 1/8 of rmcp" },
    CpuShare {
        window: 64,
        of: RUST_MCP_SDK,
        at_most: 0.25,
        wording: "at most 1/4 of rust-mcp-sdk",
    },
];

/// The servers whose cold start has a target, and their names in the report.
const STARTS: [(&str, &str); 2] =
    [(CREOLE, "cold start"), (CREOLE_EVERYTHING, "cold start, preset everything")];

/// How much longer than the bare line echo creole may take to its first response, in milliseconds.
const START_ALLOWANCE: f64 = 1.2;

/// The maximum idle memory of creole in megabytes.
const IDLE_ALLOWANCE: f64 = 6.0;

/// The bare server of the targets: the shortest program that reads a line, parses it and writes the response.
pub(super) const BARE: &str = "bare line echo";
/// The lower bound: nothing is copied, and all responses to the requests of one read are one write.
pub(super) const BARE_CHUNKS: &str = "bare chunk echo";
/// rmcp as documented.
pub(super) const RMCP: &str = "rmcp 3.8, as documented";
/// rmcp with all settings that make it faster on pipes.
pub(super) const RMCP_TUNED: &str = "rmcp 3.8, fastest set-up";
/// rust-mcp-sdk as documented.
pub(super) const RUST_MCP_SDK: &str = "rust-mcp-sdk 2.0";
/// The product, with its default preset.
pub(super) const CREOLE: &str = "creole serve";
/// The product with the largest pack, which the default preset does not include.
pub(super) const CREOLE_EVERYTHING: &str = "creole, preset everything";

/// Checks every target that this benchmark can check, in every era.
pub(super) fn verdicts(measurements: &Measurements) -> Vec<TargetResult> {
    let mut results = Vec::new();
    for era in Era::ALL {
        results.extend(SHARES.iter().filter_map(|share| share_result(share, measurements, era)));
        results.extend(STARTS.iter().filter_map(|start| start_result(start, measurements, era)));
        results.extend(idle_verdict(measurements, era));
    }
    results
}

/// The processor time of `ours` as a share of `theirs`, paired within a repetition.
pub(super) fn processor_ratio(ours: &EraRow, theirs: &EraRow, window: usize) -> Spread {
    let figures = |row: &EraRow| row.figures(window, |load| load.processor_microseconds);
    paired(&figures(ours), &figures(theirs), |ours, theirs| ours / theirs)
}

fn share_result(share: &CpuShare, measurements: &Measurements, era: Era) -> Option<TargetResult> {
    let ours = measurements.row(CREOLE, era)?;
    let ratio = processor_ratio(ours, measurements.row(share.of, era)?, share.window);
    Some(TargetResult {
        era,
        wording: format!("window {}: CPU {}", share.window, share.wording),
        measured: format!("{:.3}", ratio.median),
        met: ratio.median <= share.at_most,
    })
}

fn start_result(
    (name, title): &(&str, &str),
    measurements: &Measurements,
    era: Era,
) -> Option<TargetResult> {
    let ours = &measurements.row(name, era)?.starts;
    let bare = &measurements.row(BARE, era)?.starts;
    let added = paired(ours, bare, |ours, bare| ours - bare).median;
    Some(TargetResult {
        era,
        wording: format!("{title}: at most {START_ALLOWANCE:.1} ms after bare"),
        measured: format!("{added:+.2} ms"),
        met: added <= START_ALLOWANCE,
    })
}

fn idle_verdict(measurements: &Measurements, era: Era) -> Option<TargetResult> {
    let idle = median(measurements.row(CREOLE, era)?.all_figures(|load| load.idle_megabytes));
    Some(TargetResult {
        era,
        wording: format!("idle RSS under {IDLE_ALLOWANCE:.0} MB"),
        measured: format!("{idle:.1} MB"),
        met: idle < IDLE_ALLOWANCE,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::sample::{Contender, Era, Load, Measurements};
    use super::{BARE, CREOLE, CREOLE_EVERYTHING, RUST_MCP_SDK, verdicts};

    fn contenders() -> [Contender; 4] {
        let new = |name| Contender::new(name, Path::new("server"), &[]);
        [
            new(BARE),
            new(RUST_MCP_SDK).only_in(Era::Modern),
            new(CREOLE),
            new(CREOLE_EVERYTHING).only_in(Era::Legacy).only_started(),
        ]
    }

    /// One sample each: creole costs `cost` and starts after 2 ms, everything after `start` ms.
    fn measurements(cost: f64, start: f64) -> Measurements {
        let contenders = contenders();
        let mut measurements = Measurements::new(&contenders);
        let costs = [1.0, 10.0, cost, 0.0];
        let starts = [1.5, 9.0, 2.0, start];
        for ((contender, cost), start) in contenders.iter().zip(costs).zip(starts) {
            for era in contender.eras() {
                if contender.is_loaded() {
                    measurements.add_load(contender, era, 64, load(cost));
                }
                measurements.add_start(contender, era, start);
            }
        }
        measurements
    }

    fn load(processor_microseconds: f64) -> Load {
        Load {
            messages: 1.0,
            per_second: 1.0,
            processor_microseconds,
            idle_megabytes: 5.0,
            peak_megabytes: 5.0,
        }
    }

    /// Whether the only target in `era` whose wording contains `part` is met.
    fn is_met(measurements: &Measurements, era: Era, part: &str) -> Option<bool> {
        let mut found = verdicts(measurements)
            .into_iter()
            .filter(|result| result.era == era && result.wording.contains(part));
        let result = found.next();
        assert!(found.next().is_none(), "two targets are worded like `{part}`");
        result.map(|result| result.met)
    }

    #[test]
    fn a_peer_is_compared_in_its_eras() {
        let peer = "1/4 of rust-mcp-sdk";
        assert_eq!(is_met(&measurements(2.5, 2.0), Era::Modern, peer), Some(true));
        assert_eq!(is_met(&measurements(2.6, 2.0), Era::Modern, peer), Some(false));
        assert_eq!(is_met(&measurements(2.5, 2.0), Era::Legacy, peer), None);
    }

    #[test]
    fn every_measured_preset_starts_as_fast() {
        let slow = measurements(1.0, 2.8);
        assert_eq!(is_met(&slow, Era::Legacy, "cold start: "), Some(true));
        assert_eq!(is_met(&slow, Era::Legacy, "preset everything"), Some(false));
        assert_eq!(is_met(&measurements(1.0, 2.6), Era::Legacy, "preset everything"), Some(true));
        assert_eq!(is_met(&slow, Era::Modern, "preset everything"), None);
    }
}
