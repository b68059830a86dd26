//! The accepted deviations from the referee's rules, each with the reason. There are no others.

use std::borrow::Cow;

use creole::proto::dialect::{Dialect, IdNumbers, MissingIdPolicy, UnreadableIdPolicy};
use creole::proto::revision::{Revision, UnreadableId};
use serde_json::Value;

/// One deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deviation {
    /// An error whose `id` is null.
    NullId,
    /// An `id` that is a number with a fraction or an exponent, as the client wrote it.
    FractionalId,
    /// An `id` that is an integer of more than 64 bits, as the client wrote it.
    HugeId,
    /// An error response to a notification.
    AnsweredNotification,
}

/// A deviation, and whether it is accepted for this dialect in this revision.
type Exception = (Deviation, fn(&Dialect, Revision) -> bool);

const EXCEPTIONS: &[Exception] = &[
    // Up to 2025-06-18 the schemas require a string or an integer in every error, which allows no response to a message
    // whose id cannot be read. JSON-RPC 2.0, section 5, says null.
    (Deviation::NullId, |_, revision| revision.rules().unreadable_id == UnreadableId::Null),
    // Seeds 000 to 003 write null for an id that cannot be read, whatever the revision.
    (Deviation::NullId, |dialect, _| dialect.unreadable_id == UnreadableIdPolicy::Null),
    // Seeds 000 and 002 accept any number as an id and return it unchanged. The schemas allow integers only.
    (Deviation::FractionalId, |dialect, _| dialect.ids == IdNumbers::Any),
    // The schemas allow any integer, the published types hold 64 bits, and ids are returned unchanged.
    (Deviation::HugeId, |_, _| true),
    // Seed 000 has no notifications: a message without an id is an invalid request.
    (Deviation::AnsweredNotification, |dialect, _| dialect.missing_id == MissingIdPolicy::Refuse),
];

/// Whether the deviation is accepted.
pub(super) fn is_excused(deviation: Deviation, dialect: &Dialect, revision: Revision) -> bool {
    EXCEPTIONS.iter().any(|(kind, is_open)| *kind == deviation && is_open(dialect, revision))
}

/// The message for the referee: with an ordinary id if its own is an accepted deviation.
pub(super) fn without_excused_id<'a>(
    message: &'a Value,
    dialect: &Dialect,
    revision: Revision,
) -> Cow<'a, Value> {
    match deviation(message) {
        Some(deviation) if is_excused(deviation, dialect, revision) => {
            let mut ordinary = message.clone();
            ordinary["id"] = 0.into();
            Cow::Owned(ordinary)
        }
        _ => Cow::Borrowed(message),
    }
}

fn deviation(message: &Value) -> Option<Deviation> {
    match message.get("id")? {
        Value::Null => message.get("error").map(|_| Deviation::NullId),
        Value::Number(number) if number.is_i64() => None,
        // A double without a fraction was too long for an integer.
        Value::Number(number) => match number.as_f64() {
            Some(value) if value.fract() == 0.0 && value.abs() > 9.0e15 => Some(Deviation::HugeId),
            _ => Some(Deviation::FractionalId),
        },
        _ => None,
    }
}
