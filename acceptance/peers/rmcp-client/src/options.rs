//! The command line that all peers share.

use serde_json::{Map, Value};

/// A tool or prompt to call, with its arguments.
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
}

/// The steps to perform, and the server.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) mode: String,
    pub(crate) read: Option<String>,
    pub(crate) call: Option<Called>,
    pub(crate) prompt: Option<Called>,
    pub(crate) progress: Option<Called>,
    pub(crate) elicit: Option<Called>,
    pub(crate) sample: Option<Called>,
    pub(crate) roots: Option<Called>,
    pub(crate) list_changed: Option<Called>,
    /// The server's URL, if it is already running.
    pub(crate) url: Option<String>,
    pub(crate) command: String,
    pub(crate) arguments: Vec<String>,
}

impl Options {
    /// Parses the arguments of the command line.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { mode: "default".into(), ..Self::default() };
        while let Some(flag) = words.next() {
            let mut next = || words.next().ok_or(format!("{flag} needs more words"));
            let called = match flag.as_str() {
                "--" => {
                    options.command = next().map_err(|_| "the server command is missing")?;
                    options.arguments = words.collect();
                    return Ok(options);
                }
                "--mode" => {
                    options.mode = next()?;
                    continue;
                }
                "--url" => {
                    options.url = Some(next()?);
                    continue;
                }
                "--read" => {
                    options.read = Some(next()?);
                    continue;
                }
                "--call" => &mut options.call,
                "--prompt" => &mut options.prompt,
                "--progress" => &mut options.progress,
                "--elicit" => &mut options.elicit,
                "--sample" => &mut options.sample,
                "--roots" => &mut options.roots,
                "--list-changed" => &mut options.list_changed,
                _ => return Err(format!("{flag} is not a flag of a peer")),
            };
            let name = next()?;
            let arguments = serde_json::from_str(&next()?)
                .map_err(|error| format!("the arguments of {flag} {name}: {error}"))?;
            *called = Some(Called { name, arguments });
        }
        match options.url {
            Some(_) => Ok(options),
            None => Err("neither --url nor a server command after -- is given".into()),
        }
    }
}
