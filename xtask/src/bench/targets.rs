//! The targets for stdio, from the performance design, and whether a run reached them.

use super::sample::{Era, Measurements, Row};
use super::statistics::{Spread, median, paired};

/// One target, checked.
pub(super) struct Verdict {
    pub(super) era: Era,
    pub(super) wording: String,
    pub(super) measured: String,
    pub(super) met: bool,
}

/// The most processor time per message that creole may use, as a share of another server's.
struct Share {
    window: usize,
    of: &'static str,
    at_most: f64,
    wording: &'static str,
}

const SHARES: [Share; 4] = [
    Share { window: 1, of: BARE, at_most: 1.6, wording: "window 1: CPU at most 1.6 x bare echo" },
    Share { window: 1, of: RMCP, at_most: 0.25, wording: "window 1: CPU at most 1/4 of rmcp" },
    Share { window: 64, of: BARE, at_most: 2.0, wording: "window 64: CPU at most 2 x bare echo" },
    Share { window: 64, of: RMCP, at_most: 0.125, wording: "window 64: CPU at most 1/8 of rmcp" },
];

/// Milliseconds that creole may need longer than the bare echo to its first answer.
const START_ALLOWANCE: f64 = 1.0;

/// Megabytes that an idle creole may hold.
const IDLE_ALLOWANCE: f64 = 6.0;

/// The limit: reading a line and writing its answer.
pub(super) const BARE: &str = "bare line echo";
/// rmcp the way its documentation sets it up.
pub(super) const RMCP: &str = "rmcp 3.8, as documented";
/// rmcp with everything that makes it faster on pipes.
pub(super) const RMCP_TUNED: &str = "rmcp 3.8, fastest set-up";
/// The product.
pub(super) const CREOLE: &str = "creole serve";

/// Checks every target that this benchmark can check, in every era.
pub(super) fn verdicts(measurements: &Measurements) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for era in Era::ALL {
        verdicts.extend(SHARES.iter().filter_map(|share| share_verdict(share, measurements, era)));
        verdicts.extend(start_verdict(measurements, era));
        verdicts.extend(idle_verdict(measurements, era));
    }
    verdicts
}

/// The processor time of `ours` as a share of `theirs`, paired within a repetition.
pub(super) fn processor_ratio(ours: &Row, theirs: &Row, window: usize) -> Spread {
    let figures = |row: &Row| row.figures(window, |load| load.processor_microseconds);
    paired(&figures(ours), &figures(theirs), |ours, theirs| ours / theirs)
}

/// The row of the server called `name` in `era`.
pub(super) fn row<'a>(measurements: &'a Measurements, name: &str, era: Era) -> Option<&'a Row> {
    measurements.rows.iter().find(|row| row.name == name && row.era == era)
}

fn share_verdict(share: &Share, measurements: &Measurements, era: Era) -> Option<Verdict> {
    let ours = row(measurements, CREOLE, era)?;
    let ratio = processor_ratio(ours, row(measurements, share.of, era)?, share.window);
    Some(Verdict {
        era,
        wording: share.wording.to_owned(),
        measured: format!("{:.3}", ratio.median),
        met: ratio.median <= share.at_most,
    })
}

fn start_verdict(measurements: &Measurements, era: Era) -> Option<Verdict> {
    let ours = &row(measurements, CREOLE, era)?.starts;
    let bare = &row(measurements, BARE, era)?.starts;
    let added = paired(ours, bare, |ours, bare| ours - bare).median;
    Some(Verdict {
        era,
        wording: format!("cold start at most {START_ALLOWANCE:.0} ms after bare echo"),
        measured: format!("{added:+.2} ms"),
        met: added <= START_ALLOWANCE,
    })
}

fn idle_verdict(measurements: &Measurements, era: Era) -> Option<Verdict> {
    let idle = median(row(measurements, CREOLE, era)?.all_figures(|load| load.idle_megabytes));
    Some(Verdict {
        era,
        wording: format!("idle RSS under {IDLE_ALLOWANCE:.0} MB"),
        measured: format!("{idle:.1} MB"),
        met: idle < IDLE_ALLOWANCE,
    })
}
