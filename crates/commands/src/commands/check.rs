//! `creole check`: reports the protocol of a server, its support for each client revision, and problems of its lists.

mod authorization;
mod lint;
mod report;
#[cfg(feature = "wordpress")]
mod site;

use creole::client::Client;
use creole::proto::fault::FaultKind;
use creole::proto::model::{ExcludedItem, ListKind};

use self::report::{ServerReport, TargetKind};
use super::list::{ListTexts, declared_lists, texts};
use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::output::layout::Layout;
use crate::session::{SessionPurpose, call_failure, with_client};
use crate::target::ServerTarget;
use crate::upstreams::UpstreamRow;
use crate::{output, target, upstreams};

/// The lists of a server.
#[derive(Default)]
struct ServerLists {
    listed: Vec<ListTexts>,
    /// The tools whose schemas had to be repaired before they could be read.
    repaired_tools: Vec<String>,
    /// The items that are excluded because they break the rules of their kind.
    excluded: Vec<(ListKind, ExcludedItem)>,
    /// The lists that the server declares but does not implement.
    unknown: Vec<&'static str>,
}

/// Runs the verb.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(url) = &args.wordpress {
        return site::run(url, args);
    }
    let (place, _) = target::target_and_words(&args.words, &args.peer)?;
    let name = place.name().to_owned();
    let kind = report::target_kind(&place);
    let is_dialect_given =
        args.peer.target.dialect.is_some() || matches!(place, ServerTarget::Config(_));
    let checked = with_client(place, &args.peer, SessionPurpose::Inspect, async |client| {
        client.wait_until_settled().await;
        let found = lists(client, &name).await?;
        client.report_missing();
        client.check_answered()?;
        Ok((ServerReport::new(client, kind, is_dialect_given, &found), client.upstreams()))
    });
    let url = args.words.first().filter(|_| matches!(kind, TargetKind::Http));
    let authorization = match url {
        Some(url) => authorization::discover(url, &args.peer)?,
        None => None,
    };
    let (mut report, rows) = checked.inspect_err(|_| {
        if let Some(authorization) = &authorization {
            let text = output::printable(&authorization.text());
            output::write_message(&format!("creole: authorization: {text}"));
        }
    })?;
    report.set_authorization(authorization);
    match args.peer.json {
        true => {
            let mut document = report.json();
            document["upstreams"] = upstreams::document(&rows);
            output::write_data(&format!("{document}\n"))?;
        }
        false => {
            let text = with_upstreams(report.text(Layout::of_stdout()), &rows);
            output::write_data(&format!("{text}\n"))?;
        }
    }
    let missing = rows.iter().filter(|row| !upstreams::problem_lines(row).is_empty()).count();
    fail_if_strict(args, report.problems() + missing)
}

/// Refuses to check a site.
#[cfg(not(feature = "wordpress"))]
mod site {
    use crate::args::CheckArgs;
    use crate::failure::Failure;

    pub(super) fn run(_url: &str, _args: &CheckArgs) -> Result<(), Failure> {
        Err(Failure::without_wordpress())
    }
}

/// With `--strict`, returns problems as a failure.
fn fail_if_strict(args: &CheckArgs, problems: usize) -> Result<(), Failure> {
    match (args.strict, problems) {
        (false, _) | (_, 0) => Ok(()),
        (true, 1) => Err(Failure::Call("1 finding".to_owned())),
        (true, count) => Err(Failure::Call(format!("{count} findings"))),
    }
}

/// The report, followed by the state of each upstream of a configuration.
fn with_upstreams(report: String, rows: &[UpstreamRow]) -> String {
    match rows {
        [] => report,
        rows => format!("{report}\n\n{}", output::printable(&upstreams::table(rows))),
    }
}

/// Fetches every list that the server declares, and notes unusable tools. A declared list that the server does not
/// implement is reported.
async fn lists(client: &Client, name: &str) -> Result<ServerLists, Failure> {
    let mut lists = ServerLists::default();
    for kind in declared_lists(client) {
        match client.list_all(kind).await {
            Ok(items) => {
                let mended = items.iter().filter(|item| item.is_repaired());
                lists.repaired_tools.extend(mended.map(|item| item.name().to_owned()));
                lists.listed.push((kind, texts(client, &items)));
                lists
                    .excluded
                    .extend(client.excluded_items(kind).into_iter().map(|item| (kind, item)));
            }
            Err(fault) if fault.kind == FaultKind::MethodNotFound => {
                let method = creole::proto::operation::Operation::List(kind, None).method();
                output::write_message(&format!("creole: `{name}` does not support `{method}`"));
                lists.unknown.push(method);
            }
            Err(fault) => return Err(call_failure(name, &fault)),
        }
    }
    Ok(lists)
}
