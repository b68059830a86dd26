//! Input requests that a server sends to the client during a call.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::ClientCapabilities;
use crate::model::adapt::sampling_uses_tools;
use crate::revision::{ElicitationSupport, Rules};
use crate::wire::Raw;

/// An input request with the key of its input response (2026-07-28 schema, `InputRequests`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyedInputRequest {
    /// The key, unique within the call.
    pub key: String,
    /// The input request.
    pub question: InputRequest,
}

/// An input request (2026-07-28 schema, `InputRequest`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum InputRequest {
    /// A form (`elicitation/create`, form mode; 2025-11-25 schema, `ElicitRequestFormParams`).
    Form {
        /// The requested information and the reason.
        message: String,
        /// The JSON Schema of the form: one flat object.
        schema: Raw,
    },
    /// A URL elicitation (`elicitation/create`, url mode; 2025-11-25 schema, `ElicitRequestURLParams`).
    Url {
        /// The purpose of the page.
        message: String,
        /// The URL.
        url: String,
        /// An unguessable id, for revisions in which URL elicitations have ids.
        id: String,
    },
    /// A sampling request (`sampling/createMessage`; 2025-11-25 schema, `CreateMessageRequest`).
    Sample {
        /// The params of the request.
        params: Raw,
    },
    /// A request for the roots (`roots/list`; 2025-11-25 schema, `ListRootsRequest`).
    Roots,
}

impl InputRequest {
    /// Its method.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Form { .. } | Self::Url { .. } => "elicitation/create",
            Self::Sample { .. } => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Whether it needs sampling with tools.
    pub fn uses_tools(&self) -> bool {
        match self {
            Self::Sample { params } => params.as_object().is_some_and(sampling_uses_tools),
            _ => false,
        }
    }

    /// Whether a revision supports it.
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

    /// Whether a client with these capabilities supports it (2026-07-28 basic/patterns/mrtr, server requirements).
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

    /// The client capability that it needs, as JSON.
    pub fn required_capability(&self) -> &'static str {
        match self {
            Self::Form { .. } => r#"{"elicitation":{"form":{}}}"#,
            Self::Url { .. } => r#"{"elicitation":{"url":{}}}"#,
            Self::Sample { .. } if self.uses_tools() => r#"{"sampling":{"tools":{}}}"#,
            Self::Sample { .. } => r#"{"sampling":{}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        }
    }

    /// A description of the client capability that it needs.
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
