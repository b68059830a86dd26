//! Samples over HTTP: runs the load generator and stores its figures.

pub(super) use super::super::figures::Figures;
use super::super::sample::{Driver, Era};
use super::HttpBenchPlan;
use super::contenders::{KEY, Server, TOKEN};

/// The number of connections under load.
pub(super) const CONNECTIONS: usize = 32;

/// The number of tools in the measured list.
pub(super) const TOOLS_IN_LIST: usize = 1_000;

/// The number of tools beside the called one.
pub(super) const MANY_TOOLS: usize = 10_000;

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Calls of `echo`, one at a time.
    OneConnection,
    /// Calls of `echo` on many connections.
    Connections,
    /// The list of a thousand tools, one at a time: it is so long that it keeps the generator busy.
    List,
    /// Calls of the only tool, on many connections.
    FewTools,
    /// Calls of one of ten thousand tools, on many connections.
    ManyTools,
    /// Calls of `echo` on many connections, while there are many sessions.
    Crowded,
    /// Calls of `echo` on many connections, each authenticated by an API key.
    Keyed,
    /// Calls of `echo` on many connections, each authenticated by the same access token.
    Token,
    /// Calls of `echo` on many connections, each logged with its method, its tool and its outcome.
    Logged,
    /// Idle streams.
    Streams,
    /// Idle sessions.
    Sessions,
}

impl Measure {
    /// All measures. Measures that are compared are next to each other.
    pub(super) const ALL: [Self; 11] = [
        Self::OneConnection,
        Self::Connections,
        Self::Crowded,
        Self::Keyed,
        Self::Token,
        Self::Logged,
        Self::List,
        Self::FewTools,
        Self::ManyTools,
        Self::Streams,
        Self::Sessions,
    ];

    /// Whether no requests are sent, and only memory is measured.
    pub(super) fn is_idle(self) -> bool {
        matches!(self, Self::Streams | Self::Sessions)
    }

    /// The request that the driver repeats.
    fn request_name(self) -> String {
        match self {
            Self::List => format!("list:{TOOLS_IN_LIST}"),
            Self::FewTools => "tool_0000".to_owned(),
            Self::ManyTools => format!("tool_{:04}", MANY_TOOLS / 2),
            _ => "echo".to_owned(),
        }
    }
}

/// Takes one sample of a new server.
pub(super) fn take(
    plan: &HttpBenchPlan,
    driver: &Driver,
    server: Server,
    era: Era,
    measure: Measure,
) -> Result<Figures, String> {
    let words = words(plan, driver.server_core(), era, measure);
    let message = format!("{measure:?} ({})", era.name());
    let text = driver.sample(&words, (&server.program, &server.arguments), &message)?;
    Ok(Figures::of(&text))
}

fn words(plan: &HttpBenchPlan, core: &str, era: Era, measure: Measure) -> Vec<String> {
    let era = era.name().to_owned();
    let core = core.to_owned();
    if measure.is_idle() {
        let kind = if measure == Measure::Streams { "streams" } else { "sessions" };
        return vec!["idle".to_owned(), era, kind.to_owned(), plan.idle.to_string(), core];
    }
    let is_single = matches!(measure, Measure::OneConnection | Measure::List);
    let connections = if is_single { 1 } else { CONNECTIONS };
    let crowd = if measure == Measure::Crowded { plan.idle } else { 0 };
    let numbers = [plan.warmup.as_millis(), plan.measure.as_millis()];
    let mut words = vec![
        "http".to_owned(),
        era,
        measure.request_name(),
        connections.to_string(),
        crowd.to_string(),
    ];
    words.extend(numbers.map(|number| number.to_string()));
    words.push(core);
    match measure {
        Measure::Keyed => words.push(KEY.to_owned()),
        Measure::Token => words.push(TOKEN.to_owned()),
        _ => {}
    }
    words
}

/// All samples of a run.
#[derive(Default)]
pub(super) struct HttpMeasurements {
    rows: Vec<HttpRow>,
}

struct HttpRow {
    name: &'static str,
    era: Era,
    measure: Measure,
    /// One per repetition.
    samples: Vec<Figures>,
}

impl HttpMeasurements {
    pub(super) fn add(&mut self, name: &'static str, era: Era, measure: Measure, figures: Figures) {
        let known =
            |row: &&mut HttpRow| row.name == name && row.era == era && row.measure == measure;
        match self.rows.iter_mut().find(known) {
            Some(row) => row.samples.push(figures),
            None => self.rows.push(HttpRow { name, era, measure, samples: vec![figures] }),
        }
    }

    /// One figure of every repetition. Empty if it was not measured.
    pub(super) fn figures(
        &self,
        name: &str,
        era: Era,
        measure: Measure,
        figure: fn(&Figures) -> f64,
    ) -> Vec<f64> {
        let known = |row: &&HttpRow| row.name == name && row.era == era && row.measure == measure;
        let row = self.rows.iter().find(known);
        row.map_or(Vec::new(), |row| row.samples.iter().map(figure).collect())
    }

    /// All requests that were answered during the measured time.
    pub(super) fn messages(&self) -> f64 {
        let all = self.rows.iter().filter(|row| !row.measure.is_idle());
        all.flat_map(|row| &row.samples).map(Figures::messages).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Options;
    use super::super::super::sample::Era;
    use super::super::HttpBenchPlan;
    use super::{Figures, HttpMeasurements, Measure, words};

    #[test]
    fn the_driver_gets_the_measured_scenario() {
        let plan = HttpBenchPlan::of(&Options { quick: true, ..Options::default() });
        let said = |measure| words(&plan, "0", Era::Legacy, measure).join(" ");
        assert_eq!(said(Measure::OneConnection), "http legacy echo 1 0 50 250 0");
        assert_eq!(said(Measure::List), "http legacy list:1000 1 0 50 250 0");
        assert_eq!(said(Measure::ManyTools), "http legacy tool_5000 32 0 50 250 0");
        assert_eq!(said(Measure::Crowded), "http legacy echo 32 2000 50 250 0");
        assert_eq!(said(Measure::Logged), "http legacy echo 32 0 50 250 0");
        assert_eq!(said(Measure::Keyed), "http legacy echo 32 0 50 250 0 creole_bench");
        assert!(said(Measure::Token).starts_with("http legacy echo 32 0 50 250 0 eyJ"));
        assert_eq!(said(Measure::Sessions), "idle legacy sessions 2000 0");
    }

    #[test]
    fn repetitions_of_one_server_stay_together() {
        let mut measurements = HttpMeasurements::default();
        for value in ["messages 1", "messages 2"] {
            let figures = Figures::of(value);
            measurements.add("a", Era::Modern, Measure::List, figures);
        }
        let found = measurements.figures("a", Era::Modern, Measure::List, Figures::messages);
        assert_eq!(found.len(), 2);
        assert!(
            measurements.figures("a", Era::Legacy, Measure::List, Figures::messages).is_empty()
        );
    }
}
