//! Questions of servers, answered by the person at the terminal; where there is none, the answer is no.

mod field;
mod form;
mod format;

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;

use creole::proto::model::InputRequest;
use creole::proto::wire::Raw;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::task;

use crate::{output, progress};

/// The longest line that is read.
const LONGEST: u64 = 64 * 1024;

/// Says no to the whole question.
const DECLINE: &str = "!no";

/// Gives up.
const CANCEL: &str = "!cancel";

/// The person at the terminal, who is asked one question at a time.
#[derive(Clone, Default)]
pub(crate) struct Person {
    turn: Arc<Mutex<()>>,
}

/// What a person comes to.
#[derive(Debug, PartialEq)]
enum Answer {
    /// This is what was asked for.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Neither yes nor no.
    Cancel,
}

impl Person {
    /// Asks; nothing declines.
    pub(crate) async fn answer(self, question: InputRequest) -> Option<Raw> {
        let asked = match &question {
            InputRequest::Form { message, .. } | InputRequest::Url { message, .. } => message,
            InputRequest::Sample { .. } | InputRequest::Roots => return None,
        };
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            output::talk(&format!(
                "creole: the server asks: {}\ncreole: there is no terminal to answer at, so the answer is no",
                output::printable(asked)
            ));
            return None;
        }
        let _turn = self.turn.lock().await;
        let _line = progress::Question::begin();
        let answer = task::spawn_blocking(move || ask(&question, &mut io::stdin().lock()));
        Some(written(answer.await.unwrap_or(Answer::Cancel)))
    }
}

fn written(answer: Answer) -> Raw {
    Raw::from_value(&match answer {
        Answer::Accept(content) if content.is_empty() => json!({"action": "accept"}),
        Answer::Accept(content) => json!({"action": "accept", "content": content}),
        Answer::Decline => json!({"action": "decline"}),
        Answer::Cancel => json!({"action": "cancel"}),
    })
}

/// Asks a question on stderr; what is typed comes from `input`.
fn ask(question: &InputRequest, input: &mut impl BufRead) -> Answer {
    match question {
        InputRequest::Form { message, schema } => {
            output::talk(&format!("The server asks: {}", output::printable(message)));
            form::ask(schema, input)
        }
        InputRequest::Url { message, url, .. } => {
            output::talk(&format!(
                "The server asks you to visit a page: {}\n  {}",
                output::printable(message),
                output::printable(url)
            ));
            visit(input)
        }
        InputRequest::Sample { .. } | InputRequest::Roots => Answer::Decline,
    }
}

fn visit(input: &mut impl BufRead) -> Answer {
    output::prompt(&format!("Enter once you agree to it, {DECLINE} or {CANCEL}: "));
    match typed(input) {
        Typed::Line(_) => Answer::Accept(Map::new()),
        Typed::Decline => Answer::Decline,
        Typed::Cancel => Answer::Cancel,
    }
}

/// What was typed.
#[derive(Debug, PartialEq)]
enum Typed {
    Line(String),
    Decline,
    Cancel,
}

/// Reads one line; the end of the input, or what cannot be read, gives up.
fn typed(input: &mut impl BufRead) -> Typed {
    let mut line = String::new();
    let mut input = io::Read::take(input, LONGEST);
    match input.read_line(&mut line) {
        Ok(count) if count > 0 => {}
        _ => return Typed::Cancel,
    }
    match line.trim() {
        DECLINE => Typed::Decline,
        CANCEL => Typed::Cancel,
        text => Typed::Line(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> InputRequest {
        let (message, url) = ("Log in".to_owned(), "https://example.com/login".to_owned());
        InputRequest::Url { message, url, id: "1".to_owned() }
    }

    #[test]
    fn a_page_is_visited_or_not() {
        assert_eq!(ask(&url(), &mut "\n".as_bytes()), Answer::Accept(Map::new()));
        assert_eq!(ask(&url(), &mut "!no\n".as_bytes()), Answer::Decline);
        assert_eq!(ask(&url(), &mut "!cancel\n".as_bytes()), Answer::Cancel);
        assert_eq!(ask(&url(), &mut "".as_bytes()), Answer::Cancel);
    }

    #[test]
    fn answers_are_written_as_the_protocol_wants_them() {
        let content = Map::from_iter([("a".to_owned(), json!(1))]);
        let text = |answer| written(answer).as_str().to_owned();
        assert_eq!(text(Answer::Accept(content)), r#"{"action":"accept","content":{"a":1}}"#);
        assert_eq!(text(Answer::Decline), r#"{"action":"decline"}"#);
    }
}
