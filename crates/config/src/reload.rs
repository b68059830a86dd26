//! The configuration read again while the server runs: all of it holds from now on, or nothing changes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::auth::{AuthError, Authenticator};
use creole::seal::Secrets;
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::instance::{InstanceOptions, PendingReload, ServerInstance};
use crate::plan::ClientScope;
use crate::{Plan, RunError, auth_settings, seal_keys};

/// How often the file is looked at, which also works where systems tell of no changes: on network file systems and
/// mounted volumes. A file that still changes between two looks is not read yet.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a document that could not be fetched is left alone, at first and at most.
const FETCH_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_FETCH_RETRY_DELAY: Duration = Duration::from_secs(60);

/// What a reload needs of the program that runs the configuration.
pub trait ReloadHost: Send + Sync {
    /// The file of the configuration, if it comes from one.
    fn file(&self) -> Option<&Path>;

    /// Loads the configuration as it is now.
    ///
    /// # Errors
    /// With the message for the user.
    fn load_plan(&self) -> Result<Plan, String>;

    /// Logs at the level of this plan from now on.
    fn set_log_level(&self, plan: &Plan);

    /// Shows a message to the user.
    fn write_message(&self, message: &str);
}

/// Why a configuration was rejected, for the user.
#[derive(Debug)]
struct Rejection(String);

impl From<RunError> for Rejection {
    fn from(error: RunError) -> Self {
        Self(error.to_string())
    }
}

impl From<AuthError> for Rejection {
    fn from(error: AuthError) -> Self {
        RunError::from(error).into()
    }
}

/// A configuration that runs, and can be read again.
pub struct Reloader {
    host: Arc<dyn ReloadHost>,
    options: InstanceOptions,
    authenticator: Option<Authenticator>,
    client_scope: ClientScope,
    /// Held while the configuration is read again, which may take as long as its servers take to be reached.
    running: Mutex<RunningConfig>,
    /// The servers, in the order of the plan. Held for a moment only, so that the end waits for no reload.
    instances: StdMutex<Vec<ServerInstance>>,
    /// Whether the servers were closed, or are being closed.
    closing: watch::Sender<bool>,
    /// Whether documents are being fetched again.
    is_fetching: AtomicBool,
}

struct RunningConfig {
    plan: Plan,
}

impl Reloader {
    /// The servers of a plan, which run already.
    pub fn new(
        plan: &Plan,
        host: Arc<dyn ReloadHost>,
        options: InstanceOptions,
        served: Vec<ServerInstance>,
        callers: Option<Authenticator>,
        told: ClientScope,
    ) -> Arc<Self> {
        let running = Mutex::new(RunningConfig { plan: plan.clone() });
        let (served, closing) = (StdMutex::new(served), watch::Sender::new(false));
        let fetches = AtomicBool::new(false);
        Arc::new(Self {
            host,
            options,
            authenticator: callers,
            client_scope: told,
            running,
            instances: served,
            closing,
            is_fetching: fetches,
        })
    }

    /// Whether there is a file that can be read again; what ships inside stays as it is.
    pub fn has_file(&self) -> bool {
        self.host.file().is_some()
    }

    /// Reads the configuration again whenever its file changes or one that is part of it, for as long as the process
    /// lives.
    pub fn watch(self: &Arc<Self>) {
        if let Some(file) = self.host.file() {
            self.watch_file(file);
            let is_missing =
                |running: &RunningConfig| running.plan.unfetched_documents().next().is_some();
            if self.running.try_lock().is_ok_and(|running| is_missing(&running)) {
                self.retry_fetches();
            }
        }
    }

