//! A bare JSON-RPC echo: the two limits that `cargo xtask bench stdio` measures against.
//!
//! It reads a chunk and answers every complete line in it: by default with one write for each
//! answer, the line echo; with the argument `chunks`, with one write for all of them, the chunk
//! echo. It checks no protocol version, keeps no state, knows no tool but `echo`, and stops at the
//! first line that it does not understand. Other arguments are ignored, so that `--creole bare-echo`
//! measures the noise of the benchmark itself.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use serde::Deserialize;
use serde_json::value::RawValue;

const CHUNK: usize = 64 * 1024;

fn main() -> io::Result<()> {
    let gathers = std::env::args().nth(1).is_some_and(|argument| argument == "chunks");
    // Duplicates of the descriptors, because std's stdout would look for line ends a second time.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    serve(input, output, gathers)
}

/// Answers until the input ends; `gathers` tells whether the answers to a chunk are one write.
fn serve(mut input: impl Read, mut output: impl Write, gathers: bool) -> io::Result<()> {
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
            if !gathers {
                flush(&mut answers, &mut output)?;
            }
        }
        pending.copy_within(answered..filled, 0);
        filled -= answered;
        flush(&mut answers, &mut output)?;
    }
}

/// Writes what was answered, if anything.
fn flush(answers: &mut Vec<u8>, output: &mut impl Write) -> io::Result<()> {
    if !answers.is_empty() {
        output.write_all(answers)?;
        answers.clear();
    }
    Ok(())
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

/// Appends the answer to `line`; a notification has none.
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
        "initialize" => answers.extend_from_slice(INITIALIZED),
        other => return Err(io::Error::other(format!("bare-echo does not know `{other}`"))),
    }
    Ok(())
}

const INITIALIZED: &[u8] = concat!(
    r#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"bare-echo","version":"0.1.0"}}}"#,
    "\n"
)
.as_bytes();

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::serve;

    /// Keeps every write by itself.
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

    fn writes(gathers: bool) -> Vec<Vec<u8>> {
        let call = |id: u8| {
            format!(
                r#"{{"id":{id},"method":"tools/call","params":{{"arguments":{{"message":"hi"}}}}}}"#
            )
        };
        let notification = r#"{"method":"notifications/initialized"}"#;
        let input = format!("{}\n{notification}\n{}\n", call(1), call(2));
        let mut writes = Writes::default();
        serve(input.as_bytes(), &mut writes, gathers).unwrap();
        writes.0
    }

    #[test]
    fn a_line_echo_writes_each_answer_and_a_chunk_echo_all_at_once() {
        let (lines, chunks) = (writes(false), writes(true));
        assert_eq!(lines.len(), 2);
        assert_eq!(chunks, [lines.concat()]);
        assert!(chunks[0].ends_with(b"\n"));
    }
}
