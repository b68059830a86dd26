//! Detects changes of a plan that need a restart of the process.

use crate::plan::{Plan, ServerPlan};
use crate::wordpress::SiteSettings;

/// How many clients a process has, which decides whether announced settings can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientScope {
    /// Clients connect and disconnect. A new client gets the current settings.
    Many,
    /// One client, which has received its settings already.
    Single,
}

impl Plan {
    /// The first setting, under its name in the configuration, that differs from the running plan and cannot change
    /// without a restart.
    pub fn needs_restart(&self, running: &Self, scope: ClientScope) -> Option<&'static str> {
        let servers = |plan: &Self| plan.split().into_iter().map(|plan| plan.server);
        if servers(self).count() != servers(running).count() {
            return Some("the number of `[[servers]]`");
        }
        let pairs = || servers(self).zip(servers(running));
        let changed = pairs().find_map(|(new, old)| changed_setting(&new, &old));
        let greeted = || pairs().find_map(|(new, old)| changed_greeting(&new, &old));
        let sites = running.wordpress.as_ref().zip(self.wordpress.as_ref());
        let moves = sites.is_some_and(|(old, new)| !old.is_same_site(new));
        let parts = [
            ("`[http]`", self.http != running.http),
            ("`[admin]`", self.admin != running.admin),
            ("`[state]`", self.state != running.state || self.seal_keys != running.seal_keys),
            ("`format` in `[log]`", self.log.format != running.log.format),
            ("`url` in `[wordpress]`", moves),
            (
                "the use of authentication at the site of `[wordpress]`",
                self.signs_in_at_a_site() != running.signs_in_at_a_site(),
            ),
            ("the presence of `[auth]`", self.auth.is_some() != running.auth.is_some()),
        ];
        changed
            .or_else(|| (scope == ClientScope::Single).then(greeted).flatten())
            .or_else(|| parts.into_iter().find_map(|(name, differs)| differs.then_some(name)))
    }

    /// Whether HTTP callers are authenticated at a site.
    pub fn signs_in_at_a_site(&self) -> bool {
        self.wordpress.as_ref().is_some_and(SiteSettings::authenticates_callers)
    }
}

/// The first difference in settings that all connections of a server depend on.
fn changed_setting(new: &ServerPlan, old: &ServerPlan) -> Option<&'static str> {
    let parts = [("`dialect`", new.dialect != old.dialect), ("`path`", new.path != old.path)];
    parts.into_iter().find_map(|(name, differs)| differs.then_some(name))
}

/// The first difference in settings that a connection receives when it begins.
fn changed_greeting(new: &ServerPlan, old: &ServerPlan) -> Option<&'static str> {
    let parts = [
        ("`name`", new.name != old.name),
        ("`title`", new.title != old.title),
        ("`version`", new.version != old.version),
        ("`limits`", new.limits != old.limits),
    ];
    parts.into_iter().find_map(|(name, differs)| differs.then_some(name))
}
