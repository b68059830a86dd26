//! Answers input requests of servers by asking the user at the terminal. Without a terminal they are declined.

mod field;
mod form;
mod format;

use std::io;
use std::io::{BufRead, IsTerminal};
use std::sync::Arc;

use creole::proto::model::InputRequest;
use creole::proto::wire::Raw;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::task;

use crate::output;
use crate::output::progress;

/// The maximum length of an input line.
const MAX_LINE: u64 = 64 * 1024;

/// Declines the whole input request.
const DECLINE: &str = "!no";

/// Cancels the input request.
const CANCEL: &str = "!cancel";

/// The user at the terminal, who gets one input request at a time.
#[derive(Clone, Default)]
pub(crate) struct TerminalUser {
    prompt_lock: Arc<Mutex<()>>,
}

/// The answer of the user.
#[derive(Debug, PartialEq)]
enum FormAnswer {
    /// The requested values.
    Accept(Map<String, Value>),
    /// Declined.
    Decline,
    /// Cancelled: neither accepted nor declined.
    Cancel,
}

impl TerminalUser {
    /// Asks the user. `None` declines.
    pub(crate) async fn respond(self, input_request: InputRequest) -> Option<Raw> {
        let asked = match &input_request {
            InputRequest::Form { message, .. } | InputRequest::Url { message, .. } => message,
            InputRequest::Sample { .. } | InputRequest::Roots => return None,
        };
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            output::write_message(&format!(
                "creole: the server requests input: {}\ncreole: declined, because there is no \
                    terminal",
                output::printable(asked)
            ));
            return None;
        }
        let _turn = self.prompt_lock.lock().await;
        let _line = progress::PromptGuard::begin();
        let answer = task::spawn_blocking(move || ask(&input_request, &mut io::stdin().lock()));
        Some(answer_to_raw(answer.await.unwrap_or(FormAnswer::Cancel)))
    }
}

fn answer_to_raw(answer: FormAnswer) -> Raw {
    Raw::from_value(&match answer {
        FormAnswer::Accept(content) if content.is_empty() => json!({"action": "accept"}),
        FormAnswer::Accept(content) => json!({"action": "accept", "content": content}),
        FormAnswer::Decline => json!({"action": "decline"}),
        FormAnswer::Cancel => json!({"action": "cancel"}),
    })
}

/// Asks on stderr. `input` supplies the typed lines.
fn ask(input_request: &InputRequest, input: &mut impl BufRead) -> FormAnswer {
    match input_request {
        InputRequest::Form { message, schema } => {
            output::write_message(&format!(
                "The server requests input: {}",
                output::printable(message)
            ));
            form::ask(schema, input)
        }
        InputRequest::Url { message, url, .. } => {
            output::write_message(&format!(
                "The server asks you to open a URL: {}\n  {}",
                output::printable(message),
                output::printable(url)
            ));
            ask_url(input)
        }
        InputRequest::Sample { .. } | InputRequest::Roots => FormAnswer::Decline,
    }
}

fn ask_url(input: &mut impl BufRead) -> FormAnswer {
    output::prompt(&format!("Enter to accept, {DECLINE} or {CANCEL}: "));
    match read_typed(input) {
        TypedLine::Line(_) => FormAnswer::Accept(Map::new()),
        TypedLine::Decline => FormAnswer::Decline,
        TypedLine::Cancel => FormAnswer::Cancel,
    }
}

/// A typed line.
#[derive(Debug, PartialEq)]
enum TypedLine {
    Line(String),
    Decline,
    Cancel,
}

/// Reads one line. The end of the input or a read error cancels.
fn read_typed(input: &mut impl BufRead) -> TypedLine {
    let mut line = String::new();
    let mut input = io::Read::take(input, MAX_LINE);
    match input.read_line(&mut line) {
        Ok(count) if count > 0 => {}
        _ => return TypedLine::Cancel,
    }
    match line.trim() {
        DECLINE => TypedLine::Decline,
        CANCEL => TypedLine::Cancel,
        text => TypedLine::Line(text.to_owned()),
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
        assert_eq!(ask(&url(), &mut "\n".as_bytes()), FormAnswer::Accept(Map::new()));
        assert_eq!(ask(&url(), &mut "!no\n".as_bytes()), FormAnswer::Decline);
        assert_eq!(ask(&url(), &mut "!cancel\n".as_bytes()), FormAnswer::Cancel);
        assert_eq!(ask(&url(), &mut "".as_bytes()), FormAnswer::Cancel);
    }

    #[test]
    fn answers_are_written_as_the_protocol_wants_them() {
        let content = Map::from_iter([("a".to_owned(), json!(1))]);
        let text = |answer| answer_to_raw(answer).as_str().to_owned();
        assert_eq!(text(FormAnswer::Accept(content)), r#"{"action":"accept","content":{"a":1}}"#);
        assert_eq!(text(FormAnswer::Decline), r#"{"action":"decline"}"#);
    }
}
