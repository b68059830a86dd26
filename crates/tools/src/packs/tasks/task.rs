//! A task: its id, description and status.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One task, as shown to clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) status: TaskStatus,
}

impl Task {
    /// The task as JSON, with its members in the order above.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    Pending,
    InProgress,
    Done,
    Cancelled,
}

impl TaskStatus {
    pub(crate) const ALL: [Self; 4] =
        [Self::Pending, Self::InProgress, Self::Done, Self::Cancelled];

    /// Its name in the database and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Letters and digits that are easy to distinguish (Crockford's base 32).
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A new id with 80 random bits, so that ids of different processes do not collide.
pub(crate) fn new_id() -> Result<String, getrandom::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)?;
    let letters = random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    Ok("task_".chars().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_shown_with_three_members_in_order() {
        let task = Task {
            id: "task_a".into(),
            description: "say \"hi\"".into(),
            status: TaskStatus::InProgress,
        };
        let expected = r#"{"id":"task_a","description":"say \"hi\"","status":"in_progress"}"#;
        assert_eq!(task.to_json(), expected);
    }

    #[test]
    fn a_status_has_one_name_everywhere() {
        for status in TaskStatus::ALL {
            assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
            assert_eq!(TaskStatus::from_name(status.name()), Some(status));
        }
        assert_eq!(TaskStatus::from_name("Done"), None);
    }

    #[test]
    fn ids_are_long_lower_case_and_different() {
        let (one, other) = (new_id().unwrap(), new_id().unwrap());
        assert_ne!(one, other);
        let letters = one.strip_prefix("task_").unwrap();
        assert_eq!(letters.len(), 16);
        assert!(letters.bytes().all(|byte| ALPHABET.contains(&byte)));
    }
}
