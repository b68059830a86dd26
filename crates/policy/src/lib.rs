//! Policy: rules that allow and deny the requests of callers.
//!
//! A [`Policy`] is a set of rules. Their plain members (roles, names of items and the like) are decided once for each
//! class of callers and each item. Only expressions over the arguments of a call, or over the time, are evaluated for
//! each call. [`PolicyLayer`] applies a policy to the calls and the lists of a server.

pub mod cel;
mod class;
mod compile;
mod decision;
mod layer;
mod policy;
mod refusal;
mod rule;
mod strict_json;
mod subject;
mod target;

pub use compile::RuleError;
pub use decision::{Decision, Denial, Explanation, RuleOutcome, Verdict};
pub use layer::{PolicyLayer, PolicyRecheck};
pub use policy::{Policy, Request};
pub use rule::{Effect, PolicySettings, RuleSettings};
pub use strict_json::parse_arguments;
pub use subject::Subject;
pub use target::TargetKind;
