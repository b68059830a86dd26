//! The asynchronous task store. A file has one connection, which is opened on first use and never used on the runtime's
//! threads. Otherwise the tasks are on a server.

use creole::internal::sync::Mutex;
use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::PackOptions;
use crate::database::DatabaseAddress;
use crate::packs::tasks::database::{TaskDatabase, TaskListPage, TaskUpdate};
use crate::packs::tasks::error::StoreError;
use crate::packs::tasks::server::TaskServer;
use crate::packs::tasks::task::{Task, TaskStatus};

/// The file's name in the data directory.
pub(crate) const FILE_NAME: &str = "tasks.sqlite3";

/// The variable with the database address, used if the options have none.
const ADDRESS_VARIABLE: &str = "CREOLE_TASKS_URL";

/// A handle to the tasks; clones share its connections.
#[derive(Clone)]
pub(crate) struct Store {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    backend: TaskBackend,
    changes: watch::Sender<()>,
}

/// The storage of the tasks.
enum TaskBackend {
    File(TaskFile),
    Server(TaskServer),
    /// None, for this reason.
    Unavailable(String),
}

/// A file that is opened on first use.
struct TaskFile {
    options: PackOptions,
    /// The file, if it is not the default one in the data directory.
    explicit_path: Option<PathBuf>,
    database: Mutex<Option<TaskDatabase>>,
}

impl Store {
    /// A store at the location in the options. Nothing is opened yet.
    pub(crate) fn new(options: PackOptions) -> Self {
        let backend = match address(&options) {
            Err(reason) => TaskBackend::Unavailable(reason),
            Ok(Some(DatabaseAddress::Postgres(server))) => {
                TaskBackend::Server(TaskServer::new(&server))
            }
            Ok(Some(DatabaseAddress::Sqlite(file))) => TaskBackend::file(options, Some(file)),
            Ok(None) => TaskBackend::file(options, None),
        };
        Self { inner: Arc::new(StoreInner { backend, changes: watch::Sender::new(()) }) }
    }

    pub(crate) async fn create(&self, description: String) -> Result<Task, StoreError> {
        let created = match &self.inner.backend {
            TaskBackend::Server(server) => server.create(&description).await,
            _ => self.work(move |database| database.create(&description)).await,
        };
        self.notify_if_changed(created)
    }

    pub(crate) async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        match &self.inner.backend {
            TaskBackend::Server(server) => server.task(&id).await,
            _ => self.work(move |database| database.task(&id)).await,
        }
    }

    pub(crate) async fn page(
        &self,
        status: Option<TaskStatus>,
        after: i64,
        limit: usize,
    ) -> Result<TaskListPage, StoreError> {
        match &self.inner.backend {
            TaskBackend::Server(server) => server.page(status, after, limit).await,
            _ => self.work(move |database| database.page(status, after, limit)).await,
        }
    }

    pub(crate) async fn update(
        &self,
        id: &str,
        update: TaskUpdate,
    ) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        let updated = match &self.inner.backend {
            TaskBackend::Server(server) => server.update(&id, &update).await,
            _ => self.work(move |database| database.update(&id, &update)).await,
        };
        self.notify_if_changed(updated)
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        let deleted = match &self.inner.backend {
            TaskBackend::Server(server) => server.delete(&id).await,
            _ => self.work(move |database| database.delete(&id)).await,
        };
        self.notify_if_changed(deleted)
    }

    pub(crate) async fn ids(
        &self,
        prefix: String,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        match &self.inner.backend {
            TaskBackend::Server(server) => server.ids(&prefix, limit).await,
            _ => self.work(move |database| database.ids(&prefix, limit)).await,
        }
    }

    /// Notifies of every change that this process makes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.inner.changes.subscribe()
    }

    fn notify_if_changed<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if done.is_ok() {
            self.inner.changes.send_replace(());
        }
        done
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut TaskDatabase) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.inner);
        let done = spawn_blocking(move || shared.backend.with_file(work)).await;
        done.unwrap_or(Err(StoreError::WorkerFailed))
    }
}

/// The configured address of the tasks, if any.
fn address(options: &PackOptions) -> Result<Option<DatabaseAddress>, String> {
    if options.tasks.is_some() {
        return Ok(options.tasks.clone());
    }
    let named = std::env::var(ADDRESS_VARIABLE).ok().filter(|url| !url.is_empty());
    named.map(|url| DatabaseAddress::parse(&url, None, Path::new(""))).transpose()
}

impl TaskBackend {
    fn file(options: PackOptions, named: Option<PathBuf>) -> Self {
        Self::File(TaskFile { options, explicit_path: named, database: Mutex::default() })
    }

    /// Runs `work` on the file.
    fn with_file<T>(
        &self,
        work: impl FnOnce(&mut TaskDatabase) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::File(file) => file.with_database(work),
            Self::Unavailable(reason) => Err(StoreError::Address(reason.clone())),
            Self::Server(_) => Err(StoreError::WorkerFailed),
        }
    }
}

impl TaskFile {
    /// Runs `work` on the open database. After a failure to open it, or if it is unusable, it is opened again next
    /// time.
    fn with_database<T>(
        &self,
        work: impl FnOnce(&mut TaskDatabase) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // A panic rolls its transaction back, so the data is consistent.
        let mut database = self.database.lock();
        let done = match &mut *database {
            Some(open) => work(open),
            closed => work(closed.insert(self.open()?)),
        };
        if done.as_ref().is_err_and(StoreError::needs_reopen) {
            *database = None;
        }
        done
    }

    fn open(&self) -> Result<TaskDatabase, StoreError> {
        let file = match &self.explicit_path {
            Some(file) => file.clone(),
            None => {
                self.options.data_directory().ok_or(StoreError::NoDataDirectory)?.join(FILE_NAME)
            }
        };
        if let Some(directory) = file.parent().filter(|path| !path.as_os_str().is_empty()) {
            make_directory(directory)
                .map_err(|error| StoreError::Directory(directory.to_owned(), error))?;
        }
        TaskDatabase::open(&file)
    }
}

/// Creates the directory, accessible to its owner only.
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
        let store = Store::new(PackOptions {
            data_dir: Some(directory.path().to_owned()),
            ..PackOptions::default()
        });
        store.create("before".into()).await.unwrap();
        let forbid = |database: &mut TaskDatabase| {
            database.connection.pragma_update(None, "query_only", true).unwrap();
            Ok(())
        };
        store.work(forbid).await.unwrap();
        let error = store.create("during".into()).await.unwrap_err().to_string();
        assert!(error.contains("cannot write the task file"), "{error}");
        store.create("after".into()).await.unwrap();
        assert_eq!(store.ids(String::new(), 10).await.unwrap().len(), 2);
    }
}
