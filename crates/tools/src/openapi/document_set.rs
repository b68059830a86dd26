//! A document and the files it refers to, all read before any reference is resolved.
//!
//! References point into the same file or to files in the document's folder and below it. They are never resolved
//! through a link or over the network.

pub(crate) mod remote;
pub(crate) mod yaml;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::root::RootDirectory;
use crate::recipe::http::encode::percent_decode;

/// Maximum total size of a document and the files it refers to, in bytes.
pub(super) const MAX_BYTES: u64 = 20 * 1024 * 1024;
/// Maximum number of files.
const MAX_FILES: usize = 5000;
/// Maximum length of a chain of references.
const MAX_REFERENCE_CHAIN: usize = 32;

/// A document and the files it refers to.
pub(super) struct DocumentSet {
    /// The files: their paths below the folder and their contents. The first is the document.
    files: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

/// A value in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    /// The index of the file.
    pub(super) file: usize,
}

/// The target of a reference: the index of a file and a pointer.
pub(super) type ReferenceTarget = (usize, String);

impl<'a> Node<'a> {
    /// A member.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        self.value.get(key).map(|value| Self { value, ..self })
    }

    /// A text member.
    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        self.value.get(key).and_then(Value::as_str)
    }

    /// Whether a member is true.
    pub(super) fn is_true(self, key: &str) -> bool {
        self.value.get(key) == Some(&Value::Bool(true))
    }

    /// Its members.
    pub(super) fn members(self) -> impl Iterator<Item = (&'a str, Self)> {
        let members = self.value.as_object().into_iter().flatten();
        members.map(move |(key, value)| (key.as_str(), Self { value, ..self }))
    }

    /// Its items.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten();
        items.map(move |value| Self { value, ..self })
    }
}

impl DocumentSet {
    /// Reads a file and the files it refers to.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let text = read_regular_file(path)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let document = parse_document(name, &text)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut library = Self::from_value(name, document);
        let remaining = MAX_BYTES.saturating_sub(text.len() as u64);
        library
            .load_references(&RootDirectory::new(folder.unwrap_or(Path::new("."))), remaining)?;
        Ok(library)
    }

    /// A document without a folder.
    pub(super) fn from_value(name: &str, document: Value) -> Self {
        let name = name.to_owned();
        Self { index: HashMap::from([(name.clone(), 0)]), files: vec![(name, document)] }
    }

    /// The files that were read, given the path of the document.
    pub(super) fn files(&self, document: &Path) -> impl Iterator<Item = PathBuf> {
        let folder = document.parent().map(Path::to_owned).unwrap_or_default();
        self.files.iter().map(move |(name, _)| folder.join(name))
    }

    /// The document.
    pub(super) fn document(&self) -> Node<'_> {
        Node { value: &self.files[0].1, file: 0 }
    }

    /// Reads the referenced files, recursively. An unreadable file is an error only where it is needed, because
    /// examples may contain invalid references.
    fn load_references(&mut self, root: &RootDirectory, mut remaining: u64) -> Result<(), String> {
        let mut next = 0;
        while let Some((name, value)) = self.files.get(next) {
            let mut expected = Vec::new();
            collect_references(name, value, &mut expected);
            for path in expected {
                if self.index.contains_key(&path) {
                    continue;
                }
                let Ok(bytes) = root.read(&path, remaining) else { continue };
                remaining = remaining.saturating_sub(bytes.len() as u64);
                let text =
                    String::from_utf8(bytes).map_err(|_| format!("`{path}` is not UTF-8"))?;
                let value = parse_document(&path, &text)
                    .map_err(|problem| format!("`{path}`: {problem}"))?;
                if self.files.len() > MAX_FILES {
                    return Err(format!("the document refers to more than {MAX_FILES} files"));
                }
                self.index.insert(path.clone(), self.files.len());
                self.files.push((path, value));
            }
            next += 1;
        }
        Ok(())
    }

    /// Follows the references of a value.
    ///
    /// # Errors
    /// The reference that has no target.
    pub(super) fn resolve<'a>(&'a self, mut node: Node<'a>) -> Result<Node<'a>, String> {
        for _ in 0..MAX_REFERENCE_CHAIN {
            let Some(reference) = node.text("$ref") else { return Ok(node) };
            node = self.node_at(&self.resolve_target(node.file, reference)?)?;
        }
        Err("a circular reference".to_owned())
    }

    /// The target of a reference.
    pub(super) fn resolve_target(
        &self,
        file: usize,
        reference: &str,
    ) -> Result<ReferenceTarget, String> {
        let (path, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let file = match path.is_empty() {
            true => Some(file),
            false => resolve_relative(&self.files[file].0, path)
                .and_then(|text| self.index.get(&text).copied()),
        };
        let pointer = percent_decode(pointer);
        match file {
            Some(file) if pointer.is_empty() || pointer.starts_with('/') => Ok((file, pointer)),
            _ => Err(missing(reference)),
        }
    }

    /// The value at a target.
    pub(super) fn node_at(&self, (file, pointer): &ReferenceTarget) -> Result<Node<'_>, String> {
        let value = self.files[*file].1.pointer(pointer);
        let value = value.ok_or_else(|| missing(&format!("#{pointer}")))?;
        Ok(Node { value, file: *file })
    }
}

fn missing(reference: &str) -> String {
    let shown: String = reference.chars().take(100).collect();
    format!("`{shown}`, which does not exist")
}

