//! Serves a folder as resources.

use creole::internal::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use creole::internal::media;
use creole::internal::registry::ItemSource;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model;
use creole::proto::model::{Annotations, ListKind, format_timestamp};
use creole::proto::operation::Change;
use creole::proto::wire::Raw;
use creole::{Contents, Registry, Resource, Template, ToolError};
use serde_json::json;

use super::FolderRecipe;
use super::uri::{FolderUris, template_value};
use crate::files::file_filter::FileFilter;
use crate::files::root::{FileMetadata, ReadError, RootDirectory};
use crate::files::scan::{ScanResult, is_gone, scan};
use crate::files::watch::{FolderWatch, WatchTarget};

/// Maximum number of completion values for a path; clients get no more anyway.
const MAX_COMPLETIONS: usize = 1000;

/// A served folder.
pub(super) struct FolderService {
    recipe: FolderRecipe,
    root: RootDirectory,
    rules: FileFilter,
    uris: FolderUris,
    /// The listed files by path.
    listed: Mutex<Arc<BTreeMap<String, FileMetadata>>>,
}

impl FolderService {
    pub(super) fn new(recipe: &FolderRecipe) -> Arc<Self> {
        Arc::new(Self {
            root: RootDirectory::new(&recipe.path).with_hard_links(recipe.hard_links),
            rules: FileFilter {
                include: recipe.include.clone(),
                exclude: recipe.exclude.clone(),
                hidden: recipe.hidden,
                max_depth: recipe.max_depth,
            },
            uris: FolderUris::new(&recipe.name),
            listed: Mutex::default(),
            recipe: recipe.clone(),
        })
    }

    pub(super) fn scan(&self) -> io::Result<ScanResult> {
        scan(&self.root, &self.rules, self.recipe.max_files)
    }

    /// Scans the folder: empty if it was removed, `None` if the scan fails, in which case the list stays unchanged.
    fn rescan(&self) -> Option<ScanResult> {
        match self.scan() {
            Ok(scan) => Some(scan),
            Err(error) if is_gone(&error) => Some(ScanResult::default()),
            Err(error) => {
                tracing::warn!("cannot read the folder `{}`: {error}", self.recipe.name);
                None
            }
        }
    }

    /// Lists the files, and keeps the list up to date.
    pub(super) fn start(self: Arc<Self>, first: ScanResult, registry: &Registry) {
        // The source is kept here too, so that the list stays if the folder cannot be watched.
        let source = Arc::new(registry.add_source());
        registry.attach(Arc::clone(&source));
        source.set_templates(vec![self.template()]);
        self.log_truncation(&first);
        self.list(&first, &source);
        if !self.recipe.watch {
            return;
        }
        let (name, keeper) =
            (self.recipe.name.clone(), FolderServiceWatch { served: self, source, last: first });
        match FolderWatch::start(keeper) {
            Ok(watch) => registry.attach(watch),
            Err(error) => tracing::warn!("folder `{name}`: cannot watch for changes: {error}"),
        }
    }

    /// Replaces the listed files.
    fn list(self: &Arc<Self>, scan: &ScanResult, source: &ItemSource) {
        *self.listed.lock() = Arc::new(scan.files.clone());
        let folder = Arc::clone(self);
        let reader = Resource::new("", "", move |uri, _| Arc::clone(&folder).read(uri));
        let resources = scan
            .files
            .iter()
            .map(|(path, facts)| reader.with_definition(self.definition(path, facts)));
        for uri in source.set_resources(resources.collect()) {
            tracing::warn!("folder `{}`: another item already has the URI {uri}", self.recipe.name);
        }
    }

    fn definition(&self, path: &str, facts: &FileMetadata) -> model::Resource {
        let name = path.rsplit('/').next().unwrap_or(path);
        let modified = u64::try_from(facts.modified / 1_000_000).ok().map(format_timestamp);
        model::Resource {
            uri: self.uris.uri_of(path),
            name: name.to_owned(),
            title: Some(path.to_owned()),
            mime_type: media::from_file_name(name).map(str::to_owned),
            size: Some(facts.size),
            annotations: Some(Annotations { last_modified: modified, ..Annotations::default() }),
            ..model::Resource::default()
        }
    }

    fn template(self: &Arc<Self>) -> Template {
        let (reader, proposer) = (Arc::clone(self), Arc::clone(self));
        let about =
            self.recipe.about.clone().unwrap_or_else(|| {
                format!("A file of the folder {}, by its path", self.recipe.name)
            });
        let read = move |uri, _, _| Arc::clone(&reader).read(uri);
        let template = Template::new(&self.uris.template(), &self.recipe.name, read)
            .about(&about)
            .complete("path", move |typed, _| {
                let proposed = proposer.complete_path(&typed);
                async move { proposed }
            });
        match &self.recipe.title {
            Some(title) => template.title(title),
            None => template,
        }
    }

