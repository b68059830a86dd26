//! The keys of a namespace. They share a hash tag, so a cluster keeps them on one node.

use super::super::Namespace;

/// Builds the keys of one namespace.
#[derive(Debug)]
pub(super) struct Keys {
    prefix: String,
    counts: [String; 7],
}

impl Keys {
    /// The keys of the namespace of this name; an error if it would not be one hash tag.
    pub(super) fn new(name: &str) -> Result<Self, String> {
        if name.is_empty() || name.len() > 64 || name.contains(['{', '}']) {
            return Err(format!(
                "the name {name:?} is not a namespace; write 1 to 64 characters without braces"
            ));
        }
        let prefix = format!("creole:{{{name}}}:");
        let counts = ["sum", "ages", "size", "logs", "gone", "last", "held"]
            .map(|count| format!("{prefix}{count}"));
        Ok(Self { prefix, counts })
    }

    /// A key of the namespace; all are on the same node.
    pub(super) fn any(&self) -> &str {
        &self.prefix
    }

    /// The keys of what is counted, in the order of `counts.lua`.
    pub(super) fn counts(&self) -> &[String; 7] {
        &self.counts
    }

    /// The last numbers of logs.
    pub(super) fn last_numbers(&self) -> &str {
        let [_, _, _, _, _, last, _] = &self.counts;
        last
    }

    pub(super) fn entry(&self, space: Namespace, key: &str) -> String {
        let space = match space {
            Namespace::Entries => "ve",
            Namespace::Leases => "vl",
        };
        format!("{}{space}:{key}", self.prefix)
    }

    pub(super) fn log(&self, log: &str) -> String {
        format!("{}g:{log}", self.prefix)
    }

    pub(super) fn channel(&self, topic: &str) -> String {
        format!("{}t:{topic}", self.prefix)
    }

    /// The topic of a channel.
    pub(super) fn topic<'a>(&self, channel: &'a str) -> Option<&'a str> {
        channel.strip_prefix(&self.prefix)?.strip_prefix("t:")
    }
}
