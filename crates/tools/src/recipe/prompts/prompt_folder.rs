//! Serves a folder of prompts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use creole::Registry;
use creole::internal::registry::ItemSource;
use creole::proto::model::ListKind;
use creole::proto::operation::Change;

use super::prompt_file::PromptFile;
use super::{PromptsRecipe, stem};
use crate::files::FileError;
use crate::files::file_filter::FileFilter;
use crate::files::root::{FileMetadata, ReadError, RootDirectory};
use crate::files::scan::{ScanResult, is_gone, scan};
use crate::files::watch::{FolderWatch, WatchTarget};

/// Maximum number of prompts in a folder.
const MAX_PROMPTS: usize = 1000;
/// Maximum size of a prompt, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// A folder of prompts.
pub(super) struct PromptFolder {
    recipe: PromptsRecipe,
    root: RootDirectory,
    last_scan: ScanResult,
    /// The last valid version of each prompt, by file name.
    files: BTreeMap<String, Arc<PromptFile>>,
    source: Option<Arc<ItemSource>>,
}

impl PromptFolder {
    pub(super) fn new(recipe: &PromptsRecipe) -> Self {
        Self {
            root: RootDirectory::new(&recipe.path),
            recipe: recipe.clone(),
            last_scan: ScanResult::default(),
            files: BTreeMap::new(),
            source: None,
        }
    }

    /// Reads the folder for the first time. Returns the errors of its files.
    pub(super) fn load(&mut self) -> Result<Vec<FileError>, FileError> {
        let scan = self.scan().map_err(|error| {
            let message = format!("cannot read the folder of prompts: {error}");
            FileError::new(&self.recipe.path, message)
                .help("use a folder that contains Markdown files")
        })?;
        let (_, problems) = self.apply_scan(scan, &BTreeSet::new());
        Ok(problems)
    }

    fn scan(&self) -> std::io::Result<ScanResult> {
        let rules =
            FileFilter { include: Vec::new(), exclude: Vec::new(), hidden: false, max_depth: 0 };
        let mut found = scan(&self.root, &rules, MAX_PROMPTS)?;
        found.files.retain(|path, _| stem(path.as_ref()).is_some());
        Ok(found)
    }

    /// Applies a scan of the folder. Returns whether anything changed, and the errors.
    fn apply_scan(
        &mut self,
        scan: ScanResult,
        written: &BTreeSet<PathBuf>,
    ) -> (bool, Vec<FileError>) {
        let mut problems = Vec::new();
        if let Some(cut) =
            scan.truncation.as_ref().filter(|_| scan.truncation != self.last_scan.truncation)
        {
            let message = format!("the folder of prompts has {cut}; the others are excluded");
            problems.push(FileError::new(&self.recipe.path, message).help("split it"));
        }
        let before = self.files.len();
        self.files.retain(|file, _| scan.files.contains_key(file));
        let mut changed = self.files.len() != before;
        for (file, facts) in &scan.files {
            if !self.is_new(file, facts, written) {
                continue;
            }
            match self.read(file) {
                Ok(Some(page)) => {
                    self.files.insert(file.clone(), Arc::new(page));
                    changed = true;
                }
                // The file was removed meanwhile, which will be reported.
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        self.last_scan = scan;
        (changed, problems)
    }

    fn is_new(&self, file: &str, facts: &FileMetadata, changed: &BTreeSet<PathBuf>) -> bool {
        self.last_scan.files.get(file) != Some(facts)
            || changed.contains(&self.root.path().join(file))
    }

    fn read(&self, file: &str) -> Result<Option<PromptFile>, FileError> {
        let path = self.recipe.path.join(file);
        let Some(name) = stem(file.as_ref()) else { return Ok(None) };
        match self.root.read(file, MAX_FILE_BYTES) {
            Ok(bytes) => PromptFile::read(name, &path, &bytes).map(Some),
            Err(ReadError::NotFound) => Ok(None),
            Err(ReadError::TooLarge) => {
                let message = format!("the file has more than {MAX_FILE_BYTES} bytes");
                Err(FileError::new(&path, message).help("shorten the prompt"))
            }
            Err(ReadError::Failed(error)) => {
                Err(FileError::new(&path, format!("cannot read the file: {error}")))
            }
        }
    }

    /// Publishes the prompts, and keeps them up to date.
    pub(super) fn start(mut self, registry: &Registry) {
        let name = self.recipe.name.clone();
        // The source is kept here too, so that the list stays if the folder cannot be watched.
        let source = Arc::new(registry.add_source());
        registry.attach(Arc::clone(&source));
        self.source = Some(source);
        self.publish();
        if !self.recipe.watch {
            return;
        }
        match FolderWatch::start(self) {
            Ok(watch) => registry.attach(watch),
            Err(error) => tracing::warn!("prompts `{name}`: cannot watch for changes: {error}"),
        }
    }

    fn publish(&self) {
        let Some(source) = &self.source else { return };
        let prompts = self.files.values().map(|page| page.to_prompt(&self.recipe.prefix));
        for name in source.set_prompts(prompts.collect()) {
            let folder = &self.recipe.name;
            tracing::warn!(
                "prompts `{folder}`: another prompt has the name `{name}`; set a `prefix`"
            );
        }
    }
}

impl WatchTarget for PromptFolder {
    fn name(&self) -> String {
        format!("prompts `{}`", self.recipe.name)
    }

    fn root(&self) -> PathBuf {
        self.root.path().to_owned()
    }

    fn folders(&self) -> Vec<PathBuf> {
        let top = self.root.path();
        // The folder itself may be replaced, which its parent folder reports.
        top.parent().into_iter().chain([top]).map(PathBuf::from).collect()
    }

    fn on_change(&mut self, written: &BTreeSet<PathBuf>) {
        let scan = match self.scan() {
            Ok(scan) => scan,
            Err(error) if is_gone(&error) => ScanResult::default(),
            Err(error) => {
                let name = &self.recipe.name;
                return tracing::warn!("cannot read the prompts `{name}`: {error}");
            }
        };
        let (changed, problems) = self.apply_scan(scan, written);
        for problem in problems {
            tracing::error!("the last valid version of a prompt is kept: {problem}");
        }
        if changed {
            self.publish();
            if let Some(source) = &self.source {
                source.announce(Change::List(ListKind::Prompts));
            }
        }
    }
}
