//! Plays a transcript on a stage.

use std::time::Duration;

use super::failure::{ConversationLog, Failure, FailureReport};
use super::matching::Difference;
use super::text::Captures;
use super::{Action, Expectation, Payload, Transcript, TranscriptStep, text};
use crate::stage::Stage;

/// How long an expected message may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to listen after the end for unexpected messages.
const SETTLE: Duration = Duration::from_millis(200);

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client of the transcript to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// Plays the exchange and stops at the first difference.
///
/// The observer sees every message, so that a referee can check it against the schema.
pub fn run(
    transcript: &Transcript,
    stage: &mut dyn Stage,
    observer: &mut dyn FnMut(Direction, &str),
) -> Result<(), Failure> {
    Play::new(transcript, stage, observer).perform()
}

/// Plays the exchange and takes the server's messages as the expected ones.
///
/// Returns the new text of the file, or nothing when every line already matched.
pub fn update(transcript: &Transcript, stage: &mut dyn Stage) -> Result<Option<String>, Failure> {
    let mut observer = |_: Direction, _: &str| {};
    let mut play = Play::new(transcript, stage, &mut observer);
    play.corrections = Some(Vec::new());
    play.perform()?;
    let corrections = play.corrections.unwrap_or_default();
    Ok((!corrections.is_empty()).then(|| corrected(&transcript.source, &corrections)))
}

/// A message that replaces an expected one.
struct Correction<'a> {
    expected: &'a Expectation,
    got: String,
}

fn corrected(source: &str, corrections: &[Correction<'_>]) -> String {
    let mut out = String::with_capacity(source.len());
    for (index, line) in source.lines().enumerate() {
        let number = index + 1;
        let replaced = corrections.iter().find(|correction| {
            (correction.expected.first_line..=correction.expected.last_line).contains(&number)
        });
        match replaced {
            Some(Correction { expected, got }) if expected.first_line == number => {
                let mark = if expected.any_order { "<~" } else { "<" };
                out.push_str(&format!("{mark} {got}\n"));
            }
            Some(_) => {}
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

struct Play<'a> {
    transcript: &'a Transcript,
    stage: &'a mut dyn Stage,
    observer: &'a mut dyn FnMut(Direction, &str),
    captures: Captures,
    conversation: ConversationLog,
    line: usize,
    closed: bool,
    /// Present when differences are rewritten instead of reported.
    corrections: Option<Vec<Correction<'a>>>,
}

impl<'a> Play<'a> {
    fn new(
        transcript: &'a Transcript,
        stage: &'a mut dyn Stage,
        observer: &'a mut dyn FnMut(Direction, &str),
    ) -> Self {
        Self {
            transcript,
            stage,
            observer,
            captures: Captures::default(),
            conversation: ConversationLog::default(),
            line: 0,
            closed: false,
            corrections: None,
        }
    }

    fn perform(&mut self) -> Result<(), Failure> {
        let transcript = self.transcript;
        for TranscriptStep { line, action } in &transcript.steps {
            self.line = *line;
            match action {
                Action::Send(payload) => self.send(payload)?,
                Action::Expect(block) => self.expect(block)?,
                Action::Advance(by) => self.advance(*by)?,
                Action::Close => self.close()?,
            }
        }
        if !self.closed {
            self.close()?;
        }
        match self.receive(SETTLE) {
            None => Ok(()),
            Some(message) => Err(self.failure("an unexpected message", "", &message)),
        }
    }

    fn send(&mut self, payload: &Payload) -> Result<(), Failure> {
        let bytes = match payload {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Line(text) => match text::substitute(text, &self.captures) {
                Ok(line) => (line + "\n").into_bytes(),
                Err(name) => {
                    let message = format!("{name} has not been captured");
                    return Err(self.failure(&message, text, ""));
                }
            },
        };
        let shown = String::from_utf8_lossy(&bytes);
        self.conversation.add(">", &shown);
        (self.observer)(Direction::ToServer, &shown);
        self.stage.send(&bytes);
        Ok(())
    }

    fn expect(&mut self, block: &'a [Expectation]) -> Result<(), Failure> {
        let mut open: Vec<&Expectation> = block.iter().collect();
        let mut strays = Vec::new();
        while strays.len() < open.len() {
            self.line = open[0].first_line;
            let Some(message) = self.receive(PATIENCE) else {
                return Err(self.failure("no message arrives", &texts(&open), ""));
            };
            match self.find(&open, &message) {
                Ok(offset) => drop(open.remove(offset)),
                Err(_) if self.corrections.is_some() => strays.push(message),
                Err(difference) => {
                    let text = format!("not the expected message ({difference})");
                    return Err(self.failure(&text, &texts(&open), &message));
                }
            }
        }
        if let Some(corrections) = &mut self.corrections {
            let pairs = open.into_iter().zip(strays);
            corrections.extend(pairs.map(|(expected, got)| Correction { expected, got }));
        }
        Ok(())
    }

    /// The open expectation that the message satisfies, or how it differs from the first.
    fn find(&mut self, open: &[&Expectation], message: &str) -> Result<usize, Difference> {
        let mut first = None;
        for (index, expectation) in open.iter().enumerate() {
            match expectation.pattern.compare(message, &mut self.captures) {
                Ok(()) => return Ok(index),
                Err(difference) => first = first.or(Some(difference)),
            }
        }
        Err(first.unwrap_or_else(Difference::nothing_expected))
    }

    fn advance(&mut self, by: Duration) -> Result<(), Failure> {
        self.conversation.add("+", &format!("{by:?}"));
        if self.stage.advance(by) {
            return Ok(());
        }
        Err(self.failure("this stage cannot move the clock that far", "", ""))
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.closed = true;
        self.conversation.add("!", "");
        match self.stage.close() {
            Ok(()) => Ok(()),
            Err(got) => {
                self.hear_the_rest();
                Err(self.failure("the server does not finish well", "a clean end", &got))
            }
        }
    }

    /// Adds the remaining messages to the log, for the report.
    fn hear_the_rest(&mut self) {
        while self.receive(SETTLE).is_some() {}
    }

    fn receive(&mut self, wait: Duration) -> Option<String> {
        let message = self.stage.receive(wait)?;
        self.conversation.add("<", &message);
        (self.observer)(Direction::ToClient, &message);
        Some(message)
    }

    fn failure(&mut self, description: &str, expected: &str, got: &str) -> Failure {
        Failure(Box::new(FailureReport {
            file: self.transcript.file.clone(),
            line: self.line,
            what: description.to_owned(),
            expected: or_nothing(expected),
            got: or_nothing(got),
            conversation: self.conversation.clone(),
            notes: self.stage.notes(),
        }))
    }
}

fn texts(open: &[&Expectation]) -> String {
    let texts: Vec<&str> = open.iter().map(|expectation| expectation.text.as_str()).collect();
    texts.join("\n")
}

fn or_nothing(text: &str) -> String {
    if text.is_empty() { "(nothing)".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
