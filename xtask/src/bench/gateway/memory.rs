//! The memory of a gateway while it forwards a large result.

use std::path::Path;

use super::super::figures::Figures;
use super::super::sample::Driver;
use super::contenders::{BARE, CREOLE, Contender, GatewayAddresses};
use super::lanes::{LANES, Lane, LaneProtocol};
use super::upstream_process::{UpstreamProcess, free_address};

/// The size of the result.
pub(super) const SIZE: usize = 5_000_000;

/// The memory of one gateway.
pub(super) struct MemoryUse {
    pub(super) name: &'static str,
    pub(super) lane: Lane,
    figures: Figures,
}

impl MemoryUse {
    /// The peak memory beyond the idle memory, in multiples of the result's size.
    pub(super) fn sizes(&self) -> f64 {
        (self.figures.peak_memory() - self.figures.idle_memory()) * 1e6 / SIZE as f64
    }

    /// Memory before the result, in megabytes.
    pub(super) fn idle(&self) -> f64 {
        self.figures.idle_memory()
    }
}

/// Measures creole and the bare relay on every lane within an era whose front is HTTP.
pub(super) fn take(
    contenders: &[Contender],
    driver: &Driver,
    program: &Path,
) -> Result<Vec<MemoryUse>, String> {
    let ours = contenders.iter().filter(|it| [BARE, CREOLE].contains(&it.name));
    let mut all = Vec::new();
    for contender in ours {
        for lane in
            LANES.iter().filter(|lane| lane.front == LaneProtocol::Http && lane.is_same_era())
        {
            if contender.takes(lane) {
                let figures = sample(contender, lane, driver, program)?;
                all.push(MemoryUse { name: contender.name, lane: *lane, figures });
            }
        }
    }
    Ok(all)
}

fn sample(
    contender: &Contender,
    lane: &Lane,
    driver: &Driver,
    program: &Path,
) -> Result<Figures, String> {
    let size = SIZE.to_string();
    let upstream = UpstreamProcess::start(program, &["large", "http", &size, "--"], driver)?;
    let program = program.display().to_string();
    let command = [&program, "large", "stdio", &size, "--"].map(str::to_owned);
    let front = free_address()?;
    let site =
        GatewayAddresses { front, url: &upstream.url(), command: &command, folder: &driver.folder };
    let (gateway, arguments) = contender.command(lane, &site)?;
    let (core, front) = (driver.server_core(), front.to_string());
    let words = ["memory", lane.client.name(), &size, core, &front].map(str::to_owned);
    let message = format!("{} ({}, {size} bytes)", contender.name, lane.title());
    Ok(Figures::of(&driver.sample(&words, (&gateway, &arguments), &message)?))
}
