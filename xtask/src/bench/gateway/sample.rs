//! Samples of gateways: runs the load generator and stores its figures.

use std::fs;
use std::path::Path;

use super::super::figures::Figures;
use super::super::sample::Driver;
use super::GatewayBenchPlan;
use super::contenders::{Contender, DIRECT, GatewayAddresses, server_configuration};
use super::lanes::{Lane, LaneProtocol};
use super::memory::MemoryUse;
use super::upstream_process::{UpstreamProcess, free_address};

/// The context for taking samples.
pub(super) struct SampleContext<'a> {
    pub(super) plan: &'a GatewayBenchPlan,
    pub(super) driver: &'a Driver,
    /// The binary of the upstreams.
    pub(super) creole: &'a Path,
}

impl SampleContext<'_> {
    /// Takes one sample of a new gateway and a new upstream.
    pub(super) fn take(
        &self,
        contender: &Contender,
        lane: &Lane,
        width: usize,
    ) -> Result<Figures, String> {
        let file = self.driver.folder.join(format!("{}.toml", lane.server.name()));
        let told = |error| format!("cannot write {}: {error}", file.display());
        fs::write(&file, server_configuration(lane)).map_err(told)?;
        let file = file.display().to_string();
        let words = ["serve", &file, "--http", "127.0.0.1:0"];
        let upstream = UpstreamProcess::start(self.creole, &words, self.driver)?;
        let site = GatewayAddresses {
            front: free_address()?,
            url: &upstream.url(),
            command: &[self.creole.display().to_string(), "serve".to_owned(), file],
            folder: &self.driver.folder,
        };
        let (program, mut arguments) = contender.command(lane, &site)?;
        let is_direct = contender.name == DIRECT;
        // Without a gateway, the client uses the gateway's transport to the upstream.
        let front = if is_direct { lane.behind } else { lane.front };
        if is_direct && front == LaneProtocol::Http {
            arguments.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
        }
        let words = self.words(contender, lane, front, width, &site);
        let message = format!("{} ({}, {width})", contender.name, lane.title());
        let text = self.driver.sample(&words, (&program, &arguments), &message)?;
        Ok(Figures::of(&text))
    }

    fn words(
        &self,
        contender: &Contender,
        lane: &Lane,
        front: LaneProtocol,
        width: usize,
        site: &GatewayAddresses<'_>,
    ) -> Vec<String> {
        let era = lane.client.name().to_owned();
        let tool = contender.tool().to_owned();
        let width = width.to_string();
        let times = [self.plan.warmup(contender), self.plan.measure]
            .map(|duration| duration.as_millis().to_string());
        let core = self.driver.server_core().to_owned();
        let mut words = match (front, contender.name) {
            (LaneProtocol::Stdio, _) => vec!["load".to_owned(), era, width],
            (LaneProtocol::Http, DIRECT) => {
                vec!["http".to_owned(), era, tool, width, "0".to_owned()]
            }
            (LaneProtocol::Http, _) => vec!["relay".to_owned(), era, tool, width],
        };
        words.extend(times);
        words.push(core);
        if front == LaneProtocol::Http && contender.name != DIRECT {
            words.push(format!("{}{}", site.front, contender.path()));
        }
        words
    }
}

/// All samples of a run.
#[derive(Default)]
pub(super) struct GatewayMeasurements {
    rows: Vec<GatewayRow>,
    /// The memory of gateways while they forwarded a large result.
    pub(super) held: Vec<MemoryUse>,
}

struct GatewayRow {
    name: &'static str,
    lane: Lane,
    width: usize,
    /// One per repetition.
    samples: Vec<Figures>,
}

impl GatewayMeasurements {
    pub(super) fn add(&mut self, name: &'static str, lane: Lane, width: usize, figures: Figures) {
        let known =
            |row: &&mut GatewayRow| row.name == name && row.lane == lane && row.width == width;
        match self.rows.iter_mut().find(known) {
            Some(row) => row.samples.push(figures),
            None => self.rows.push(GatewayRow { name, lane, width, samples: vec![figures] }),
        }
    }

    /// One figure of every repetition. Empty if it was not measured.
    pub(super) fn figures(
        &self,
        name: &str,
        lane: Lane,
        width: usize,
        figure: fn(&Figures) -> f64,
    ) -> Vec<f64> {
        let known = |row: &&GatewayRow| row.name == name && row.lane == lane && row.width == width;
        let row = self.rows.iter().find(known);
        row.map_or(Vec::new(), |row| row.samples.iter().map(figure).collect())
    }

    /// All requests that were answered during the measured time.
    pub(super) fn messages(&self) -> f64 {
        self.rows.iter().flat_map(|row| &row.samples).map(Figures::messages).sum()
    }
}
