//! A single resource: a file or a configured text. With variables in its URI it is a template of texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use creole::internal::front_matter::FrontMatterDocument;
use creole::internal::media;
use creole::proto::fault::{Fault, FaultKind};
use creole::{Contents, Resource, Server, Template, ToolError, Variables, WeakRegistry};

use super::RecipeError;
use crate::files::FileError;
use crate::files::root::{ReadError, RootDirectory};
use crate::files::watch::{FolderWatch, WatchTarget};
use crate::text_template::{TemplateError, TextTemplate};

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// A configured resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRecipe {
    /// Its name in the configuration and for clients.
    pub name: String,
    /// Its URI, or with `{variables}` a URI template.
    pub uri: String,
    /// The display name.
    pub title: Option<String>,
    /// Its description.
    pub about: Option<String>,
    /// Its media type; by default derived from the file name.
    pub mime_type: Option<String>,
    /// Its contents.
    pub body: ResourceBody,
    /// The completion values of the variables.
    pub values: BTreeMap<String, Vec<String>>,
}

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// This text; in a template, with placeholders for the variables.
    Text(String),
    /// The contents of this file at the time of reading.
    File(PathBuf),
}

impl ResourceRecipe {
    /// Adds the resource to a server.
    pub(super) fn add(&self, server: Server) -> Result<Server, RecipeError> {
        let refused = |problem: FileError| RecipeError {
            name: self.name.clone(),
            message: problem.to_string(),
        };
        if !self.variables().is_empty() {
            return Ok(server.template(self.build_template().map_err(refused)?));
        }
        let file = match &self.body {
            ResourceBody::Text(text) => {
                let kind = self.mime_type.as_deref().unwrap_or("text/plain");
                let resource = Resource::text(&self.uri, &self.name, kind, text);
                return Ok(server.resource(self.with_descriptions(resource, None, None)));
            }
            ResourceBody::File(file) => file.clone(),
        };
        let reader = Arc::new(FileReader { path: file.clone(), mime_type: self.mime_type.clone() });
        let LoadedFile { title, about, .. } = reader.load().map_err(refused)?;
        let kind =
            self.mime_type.as_deref().or_else(|| media::from_file_name(&file.to_string_lossy()));
        let mut resource =
            Resource::new(&self.uri, &self.name, move |uri, _| reader.clone().read_contents(uri));
        if let Some(kind) = kind {
            resource = resource.mime_type(kind);
        }
        let (uri, name) = (self.uri.clone(), self.name.clone());
        let server = server.resource(self.with_descriptions(resource, title, about));
        Ok(server.setup(move |registry| {
            let keeper = ResourceFileWatch {
                name: name.clone(),
                uri,
                file,
                registry: registry.downgrade(),
                is_first: true,
            };
            match FolderWatch::start(keeper) {
                Ok(watch) => registry.attach(watch),
                Err(error) => {
                    tracing::warn!("resource `{name}`: cannot watch for changes: {error}")
                }
            }
        }))
    }

    /// Its errors.
    pub(super) fn file_errors(&self) -> Vec<FileError> {
        let tried = match (&self.body, self.variables().is_empty()) {
            (ResourceBody::File(path), true) => {
                FileReader { path: path.clone(), mime_type: None }.load().map(drop)
            }
            (ResourceBody::Text(_), true) => Ok(()),
            (_, false) => self.build_template().map(drop),
        };
        tried.err().into_iter().collect()
    }

    /// The names of the variables in its URI.
    pub fn variables(&self) -> Vec<&str> {
        let gaps = self.uri.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        gaps.map(|(name, _)| name.trim_start_matches('+')).collect()
    }

    fn with_descriptions(
        &self,
        resource: Resource,
        title: Option<String>,
        about: Option<String>,
    ) -> Resource {
        let resource = match self.title.as_ref().or(title.as_ref()) {
            Some(title) => resource.title(title),
            None => resource,
        };
        match self.about.as_ref().or(about.as_ref()) {
            Some(about) => resource.about(about),
            None => resource,
        }
    }

