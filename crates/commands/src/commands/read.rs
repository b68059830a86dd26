//! `creole read`: reads one resource.

use std::io;
use std::io::IsTerminal;

use serde_json::{Value, json};

use super::only_word;
use crate::args::ReadArgs;
use crate::failure::Failure;
use crate::output::render::{contents, decoded, for_stdout};
use crate::session::{SessionPurpose, call_failure, with_client};
use crate::{output, target};

/// Runs the verb.
pub(crate) fn run(args: &ReadArgs) -> Result<(), Failure> {
    let (place, rest) = target::target_and_words(&args.words, &args.peer)?;
    let uri = only_word(rest, "the URI of the resource", "creole list")?;
    let name = place.name().to_owned();
    let result = with_client(place, &args.peer, SessionPurpose::Call, async |client| {
        client.read_resource(uri).await.map_err(|fault| call_failure(&name, &fault))
    })?;
    if args.peer.json {
        return output::write_data(&format!("{}\n", result.as_str()));
    }
    let read: Value = result.decode().unwrap_or(json!({}));
    let parts = read["contents"].as_array().map_or(&[][..], Vec::as_slice);
    match parts {
        [] => Err(Failure::Call(format!("`{name}`: the resource `{uri}` has no contents"))),
        [only] => show(only),
        several => several.iter().try_for_each(|part| {
            let uri = part["uri"].as_str().unwrap_or_default();
            output::write_message(&format!("creole: {}", output::printable(uri)));
            show(part)
        }),
    }
}

/// Writes bytes unchanged to files and pipes, and not to terminals.
fn show(part: &Value) -> Result<(), Failure> {
    let blob = part["blob"].as_str().filter(|_| !io::stdout().is_terminal());
    if let Some(bytes) = blob.and_then(decoded) {
        return output::write_bytes(&bytes);
    }
    match part["text"].as_str() {
        Some(text) if !io::stdout().is_terminal() => output::write_data(text),
        _ => output::write_data(&for_stdout(&contents(part))),
    }
}
