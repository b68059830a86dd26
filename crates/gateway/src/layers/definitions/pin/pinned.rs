//! Pinned tools, the comparison with their current definitions, and the decisions of operators.

use std::collections::BTreeMap;
use std::io;

use creole::internal::seal::digest;
use creole_proto::model::Definition;
use creole_proto::wire::{Raw, canonical, hex};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::layers::definitions::json_edit::newest_json;

/// The maximum number of pinned tools of one server. Further ones are withheld.
pub(crate) const MAX_TOOLS: usize = 10_000;

/// The tools of one server.
pub(crate) type Pins = BTreeMap<String, PinnedTool>;

/// A tool as it was approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinnedTool {
    pub(crate) sha256: String,
    pub(crate) definition: Raw,
    /// Its current definition, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<ObservedTool>,
    /// The digest of a definition that an operator rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<String>,
}

/// A tool as it was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObservedTool {
    pub(crate) sha256: String,
    pub(crate) definition: Raw,
}

impl From<&Definition> for ObservedTool {
    fn from(item: &Definition) -> Self {
        let text = canonical(newest_json(item));
        let definition = Raw::parse(&text).unwrap_or_else(|_| Raw::from_value(&()));
        Self { sha256: hex(&digest(text.as_bytes())), definition }
    }
}

impl From<ObservedTool> for PinnedTool {
    fn from(seen: ObservedTool) -> Self {
        let ObservedTool { sha256, definition } = seen;
        Self { sha256, definition, changed: None, rejected: None }
    }
}

impl PinnedTool {
    /// Whether `there` approves the current definition of this tool.
    pub(crate) fn is_approved_as(&self, pinned: &Self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.sha256 == pinned.sha256)
    }

    /// Approves the current definition. Returns whether it differed.
    fn approve(&mut self) -> bool {
        let Some(ObservedTool { sha256, definition }) = self.changed.take() else { return false };
        (self.sha256, self.definition, self.rejected) = (sha256, definition, None);
        true
    }
}

/// A tool that is withheld because it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedTool {
    /// Its server.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// Its definition when it was approved.
    pub before: Value,
    /// Its definition now.
    pub after: Value,
}

impl ChangedTool {
    /// The differences by path: the old value and the new value, `None` where it is absent.
    pub fn differences(&self) -> Vec<(String, Option<Value>, Option<Value>)> {
        let mut found = Vec::new();
        collect_differences("", Some(&self.before), Some(&self.after), &mut found);
        found
    }
}

/// The path of a difference, the old value and the new value.
pub type Difference = (String, Option<Value>, Option<Value>);

fn collect_differences(
    location: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                collect_differences(
                    &format!("{location}/{key}"),
                    old.get(key),
                    new.get(key),
                    found,
                );
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push((location.to_owned(), before.cloned(), after.cloned())),
    }
}

/// A pinned tool: its approved definition, and its current one if it differs.
#[derive(Clone, Debug, PartialEq)]
pub struct PinView {
    /// Its server.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// The approved definition: its digest and its text.
    pub approved: (String, String),
    /// The current definition, if it differs.
    pub changed: Option<(String, String)>,
    /// Whether the current definition was rejected.
    pub is_rejected: bool,
}

impl PinView {
    /// The differences by path: the old value and the new value, `None` where it is absent.
    ///
    /// # Errors
    /// When a definition is not JSON.
    pub fn differences(&self) -> io::Result<Vec<Difference>> {
        Ok(self.change()?.map(|change| change.differences()).unwrap_or_default())
    }

    /// The change, if the tool is withheld.
    ///
    /// # Errors
    /// When a definition is not JSON.
    pub fn change(&self) -> io::Result<Option<ChangedTool>> {
        let Some((_, changed)) = &self.changed else { return Ok(None) };
        let before = serde_json::from_str(&self.approved.1).map_err(io::Error::other)?;
        let after = serde_json::from_str(changed).map_err(io::Error::other)?;
        let (server, tool) = (self.server.clone(), self.tool.clone());
        Ok(Some(ChangedTool { server, tool, before, after }))
    }
}

/// The pins of a server as operators see them.
pub(crate) fn views(server: &str, pins: Pins) -> impl Iterator<Item = PinView> + use<> {
    let server = server.to_owned();
    pins.into_iter().map(move |(tool, pinned)| {
        let changed = pinned.changed.as_ref();
        PinView {
            server: server.clone(),
            tool,
            is_rejected: changed.is_some_and(|it| pinned.rejected.as_ref() == Some(&it.sha256)),
            changed: changed.map(|it| (it.sha256.clone(), it.definition.as_str().to_owned())),
            approved: (pinned.sha256, pinned.definition.as_str().to_owned()),
        }
    })
}

/// Approves the current definition of one tool or all tools. Returns the tools that were withheld.
pub(crate) fn approve(pins: &mut Pins, tool: Option<&str>) -> Vec<String> {
    let wanted = pins.iter_mut().filter(|(name, _)| tool.is_none_or(|tool| tool == *name));
    wanted.filter_map(|(name, pinned)| pinned.approve().then(|| name.clone())).collect()
}

/// The decision of an operator about a changed tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinDecision {
    /// The current definition is approved.
    Approve,
    /// The tool stays withheld.
    Reject,
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinDecisionOutcome {
    /// It is recorded.
    Done,
    /// The definition is another one than the operator saw: this is its digest.
    Changed(String),
    /// The tool is not withheld, or not known.
    NotWithheld,
}

/// Records a decision about the definition with this digest.
pub(crate) fn decide(
    pins: &mut Pins,
    tool: &str,
    sha256: &str,
    decision: PinDecision,
) -> PinDecisionOutcome {
    let Some(pinned) = pins.get_mut(tool) else { return PinDecisionOutcome::NotWithheld };
    match (&pinned.changed, decision) {
        (None, _) => PinDecisionOutcome::NotWithheld,
        (Some(changed), _) if changed.sha256 != sha256 => {
            PinDecisionOutcome::Changed(changed.sha256.clone())
        }
        (Some(_), PinDecision::Reject) => {
            pinned.rejected = Some(sha256.to_owned());
            PinDecisionOutcome::Done
        }
        (Some(_), PinDecision::Approve) => {
            pinned.approve();
            PinDecisionOutcome::Done
        }
    }
}