    fn build_template(&self) -> Result<Template, FileError> {
        let (text, file) = match &self.body {
            ResourceBody::Text(text) => (text.clone(), PathBuf::from(&self.name)),
            ResourceBody::File(path) => {
                let bytes =
                    read_configured_file(path).map_err(|message| FileError::new(path, message))?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| FileError::new(path, "the file is not text"))?;
                (text, path.clone())
            }
        };
        let placed = |error: TemplateError| FileError {
            file: file.clone(),
            line: Some(error.line),
            column: error.column,
            message: error.message,
            help: error.help,
        };
        let text = Arc::new(TextTemplate::new(&text, 1, &self.variables()).map_err(placed)?);
        let kind = self
            .mime_type
            .clone()
            .or_else(|| media::from_file_name(&file.to_string_lossy()).map(str::to_owned));
        let kind = kind.unwrap_or_else(|| "text/plain".to_owned());
        let mime_type = kind.clone();
        let mut template =
            Template::new(&self.uri, &self.name, move |uri, values: Variables, _| {
                let rendered =
                    text.render(values).map(|text| vec![Contents::text(uri, &mime_type, text)]);
                async move { rendered.map_err(|error| to_tool_error(error.message)) }
            })
            .mime_type(&kind);
        if let Some(title) = &self.title {
            template = template.title(title);
        }
        if let Some(about) = &self.about {
            template = template.about(about);
        }
        for (variable, values) in self.values.clone() {
            template = template.complete(&variable, move |typed, _| {
                let fitting = values.iter().filter(|value| value.starts_with(&typed)).cloned();
                let fitting: Vec<String> = fitting.collect();
                async move { fitting }
            });
        }
        Ok(template)
    }
}

/// Reads one file. Markdown may begin with front matter with a title and a description, which is not part of the text.
struct FileReader {
    path: PathBuf,
    mime_type: Option<String>,
}

/// A file without its front matter, and the values of the front matter.
struct LoadedFile {
    bytes: Vec<u8>,
    title: Option<String>,
    about: Option<String>,
}

impl FileReader {
    async fn read_contents(self: Arc<Self>, uri: String) -> Result<Vec<Contents>, ToolError> {
        let reading = tokio::task::spawn_blocking(move || {
            // Callers do not learn the path; the log has it.
            let LoadedFile { bytes, .. } =
                self.load().map_err(|problem| to_tool_error(problem.message))?;
            let named = media::detect(&self.path.to_string_lossy(), &bytes);
            let kind = self.mime_type.as_deref().unwrap_or(named);
            Ok(vec![media::resource_contents(uri, kind, bytes)])
        });
        reading.await.map_err(|_| to_tool_error("the reader thread panicked".to_owned()))?
    }

    /// The bytes, and the title and description in the file.
    fn load(&self) -> Result<LoadedFile, FileError> {
        let bytes = read_configured_file(&self.path)
            .map_err(|message| FileError::new(&self.path, message))?;
        let is_markdown =
            media::from_file_name(&self.path.to_string_lossy()) == Some("text/markdown");
        let Some(text) = std::str::from_utf8(&bytes).ok().filter(|_| is_markdown) else {
            return Ok(LoadedFile { bytes, title: None, about: None });
        };
        let document = FrontMatterDocument::read(text).map_err(|error| FileError {
            line: Some(error.line),
            help: Some(error.help),
            ..FileError::new(&self.path, error.message)
        })?;
        let member = |key: &str| document.members.get(key)?.as_str().map(str::to_owned);
        let (title, about) = (member("title"), member("description"));
        Ok(LoadedFile { bytes: document.body.as_bytes().to_vec(), title, about })
    }
}

