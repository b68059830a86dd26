//! Which requests about tasks the registry takes.

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::Rules;

use super::Registry;
use crate::call::Context;

impl Registry {
    /// Methods of tasks are unknown if no tool runs as one.
    pub(super) fn check_tasks_offered(&self, context: &Context, method: &str) -> Result<(), Fault> {
        let rules = context.caller().rules;
        match self.has_tasks(rules) || self.may_find_tasks(rules) {
            true => Ok(()),
            false => {
                let detail = "this server has no tasks";
                Err(Fault::new(FaultKind::MethodNotFound, detail).with_subject(method))
            }
        }
    }

    /// Whether another process that shares the state may have created tasks, with tools of upstreams that this one has
    /// not reached yet.
    fn may_find_tasks(&self, rules: &Rules) -> bool {
        let has_upstreams = || !self.read().names.is_empty();
        self.shared.settings.dialect.has_tasks(rules)
            && self.tasks().are_shared()
            && has_upstreams()
    }
}
