//! Transcripts: exchanges between a client and a server in a text notation.
//!
//! One text file is one exchange. It begins with a paragraph of prose, followed by header lines, a blank line, and the
//! dialogue:
//!
//! ```text
//! A second initialize is refused, and the first handshake stands.
//! Spec: seed 002, lifecycle state machine (duplicate initialize)
//! Server: --preset bossman
//!
//! > {"jsonrpc":"2.0","id":1,"method":"ping"}
//! < {"jsonrpc":"2.0","id":1,"result":{}}
//! ```
//!
//! # Headers
//!
//! | header | meaning |
//! |---|---|
//! | `Spec: …` | the clause that is shown; at least one, several allowed |
//! | `Server: …` | the arguments after `creole serve`; paths are relative to the repository root |
//! | `Skip STAGE: reason` | that stage (`stdio`, `http`, `machine`, `memory`) skips the file |
//! | `Only STAGE: reason` | only that stage plays the file |
//! | `Meta NAME: {…}` | an object for the `_meta` of messages; at least one message uses it, several allowed |
//! | `Real time: reason` | a stage without a fake clock may really wait (each step under two seconds) |
//!
//! # Dialogue
//!
//! | line | meaning |
//! |---|---|
//! | `> text` | sends the text and a newline, verbatim except for `${name}`; `>` alone sends an empty line |
//! | `>raw "a" "b"*9` | sends exactly these bytes, without a newline of its own: JSON strings, of which each may be repeated, with the extra escape `\xff` for one byte; `${name}` has no meaning here |
//! | `< json` | expects this message next; lines indented by two spaces continue it |
//! | `<~ json` | expects this message, in any order within the block of neighbouring `<~` lines |
//! | `+30s` | advances the clock (`ms`, `s`, `m`, `h`) |
//! | `!` | closes the client's side; the server must end without an error. The end of the file implies it |
//! | `# text` | explains the next step |
//!
//! After `"_meta":`, in a `>`, `<` or `<~` line, `@client` stands for the object of the header `Meta client:`, and
//! `{@client,` for its members, which further members follow. A name without a header is refused.
//!
//! ```text
//! Progress is reported under the token of the request.
//! Spec: 2026-07-28 basic/patterns/progress, progress flow
//! Server: --preset everything
//! Meta client: {"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}
//!
//! > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{@client,"progressToken":7}}}
//! > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":@client}}
//! ```
//!
//! Every message of the server must be expected: the next expectation, or the end of the file, asserts that there was
//! no other one before.
//!
//! # Matching
//!
//! Messages are compared as parsed JSON, regardless of the order of members. The `id` of a message must be byte for
//! byte the expected token, so `1`, `1.0` and `"1"` are three different ids. The entries of a batch may come in any
//! order. Wildcards:
//!
//! | expected | matches |
//! |---|---|
//! | `"…"` | any one JSON value |
//! | `"a…b"` | a string with any text in place of `…` |
//! | `"…":"…"` as a member | further members; without it an object has exactly the members shown |
//! | `"…*"` as an element | any number of further elements |
//! | `"${name}"` | any one JSON value, which is captured |
//! | `"a${name}b"` | a string; the (non-empty) text in place of `${name}` is captured |
//!
//! A known name must stand for the same value again. In a `>` line `"${name}"` inserts the whole value, whatever its
//! type, and `${name}` inside a longer string its text.

mod failure;
mod matching;
mod meta;
mod parse;
mod raw;
mod run;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::failure::Failure;
use self::matching::Pattern;
pub use self::parse::ParseError;
pub use self::run::{Direction, run, update};

/// One exchange, read from a file.
#[derive(Debug)]
pub struct Transcript {
    file: PathBuf,
    source: String,
    prose: String,
    spec: Vec<String>,
    server: Vec<String>,
    skips: Vec<(String, String)>,
    only: Option<(String, String)>,
    real_time: Option<String>,
    steps: Vec<TranscriptStep>,
}

impl Transcript {
    /// Reads and checks a file. A transcript without prose, clause or server is rejected.
    pub fn load(file: &Path) -> Result<Self, ParseError> {
        let source = fs::read_to_string(file)
            .map_err(|error| ParseError::new(file, 0, error.to_string()))?;
        Self::parse(file, &source)
    }

    /// Reads an exchange from text. `file` only names it in reports.
    pub fn parse(file: &Path, source: &str) -> Result<Self, ParseError> {
        parse::transcript(file, source)
    }

    /// Its file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What it shows, in a sentence or two.
    #[must_use]
    pub fn prose(&self) -> &str {
        &self.prose
    }

    /// The clauses of the specification that it shows.
    #[must_use]
    pub fn spec(&self) -> &[String] {
        &self.spec
    }

    /// The arguments after `creole serve`.
    #[must_use]
    pub fn server(&self) -> &[String] {
        &self.server
    }

    /// Why this stage skips the file, if it does.
    #[must_use]
    pub fn skip(&self, stage: &str) -> Option<&str> {
        let elsewhere = self.only.iter().filter(|(name, _)| name != stage);
        let skips = self.skips.iter().filter(|(name, _)| name == stage);
        skips.chain(elsewhere).map(|(_, reason)| reason.as_str()).next()
    }

    /// Whether a step advances the clock and no header allows a real wait.
    #[must_use]
    pub fn needs_fake_clock(&self) -> bool {
        let moves = self.steps.iter().any(|step| matches!(step.action, Action::Advance(_)));
        moves && self.real_time.is_none()
    }
}

/// One step of the dialogue and the line where it starts.
#[derive(Debug)]
struct TranscriptStep {
    line: usize,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Send(Payload),
    /// One `<` line, or a block of `<~` lines.
    Expect(Vec<Expectation>),
    Advance(Duration),
    Close,
}

#[derive(Debug)]
enum Payload {
    /// Text in which `${name}` is replaced and to which a newline is added.
    Line(String),
    Bytes(Vec<u8>),
}

/// One expected message and the lines (counted from one, both included) that write it.
#[derive(Debug)]
struct Expectation {
    first_line: usize,
    last_line: usize,
    any_order: bool,
    text: String,
    pattern: Pattern,
}
