//! `creole check --wordpress`: what state a site is in.

use std::time::Duration;

use creole_tools::recipe::secret::{Held, Secret};
use creole_tools::wordpress::{Address, Finding, Routes, Settings, Site};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::output;
use crate::render::for_stdout;

/// Looks at a site, as whom the environment names.
pub(super) fn run(url: &str, args: &CheckArgs) -> Result<(), Failure> {
    let address = Address::parse(url);
    let address = address.map_err(|wrong| Failure::Usage(format!("`{url}` {wrong}")))?;
    let account = account();
    if account.is_some() && !address.is_encrypted() && !address.is_here() {
        let what = "the password would be sent unencrypted; name the site by https://";
        return Err(Failure::Refused(what.to_owned()));
    }
    let settings = Settings {
        address,
        capability: "manage_options".to_owned(),
        account,
        sets: Vec::new(),
        routes: Routes::default(),
        timeout: Duration::from_secs(args.peer.timeout.min(60)),
    };
    let site = Site::new(settings);
    let runtime = super::super::serve::runtime(&mut Builder::new_current_thread())?;
    let findings = runtime.block_on(site.examine()).map_err(Failure::Call)?;
    match args.peer.json {
        true => output::data(&format!("{}\n", document(&findings))),
        false => output::data(&for_stdout(&text(&site, &findings))),
    }
}

/// The name and the Application Password of the environment.
fn account() -> Option<(String, Held)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("CREOLE_WORDPRESS_USER")?;
    let password = variable("CREOLE_WORDPRESS_PASSWORD")?;
    Some((user, Held::Here(Secret(password))))
}

fn text(site: &Site, findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let mark = if finding.is_fine { "ok   " } else { "wrong" };
        format!("{mark}  {:11}{}", finding.topic, finding.told)
    };
    let mut lines = vec![format!("site   {}", site.address().as_str())];
    lines.extend(findings.iter().map(line));
    lines.join("\n")
}

fn document(findings: &[Finding]) -> Value {
    let row = |finding: &Finding| json!({"topic": finding.topic, "fine": finding.is_fine, "told": finding.told});
    json!({"findings": findings.iter().map(row).collect::<Vec<_>>()})
}
