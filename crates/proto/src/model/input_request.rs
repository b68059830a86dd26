//! Questions that a server asks the client in the middle of a call.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::ClientCapabilities;
use crate::adapt::sampling_uses_tools;
use crate::revision::{ElicitationSupport, Rules};
use crate::wire::Raw;

/// One question, under a key that its answer comes back with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyedInputRequest {
    /// The key, unique within the call.
    pub key: String,
    /// The question.
    pub question: InputRequest,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum InputRequest {
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

impl InputRequest {
    /// The method that carries it.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Form { .. } | Self::Url { .. } => "elicitation/create",
            Self::Sample { .. } => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Whether the client's model has to know tools for it.
    pub fn uses_tools(&self) -> bool {
        match self {
            Self::Sample { params } => params.as_object().is_some_and(sampling_uses_tools),
            _ => false,
        }
    }

    /// Whether a revision has a way to ask this.
    pub fn is_supported_by(&self, rules: &Rules) -> bool {
        match self {
            Self::Form { .. } => rules.elicitation != ElicitationSupport::Absent,
            Self::Url { .. } => {
                matches!(
                    rules.elicitation,
                    ElicitationSupport::FormAndNamedUrl | ElicitationSupport::FormAndUrl
                )
            }
            Self::Sample { .. } => rules.sampling_details || !self.uses_tools(),
            Self::Roots => true,
        }
    }

    /// Whether a client with these capabilities may be asked.
    pub fn is_allowed_by(&self, client: &ClientCapabilities) -> bool {
        match self {
            Self::Form { .. } => client.elicitation_form,
            Self::Url { .. } => client.elicitation_url,
            Self::Sample { .. } => {
                client.sampling && (!self.uses_tools() || client.samples_with_tools())
            }
            Self::Roots => client.roots,
        }
    }

    /// The capability that it needs, as the client would declare it.
    pub fn required_capability(&self) -> &'static str {
        match self {
            Self::Form { .. } => r#"{"elicitation":{"form":{}}}"#,
            Self::Url { .. } => r#"{"elicitation":{"url":{}}}"#,
            Self::Sample { .. } if self.uses_tools() => r#"{"sampling":{"tools":{}}}"#,
            Self::Sample { .. } => r#"{"sampling":{}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        }
    }

    /// The same in words.
    pub fn required_capability_text(&self) -> &'static str {
        match self {
            Self::Form { .. } => "elicitation by form",
            Self::Url { .. } => "elicitation by URL",
            Self::Sample { .. } if self.uses_tools() => "sampling with tools",
            Self::Sample { .. } => "sampling",
            Self::Roots => "roots",
        }
    }
}
