//! The task file as async code uses it: one connection, opened on first use, never on the runtime's
//! threads.

use std::fs::DirBuilder;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::database::{Database, Page, Update};
use super::error::StoreError;
use super::task::{Status, Task};
use crate::Options;

/// The file's name in the data directory.
pub(super) const FILE: &str = "tasks.sqlite3";

/// A handle to the tasks; clones share one connection.
#[derive(Clone)]
pub(super) struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    database: Mutex<Option<Database>>,
    changes: watch::Sender<()>,
}

impl Store {
    /// A store at the place that the options say. Nothing is opened yet.
    pub(super) fn new(options: Options) -> Self {
        let shared =
            Shared { options, database: Mutex::default(), changes: watch::Sender::new(()) };
        Self { shared: Arc::new(shared) }
    }

    pub(super) async fn create(&self, description: String) -> Result<Task, StoreError> {
        self.change(move |database| database.create(&description)).await
    }

    pub(super) async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        self.work(move |database| database.task(&id)).await
    }

    pub(super) async fn page(
        &self,
        status: Option<Status>,
        after: i64,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.work(move |database| database.page(status, after, limit)).await
    }

    pub(super) async fn update(
        &self,
        id: &str,
        update: Update,
    ) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        self.change(move |database| database.update(&id, &update)).await
    }

    pub(super) async fn delete(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        self.change(move |database| database.delete(&id)).await
    }

    pub(super) async fn ids(
        &self,
        prefix: String,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.work(move |database| database.ids(&prefix, limit)).await
    }

    /// Tells of every change that this process makes.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let changed = self.work(work).await?;
        self.shared.changes.send_replace(());
        Ok(changed)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        let done = spawn_blocking(move || shared.with_database(work)).await;
        done.unwrap_or(Err(StoreError::Broken))
    }
}

impl Shared {
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
        let directory = self.options.directory().ok_or(StoreError::NoPlace)?;
        make_directory(&directory)
            .map_err(|error| StoreError::Directory(directory.clone(), error))?;
        Database::open(&directory.join(FILE))
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
