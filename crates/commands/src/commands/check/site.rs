//! `creole check --wordpress`: reports the state of a site.

use std::time::Duration;

use creole_tools::recipe::secret::{Secret, SecretSource};
use creole_wordpress::{AllowedRoutes, Site, SiteAddress, SiteCheck, SiteSettings};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::instance::runtime;
use crate::output;
use crate::output::layout::Layout;

/// Checks a site, with the account of the environment.
pub(super) fn run(url: &str, args: &CheckArgs) -> Result<(), Failure> {
    let address = SiteAddress::parse(url);
    let address = address.map_err(|invalid| Failure::Usage(format!("`{url}` {invalid}")))?;
    let account = account()?;
    if account.is_some() && !address.is_encrypted() && !address.is_loopback() {
        let description = "the password would be sent unencrypted; use https://";
        return Err(Failure::Refused(description.to_owned()));
    }
    let settings = SiteSettings {
        address,
        capability: "manage_options".to_owned(),
        account,
        sets: Vec::new(),
        routes: AllowedRoutes::default(),
        timeout: Duration::from_secs(args.peer.timeout.min(60)),
    };
    let site = Site::new(settings);
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let findings = runtime
        .block_on(site.diagnose())
        .map_err(|reason| Failure::Call(format!("{url}: {reason}")))?;
    match args.peer.json {
        true => output::write_data(&format!("{}\n", document(&findings)))?,
        false => output::write_data(&format!("{}\n", text(&site, &findings, Layout::of_stdout())))?,
    }
    let wrong = findings.iter().filter(|finding| finding.is_ok == Some(false)).count();
    super::fail_if_strict(args, wrong)
}

/// The user name and the Application Password of the environment.
fn account() -> Result<Option<(String, SecretSource)>, Failure> {
    const NAMES: [&str; 2] = ["CREOLE_WORDPRESS_USER", "CREOLE_WORDPRESS_PASSWORD"];
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let half = |is: &str, lacks: &str| {
        Failure::Usage(format!("`{is}` is set, but `{lacks}` is not; set both, or neither"))
    };
    match NAMES.map(variable) {
        [Some(user), Some(password)] => Ok(Some((user, SecretSource::Inline(Secret(password))))),
        [None, None] => Ok(None),
        [Some(_), None] => Err(half(NAMES[0], NAMES[1])),
        [None, Some(_)] => Err(half(NAMES[1], NAMES[0])),
    }
}

fn text(site: &Site, findings: &[SiteCheck], layout: Layout) -> String {
    let line = |finding: &SiteCheck| {
        let mark = match finding.is_ok {
            Some(true) => "ok",
            Some(false) => "wrong",
            None => "",
        };
        let file =
            finding.file.map(|file| format!(":\n\n{}\n", file.trim_end())).unwrap_or_default();
        let label = |text: &str| match finding.is_ok {
            Some(true) => layout.good(text),
            Some(false) => layout.bad(text),
            None => text.to_owned(),
        };
        let lead = format!("{mark:5}  {:11}", finding.topic);
        let message =
            layout.entry(&lead, label, &output::printable(&finding.message), str::to_owned);
        format!("{message}{file}")
    };
    let mut lines = vec![format!("site   {}", output::printable(site.address().as_str()))];
    lines.extend(findings.iter().map(line));
    lines.join("\n")
}

fn document(findings: &[SiteCheck]) -> Value {
    let row = |finding: &SiteCheck| json!({"topic": finding.topic, "fine": finding.is_ok, "told": finding.message, "file": finding.file});
    json!({"findings": findings.iter().map(row).collect::<Vec<_>>()})
}
