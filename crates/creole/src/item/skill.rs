//! Skills: folders of files that teach a model how to do something (SEP-2640, the extension
//! `io.modelcontextprotocol/skills`).
//!
//! A skill holds its files, so that its definition and its contents always describe the same bytes. Every file is a
//! resource at `skill://<path of the skill>/<path of the file>`.

mod error;
mod paths;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use creole_proto::model;
use creole_proto::model::Definition;
use creole_proto::wire::{Raw, hex};

use crate::item::front_matter::{Members, Node};
use crate::item::resource::Resource;
use crate::item::{front_matter, media};
use crate::secrets;

pub use error::SkillError;
pub(crate) use paths::SCHEME;

/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";
/// Maximum number of files of a skill: what every client has to accept (SEP-2640, limits).
pub const MAX_FILES: usize = 512;
/// Maximum total size of a skill's files in bytes (SEP-2640, limits).
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Maximum length of a description, in characters (Agent Skills specification, `description`).
const MAX_DESCRIPTION: usize = 1024;
/// Maximum length of a name, in characters (Agent Skills specification, `name`).
const MAX_NAME: usize = 64;

/// One skill.
#[derive(Clone)]
pub struct Skill {
    name: String,
    description: String,
    definition: Arc<Definition>,
    files: Vec<Arc<SkillFile>>,
}

/// A file of a skill, as a resource.
pub(crate) struct SkillFile {
    /// Its path, prefixed by the skill's, as it was given.
    pub(crate) path: String,
    pub(crate) digest: String,
    pub(crate) resource: Resource,
    pub(crate) definition: Arc<Definition>,
}

impl Skill {
    /// The skill at `path`, whose last part is its name, with files given by their paths inside it. One of them is
    /// `SKILL.md`, which starts with front matter.
    ///
    /// ```
    /// use creole::Skill;
    ///
    /// let text = "---\nname: refunds\ndescription: How money is paid back\n---\nAsk for the receipt.\n";
    /// let skill = Skill::new("acme/billing/refunds", [("SKILL.md", text.as_bytes())]).unwrap();
    /// assert_eq!(skill.uri(), "skill://acme/billing/refunds/SKILL.md");
    /// ```
    ///
    /// # Errors
    /// When a client could not accept the skill: the front matter or a name is invalid, or the skill is too large.
    pub fn new<P, B>(
        path: &str,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<Self, SkillError>
    where
        P: Into<String>,
        B: Into<Arc<[u8]>>,
    {
        let files = collect_files(
            path,
            files.into_iter().map(|(name, bytes)| (name.into(), bytes.into())),
        )?;
        let members = front_matter_of(&files)?;
        let name = name_of(&members, path)?;
        let description = description_of(&members)?;
        let files: Vec<_> = files
            .into_iter()
            .map(|(file, bytes)| {
                let told = (file == MANIFEST).then_some((&*name, &*description));
                Arc::new(SkillFile::new(path, &file, &bytes, told))
            })
            .collect();
        let entry = model::Skill {
            uri: paths::uri_for_path(&format!("{path}/{MANIFEST}")),
            front_matter: Raw::from_value(&Node::Map(members)),
            files: files.iter().map(|file| file.entry()).collect(),
        };
        Ok(Self { name, description, definition: Arc::new((&entry).into()), files })
    }

    /// The URI of its `SKILL.md`.
    pub fn uri(&self) -> &str {
        self.definition.name()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When to use it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its files, sorted by path.
    pub(crate) fn files(&self) -> &[Arc<SkillFile>] {
        &self.files
    }

    /// Its definition, as listed.
    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Skill").field("uri", &self.uri()).finish_non_exhaustive()
    }
}

impl SkillFile {
    /// `told` are the skill's name and description: `SKILL.md` is listed under them (SEP-2640, resource metadata).
    fn new(skill: &str, file: &str, bytes: &Arc<[u8]>, told: Option<(&str, &str)>) -> Self {
        let path = format!("{skill}/{file}");
        let uri = paths::uri_for_path(&path);
        let mime_type = media::detect(file, bytes);
        let last = file.rsplit('/').next().unwrap_or(file);
        let (name, about) = told.map_or((last, None), |(name, about)| (name, Some(about)));
        let kept = Arc::clone(bytes);
        let read = move |uri, _| {
            let contents = media::resource_contents(uri, mime_type, kept.to_vec());
            async move { Ok(vec![contents]) }
        };
        let mut resource = Resource::new(&uri, name, read).mime_type(mime_type);
        resource.definition.description = about.map(str::to_owned);
        resource.definition.size = Some(bytes.len() as u64);
        let definition = Arc::new((&resource.definition).into());
        let digest = String::from("sha256:") + &hex(&secrets::digest(bytes));
        Self { path, digest, resource, definition }
    }