/// Reads a regular file.
fn read_regular_file(path: &Path) -> Result<String, String> {
    let refused = |error: std::io::Error| error.to_string();
    if !path.metadata().map_err(refused)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    decode_utf8(bytes)
}

/// Decodes bytes as UTF-8.
pub(super) fn decode_utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Parses a document: as JSON if its name says so or it begins like an object, otherwise as YAML.
pub(super) fn parse_document(name: &str, text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_json = name.ends_with(".json") || text.trim_start().starts_with('{');
    match is_json {
        true => serde_json::from_str(text).or_else(|error| match name.ends_with(".json") {
            true => Err(format!("it is not JSON: {error}")),
            false => yaml::read(text).map_err(|_| format!("it is not JSON: {error}")),
        }),
        false => yaml::read(text).map_err(|problem| format!("it is not YAML: {problem}")),
    }
}

/// Collects the files that a value refers to, relative to the folder.
fn collect_references(name: &str, value: &Value, expected: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref")
                && let Some(path) = reference.split('#').next().filter(|path| !path.is_empty())
            {
                expected.extend(resolve_relative(name, path));
            }
            members.values().for_each(|value| collect_references(name, value, expected));
        }
        Value::Array(items) => {
            items.iter().for_each(|value| collect_references(name, value, expected))
        }
        _ => {}
    }
}

/// A path relative to a file, as seen from the folder; `None` if it leaves the folder.
fn resolve_relative(file: &str, path: &str) -> Option<String> {
    if path.contains("://") || path.starts_with('/') || path.contains(['\\', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    let path = percent_decode(path);
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A text of at most `most` bytes, without deceptive characters: control characters, zero-width characters and
/// characters that change the writing direction.
pub(super) fn clean_text(text: &str, max: usize) -> String {
    let mut cleaned: String = text.chars().filter(|character| is_shown(*character)).collect();
    cleaned = cleaned.trim().to_owned();
    if cleaned.len() <= max {
        return cleaned;
    }
    let available = cleaned.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    cleaned.truncate(available);
    cleaned.truncate(cleaned.trim_end().len());
    if !cleaned.is_empty() {
        cleaned.push('…');
    }
    cleaned
}

fn is_shown(character: char) -> bool {
    let deceives = matches!(character,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    character == '\n' || !(character.is_control() || deceives)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_to_places_of_the_same_file() {
        let document = json!({
            "a": { "$ref": "#/b/x~1y%7Ez" }, "b": { "x/y~z": { "$ref": "#/c" } }, "c": 1,
            "d": { "$ref": "#/d" }, "e": { "$ref": "#/no" }, "f": { "$ref": "https://evil.example/x" },
        });
        let library = DocumentSet::from_value("x.json", document);
        let at = |key: &str| library.resolve(library.document().get(key).unwrap());
        assert_eq!(at("a").unwrap().value, &json!(1));
        assert!(at("d").unwrap_err().contains("circular reference"));
        assert_eq!(at("e").unwrap_err(), "`#/no`, which does not exist");
        assert_eq!(at("f").unwrap_err(), "`https://evil.example/x`, which does not exist");
    }

    #[test]
    fn files_of_the_folder_are_read_and_no_others() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("api");
        fs::create_dir_all(folder.join("schemas")).unwrap();
        fs::write(outside.path().join("secret.yaml"), "x: 1\n").unwrap();
        fs::write(
            folder.join("api.yaml"),
            "a: {$ref: schemas/pet.yaml}\nb: {$ref: '../secret.yaml'}\nc: {$ref: link.yaml}\n\
             d: {$ref: 'schemas/../schemas/pet.yaml#/owner'}\n",
        )
        .unwrap();
        fs::write(folder.join("schemas/pet.yaml"), "owner: {$ref: './owner.json#/x'}\n").unwrap();
        fs::write(folder.join("schemas/owner.json"), r#"{"x":{"name":"ann"}}"#).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret.yaml", folder.join("link.yaml")).unwrap();
        let library = DocumentSet::open(&folder.join("api.yaml")).unwrap();
        let at = |key: &str| library.resolve(library.document().get(key).unwrap());
        assert!(at("a").unwrap().get("owner").is_some());
        assert_eq!(at("d").unwrap().text("name"), Some("ann"));
        assert!(at("b").is_err());
        assert!(at("c").is_err());
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let told = |name: &str, text: &[u8]| {
            fs::write(folder.path().join(name), text).unwrap();
            DocumentSet::open(&folder.path().join(name)).err().unwrap()
        };
        assert!(told("a.json", b"{").starts_with("it is not JSON: "));
        assert!(told("a.yaml", b"a: [").starts_with("it is not YAML: line "));
        assert_eq!(told("b.yaml", b"\xff"), "it is not UTF-8 text");
        assert_eq!(DocumentSet::open(folder.path()).err().unwrap(), "it is not a regular file");
        assert_eq!(percent_decode("a%20b%zz%"), "a b%zz%");
    }

    #[test]
    fn what_deceives_is_taken_out_and_what_is_long_is_cut() {
        assert_eq!(clean_text(" a\u{1b}[31m\u{202e}b\u{e0041}\nc\u{200b} ", 100), "a[31mb\nc");
        assert_eq!(clean_text("äöü äöü", 10), "äöü…");
        assert_eq!(clean_text("abc", 0), "");
    }
}
