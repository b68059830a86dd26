//! Elicitation: forms to fill in and pages to visit.

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
use crate::schema::Schema;
use crate::seal::digest;
use crate::tool::ToolError;

/// What a person did with a form or a page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// What was done.
    pub action: ElicitAction,
    /// What was filled in.
    #[serde(default)]
    pub content: Option<Value>,
}

/// What a person did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Answered it.
    Accept,
    /// Said no.
    Decline,
    /// Closed it.
    Cancel,
}

impl ElicitResult {
    /// A text that was filled in, if the question was accepted.
    pub fn text(&self, field: &str) -> Option<String> {
        let content = self.content.as_ref().filter(|_| self.action == ElicitAction::Accept)?;
        content.get(field)?.as_str().map(str::to_owned)
    }
}

impl Context {
    /// Asks the user to fill in a form that is read as a `T`.
    ///
    /// `T` is a struct whose fields are text, numbers, booleans, enums without data, lists of such enums, or options of
    /// these. The doc comment of a field is the description that the user sees.
    ///
    /// The message and the name of `T` identify the question. The handler is run again when the response is there, and
    /// then has to ask with the same message; a question with another message is another question.
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
    /// Without a response yet, with what `?` ends the handler. With a fault if the user declines or cancels, if the
    /// client cannot be asked, if the response does not fit `T`, or if no form can be made of `T`. Use
    /// [`elicit_with`](Self::elicit_with) to go on after the user declined.
    pub fn elicit<T: DeserializeOwned + JsonSchema>(&self, message: &str) -> Result<T, ToolError> {
        let schema = form_schema::<T>().map_err(|why| fault(FaultKind::Internal, why))?;
        let key = format!("{}-{}", T::schema_name(), hex(&digest(message.as_bytes())[..8]));
        let result = self.elicit_with(&key, form(message, &schema))?;
        let refused = |what| fault(FaultKind::InputRefused, format!("the user {what}: {message}"));
        match result.action {
            ElicitAction::Accept => {
                let content = result.content.unwrap_or_else(|| json!({}));
                let read = serde_json::from_value(content);
                read.map_err(|error| self.unusable_response(&key, &error.to_string()))
            }
            ElicitAction::Decline => Err(refused("declined to answer")),
            ElicitAction::Cancel => Err(refused("closed the question without an answer")),
        }
    }

    /// Asks the user to fill in a [`form`] or to visit a page, by a key of one's own, and says what the user did.
    ///
    /// # Errors
    /// Without a response yet, with what `?` ends the handler. With a fault if the client cannot be asked, or if what
    /// was filled in does not match the schema.
    pub fn elicit_with(
        &self,
        key: &str,
        question: InputRequest,
    ) -> Result<ElicitResult, ToolError> {
        let schema = match &question {
            InputRequest::Form { schema, .. } => Some(schema.clone()),
            _ => None,
        };
        let answer: ElicitResult = self.typed_response(key, question)?;
        if let (ElicitAction::Accept, Some(schema)) = (answer.action, schema) {
            let content = answer.content.clone().unwrap_or_else(|| json!({}));
            let checked = Schema::new(schema.as_str()).validate(&content);
            checked.map_err(|problems| self.unusable_response(key, &problems[0].to_string()))?;
        }
        Ok(answer)
    }
}

fn fault(kind: FaultKind, detail: String) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(kind, detail)))
}
