//! A bare JSON-RPC echo: the two lower bounds that `cargo xtask bench stdio` compares with.
//!
//! By default it is the line echo: the shortest program that reads a line, parses it with serde_json and writes the
//! response. With the argument `chunks` it is the chunk echo: it uses every optimization that a server without checks
//! can use, with borrowed text and one write for all responses to the requests of one read. Neither checks a protocol
//! version, keeps state or has a tool other than `echo`; both exit at the first line that they cannot parse. Other
//! arguments are ignored, so that `--creole bare-echo` measures the noise of the benchmark itself.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const CHUNK: usize = 64 * 1024;

fn main() -> io::Result<()> {
    let is_chunk_echo = std::env::args().nth(1).is_some_and(|argument| argument == "chunks");
    // Duplicates of the descriptors, because std's stdout would search for line ends a second time.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if is_chunk_echo { chunks(input, output) } else { lines(input, output) }
}

/// Writes the response to each line before it reads the next one.
fn lines(input: impl Read, mut output: impl Write) -> io::Result<()> {
    for line in BufReader::with_capacity(CHUNK, input).lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let answer = match message["method"].as_str() {
            Some("tools/call") => {
                let text = &message["params"]["arguments"]["message"];
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}],"resultType":"complete"}}}}
"#
                )
            }
            Some("initialize") => format!(r#"{{"jsonrpc":"2.0","id":{id}{INITIALIZED}"#),
            other => return Err(unknown(other.unwrap_or_default())),
        };
        output.write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Writes the responses to all complete lines of a read with one write.
fn chunks(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut pending = vec![0; CHUNK];
    let mut filled = 0;
    let mut answers = Vec::with_capacity(CHUNK);

    loop {
        if filled == pending.len() {
            pending.resize(filled * 2, 0);
        }
        let count = input.read(&mut pending[filled..])?;
        if count == 0 {
            return Ok(());
        }
        filled += count;

        let mut answered = 0;
        for end in memchr::memchr_iter(b'\n', &pending[..filled]) {
            answer(&pending[answered..end], &mut answers)?;
            answered = end + 1;
        }
        pending.copy_within(answered..filled, 0);
        filled -= answered;
        output.write_all(&answers)?;
        answers.clear();
    }
}

/// The envelope of a request or notification; the parameters stay bytes until they are needed.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: EchoArguments<'a>,
}

#[derive(Deserialize)]
struct EchoArguments<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

/// Appends the response to `line`; a notification has none.
fn answer(line: &[u8], answers: &mut Vec<u8>) -> io::Result<()> {
    let message: Message<'_> = serde_json::from_slice(line)?;
    let Some(id) = message.id else { return Ok(()) };

    answers.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    answers.extend_from_slice(id.get().as_bytes());
    match message.method {
        "tools/call" => {
            let params = message.params.map_or("null", RawValue::get);
            let call: CallParams<'_> = serde_json::from_str(params)?;
            answers.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
            serde_json::to_writer(&mut *answers, &call.arguments.message)?;
            answers.extend_from_slice(b"}],\"resultType\":\"complete\"}}\n");
        }
        "initialize" => answers.extend_from_slice(INITIALIZED.as_bytes()),
        other => return Err(unknown(other)),
    }
    Ok(())
}

fn unknown(method: &str) -> io::Error {
    io::Error::other(format!("bare-echo does not know `{method}`"))
}

const INITIALIZED: &str = concat!(
    r#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"bare-echo","version":"0.1.0"}}}"#,
    "\n"
);

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::{chunks, lines};

    /// Records every write separately.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for &mut Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn input() -> String {
        let call = |id: u8| {
            format!(
                r#"{{"id":{id},"method":"tools/call","params":{{"arguments":{{"message":"hi"}}}}}}"#
            )
        };
        let notification = r#"{"method":"notifications/initialized"}"#;
        format!("{}\n{notification}\n{}\n", call(1), call(2))
    }

    #[test]
    fn a_line_echo_writes_each_answer_and_a_chunk_echo_all_at_once() {
        let (mut each, mut all) = (Writes::default(), Writes::default());
        lines(input().as_bytes(), &mut each).unwrap();
        chunks(input().as_bytes(), &mut all).unwrap();
        assert_eq!(each.0.len(), 2);
        assert_eq!(all.0, [each.0.concat()]);
        assert!(all.0[0].ends_with(b"\n"));
    }
}
