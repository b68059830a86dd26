//! The targets for HTTP, and whether a run met them.

use super::super::sample::Era;
use super::super::statistics::{Spread, median, paired};
use super::contenders::{BARE, CREOLE, RMCP, RMCP_JSON, TOWER_MCP};
use super::sample::{Figures, HttpMeasurements, Measure};

/// The result of one target.
pub(super) struct HttpTarget {
    pub(super) era: Era,
    pub(super) wording: String,
    pub(super) measured: String,
    pub(super) met: bool,
}

/// The maximum processor time per request of creole, as a share of another server's.
struct HttpCpuShare {
    era: Era,
    measure: Measure,
    of: &'static str,
    at_most: f64,
    wording: &'static str,
}

const fn share(
    era: Era,
    measure: Measure,
    of: &'static str,
    at_most: f64,
    text: &'static str,
) -> HttpCpuShare {
    HttpCpuShare { era, measure, of, at_most, wording: text }
}

const SHARES: [HttpCpuShare; 8] = [
    share(Era::Modern, Measure::Connections, BARE, 1.4, "call: CPU at most 1.4 x bare hyper"),
    share(
        Era::Modern,
        Measure::Connections,
        RMCP_JSON,
        1.0 / 3.5,
        "call: CPU at most 1/3.5 of rmcp, JSON",
    ),
    share(
        Era::Legacy,
        Measure::Connections,
        RMCP,
        1.0 / 3.0,
        "call: CPU at most 1/3 of rmcp, sessions",
    ),
    share(
        Era::Legacy,
        Measure::Connections,
        TOWER_MCP,
        0.5,
        "call: CPU at most 1/2 of tower-mcp, sessions",
    ),
    share(Era::Modern, Measure::List, BARE, 1.3, "list of 1,000: CPU at most 1.3 x bare hyper"),
    share(
        Era::Modern,
        Measure::List,
        RMCP_JSON,
        0.25,
        "list of 1,000: CPU at most 1/4 of rmcp, JSON",
    ),
    share(Era::Legacy, Measure::List, BARE, 1.3, "list of 1,000: CPU at most 1.3 x bare hyper"),
    share(
        Era::Legacy,
        Measure::List,
        RMCP_JSON,
        0.25,
        "list of 1,000: CPU at most 1/4 of rmcp, JSON",
    ),
];

/// The maximum memory of creole for one measure.
struct MaxHeld {
    measure: Measure,
    figure: fn(&Figures) -> f64,
    under: f64,
    unit: &'static str,
    wording: &'static str,
}

const MOST: [MaxHeld; 5] = [
    MaxHeld {
        measure: Measure::Connections,
        figure: Figures::idle_memory,
        under: 8.0,
        unit: "MB",
        wording: "RSS idle under 8 MB",
    },
    MaxHeld {
        measure: Measure::Connections,
        figure: Figures::peak_memory,
        under: 12.0,
        unit: "MB",
        wording: "RSS at 32 connections under 12 MB",
    },
    MaxHeld {
        measure: Measure::Streams,
        figure: Figures::each,
        under: 10.0,
        unit: "KB",
        wording: "an idle stream: at most 10 KB",
    },
    MaxHeld {
        measure: Measure::Streams,
        figure: memory_of_ten_thousand,
        under: 100.0,
        unit: "MB",
        wording: "10,000 idle streams: within 100 MB",
    },
    MaxHeld {
        measure: Measure::Sessions,
        figure: Figures::each,
        under: 4.0,
        unit: "KB",
        wording: "an idle session: at most 4 KB",
    },
];

/// The memory with 10,000 idle clients. Fewer clients do not count.
fn memory_of_ten_thousand(figures: &Figures) -> f64 {
    if figures.count() < 10_000.0 { f64::NAN } else { figures.crowded_memory() }
}

/// Conditions that must not make a call more expensive, each with its baseline.
const GROWTHS: [(Measure, Measure, &str); 4] = [
    (Measure::Keyed, Measure::Connections, "a call with a bearer key: at most 10 % more CPU"),
    (
        Measure::Token,
        Measure::Keyed,
        "a call with a cached access token: at most 10 % more CPU than with a key",
    ),
    (Measure::Crowded, Measure::Connections, "a call among many sessions: at most 10 % more CPU"),
    (Measure::ManyTools, Measure::FewTools, "a call among 10,000 tools: at most 10 % more CPU"),
];

const GROWTH_ALLOWANCE: f64 = 1.1;

/// Targets that this benchmark does not check, named so that they are not taken for met.
pub(super) const UNCHECKED: &str =
    "metrics add at most 10 % (there are none); cost does not grow with upstreams";

/// Checks every target that this benchmark can check.
pub(super) fn verdicts(measurements: &HttpMeasurements) -> Vec<HttpTarget> {
    let mut results = Vec::new();
    for era in Era::ALL {
        let shares = SHARES.iter().filter(|share| share.era == era);
        results.extend(shares.filter_map(|share| share_result(share, measurements)));
        results
            .extend(MOST.iter().filter_map(|max_held| most_verdict(max_held, measurements, era)));
        let growths = GROWTHS.iter();
        results.extend(growths.filter_map(|growth| growth_verdict(growth, measurements, era)));
    }
    results
}

