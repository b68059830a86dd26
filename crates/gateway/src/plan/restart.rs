//! What a running process cannot change without being started again.

use super::{Plan, ServerPlan};

impl Plan {
    /// The first thing, as the configuration calls it, in which this plan differs from one that runs and which
    /// clients or the system were told already.
    pub fn needs_restart(&self, running: &Self) -> Option<&'static str> {
        let servers = |plan: &Self| plan.each().into_iter().map(|plan| plan.server);
        if servers(self).count() != servers(running).count() {
            return Some("the number of `[[servers]]`");
        }
        let changed = servers(self).zip(servers(running)).find_map(|(new, old)| fixed(&new, &old));
        let parts = [
            ("`[http]`", self.http != running.http),
            ("`[state]`", self.state != running.state || self.seal_keys != running.seal_keys),
            ("`[log]`", self.log != running.log),
            ("`[wordpress]`", self.wordpress != running.wordpress),
            ("whether there is `[auth]`", self.auth.is_some() != running.auth.is_some()),
        ];
        changed.or_else(|| parts.into_iter().find_map(|(name, differs)| differs.then_some(name)))
    }
}

/// What connections of a server were told when they began.
fn fixed(new: &ServerPlan, old: &ServerPlan) -> Option<&'static str> {
    let parts = [
        ("`name`", new.name != old.name),
        ("`title`", new.title != old.title),
        ("`version`", new.version != old.version),
        ("`dialect`", new.dialect != old.dialect),
        ("`limits`", new.limits != old.limits),
        ("`path`", new.path != old.path),
    ];
    parts.into_iter().find_map(|(name, differs)| differs.then_some(name))
}
