//! A bare JSON-RPC line echo: the physical limit that `cargo xtask bench stdio` measures against.
//!
//! It reads a chunk, answers every complete line in it, and writes all answers at once. It checks
//! no protocol version, keeps no state, knows no tool but `echo`, and stops at the first line that
//! it does not understand. Its arguments are ignored, so that `--creole bare-echo` measures the
//! noise of the benchmark itself.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use serde::Deserialize;
use serde_json::value::RawValue;

const CHUNK: usize = 64 * 1024;

fn main() -> io::Result<()> {
    // Duplicates of the descriptors, because std's stdout would look for line ends a second time.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
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
