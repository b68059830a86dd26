//! Parses a transcript and rejects invalid ones.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::matching::Pattern;
use super::meta::MetaHeaders;
use super::{Action, Expectation, Payload, Transcript, TranscriptStep, raw};

/// A file that is not a valid transcript.
#[derive(Debug)]
pub struct ParseError {
    file: PathBuf,
    line: usize,
    what: String,
}

impl ParseError {
    pub(super) fn new(file: &Path, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: message.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

impl std::error::Error for ParseError {}

/// Reads the whole file.
pub(super) fn transcript(file: &Path, source: &str) -> Result<Transcript, ParseError> {
    let mut reader = TranscriptReader::new(file, source);
    for (index, line) in source.lines().enumerate() {
        reader.line = index + 1;
        let read = match reader.part {
            TranscriptPart::Prose => reader.prose(line),
            TranscriptPart::Headers => reader.header(line),
            TranscriptPart::Dialogue => reader.dialogue(line),
        };
        read.map_err(|message| ParseError::new(file, index + 1, message))?;
    }
    reader.finish().map_err(|message| ParseError::new(file, source.lines().count(), message))
}

enum TranscriptPart {
    Prose,
    Headers,
    Dialogue,
}

struct TranscriptReader {
    part: TranscriptPart,
    line: usize,
    closed: bool,
    meta: MetaHeaders,
    transcript: Transcript,
}

type ReadResult = Result<(), String>;

impl TranscriptReader {
    fn new(file: &Path, source: &str) -> Self {
        let transcript = Transcript {
            file: file.to_owned(),
            source: source.to_owned(),
            prose: String::new(),
            spec: Vec::new(),
            server: Vec::new(),
            skips: Vec::new(),
            only: None,
            real_time: None,
            steps: Vec::new(),
        };
        let meta = MetaHeaders::default();
        Self { part: TranscriptPart::Prose, line: 0, closed: false, meta, transcript }
    }

    fn prose(&mut self, line: &str) -> ReadResult {
        if Header::of(line).is_some() {
            self.part = TranscriptPart::Headers;
            return self.header(line);
        }
        if line.starts_with(['>', '<']) {
            return Err("the dialogue starts before any header".to_owned());
        }
        let prose = &mut self.transcript.prose;
        if !prose.is_empty() && !line.is_empty() {
            prose.push(' ');
        }
        prose.push_str(line.trim());
        Ok(())
    }

    fn header(&mut self, line: &str) -> ReadResult {
        if line.trim().is_empty() {
            self.part = TranscriptPart::Dialogue;
            return Ok(());
        }
        let (header, value) = Header::of(line).ok_or_else(|| format!("unknown header: {line}"))?;
        if value.is_empty() {
            return Err(format!("an empty header: {line}"));
        }
        let transcript = &mut self.transcript;
        match header {
            Header::Spec => transcript.spec.push(value.to_owned()),
            Header::Server if !transcript.server.is_empty() => {
                return Err("a second server".to_owned());
            }
            Header::Server => transcript.server = words(value),
            Header::Meta(name) => self.meta.declare(name, value)?,
            Header::RealTime => transcript.real_time = Some(value.to_owned()),
            Header::Only(stage) => transcript.only = Some((stage.to_owned(), value.to_owned())),
            Header::Skip(stage) => transcript.skips.push((stage.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    fn dialogue(&mut self, line: &str) -> ReadResult {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with("  ") {
            return self.continuation(line.trim());
        }
        if line.starts_with(['>', '+', '!']) && self.closed {
            return Err("the client's side is already closed".to_owned());
        }
        if let Some(notation) = line.strip_prefix(">raw ") {
            let bytes = raw::bytes(notation)?;
            return self.step(Action::Send(Payload::Bytes(bytes)));
        }
        if let Some(text) = line.strip_prefix('>') {
            let text = text.strip_prefix(' ').or(text.is_empty().then_some(text));
            let text = text.ok_or("a space is missing after >")?;
            return self.step(Action::Send(Payload::Line(text.to_owned())));
        }
        if let Some(json) = line.strip_prefix("<~ ") {
            return self.expect(json, true);
        }
        if let Some(json) = line.strip_prefix("< ") {
            return self.expect(json, false);
        }
        if let Some(by) = line.strip_prefix('+') {
            return self.step(Action::Advance(duration(by.trim())?));
        }
        if line.trim_end() == "!" {
            self.closed = true;
            return self.step(Action::Close);
        }
        Err(format!("not a step: {line}"))
    }

    fn step(&mut self, action: Action) -> ReadResult {
        self.transcript.steps.push(TranscriptStep { line: self.line, action });
        Ok(())
    }

    fn expect(&mut self, json: &str, any_order: bool) -> ReadResult {
        let expectation = Expectation {
            first_line: self.line,
            last_line: self.line,
            any_order,
            text: json.to_owned(),
            // Checked when the message is complete: see `finish_message`.
            pattern: Pattern::parse("null")?,
        };
        let last = self.transcript.steps.last_mut();
        if let Some(TranscriptStep { action: Action::Expect(block), .. }) = last
            && any_order
            && block.iter().all(|neighbour| neighbour.any_order)
        {
            block.push(expectation);
            return Ok(());
        }
        self.step(Action::Expect(vec![expectation]))
    }

    fn continuation(&mut self, text: &str) -> ReadResult {
        let last = self.transcript.steps.last_mut();
        let Some(TranscriptStep { action: Action::Expect(block), .. }) = last else {
            return Err("an indented line continues only an expected message".to_owned());
        };
        let Some(message) = block.last_mut() else {
            return Err("nothing to continue".to_owned());
        };
        message.text.push_str(text);
        message.last_line = self.line;
        Ok(())
    }

    fn finish(mut self) -> Result<Transcript, String> {
        let missing = |description: &str| Err(format!("{description} is missing"));
        if self.transcript.prose.is_empty() {
            return missing("the prose that says what is shown");
        }
        if self.transcript.spec.is_empty() {
            return missing("the header Spec:");
        }
        if self.transcript.server.is_empty() {
            return missing("the header Server:");
        }
        if self.transcript.steps.is_empty() {
            return missing("the dialogue");
        }
        for step in &mut self.transcript.steps {
            let meta = &mut self.meta;
            match &mut step.action {
                Action::Expect(block) => {
                    block.iter_mut().try_for_each(|message| finish_message(message, meta))?;
                }
                Action::Send(Payload::Line(text)) => *text = expand(meta, text, step.line)?,
                Action::Send(Payload::Bytes(_)) | Action::Advance(_) | Action::Close => {}
            }
        }
        self.meta.check_all_used()?;
        Ok(self.transcript)
    }
}

fn finish_message(message: &mut Expectation, meta: &mut MetaHeaders) -> ReadResult {
    message.text = expand(meta, &message.text, message.first_line)?;
    message.pattern = Pattern::parse(&message.text)
        .map_err(|error| format!("line {}: not JSON: {error}", message.first_line))?;
    Ok(())
}

fn expand(meta: &mut MetaHeaders, text: &str, line: usize) -> Result<String, String> {
    meta.expand(text).map_err(|error| format!("line {line}: {error}"))
}

enum Header<'a> {
    Spec,
    Server,
    RealTime,
    Meta(&'a str),
    Skip(&'a str),
    Only(&'a str),
}

impl<'a> Header<'a> {
    fn of(line: &'a str) -> Option<(Self, &'a str)> {
        let (key, value) = line.split_once(':')?;
        let header = match key {
            "Spec" => Self::Spec,
            "Server" => Self::Server,
            "Real time" => Self::RealTime,
            _ => {
                let (word, name) = key.split_once(' ').filter(|(_, name)| !name.contains(' '))?;
                match word {
                    "Meta" => Self::Meta(name),
                    "Skip" => Self::Skip(name),
                    "Only" => Self::Only(name),
                    _ => return None,
                }
            }
        };
        Some((header, value.trim()))
    }
}

fn words(value: &str) -> Vec<String> {
    value.split_whitespace().map(str::to_owned).collect()
}

fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| format!("not a duration: {text}"))?;
    match &text[end..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number * 60)),
        "h" => Ok(Duration::from_secs(number * 3600)),
        _ => Err(format!("not a duration: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "What is shown.\nSpec: a clause\nServer: --preset x --debug\n";

    fn read(text: &str) -> Result<Transcript, String> {
        transcript(Path::new("t.txt"), text).map_err(|error| error.to_string())
    }

    fn with(dialogue: &str) -> Result<Transcript, String> {
        read(&format!("{HEAD}\n{dialogue}"))
    }

    #[test]
    fn prose_headers_and_steps_are_distinguished() {
        let text = "First: a sentence\nover two lines.\n\nSpec: one\nSpec: two\nServer: --preset x\n\
                    Skip machine: it has no process\nReal time: a second is enough\n\n\
                    # why\n> {}\n\n< {}\n+1s\n!\n";
        let transcript = read(text).unwrap();
        assert_eq!(transcript.prose(), "First: a sentence over two lines.");
        assert_eq!(transcript.spec(), ["one", "two"]);
        assert_eq!(transcript.server(), ["--preset", "x"]);
        assert_eq!(transcript.skip("machine"), Some("it has no process"));
        assert_eq!(transcript.skip("stdio"), None);
        let only = read(&format!("{HEAD}Only http: it is about HTTP\n\n> {{}}\n")).unwrap();
        assert_eq!((only.skip("http"), only.skip("stdio")), (None, Some("it is about HTTP")));
        assert!(!transcript.needs_fake_clock());
        let lines: Vec<usize> = transcript.steps.iter().map(|step| step.line).collect();
        assert_eq!(lines, [11, 13, 14, 15]);
    }

    #[test]
    fn a_file_without_prose_clause_server_or_dialogue_is_refused() {
        let missing = |text| read(text).unwrap_err();
        assert!(missing("Spec: a\nServer: b\n\n> {}\n").contains("prose"));
        assert!(missing("Shown.\nServer: b\n\n> {}\n").contains("Spec:"));
        assert!(missing("Shown.\nSpec: a\n\n> {}\n").contains("Server:"));
        assert!(missing(HEAD).contains("dialogue"));
    }

    #[test]
    fn a_skip_needs_a_reason_and_a_header_a_known_name() {
        let with = |header| read(&format!("{HEAD}{header}\n\n> {{}}\n"));
        assert!(with("Skip machine:").unwrap_err().starts_with("t.txt:4: an empty header"));
        assert!(with("Skips machine: no").unwrap_err().contains("unknown header"));
        assert!(with("Server: twice").unwrap_err().contains("a second server"));
    }

    #[test]
    fn a_line_is_sent_verbatim() {
        let transcript = with(">   [1] \n>\n>raw \"\\xff\"\n").unwrap();
        let sent: Vec<&Payload> = transcript
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Send(payload) => Some(payload),
                _ => None,
            })
            .collect();
        assert!(matches!(sent[0], Payload::Line(text) if text == "  [1] "));
        assert!(matches!(sent[1], Payload::Line(text) if text.is_empty()));
        assert!(matches!(sent[2], Payload::Bytes(bytes) if bytes == b"\xff"));
    }

    #[test]
    fn a_meta_header_is_expanded_in_both_directions_and_an_error_names_its_line() {
        let with = |dialogue| read(&format!("{HEAD}Meta client: {{\"a\":1}}\n\n{dialogue}"));
        let expanded =
            with("> {\"_meta\":@client}\n< {\"_meta\":\n  {@client,\"b\":2}}\n").unwrap();
        let Action::Send(Payload::Line(sent)) = &expanded.steps[0].action else { panic!() };
        assert_eq!(sent, r#"{"_meta":{"a":1}}"#);
        let Action::Expect(block) = &expanded.steps[1].action else { panic!() };
        assert_eq!(block[0].text, r#"{"_meta":{"a":1,"b":2}}"#);
        let unused = with("> {}\n").unwrap_err();
        assert!(unused.contains("no message uses \"_meta\":@client"), "{unused}");
        let unknown = with("> {\"_meta\":@client}\n< {\"_meta\":@server}\n").unwrap_err();
        assert!(unknown.contains("line 7: \"_meta\":@server has no header"), "{unknown}");
        // Raw bytes are sent as they are.
        assert!(with(">raw \"\\\"_meta\\\":@client\"\n").unwrap_err().contains("no message uses"));
    }

    #[test]
    fn neighbouring_unordered_lines_are_one_block() {
        let transcript = with("<~ 1\n# two\n<~ 2\n< 3\n<~ 4\n").unwrap();
        let blocks: Vec<usize> = transcript
            .steps
            .iter()
            .map(|step| match &step.action {
                Action::Expect(block) => block.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(blocks, [2, 1, 1]);
    }

    #[test]
    fn an_indented_line_continues_the_expected_message() {
        let transcript = with("< {\"a\":\n  [1,\n    2]}\n").unwrap();
        let Action::Expect(block) = &transcript.steps[0].action else { panic!() };
        assert_eq!((block[0].first_line, block[0].last_line), (5, 7));
        assert_eq!(block[0].text, "{\"a\":[1,2]}");
        assert!(with("> {\n  }\n").is_err());
    }

    #[test]
    fn errors_in_the_dialogue_carry_their_line() {
        assert!(with("> {}\n? what\n").unwrap_err().starts_with("t.txt:6: not a step"));
        assert!(with("< {\n").unwrap_err().contains("line 5: not JSON"));
        assert!(with(">{}\n").unwrap_err().contains("a space is missing"));
        assert!(with("+soon\n").unwrap_err().contains("not a duration"));
        assert!(with("!\n> {}\n").unwrap_err().contains("already closed"));
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("30").is_err());
    }
}
