//! The file with the pinned definitions of tools.

use creole::internal::sync::Mutex;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::{fs, io};

use creole_proto::wire::Raw;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Serialises the writes of all layers in this process.
static WRITING: Mutex<()> = Mutex::new(());

/// The maximum size of the file in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// The content of the file: the tools of each server.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinFile {
    pub(crate) version: u32,
    pub(crate) servers: BTreeMap<String, Pins>,
}

/// The tools of one server.
pub(crate) type Pins = BTreeMap<String, PinnedTool>;

/// A tool as it was approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinnedTool {
    pub(crate) sha256: String,
    pub(crate) definition: Raw,
    /// Its current definition, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<ObservedTool>,
    /// The digest of a definition that an operator rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<String>,
}

/// A tool as it was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObservedTool {
    pub(crate) sha256: String,
    pub(crate) definition: Raw,
}

impl PinnedTool {
    /// Whether `there` approves the current definition of this tool.
    pub(crate) fn is_approved_as(&self, pinned: &Self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.sha256 == pinned.sha256)
    }
}

/// A tool that is withheld because it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedTool {
    /// Its server.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// Its definition when it was approved.
    pub before: Value,
    /// Its definition now.
    pub after: Value,
}

impl ChangedTool {
    /// The differences by path: the old value and the new value, `None` where it is absent.
    pub fn differences(&self) -> Vec<(String, Option<Value>, Option<Value>)> {
        let mut found = Vec::new();
        collect_differences("", Some(&self.before), Some(&self.after), &mut found);
        found
    }
}

/// The path of a difference, the old value and the new value.
pub type Difference = (String, Option<Value>, Option<Value>);

fn collect_differences(
    location: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                collect_differences(
                    &format!("{location}/{key}"),
                    old.get(key),
                    new.get(key),
                    found,
                );
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push((location.to_owned(), before.cloned(), after.cloned())),
    }
}

/// The withheld tools in a file.
///
/// # Errors
/// When the file cannot be read.
pub fn changed_tools(path: &Path) -> io::Result<Vec<ChangedTool>> {
    let mut found = Vec::new();
    for (server, tools) in read(path)?.servers {
        for (tool, pinned) in tools {
            let Some(changed) = pinned.changed else { continue };
            let (before, after) = (value(&pinned.definition)?, value(&changed.definition)?);
            found.push(ChangedTool { server: server.clone(), tool, before, after });
        }
    }
    Ok(found)
}

/// Approves the current definition of one tool or all tools of a server. Returns the tools that were withheld. A
/// running server notices within seconds, or with the next call of the tool.
///
/// # Errors
/// When the file cannot be read or written.
pub fn approve(path: &Path, server: &str, tool: Option<&str>) -> io::Result<Vec<String>> {
    update(path, |all| {
        let pins = all.servers.get_mut(server).into_iter().flatten();
        let wanted = pins.filter(|(name, _)| tool.is_none_or(|tool| tool == *name));
        let approved = wanted.filter_map(|(name, pinned)| {
            let ObservedTool { sha256, definition } = pinned.changed.take()?;
            (pinned.sha256, pinned.definition) = (sha256, definition);
            Some(name.clone())
        });
        approved.collect()
    })
}

/// A pinned tool: its approved definition, and its current one if it differs.
#[derive(Clone, Debug, PartialEq)]
pub struct PinView {
    /// Its server.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// The approved definition: its digest and its text.
    pub approved: (String, String),
    /// The current definition, if it differs.
    pub changed: Option<(String, String)>,
    /// Whether the current definition was rejected.
    pub is_rejected: bool,
}

impl PinView {
    /// The differences by path: the old value and the new value, `None` where it is absent.
    ///
    /// # Errors
    /// When a definition is not JSON.
    pub fn differences(&self) -> io::Result<Vec<Difference>> {
        let Some((_, changed)) = &self.changed else { return Ok(Vec::new()) };
        let before: Value = serde_json::from_str(&self.approved.1).map_err(io::Error::other)?;
        let after: Value = serde_json::from_str(changed).map_err(io::Error::other)?;
        let mut found = Vec::new();
        collect_differences("", Some(&before), Some(&after), &mut found);
        Ok(found)
    }
}