    /// Fetches documents again that could not be fetched, for as long as there are any, less and less often.
    fn retry_fetches(self: &Arc<Self>) {
        let renewal = Arc::downgrade(self);
        if self.is_fetching.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            let mut wait = FETCH_RETRY_DELAY;
            loop {
                sleep(wait).await;
                wait = (wait * 2).min(MAX_FETCH_RETRY_DELAY);
                let Some(renewal) = renewal.upgrade() else { return };
                match renewal.reload_documents().await {
                    Ok(true) => {}
                    Ok(false) => return renewal.is_fetching.store(false, Ordering::Release),
                    Err(Rejection(reason)) => {
                        tracing::warn!(target: "creole", reason, "documents were not fetched again");
                    }
                }
            }
        });
    }

    /// Serves the tools of documents that can be fetched now and could not before; tells whether some still cannot.
    async fn reload_documents(&self) -> Result<bool, Rejection> {
        let mut running = self.running.lock().await;
        let plan = self.load_plan_after(&running.plan).await?;
        let names = |plan: &Plan| {
            plan.unfetched_documents().map(|(name, _)| name.to_owned()).collect::<Vec<String>>()
        };
        let (before, missing) = (names(&running.plan), names(&plan));
        let fetched: Vec<&str> =
            before.iter().filter(|name| !missing.contains(name)).map(String::as_str).collect();
        if fetched.is_empty() || plan.needs_restart(&running.plan, self.client_scope).is_some() {
            return Ok(!before.is_empty());
        }
        self.replace(&mut running, plan).await?;
        let openapi = fetched.join(", ");
        tracing::info!(target: "creole", openapi, "documents were fetched");
        Ok(!missing.is_empty())
    }

    /// The configuration as it is now. A document that cannot be fetched now stays as it was in this plan.
    async fn load_plan_after(&self, before: &Plan) -> Result<Plan, Rejection> {
        let host = Arc::clone(&self.host);
        // A document may have to be fetched, and calls go on meanwhile.
        let planned = spawn_blocking(move || host.load_plan()).await;
        let planned = planned.map_err(|error| RunError::Serve(error.to_string()))?;
        let mut plan = planned.map_err(Rejection)?;
        plan.reuse_documents(before);
        Ok(plan)
    }

    // Apart, since its future takes two pages of the stack, which a start without a file would touch.
    #[inline(never)]
    fn watch_file(self: &Arc<Self>, file: &Path) {
        let (file, renewal) = (file.to_owned(), Arc::clone(self));
        let mut read = HashMap::from([(file.clone(), stamp(&file))]);
        // At once, and not when there is time for it: a change in between would be missed.
        if let Ok(running) = self.running.try_lock() {
            add_included_files(&running.plan, &mut read);
        }
        tokio::spawn(async move {
            loop {
                sleep(FILE_POLL_INTERVAL).await;
                let seen = current_stamps(&read, stamp).await;
                if seen.get(&file).is_none_or(Option::is_none) || seen == read {
                    continue;
                }
                sleep(FILE_POLL_INTERVAL).await;
                if current_stamps(&read, stamp).await == seen {
                    read = seen;
                    renewal.reload_and_report().await;
                    let parts = renewal.running.lock().await.plan.included_files();
                    let new = parts.into_iter().filter(|file| !read.contains_key(file));
                    let new = new.map(|file| (file, None)).collect();
                    read.extend(current_stamps(&new, stamp).await);
                }
            }
        });
    }

    /// Reads the configuration again, and says what came of it.
    pub async fn reload_and_report(self: &Arc<Self>) {
        let Some(file) = self.host.file() else { return };
        let name = file.display();
        let renewed = self.reload().await;
        if self.running.lock().await.plan.unfetched_documents().next().is_some() {
            self.retry_fetches();
        }
        match renewed {
            Ok(changed) if changed.is_empty() => {
                self.host.write_message(&format!(
                    "creole: {name} was read again; the lists are the same"
                ));
            }
            Ok(changed) => {
                let changed = changed.join(", ");
                self.host
                    .write_message(&format!("creole: {name} was read again; changed: {changed}"));
            }
            Err(Rejection(reason)) => {
                self.host.write_message(&format!(
                    "{reason}\ncreole: {name} was rejected; the previous configuration stays in force"
                ));
            }
        }
    }

    async fn reload(&self) -> Result<Vec<&'static str>, Rejection> {
        let mut running = self.running.lock().await;
        let plan = self.load_plan_after(&running.plan).await?;
        if let Some(what) = plan.needs_restart(&running.plan, self.client_scope) {
            let detail = format!("{what} cannot change while the server runs; start it again");
            return Err(RunError::Refused(detail).into());
        }
        // First, because connections are observed or not by what is logged when they begin.
        self.host.set_log_level(&plan);
        let replaced = self.replace(&mut running, plan).await;
        if replaced.is_err() {
            self.host.set_log_level(&running.plan);
        }
        replaced
    }

    /// Serves what is planned instead of what runs; tells which lists are different.
    async fn replace(
        &self,
        running: &mut RunningConfig,
        plan: Plan,
    ) -> Result<Vec<&'static str>, Rejection> {
        let plans = plan.split();
        let before = self.lock().clone();
        let heirs = before
            .iter()
            .zip(&plans)
            .map(|(served, plan)| served.prepare_replacement(plan, &self.options));
        let heirs: Vec<PendingReload> = heirs.collect::<Result<_, _>>()?;
        let ready = async {
            for heir in &heirs {
                heir.wait_until_ready().await;
            }
        };
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|is_closing| *is_closing) => return Err(shutdown_failure()),
            () = ready => {}
        }
        // All that can fail comes first, and nothing is changed by it.
        let credentials = match (&self.authenticator, &plan.auth) {
            (Some(callers), Some(auth)) => Some(callers.read(auth_settings(auth)?)?),
            _ => None,
        };
        let keys: Vec<Option<Secrets>> = plans.iter().map(seal_keys).collect::<Result<_, _>>()?;
        let mut served = self.lock();
        if *self.closing.borrow() {
            return Err(shutdown_failure());
        }
        // From here on nothing fails.
        if let (Some(callers), Some(credentials)) = (&self.authenticator, credentials) {
            callers.apply(credentials);
        }
        for (served, keys) in before.iter().zip(&keys) {
            keys.iter().for_each(|keys| served.reload_keys(keys));
        }
        running.plan = plan;
        let (after, changed): (_, Vec<_>) = heirs.into_iter().map(PendingReload::swap).unzip();
        *served = after;
        Ok(deduplicated(changed.concat()))
    }

    /// Ends the conversations with the servers behind. A reload that is under way is given up.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let served = self.lock().clone();
        for served in served {
            served.close().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ServerInstance>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a reload is given up when the server ends.
fn shutdown_failure() -> Rejection {
    RunError::Serve("the server ends".to_owned()).into()
}

/// Each of them once, in the order of their first places.
fn deduplicated(mut names: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// When a file was written, how long it is, and which file it is.
type Stamp = (Option<std::time::SystemTime>, u64, u64);

/// Begins to look at files that are part of the configuration and were not looked at before.
fn add_included_files(plan: &Plan, read: &mut HashMap<PathBuf, Option<Stamp>>) {
    for file in plan.included_files() {
        let now = stamp(&file);
        read.entry(file).or_insert(now);
    }
}

/// The same files as they are now. A file system may take long to answer, so this is not done on a thread that serves.
async fn current_stamps(
    files: &HashMap<PathBuf, Option<Stamp>>,
    stamp: impl Fn(&Path) -> Option<Stamp> + Send + 'static,
) -> HashMap<PathBuf, Option<Stamp>> {
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    let look = move || names.into_iter().map(|file| (file.clone(), stamp(&file))).collect();
    // Without an answer, as when the process ends, nothing has changed.
    spawn_blocking(look).await.unwrap_or_else(|_| files.clone())
}

/// What differs when a file was written: when, how long it is, and whether it is still the same file.
fn stamp(file: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(file).ok()?;
    #[cfg(unix)]
    let identity = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let identity = 0;
    Some((found.modified().ok(), found.len(), identity))
}

#[cfg(test)]
mod tests;
