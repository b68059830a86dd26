//! Elicitation of forms and URLs, and the user's responses.

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::InputRequest;
use creole_proto::wire::hex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::form;
use super::form_schema::form_schema;
use crate::call::Context;
use crate::item::tool::ToolError;
use crate::schema::Schema;
use crate::secrets::digest;

/// The user's response to an elicitation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// The user's action.
    pub action: ElicitAction,
    /// The content of the form, if it was submitted.
    #[serde(default)]
    pub content: Option<Value>,
}

/// The user's action on an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user submitted the form, or agreed to open the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user closed the form or the dialog.
    Cancel,
}

impl ElicitResult {
    /// The text of a field, if the elicitation was accepted.
    pub fn text(&self, field: &str) -> Option<String> {
        let content = self.content.as_ref().filter(|_| self.action == ElicitAction::Accept)?;
        content.get(field)?.as_str().map(str::to_owned)
    }
}

impl Context {
    /// Elicits a form from the user and returns its content as a `T`.
    ///
    /// `T` is a struct whose fields are text, numbers, booleans, enums without data, lists of such enums, or options of
    /// these. The doc comment of a field is the description that the user sees.
    ///
    /// The message and the name of `T` identify the elicitation. The handler is run again when the response has
    /// arrived, and must then use the same message. Another message is another elicitation.
    ///
    /// ```
    /// use creole::{Context, ToolError};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Seat {
    ///     /// Your table
    ///     table: u8,
    /// }
    ///
    /// async fn order(context: Context) -> Result<String, ToolError> {
    ///     let seat: Seat = context.elicit("Where do you sit?")?;
    ///     Ok(format!("It comes to table {}.", seat.table))
    /// }
    /// # drop(creole::Tool::new("order", "Orders", order));
    /// ```
    ///
    /// # Errors
    /// Without a response yet, an error with which `?` ends the handler. A fault if the user declines or cancels, if
    /// the client does not support forms, if the response does not fit `T`, or if `T` has no form. Use
    /// [`elicit_with`](Self::elicit_with) to continue after the user declined.
    pub fn elicit<T: DeserializeOwned + JsonSchema>(&self, message: &str) -> Result<T, ToolError> {
        let schema = form_schema::<T>().map_err(|reason| fault(FaultKind::Internal, reason))?;
        let key = format!("{}-{}", T::schema_name(), hex(&digest(message.as_bytes())[..8]));
        let result = self.elicit_with(&key, form(message, &schema))?;
        let refused = |description| {
            fault(FaultKind::InputRefused, format!("the user {description}: {message}"))
        };
        match result.action {
            ElicitAction::Accept => {
                let content = result.content.unwrap_or_else(|| json!({}));
                let read = serde_json::from_value(content);
                read.map_err(|error| self.unusable_response(&key, &error.to_string()))
            }
            ElicitAction::Decline => Err(refused("declined the request")),
            ElicitAction::Cancel => Err(refused("cancelled the request")),
        }
    }

    /// Elicits a [`form`] or a URL under the handler's own key. Returns the user's action.
    ///
    /// # Errors
    /// Without a response yet, an error with which `?` ends the handler. A fault if the client does not support the
    /// elicitation, or if the content does not match the schema.
    pub fn elicit_with(
        &self,
        key: &str,
        input_request: InputRequest,
    ) -> Result<ElicitResult, ToolError> {
        let schema = match &input_request {
            InputRequest::Form { schema, .. } => Some(schema.clone()),
            _ => None,
        };
        let result: ElicitResult = self.typed_response(key, input_request)?;
        if let (ElicitAction::Accept, Some(schema)) = (result.action, schema) {
            let content = result.content.clone().unwrap_or_else(|| json!({}));
            let checked = Schema::new(schema.as_str()).validate(&content);
            checked.map_err(|problems| self.unusable_response(key, &problems[0].to_string()))?;
        }
        Ok(result)
    }
}

fn fault(kind: FaultKind, detail: String) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(kind, detail)))
}