/// Reads a configured file. Links in the path to its folder are the operator's choice. A link in place of the file is
/// not followed, as in `[folders]`: a user with write access there could otherwise choose the served file.
fn read_configured_file(path: &Path) -> Result<Vec<u8>, String> {
    let (Some(folder), Some(name)) =
        (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Err("it is not a regular file".to_owned());
    };
    if path.is_symlink() {
        return Err(
            "it is a symbolic link, which is not followed; use the path of the file itself"
                .to_owned(),
        );
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder =
        std::fs::canonicalize(folder).map_err(|error| format!("cannot read the file: {error}"))?;
    RootDirectory::new(&folder).read(name, MAX_FILE_BYTES).map_err(|unread| match unread {
        ReadError::NotFound => "cannot read the file: it does not exist".to_owned(),
        ReadError::TooLarge => format!("the file has more than {MAX_FILE_BYTES} bytes"),
        ReadError::Failed(error) => format!("cannot read the file: {error}"),
    })
}

fn to_tool_error(message: String) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(FaultKind::Internal, message)))
}

/// Notifies the subscribers of a resource that its file changed.
struct ResourceFileWatch {
    name: String,
    uri: String,
    file: PathBuf,
    registry: WeakRegistry,
    is_first: bool,
}

impl WatchTarget for ResourceFileWatch {
    fn name(&self) -> String {
        format!("resource `{}`", self.name)
    }

    fn root(&self) -> PathBuf {
        std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone())
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.root().parent().map(PathBuf::from).into_iter().collect()
    }

    fn on_change(&mut self, changed: &BTreeSet<PathBuf>) {
        // The first report covers changes before the watch started, which no client can have read.
        let is_nothing = std::mem::take(&mut self.is_first) && changed.is_empty();
        if let Some(registry) = self.registry.upgrade().filter(|_| !is_nothing) {
            registry.resource_updated(&self.uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(uri: &str, body: ResourceBody) -> ResourceRecipe {
        ResourceRecipe {
            name: "r".to_owned(),
            uri: uri.to_owned(),
            title: None,
            about: None,
            mime_type: None,
            body,
            values: BTreeMap::new(),
        }
    }

    #[test]
    fn a_markdown_file_gives_itself_a_title_which_is_no_part_of_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        std::fs::write(&path, "---\ntitle: T\ndescription: D\n---\nBody\n").unwrap();
        let reader = FileReader { path, mime_type: None };
        let LoadedFile { bytes, title, about } = reader.load().unwrap();
        assert_eq!(
            (bytes.as_slice(), title.as_deref(), about.as_deref()),
            (&b"Body\n"[..], Some("T"), Some("D"))
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_instead_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, link) = (folder.path().join("secret"), folder.path().join("a.txt"));
        std::fs::write(&secret, "s").unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let linked = recipe("a://b", ResourceBody::File(link));
        let message = linked.file_errors()[0].to_string();
        assert!(
            message.ends_with(
                "it is a symbolic link, which is not followed; use the path of the file itself"
            ),
            "{message}"
        );
        // A link in the path is the operator's choice.
        let way = folder.path().join("way");
        std::os::unix::fs::symlink(folder.path(), &way).unwrap();
        assert!(recipe("a://b", ResourceBody::File(way.join("secret"))).file_errors().is_empty());
    }

    #[test]
    fn impossible_settings_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = recipe("a://b", ResourceBody::File(folder.path().join("nowhere.md")));
        assert!(nowhere.file_errors()[0].to_string().contains("nowhere.md: cannot read the file"));
        assert!(nowhere.add(Server::new("s")).is_err());
        assert!(
            recipe("a://b", ResourceBody::File(folder.path().to_owned()))
                .add(Server::new("s"))
                .is_err()
        );
        let gap = recipe("a://{x}", ResourceBody::Text("Hi {{ y }}".to_owned()));
        assert!(gap.file_errors()[0].to_string().starts_with("r:1:7: unknown argument `y`"));
        assert_eq!(
            recipe("a://{x}/{+y}", ResourceBody::Text(String::new())).variables(),
            ["x", "y"]
        );
        assert!(
            recipe("a://{x}", ResourceBody::Text("Hi {{ x }}".to_owned()))
                .add(Server::new("s"))
                .is_ok()
        );
    }
}
