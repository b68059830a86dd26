//! Who sees an item of a list: other servers have tools only for clients that can be asked for what these need.

use creole_proto::model::ClientCapabilities;
use creole_proto::op::Caller;
use creole_proto::revision::{Elicitation, Era};

use crate::call::Context;

const FORM: u8 = 1;
const URL: u8 = 2;
const SAMPLING: u8 = 4;
const ROOTS: u8 = 8;

/// What a client can be asked for: one of sixteen kinds of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Abilities(u8);

impl Abilities {
    /// Those of a client that can be asked for nothing.
    pub const NONE: Self = Self(0);

    /// Those of a caller, in words of its revision: one without forms cannot bring one to anybody, whatever its
    /// client says.
    pub fn of(caller: &Caller) -> Self {
        match caller.rules.elicitation {
            Elicitation::Absent => Self(Self::from(&*caller.capabilities).0 & !(FORM | URL)),
            _ => Self::from(&*caller.capabilities),
        }
    }

    /// What a server is told that such clients can do.
    pub fn capabilities(self) -> ClientCapabilities {
        let has = |bit| self.0 & bit != 0;
        ClientCapabilities {
            elicitation_form: has(FORM),
            elicitation_url: has(URL),
            sampling: has(SAMPLING),
            roots: has(ROOTS),
            ..ClientCapabilities::default()
        }
    }
}

impl From<&ClientCapabilities> for Abilities {
    fn from(can: &ClientCapabilities) -> Self {
        let all = [
            (can.elicitation_form, FORM),
            (can.elicitation_url, URL),
            (can.sampling, SAMPLING),
            (can.roots, ROOTS),
        ];
        Self(all.into_iter().filter(|(has, _)| *has).fold(0, |bits, (_, bit)| bits | bit))
    }
}

/// The kinds of clients that see an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience(u16);

impl Audience {
    /// All of them.
    pub const EVERYBODY: Self = Self(u16::MAX);

    /// None of them yet.
    pub const NOBODY: Self = Self(0);

    /// These, and one kind more.
    #[must_use]
    pub fn and(self, kind: Abilities) -> Self {
        Self(self.0 | 1 << kind.0)
    }

    /// These without one kind.
    #[must_use]
    pub fn but(self, kind: Abilities) -> Self {
        Self(self.0 & !(1 << kind.0))
    }

    /// Whether this kind of client is among them.
    pub fn has(self, kind: Abilities) -> bool {
        self.0 & 1 << kind.0 != 0
    }
}

/// Somebody who looks at a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Viewer {
    pub(super) abilities: Abilities,
    /// Whether it repeats arguments in headers, and refuses tools that name these wrongly
    /// (2026-07-28 basic/transports/streamable-http, schema extension).
    pub(super) repeats: bool,
}

impl Viewer {
    pub(super) fn of(context: &Context) -> Self {
        let caller = context.caller();
        let repeats = caller.rules.era == Era::Stateless && context.stands_alone();
        Self { abilities: Abilities::of(caller), repeats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_is_a_set_of_kinds_of_clients() {
        let (plain, able) = (Abilities::NONE, Abilities(FORM | ROOTS));
        assert_eq!(Abilities::from(&able.capabilities()), able);
        let some = Audience::EVERYBODY.but(plain);
        assert!(!some.has(plain) && some.has(able));
        assert_eq!(some.and(plain), Audience::EVERYBODY);
        assert!(!Audience::NOBODY.has(plain) && Audience::NOBODY.and(able).has(able));
    }
}
