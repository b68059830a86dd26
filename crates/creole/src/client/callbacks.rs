//! Who answers the questions of servers.

use std::fmt;
use std::sync::Arc;

use creole_proto::client::Refusal;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Ask, ClientCapabilities, Question};
use creole_proto::op::Event;
use creole_proto::wire::Raw;
use serde_json::{Map, Value, json};

use super::calling::Asked;
use crate::chain::BoxFuture;

/// Answers a question with a result; nothing declines.
pub(super) type Callback = Arc<dyn Fn(Question) -> BoxFuture<'static, Option<Raw>> + Send + Sync>;

/// Who answers what.
#[derive(Clone, Default)]
pub(super) struct Callbacks {
    pub(super) form: Option<Callback>,
    pub(super) url: Option<Callback>,
    pub(super) sample: Option<Callback>,
    pub(super) roots: Option<Callback>,
    pub(super) event: Option<Arc<dyn Fn(Event) + Send + Sync>>,
}

impl Callbacks {
    /// What servers are told that they may ask.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            elicitation_form: self.form.is_some(),
            elicitation_url: self.url.is_some(),
            sampling: self.sample.is_some(),
            roots: self.roots.is_some(),
            tasks: false,
            raw: None,
        }
    }

    /// Answers a question.
    pub(super) async fn answer(&self, question: Question) -> Result<Raw, Refusal> {
        let (callback, may_decline) = match &question {
            Question::Form { .. } => (&self.form, true),
            Question::Url { .. } => (&self.url, true),
            Question::Sample { .. } => (&self.sample, false),
            Question::Roots => (&self.roots, false),
        };
        let Some(callback) = callback else {
            return Err(Refusal::unsupported("nobody here can be asked this"));
        };
        match callback(question).await {
            Some(answer) => Ok(answer),
            None if may_decline => Ok(Raw::of(&json!({"action": "decline"}))),
            None => Err(Refusal::declined("the person said no")),
        }
    }

    /// Answers a question that waits for its answer.
    pub(super) async fn reply(self, asked: Asked) {
        let answer = self.answer(asked.question).await;
        asked.reply.answer(answer);
    }

    /// Answers all questions that ended a call: an object by their keys.
    pub(super) async fn answers(&self, asks: Vec<Ask>) -> Result<Raw, Fault> {
        let mut answers = Map::new();
        for Ask { key, question } in asks {
            let what = question.needed_words();
            let answer = self.answer(question).await.map_err(|refusal| {
                let detail = format!("{what} was refused: {}", refusal.message);
                Fault::new(FaultKind::InputRefused, detail)
            })?;
            answers.insert(key, answer.decode().unwrap_or(Value::Null));
        }
        Ok(Raw::of(&answers))
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Callbacks").field(&self.capabilities()).finish()
    }
}