    pub(crate) fn uri(&self) -> &str {
        &self.resource.definition.uri
    }

    fn entry(&self) -> model::SkillFile {
        let size = self.resource.definition.size.unwrap_or_default();
        model::SkillFile { uri: self.uri().to_owned(), digest: self.digest.clone(), size }
    }
}

/// The files by path, if one folder can hold them and they are not too many.
fn collect_files(
    skill: &str,
    files: impl Iterator<Item = (String, Arc<[u8]>)>,
) -> Result<BTreeMap<String, Arc<[u8]>>, SkillError> {
    paths::check_path(skill).map_err(|description| {
        SkillError::whole_skill(format!("the path of the skill {description}"))
    })?;
    let (mut all, mut total) = (BTreeMap::new(), 0_usize);
    for (path, bytes) in files {
        paths::check_path(&path).map_err(|description| {
            SkillError::new(&path, format!("the path of the file {description}"))
        })?;
        total = total.saturating_add(bytes.len());
        if all.insert(path.clone(), bytes).is_some() {
            return Err(SkillError::new(&path, "two files have this name"));
        }
        if all.len() > MAX_FILES {
            let message = format!("the skill has more than {MAX_FILES} files");
            return Err(SkillError::whole_skill(message)
                .help("clients need not accept more; split the skill"));
        }
        if total > MAX_BYTES {
            let message = format!("the files of the skill have more than {MAX_BYTES} bytes");
            return Err(SkillError::whole_skill(message)
                .help("clients need not accept more; split the skill"));
        }
    }
    for path in all.keys() {
        let mut folders = path.match_indices('/').map(|(offset, _)| &path[..offset]);
        if let Some(both) = folders.find(|folder| all.contains_key(*folder)) {
            return Err(SkillError::new(both, "the name is used for a file and a folder"));
        }
    }
    Ok(all)
}

fn front_matter_of(files: &BTreeMap<String, Arc<[u8]>>) -> Result<Members, SkillError> {
    let Some(bytes) = files.get(MANIFEST) else {
        let help = format!("add a file `{MANIFEST}` that begins with front matter");
        return Err(SkillError::whole_skill(format!("the skill has no `{MANIFEST}`")).help(help));
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        SkillError::new(MANIFEST, "the file is not UTF-8 text").line(line).help("save it as UTF-8")
    })?;
    front_matter::read(text).map_err(|failure| {
        SkillError::new(MANIFEST, failure.message).line(failure.line).help(failure.help)
    })
}

/// A front matter member that must be a text.
fn text_of<'a>(members: &'a Members, key: &str) -> Result<&'a str, SkillError> {
    let error = |message| {
        SkillError::new(MANIFEST, message).help(format!("write `{key}: …` between the two `---`"))
    };
    match members.iter().find(|(name, _)| name == key) {
        Some((_, Node::Text(text))) if !text.trim().is_empty() => Ok(text),
        Some((_, Node::Text(_) | Node::Null)) => Err(error(format!("`{key}` is empty"))),
        Some(_) => Err(error(format!("`{key}` is not a string")).help("put the value in quotes")),
        None => Err(error(format!("`{key}` is missing"))),
    }
}

fn name_of(members: &Members, path: &str) -> Result<String, SkillError> {
    let name = text_of(members, "name")?;
    let is_allowed = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    if name.len() > MAX_NAME
        || name.split('-').any(|part| part.is_empty() || !part.chars().all(is_allowed))
    {
        let help =
            format!("use at most {MAX_NAME} characters: a-z, 0-9 and single hyphens between them");
        return Err(SkillError::new(MANIFEST, format!("invalid `name`: `{name}`")).help(help));
    }
    let folder = path.rsplit('/').next().unwrap_or(path);
    if name != folder {
        let message = format!("`name` is `{name}`, but the folder is `{folder}`");
        return Err(SkillError::new(MANIFEST, message).help("use the same name for both"));
    }
    Ok(name.to_owned())
}

fn description_of(members: &Members) -> Result<String, SkillError> {
    let description = text_of(members, "description")?;
    if description.chars().count() > MAX_DESCRIPTION {
        let message = format!("`description` is longer than {MAX_DESCRIPTION} characters");
        return Err(SkillError::new(MANIFEST, message)
            .help("describe when to use the skill; move the rest into the text"));
    }
    Ok(description.to_owned())
}

#[cfg(test)]
mod tests;