/// Creole's processor time as a share of another server's, paired within a repetition. Not a number if one of them was
/// not measured.
pub(super) fn processor_ratio(
    measurements: &HttpMeasurements,
    of: &str,
    era: Era,
    measure: Measure,
) -> Spread {
    let figures = |name| measurements.figures(name, era, measure, Figures::processor);
    paired(&figures(CREOLE), &figures(of), |ours, theirs| ours / theirs)
}

fn share_result(share: &HttpCpuShare, measurements: &HttpMeasurements) -> Option<HttpTarget> {
    let ratio = processor_ratio(measurements, share.of, share.era, share.measure).median;
    verdict(share.era, share.wording, ratio, share.at_most, |ratio| format!("{ratio:.3}"))
}

fn most_verdict(
    max_held: &MaxHeld,
    measurements: &HttpMeasurements,
    era: Era,
) -> Option<HttpTarget> {
    let measured = median(measurements.figures(CREOLE, era, max_held.measure, max_held.figure));
    verdict(era, max_held.wording, measured, max_held.under, |value| {
        format!("{value:.1} {}", max_held.unit)
    })
}

/// Creole's processor time with a condition and without it, paired within a repetition.
pub(super) fn growth(
    measurements: &HttpMeasurements,
    era: Era,
    with: Measure,
    without: Measure,
) -> Spread {
    let figures = |measure| measurements.figures(CREOLE, era, measure, Figures::processor);
    paired(&figures(with), &figures(without), |with, without| with / without)
}

fn growth_verdict(
    (with, without, text): &(Measure, Measure, &'static str),
    measurements: &HttpMeasurements,
    era: Era,
) -> Option<HttpTarget> {
    let ratio = growth(measurements, era, *with, *without).median;
    verdict(era, text, ratio, GROWTH_ALLOWANCE, |ratio| format!("x {ratio:.3}"))
}

fn verdict(
    era: Era,
    text: &str,
    measured: f64,
    at_most: f64,
    show: impl Fn(f64) -> String,
) -> Option<HttpTarget> {
    (!measured.is_nan()).then(|| HttpTarget {
        era,
        wording: text.to_owned(),
        measured: show(measured),
        met: measured <= at_most,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::sample::Era;
    use super::super::contenders::{BARE, CREOLE};
    use super::super::sample::{Figures, HttpMeasurements, Measure};
    use super::verdicts;

    fn figures(processor: u32) -> Figures {
        let after = 1_000_000 + processor * 1_000_000;
        Figures::of(&format!(
            "answered 1\nprocessor_nanoseconds {processor}\nidle_bytes 7000000\n\
             peak_bytes 13000000\ncount 1000\nmeasured 1000\nbefore_bytes 1000000\n\
             after_bytes {after}\n"
        ))
    }

    /// Whether the target of this era with this wording is met.
    fn is_met(measurements: &HttpMeasurements, era: Era, words: &str) -> Option<bool> {
        let results = verdicts(measurements);
        let mut found = results
            .iter()
            .filter(|http_target| http_target.era == era && http_target.wording.contains(words));
        found.next().map(|target| target.met)
    }

    #[test]
    fn a_share_is_met_or_missed_or_not_measured() {
        let mut measurements = HttpMeasurements::default();
        measurements.add(BARE, Era::Modern, Measure::Connections, figures(10));
        measurements.add(CREOLE, Era::Modern, Measure::Connections, figures(14));
        assert_eq!(is_met(&measurements, Era::Modern, "1.4 x bare"), Some(true));
        assert_eq!(is_met(&measurements, Era::Modern, "of rmcp"), None);
        assert_eq!(is_met(&measurements, Era::Legacy, "RSS idle"), None);
        assert_eq!(is_met(&measurements, Era::Modern, "RSS idle"), Some(true));
        assert_eq!(is_met(&measurements, Era::Modern, "under 12 MB"), Some(false));

        let mut measurements = HttpMeasurements::default();
        measurements.add(BARE, Era::Modern, Measure::Connections, figures(10));
        measurements.add(CREOLE, Era::Modern, Measure::Connections, figures(15));
        assert_eq!(is_met(&measurements, Era::Modern, "1.4 x bare"), Some(false));
    }

    #[test]
    fn a_stream_and_a_session_have_their_own_limits() {
        let mut measurements = HttpMeasurements::default();
        measurements.add(CREOLE, Era::Legacy, Measure::Streams, figures(9));
        measurements.add(CREOLE, Era::Legacy, Measure::Sessions, figures(9));
        assert_eq!(is_met(&measurements, Era::Legacy, "idle stream:"), Some(true));
        assert_eq!(is_met(&measurements, Era::Legacy, "idle session:"), Some(false));
        // The run had a thousand.
        assert_eq!(is_met(&measurements, Era::Legacy, "10,000 idle streams"), None);
    }

    #[test]
    fn a_call_may_not_grow_with_the_number_of_tools() {
        let mut measurements = HttpMeasurements::default();
        measurements.add(CREOLE, Era::Modern, Measure::FewTools, figures(100));
        measurements.add(CREOLE, Era::Modern, Measure::ManyTools, figures(120));
        assert_eq!(is_met(&measurements, Era::Modern, "10,000 tools"), Some(false));
        measurements.add(CREOLE, Era::Modern, Measure::Connections, figures(100));
        measurements.add(CREOLE, Era::Modern, Measure::Keyed, figures(109));
        assert_eq!(is_met(&measurements, Era::Modern, "bearer key"), Some(true));
    }
}
