//! The two eras as a key: which of two protocols a connection uses. What differs between them are [`Rules`].

use super::{Opening, Revision, Rules};

/// The kind of lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize` comes first; the connection or session stores the negotiated rules
    /// (2025-11-25 basic/lifecycle, initialization).
    Handshake,
    /// No handshake: each request carries version and capabilities in `_meta` (2026-07-28 basic, `_meta`).
    Stateless,
}

impl Era {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        PerEra { handshake: "handshake", stateless: "stateless" }.get(self)
    }

    /// The other era.
    #[must_use]
    pub fn other(self) -> Self {
        PerEra { handshake: Self::Stateless, stateless: Self::Handshake }.get(self)
    }

    /// The rules of its newest revision. All revisions of an era have the same rules about opening, sessions and
    /// `_meta`.
    pub fn rules(self) -> &'static Rules {
        PerEra { handshake: Rules::NEWEST_HANDSHAKE, stateless: Rules::CANONICAL }.get(self)
    }
}

/// A value for each era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerEra<T> {
    /// The value for the handshake era.
    pub handshake: T,
    /// The value for the stateless era.
    pub stateless: T,
}

impl<T> PerEra<T> {
    /// The values that a function has for the eras.
    pub fn from_fn(value: impl Fn(Era) -> T) -> Self {
        Self { handshake: value(Era::Handshake), stateless: value(Era::Stateless) }
    }

    /// The value for an era.
    pub fn get(self, era: Era) -> T {
        match era {
            Era::Handshake => self.handshake,
            Era::Stateless => self.stateless,
        }
    }

    /// The value for an era, to be changed.
    pub fn get_mut(&mut self, era: Era) -> &mut T {
        match era {
            Era::Handshake => &mut self.handshake,
            Era::Stateless => &mut self.stateless,
        }
    }
}

impl Rules {
    /// Whether the revision belongs to this era.
    pub fn is_of(&self, era: Era) -> bool {
        self.era == era
    }

    /// Whether a handshake opens a connection and negotiates the revision.
    pub fn has_handshake(&self) -> bool {
        self.opening == Opening::Initialize
    }
}

impl Revision {
    /// The newest revision of this era.
    pub fn newest(era: Era) -> Self {
        era.rules().revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_revision_of_each_era_is_the_last_one_in_the_table() {
        for era in [Era::Handshake, Era::Stateless] {
            let last = Revision::ALL.into_iter().rfind(|revision| revision.rules().is_of(era));
            assert_eq!(last, Some(Revision::newest(era)));
        }
        assert_eq!(Revision::newest(Era::Handshake).rules().name, "2025-11-25");
    }

    #[test]
    fn the_revisions_of_an_era_have_the_same_era_rules() {
        for rules in Revision::ALL.map(Revision::rules) {
            let newest = rules.era.rules();
            assert_eq!(rules.opening, newest.opening, "{}", rules.name);
            assert_eq!(rules.has_sessions, newest.has_sessions, "{}", rules.name);
            assert_eq!(rules.request_meta, newest.request_meta, "{}", rules.name);
        }
    }
}
