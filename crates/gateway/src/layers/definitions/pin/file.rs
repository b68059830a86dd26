//! The file with the pinned definitions of tools.

use creole::internal::sync::Mutex;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::layers::definitions::pin::pinned::Pins;

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
    serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("the file is not a valid pin file: {error}")))
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