    /// Reads a file, on a thread that may block.
    async fn read(self: Arc<Self>, uri: String) -> Result<Vec<Contents>, ToolError> {
        let reading = tokio::task::spawn_blocking(move || self.read_now(uri));
        reading.await.map_err(|_| internal_error("the reader thread panicked"))?
    }

    pub(super) fn read_now(&self, uri: String) -> Result<Vec<Contents>, ToolError> {
        let path = self.uris.path_of(&uri).filter(|path| self.rules.includes_file(path));
        let Some(path) = path else { return Err(not_found(&uri)) };
        match self.root.read(&path, self.recipe.max_file_bytes) {
            Ok(bytes) => {
                let kind = media::detect(&path, &bytes);
                Ok(vec![media::resource_contents(uri, kind, bytes)])
            }
            Err(ReadError::NotFound) => Err(not_found(&uri)),
            Err(ReadError::TooLarge) => {
                let max = self.recipe.max_file_bytes;
                Err(internal_error(format!("the file is larger than {max} bytes, the limit")))
            }
            // The system's message contains no path.
            Err(ReadError::Failed(error)) => {
                Err(internal_error(format!("cannot read the file: {error}")))
            }
        }
    }

    /// The completions of a path: the names in the folder that it addresses, folders with a slash.
    pub(super) fn complete_path(&self, typed: &str) -> Vec<String> {
        let listed = Arc::clone(&self.listed.lock());
        let mut proposed: Vec<String> = Vec::new();
        let matching =
            listed.keys().map(|path| template_value(path)).filter(|path| path.starts_with(typed));
        for path in matching {
            let end =
                path[typed.len()..].find('/').map_or(path.len(), |offset| typed.len() + offset + 1);
            if proposed.last().is_none_or(|last| *last != path[..end]) {
                proposed.push(path[..end].to_owned());
            }
            if proposed.len() == MAX_COMPLETIONS {
                break;
            }
        }
        proposed
    }

    fn log_truncation(&self, scan: &ScanResult) {
        if let Some(cut) = &scan.truncation {
            tracing::warn!(
                "folder `{}` has {cut}: {} are listed, the others can only be read; limit it \
                    with `include` and `exclude`, or raise `max_files`",
                self.recipe.name,
                scan.files.len()
            );
        }
    }
}

/// Scans the folder again after a change.
struct FolderServiceWatch {
    served: Arc<FolderService>,
    source: Arc<ItemSource>,
    last: ScanResult,
}

impl WatchTarget for FolderServiceWatch {
    fn name(&self) -> String {
        format!("folder `{}`", self.served.recipe.name)
    }

    fn root(&self) -> PathBuf {
        self.served.root.path().to_owned()
    }

    fn folders(&self) -> Vec<PathBuf> {
        let top = self.served.root.path();
        // The folder itself may be replaced, which its parent folder reports.
        let above = top.parent().map(PathBuf::from);
        let inner = self.last.folders.iter().map(|path| top.join(path));
        above.into_iter().chain(inner).collect()
    }

    fn on_change(&mut self, written: &BTreeSet<PathBuf>) {
        let Some(now) = self.served.rescan() else { return };
        let (before, top) = (&self.last.files, self.served.root.path());
        let was_written = |path: &String| written.contains(&top.join(path));
        let mut changed: BTreeSet<&String> = now
            .files
            .iter()
            .filter(|(path, facts)| before.get(*path) != Some(*facts) || was_written(path))
            .map(|(path, _)| path)
            .collect();
        changed.extend(before.keys().filter(|path| !now.files.contains_key(*path)));
        let is_other_list = !now.files.keys().eq(before.keys());
        if now.files != *before {
            self.served.list(&now, &self.source);
        }
        if now.truncation != self.last.truncation {
            self.served.log_truncation(&now);
        }
        if is_other_list {
            self.source.announce(Change::List(ListKind::Resources));
        }
        for path in changed {
            self.source.announce(Change::Resource(self.served.uris.uri_of(path)));
        }
        self.last = now;
    }
}

fn not_found(uri: &str) -> ToolError {
    let fault = Fault::new(FaultKind::ResourceNotFound, "").with_subject(uri);
    ToolError::Fault(Box::new(fault.with_data(Raw::from_value(&json!({ "uri": uri })))))
}

fn internal_error(message: impl Into<String>) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(FaultKind::Internal, message.into())))
}
