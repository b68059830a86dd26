//! The tasks as async code uses them: in a file, by one connection that is opened on first use and never on the runtime's
//! threads, or on a server.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::database::{Database, Page, Update};
use super::error::StoreError;
use super::server::TaskServer;
use super::task::{Status, Task};
use crate::Options;
use crate::database::Address;

/// The file's name in the data directory.
pub(super) const FILE: &str = "tasks.sqlite3";

/// Names the database of the tasks where the options do not.
const VARIABLE: &str = "CREOLE_TASKS_URL";

/// A handle to the tasks; clones share its connections.
#[derive(Clone)]
pub(super) struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    kept: Kept,
    changes: watch::Sender<()>,
}

/// Where tasks are kept.
enum Kept {
    File(TaskFile),
    Server(TaskServer),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// A file that is opened when it is first needed.
struct TaskFile {
    options: Options,
    /// The file, if it is not the usual one in the directory for data.
    named: Option<PathBuf>,
    database: Mutex<Option<Database>>,
}

impl Store {
    /// A store at the place that the options say. Nothing is opened yet.
    pub(super) fn new(options: Options) -> Self {
        let kept = match address(&options) {
            Err(why) => Kept::Nowhere(why),
            Ok(Some(Address::Postgres(server))) => Kept::Server(TaskServer::new(&server)),
            Ok(Some(Address::Sqlite(file))) => Kept::file(options, Some(file)),
            Ok(None) => Kept::file(options, None),
        };
        Self { shared: Arc::new(Shared { kept, changes: watch::Sender::new(()) }) }
    }

    pub(super) async fn create(&self, description: String) -> Result<Task, StoreError> {
        let created = match &self.shared.kept {
            Kept::Server(server) => server.create(&description).await,
            _ => self.work(move |database| database.create(&description)).await,
        };
        self.changed(created)
    }

    pub(super) async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        match &self.shared.kept {
            Kept::Server(server) => server.task(&id).await,
            _ => self.work(move |database| database.task(&id)).await,
        }
    }

    pub(super) async fn page(
        &self,
        status: Option<Status>,
        after: i64,
        limit: usize,
    ) -> Result<Page, StoreError> {
        match &self.shared.kept {
            Kept::Server(server) => server.page(status, after, limit).await,
            _ => self.work(move |database| database.page(status, after, limit)).await,
        }
    }

    pub(super) async fn update(
        &self,
        id: &str,
        update: Update,
    ) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        let updated = match &self.shared.kept {
            Kept::Server(server) => server.update(&id, &update).await,
            _ => self.work(move |database| database.update(&id, &update)).await,
        };
        self.changed(updated)
    }

    pub(super) async fn delete(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        let deleted = match &self.shared.kept {
            Kept::Server(server) => server.delete(&id).await,
            _ => self.work(move |database| database.delete(&id)).await,
        };
        self.changed(deleted)
    }

    pub(super) async fn ids(
        &self,
        prefix: String,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        match &self.shared.kept {
            Kept::Server(server) => server.ids(&prefix, limit).await,
            _ => self.work(move |database| database.ids(&prefix, limit)).await,
        }
    }

    /// Tells of every change that this process makes.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    fn changed<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if done.is_ok() {
            self.shared.changes.send_replace(());
        }
        done
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        let done = spawn_blocking(move || shared.kept.with_file(work)).await;
        done.unwrap_or(Err(StoreError::Broken))
    }
}

/// Where the tasks are, if it is said.
fn address(options: &Options) -> Result<Option<Address>, String> {
    if options.tasks.is_some() {
        return Ok(options.tasks.clone());
    }
    let named = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
    named.map(|url| Address::parse(&url, None, Path::new(""))).transpose()
}

impl Kept {
    fn file(options: Options, named: Option<PathBuf>) -> Self {
        Self::File(TaskFile { options, named, database: Mutex::default() })
    }

    /// Runs the work on the file.
    fn with_file<T>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::File(file) => file.with_database(work),
            Self::Nowhere(why) => Err(StoreError::Address(why.clone())),
            Self::Server(_) => Err(StoreError::Broken),
        }
    }
}

impl TaskFile {
    /// Runs the work on the open database. One that could not be opened, or that turned out to be
    /// unusable, is opened again next time.
    fn with_database<T>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // A panic rolls its transaction back, so it leaves nothing half done.
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let done = match &mut *database {
            Some(open) => work(open),
            closed => work(closed.insert(self.open()?)),
        };
        if done.as_ref().is_err_and(StoreError::spoils_the_connection) {
            *database = None;
        }
        done
    }

    fn open(&self) -> Result<Database, StoreError> {
        let file = match &self.named {
            Some(file) => file.clone(),
            None => self.options.directory().ok_or(StoreError::NoPlace)?.join(FILE),
        };
        if let Some(directory) = file.parent().filter(|it| !it.as_os_str().is_empty()) {
            make_directory(directory)
                .map_err(|error| StoreError::Directory(directory.to_owned(), error))?;
        }
        Database::open(&file)
    }
}

/// Makes the directory, for its owner only.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_became_writable_again_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(Options {
            data_dir: Some(directory.path().to_owned()),
            ..Options::default()
        });
        store.create("before".into()).await.unwrap();
        let forbid = |database: &mut Database| {
            database.connection.pragma_update(None, "query_only", true).unwrap();
            Ok(())
        };
        store.work(forbid).await.unwrap();
        let error = store.create("during".into()).await.unwrap_err().to_string();
        assert!(error.contains("cannot be written"), "{error}");
        store.create("after".into()).await.unwrap();
        assert_eq!(store.ids(String::new(), 10).await.unwrap().len(), 2);
    }
}
