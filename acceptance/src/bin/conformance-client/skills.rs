//! Loads a skill as a host must: a file that does not match its entry is not used (SEP-2640, integrity and
//! verification).

use std::fmt::Write as _;

use creole::Skill;
use creole::client::Client;
use creole::proto::model::ListKind;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::scenario::fault_text;

/// Loads every skill with all of its files, and stops at the first that does not match its entry.
pub(super) async fn load_all(client: &Client) -> Result<(), String> {
    let rules = client.connection().greeting().rules;
    for skill in client.list(ListKind::Skills).await.map_err(fault_text)? {
        let entry = serde_json::from_str(skill.text(rules)).map_err(|error| error.to_string())?;
        load(client, &entry).await?;
    }
    Ok(())
}

async fn load(client: &Client, entry: &Value) -> Result<(), String> {
    let manifest = entry["uri"].as_str().ok_or("an entry without a uri")?;
    let files = entry["resources"].as_array().ok_or("an entry without files")?;
    let (first, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file["uri"] == manifest);
    for file in first {
        let text = verified(client, file).await?;
        is_told_of(&entry["frontmatter"], &text)?;
    }
    for file in others {
        verified(client, file).await?;
    }
    Ok(())
}

/// The content of a file, if it has the size and the digest of its entry.
async fn verified(client: &Client, file: &Value) -> Result<String, String> {
    let uri = file["uri"].as_str().ok_or("a file without a uri")?;
    let read = client.read_resource(uri).await.map_err(fault_text)?;
    let read: Value = read.decode().map_err(|error| error.to_string())?;
    let text = read["contents"][0]["text"].as_str().ok_or("a file without text")?;
    let mut digest = String::from("sha256:");
    for byte in Sha256::digest(text) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    if file["size"] != text.len() || file["digest"] != digest {
        return Err(format!("{uri} does not match the skill's entry"));
    }
    Ok(text.to_owned())
}

/// Whether the manifest agrees with the entry.
fn is_told_of(message: &Value, manifest: &str) -> Result<(), String> {
    let name = message["name"].as_str().ok_or("a skill without a name")?;
    let skill = Skill::new(name, [("SKILL.md", manifest.as_bytes())]);
    let skill = skill.map_err(|error| error.to_string())?;
    if message["name"] != skill.name() || message["description"] != skill.description() {
        return Err(format!("the manifest of `{name}` does not match its entry"));
    }
    Ok(())
}
