//! Questions that a server asks the client in the middle of a call.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::ClientCapabilities;
use crate::adapt::samples_with_tools;
use crate::revision::{Elicitation, Rules};
use crate::wire::Raw;

/// One question, under a key that its answer comes back with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The key, unique within the call.
    pub key: String,
    /// The question.
    pub question: Question,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// Fill in a form (`elicitation/create`, form mode).
    Form {
        /// What is asked for, and why.
        message: String,
        /// The JSON Schema of the form: one flat object.
        schema: Raw,
    },
    /// Visit a page (`elicitation/create`, url mode).
    Url {
        /// What to do there, and why.
        message: String,
        /// The page.
        url: String,
        /// A name that nobody can guess, for revisions that name the visit.
        id: String,
    },
    /// Sample from the client's model (`sampling/createMessage`).
    Sample {
        /// The params of the request.
        params: Raw,
    },
    /// Tell the roots (`roots/list`).
    Roots,
}

impl Question {
    /// The method that carries it.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Form { .. } | Self::Url { .. } => "elicitation/create",
            Self::Sample { .. } => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Whether the client's model has to know tools for it.
    pub fn needs_tools(&self) -> bool {
        match self {
            Self::Sample { params } => params.object().is_some_and(samples_with_tools),
            _ => false,
        }
    }

    /// Whether a revision has a way to ask this.
    pub fn is_sayable(&self, rules: &Rules) -> bool {
        match self {
            Self::Form { .. } => rules.elicitation != Elicitation::Absent,
            Self::Url { .. } => {
                matches!(rules.elicitation, Elicitation::FormAndNamedUrl | Elicitation::FormAndUrl)
            }
            Self::Sample { .. } => rules.sampling_details || !self.needs_tools(),
            Self::Roots => true,
        }
    }

    /// Whether a client with these capabilities may be asked.
    pub fn is_allowed(&self, client: &ClientCapabilities) -> bool {
        match self {
            Self::Form { .. } => client.elicitation_form,
            Self::Url { .. } => client.elicitation_url,
            Self::Sample { .. } => {
                client.sampling && (!self.needs_tools() || client.samples_with_tools())
            }
            Self::Roots => client.roots,
        }
    }

    /// The capability that it needs, as the client would declare it.
    pub fn needed_capability(&self) -> &'static str {
        match self {
            Self::Form { .. } => r#"{"elicitation":{"form":{}}}"#,
            Self::Url { .. } => r#"{"elicitation":{"url":{}}}"#,
            Self::Sample { .. } if self.needs_tools() => r#"{"sampling":{"tools":{}}}"#,
            Self::Sample { .. } => r#"{"sampling":{}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        }
    }

    /// The same in words.
    pub fn needed_words(&self) -> &'static str {
        match self {
            Self::Form { .. } => "elicitation by form",
            Self::Url { .. } => "elicitation by URL",
            Self::Sample { .. } if self.needs_tools() => "sampling with tools",
            Self::Sample { .. } => "sampling",
            Self::Roots => "roots",
        }
    }
}