/// The pinned tools in a file.
///
/// # Errors
/// When the file cannot be read.
pub fn pins(path: &Path) -> io::Result<Vec<PinView>> {
    let mut found = Vec::new();
    for (server, tools) in read(path)?.servers {
        for (tool, pinned) in tools {
            let changed = pinned.changed.as_ref();
            found.push(PinView {
                server: server.clone(),
                tool,
                is_rejected: changed.is_some_and(|it| pinned.rejected.as_ref() == Some(&it.sha256)),
                changed: changed.map(|it| (it.sha256.clone(), it.definition.as_str().to_owned())),
                approved: (pinned.sha256, pinned.definition.as_str().to_owned()),
            });
        }
    }
    Ok(found)
}

/// The decision of an operator about a changed tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinDecision {
    /// The current definition is approved.
    Approve,
    /// The tool stays withheld.
    Reject,
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinDecisionOutcome {
    /// It is recorded.
    Done,
    /// The definition is another one than the operator saw: this is its digest.
    Changed(String),
    /// The tool is not withheld, or not known.
    NotWithheld,
}

/// Records a decision about the definition with this digest. A running server notices within seconds.
///
/// # Errors
/// When the file cannot be read or written.
pub fn decide(
    path: &Path,
    (server, tool): (&str, &str),
    sha256: &str,
    decision: PinDecision,
) -> io::Result<PinDecisionOutcome> {
    update(path, |all| {
        let pinned = all.servers.get_mut(server).and_then(|tools| tools.get_mut(tool));
        let Some(pinned) = pinned else { return PinDecisionOutcome::NotWithheld };
        match (&pinned.changed, decision) {
            (None, _) => PinDecisionOutcome::NotWithheld,
            (Some(changed), _) if changed.sha256 != sha256 => {
                PinDecisionOutcome::Changed(changed.sha256.clone())
            }
            (Some(_), PinDecision::Reject) => {
                pinned.rejected = Some(sha256.to_owned());
                PinDecisionOutcome::Done
            }
            (Some(_), PinDecision::Approve) => {
                if let Some(ObservedTool { sha256, definition }) = pinned.changed.take() {
                    (pinned.sha256, pinned.definition) = (sha256, definition);
                }
                pinned.rejected = None;
                PinDecisionOutcome::Done
            }
        }
    })
}

fn value(raw: &Raw) -> io::Result<Value> {
    raw.decode().map_err(io::Error::other)
}

/// Reads the file. Empty if there is none.
pub(crate) fn read(path: &Path) -> io::Result<PinFile> {
    let text = match fs::metadata(path) {
        Ok(found) if found.len() > MAX_BYTES => {
            return Err(io::Error::other(format!("the file is larger than {MAX_BYTES} bytes")));
        }
        _ => match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PinFile::default()),
            text => text?,
        },
    };
    serde_json::from_str(&text).map_err(|error| {
        io::Error::other(format!(
            "the file is not a valid \
        pin file: {error}"
        ))
    })
}

/// Updates the file. It is replaced atomically.
pub(crate) fn update<T>(path: &Path, change: impl FnOnce(&mut PinFile) -> T) -> io::Result<T> {
    let _one = WRITING.lock();
    let mut all = read(path)?;
    let before = serde_json::to_string(&all).map_err(io::Error::other)?;
    all.version = 1;
    let done = change(&mut all);
    let after = serde_json::to_string(&all).map_err(io::Error::other)?;
    if after == before {
        return Ok(done);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let mut file = fs::File::create(&name)?;
    file.write_all(after.as_bytes()).and_then(|()| file.sync_all())?;
    fs::rename(&name, path)?;
    Ok(done)
}
