//! Reports the state of an upstream when metrics are collected.

use std::collections::BTreeMap;

use creole::internal::telemetry::metrics::{CollectedValues, OTHER, table};
use creole::proto::model::ListKind;
use creole::proto::revision::Revision;

use crate::upstream::Upstream;
use crate::upstream::startup::StartupStatus;

/// The states of an upstream.
const STATES: [&str; 5] = ["starting", "ready", "backoff", "open", "dead"];

impl Upstream {
    /// Reports its state, connections, items, parked calls and processes.
    pub(super) fn collect(&self, values: &mut CollectedValues) {
        let name = self.name();
        let state = self.metric_state();
        for known in STATES {
            values.integer(&table::UPSTREAM_STATE, &[name, known], i64::from(known == state));
        }
        self.collect_info(values);
        let (idle, busy) = self.sessions.pool.usage();
        values.integer(&table::UPSTREAM_CONNECTIONS, &[name, "idle"], count(idle));
        values.integer(&table::UPSTREAM_CONNECTIONS, &[name, "busy"], count(busy));
        self.collect_items(values);
        let parked = self.forwarder.parked_calls.count();
        values.integer(&table::PARKED_CALLS, &[name], count(parked));
        if let Some(metrics) = &self.sessions.metrics {
            metrics.collect_processes(values);
        }
    }

    fn metric_state(&self) -> &'static str {
        if self.sessions.pool.is_closed() {
            return "dead";
        }
        match &*self.startup.status() {
            StartupStatus::Starting => "starting",
            StartupStatus::Failed(_) => "backoff",
            StartupStatus::Ready if self.settings.chain.refuses_all_calls() => "open",
            StartupStatus::Ready => "ready",
        }
    }

    /// Reports what it speaks, once that is known.
    fn collect_info(&self, values: &mut CollectedValues) {
        let Some(version) = self.lists.status_data().revision else { return };
        let revision = Revision::from_name(&version).map(Revision::rules);
        let era = revision.map_or(OTHER, |rules| rules.era.name());
        let version = revision.map_or(OTHER, |rules| rules.name);
        let labels = [self.name(), era, version, self.transport()];
        values.integer(&table::UPSTREAM_INFO, &labels, 1);
    }

    fn collect_items(&self, values: &mut CollectedValues) {
        let mut excluded: BTreeMap<ListKind, usize> = BTreeMap::new();
        for (kind, _) in self.lists.excluded() {
            *excluded.entry(kind).or_default() += 1;
        }
        for kind in self.lists.status_data().declared {
            let withheld = if kind == ListKind::Tools { self.lists.withheld_count() } else { 0 };
            let states = [
                ("listed", self.lists.list_status(kind).items.saturating_sub(withheld)),
                ("excluded", excluded.get(&kind).copied().unwrap_or_default()),
                ("withheld", withheld),
            ];
            for (state, items) in states {
                let labels = [self.name(), kind.member(), state];
                values.integer(&table::UPSTREAM_ITEMS, &labels, count(items));
            }
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
