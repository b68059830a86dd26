//! Dry run of a configuration: which programs it starts, which files it opens, and whether its patterns match.

use std::collections::HashSet;

use creole_config::Plan;
use creole_config::plan::layer::{LayerEnvironment, LayerPlan, build};
use creole_gateway::federation::Federation;
use creole_gateway::upstream::Affinity;
use creole_tools::PackOptions;
use creole_tools::recipe::Recipe;
use tokio::runtime::Builder;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::instance::{no_export, runtime, start_instance};
use crate::output::progress;
use crate::upstreams::{UpstreamRow, documents, problem_lines};

/// Checks everything that needs no network: the programs, and the server itself.
pub(super) fn check_offline(plan: &Plan) -> Result<(), Failure> {
    let missing = plan.upstreams.iter().filter_map(|upstream| {
        let program = upstream.missing_program()?;
        let name = &upstream.name;
        let advice = match program.contains('/') {
            true => "does not exist or is not executable",
            false => "was not found in PATH; install it, or write its full path",
        };
        Some(format!("upstream `{name}`: the program `{program}` {advice}"))
    });
    fail_if_any(missing.collect())?;
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let _entered = runtime.enter();
    for upstream in &plan.upstreams {
        layers(&upstream.chain, &upstream.name)?;
    }
    let mut unmatched = Vec::new();
    for mut plan in plan.split() {
        layers(&plan.server.chain, &plan.server.name)?;
        plan.server.chain.retain(|layer| !writes(layer));
        let built = creole_config::assemble(&plan, &PackOptions::default(), &Federation::default());
        let server = built.map_err(|refusal| Failure::Serve(refusal.to_string()))?;
        if plan.upstreams.is_empty() {
            let service = server.start();
            unmatched
                .extend(service.registry().unmatched_patterns().into_iter().map(matches_nothing));
        }
    }
    fail_if_any(unmatched)
}

/// Builds the layers of a chain and drops them, except an audit log: that would create its file, and [`Prerequisites`]
/// has checked its folder. A pin layer reads its file and writes nothing before it has seen a tool.
///
/// [`Prerequisites`]: super::super::serve::Prerequisites
fn layers(chain: &[LayerPlan], server: &str) -> Result<(), Failure> {
    let is_read = |layer: &&LayerPlan| !matches!(layer, LayerPlan::Audit(_));
    let chain: Vec<LayerPlan> = chain.iter().filter(is_read).cloned().collect();
    build(&chain, server, &LayerEnvironment::default())
        .map(drop)
        .map_err(|error| Failure::Serve(error.to_string()))
}

/// Whether a layer writes files as soon as an item is listed or called.
fn writes(layer: &LayerPlan) -> bool {
    matches!(layer, LayerPlan::Audit(_) | LayerPlan::Pin(_))
}

fn matches_nothing(pattern: String) -> String {
    format!("{pattern} matches no listed item")
}

/// Connects to every upstream, database and document. Returns the state of each upstream and document.
pub(super) fn check_connected(plan: &Plan) -> Result<Vec<UpstreamRow>, Failure> {
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let mut invalid = Vec::new();
    let mut rows = documents(plan);
    for plan in plan.split() {
        let (of_server, reached) = runtime.block_on(run_until_settled(&plan))?;
        invalid.extend(of_server);
        let is_known = |row: &UpstreamRow| rows.iter().any(|known| known.name == row.name);
        let new: Vec<UpstreamRow> = reached.into_iter().filter(|row| !is_known(row)).collect();
        rows.extend(new);
    }
    runtime.shutdown_background();
    invalid.extend(rows.iter().flat_map(problem_lines));
    let mut seen = HashSet::new();
    invalid.retain(|problem| seen.insert(problem.clone()));
    match invalid.is_empty() {
        true => Ok(rows),
        false => Err(Failure::Call(each_an_error(&invalid))),
    }
}

/// Each problem as a separate error. Continuation lines are indented.
fn each_an_error(lines: &[String]) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        text.push_str(match (index, line.starts_with(' ')) {
            (0, _) => "",
            (_, true) => "\n",
            (_, false) => "\nerror: ",
        });
        text.push_str(line);
    }
    text
}

/// Serves a plan without a client, until all its upstreams are ready or have failed.
async fn run_until_settled(plan: &Plan) -> Result<(Vec<String>, Vec<UpstreamRow>), Failure> {
    let served =
        start_instance(plan, &ServeArgs::default(), &no_export(), Affinity::Principal).await?;
    progress::with_progress(served.federation.wait_until_settled()).await;
    let mut invalid = Vec::new();
    for recipe in plan.offered_recipes() {
        invalid.extend(Recipe::check_database(recipe).await);
    }
    let rows: Vec<UpstreamRow> = served.federation.status().iter().map(UpstreamRow::from).collect();
    for upstream in served.federation.upstreams().iter().filter(|upstream| upstream.is_ready()) {
        let name = upstream.name();
        let unmatched = upstream.unmatched_patterns().into_iter();
        invalid
            .extend(unmatched.map(|text| format!("upstream `{name}`: {}", matches_nothing(text))));
    }
    if rows.iter().all(UpstreamRow::is_ready) {
        let unmatched = served.service.registry().unmatched_patterns();
        invalid.extend(unmatched.into_iter().map(matches_nothing));
    }
    served.close().await;
    Ok((invalid, rows))
}

fn fail_if_any(problems: Vec<String>) -> Result<(), Failure> {
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Refused(problems.join("\nerror: "))),
    }
}

#[cfg(test)]
mod tests {
    use super::each_an_error;

    #[test]
    fn each_problem_is_one_error_with_its_detail_lines() {
        let lines = ["`a` is missing", "  its last lines", "`b` is missing"].map(str::to_owned);
        assert_eq!(
            each_an_error(&lines),
            "`a` is missing\n  its last lines\nerror: `b` is missing"
        );
    }
}
