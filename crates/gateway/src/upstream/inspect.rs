//! An upstream as operators see it: its connections, its history and what its program writes.

use crate::upstream::Upstream;
use crate::upstream::connections::inspected_connection::InspectedConnection;
use crate::upstream::phase_history::PhaseChange;
use crate::upstream::status::UpstreamServer;

impl Upstream {
    /// The open connections, by their owners.
    pub fn inspect_connections(&self) -> Vec<InspectedConnection> {
        let mut connections: Vec<_> = self.sessions.pool.inspect();
        connections.sort_by(|one, other| one.owner.cmp(&other.owner));
        connections
    }

    /// The last phases, oldest first.
    pub fn history(&self) -> Vec<PhaseChange> {
        self.startup.history().with_breaker(&self.settings.chain.breaker_changes())
    }

    /// What the upstream says about itself, once it has.
    pub fn server(&self) -> Option<UpstreamServer> {
        self.lists.status_data().server
    }

    /// The last lines that its program wrote to standard error, as printable text. Empty if programs are not measured.
    pub fn stderr_lines(&self, max: usize) -> Vec<String> {
        self.sessions.metrics.as_ref().map_or_else(Vec::new, |metrics| metrics.stderr_lines(max))
    }
}
