//! A folder of prompts while it is served.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use creole::proto::model::ListKind;
use creole::proto::operation::Change;
use creole::{Registry, Source};

use super::page::Page;
use super::{PromptsRecipe, stem};
use crate::files::Problem;
use crate::files::root::{Facts, Root, Unread};
use crate::files::rules::Rules;
use crate::files::scan::{Found, is_gone, scan};
use crate::files::watch::{Watch, Watched};

/// How many prompts a folder may hold.
const MOST_PROMPTS: usize = 1000;
/// How many bytes a prompt may have.
const LONGEST_FILE: u64 = 256 * 1024;

/// A folder of prompts.
pub(super) struct Served {
    recipe: PromptsRecipe,
    root: Root,
    found: Found,
    /// The prompts as they last were right, by the names of their files.
    pages: BTreeMap<String, Arc<Page>>,
    source: Option<Arc<Source>>,
}

impl Served {
    pub(super) fn new(recipe: &PromptsRecipe) -> Self {
        Self {
            root: Root::new(&recipe.path),
            recipe: recipe.clone(),
            found: Found::default(),
            pages: BTreeMap::new(),
            source: None,
        }
    }

    /// Reads the folder for the first time; tells what is wrong with its files.
    pub(super) fn load(&mut self) -> Result<Vec<Problem>, Problem> {
        let found = self.scan().map_err(|error| {
            let what = format!("the folder of prompts cannot be read: {error}");
            Problem::new(&self.recipe.path, what).help("name a folder that holds Markdown files")
        })?;
        let (_, problems) = self.take(found, &BTreeSet::new());
        Ok(problems)
    }

    fn scan(&self) -> std::io::Result<Found> {
        let rules = Rules { include: Vec::new(), exclude: Vec::new(), hidden: false, depth: 0 };
        let mut found = scan(&self.root, &rules, MOST_PROMPTS)?;
        found.files.retain(|path, _| stem(path.as_ref()).is_some());
        Ok(found)
    }

    /// Takes over what is in the folder now; tells whether anything changed, and what is wrong.
    fn take(&mut self, found: Found, written: &BTreeSet<PathBuf>) -> (bool, Vec<Problem>) {
        let mut problems = Vec::new();
        if let Some(cut) = found.cut.as_ref().filter(|_| found.cut != self.found.cut) {
            let what = format!("the folder of prompts has {cut}; the others are left out");
            problems.push(Problem::new(&self.recipe.path, what).help("split it"));
        }
        let before = self.pages.len();
        self.pages.retain(|file, _| found.files.contains_key(file));
        let mut changed = self.pages.len() != before;
        for (file, facts) in &found.files {
            if !self.is_new(file, facts, written) {
                continue;
            }
            match self.read(file) {
                Ok(Some(page)) => {
                    self.pages.insert(file.clone(), Arc::new(page));
                    changed = true;
                }
                // It went away meanwhile, and will be told of.
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        self.found = found;
        (changed, problems)
    }

    fn is_new(&self, file: &str, facts: &Facts, written: &BTreeSet<PathBuf>) -> bool {
        self.found.files.get(file) != Some(facts) || written.contains(&self.root.path().join(file))
    }

    fn read(&self, file: &str) -> Result<Option<Page>, Problem> {
        let path = self.recipe.path.join(file);
        let Some(name) = stem(file.as_ref()) else { return Ok(None) };
        match self.root.read(file, LONGEST_FILE) {
            Ok(bytes) => Page::read(name, &path, &bytes).map(Some),
            Err(Unread::NotThere) => Ok(None),
            Err(Unread::TooLarge) => {
                let what = format!("this file has more than {LONGEST_FILE} bytes");
                Err(Problem::new(&path, what).help("a prompt is shorter"))
            }
            Err(Unread::Failed(error)) => {
                Err(Problem::new(&path, format!("this file cannot be read: {error}")))
            }
        }
    }

    /// Offers the prompts, and from now on what becomes of them.
    pub(super) fn begin(mut self, registry: &Registry) {
        let name = self.recipe.name.clone();
        // Kept here too, so that what is listed stays if it cannot be watched.
        let source = Arc::new(registry.source());
        registry.keep(Arc::clone(&source));
        self.source = Some(source);
        self.list();
        if !self.recipe.watch {
            return;
        }
        match Watch::start(self) {
            Ok(watch) => registry.keep(watch),
            Err(error) => tracing::warn!("prompts `{name}`: changes will not be noticed: {error}"),
        }
    }

    fn list(&self) {
        let Some(source) = &self.source else { return };
        let prompts = self.pages.values().map(|page| page.prompt(&self.recipe.prefix));
        for name in source.set_prompts(prompts.collect()) {
            let folder = &self.recipe.name;
            tracing::warn!(
                "prompts `{folder}`: there is a prompt `{name}` already; set a `prefix`"
            );
        }
    }
}

impl Watched for Served {
    fn name(&self) -> String {
        format!("prompts `{}`", self.recipe.name)
    }

    fn top(&self) -> PathBuf {
        self.root.path().to_owned()
    }

    fn folders(&self) -> Vec<PathBuf> {
        let top = self.root.path();
        // The folder may be replaced as a whole, which is told by the one that it is in.
        top.parent().into_iter().chain([top]).map(PathBuf::from).collect()
    }

    fn look(&mut self, written: &BTreeSet<PathBuf>) {
        let found = match self.scan() {
            Ok(found) => found,
            Err(error) if is_gone(&error) => Found::default(),
            Err(error) => {
                let name = &self.recipe.name;
                return tracing::warn!("prompts `{name}` cannot be read: {error}");
            }
        };
        let (changed, problems) = self.take(found, written);
        for problem in problems {
            tracing::error!("a prompt stays as it last was right: {problem}");
        }
        if changed {
            self.list();
            if let Some(source) = &self.source {
                source.announce(Change::List(ListKind::Prompts));
            }
        }
    }
}
