//! Reloads the configuration while the server runs. A reload takes effect as a whole or changes nothing.

mod history;

pub(crate) use history::{RejectedReload, ReloadHistory, config_digest};

use creole::internal::sync::Mutex as StdMutex;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use creole::Secrets;
use creole::auth::{AuthError, Authenticator};
use creole::internal::telemetry::metrics::{Gauge, table};
use creole_telemetry::process::{self, BuildInfo, ProcessMetrics};
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::instance::{InstanceOptions, PendingReload, ServerInstance};
use crate::plan::ClientScope;
use crate::{ConfigError, Plan, RunError, auth_settings, seal_keys};

/// How often the files are checked. Polling also works where the system reports no changes: on network file systems and
/// mounted volumes. A file that still changes between two checks is not read yet.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The first delay before a failed fetch of a document is retried. It doubles up to the maximum.
const FETCH_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_FETCH_RETRY_DELAY: Duration = Duration::from_secs(60);

/// What a reload needs from the program that runs the configuration.
pub trait ReloadHost: Send + Sync {
    /// The configuration file, if there is one.
    fn file(&self) -> Option<&Path>;

    /// Loads the current configuration.
    ///
    /// # Errors
    /// With the message for the user.
    fn load_plan(&self) -> Result<Plan, LoadFailure>;

    /// Sets the log level of this plan.
    fn set_log_level(&self, plan: &Plan);

    /// Shows a message to the user.
    fn write_message(&self, message: &str);
}

/// Why a configuration cannot be loaded.
#[derive(Debug)]
pub struct LoadFailure {
    /// The message for the user.
    pub message: String,
    /// The error in the configuration, if it is that.
    pub error: Option<Box<ConfigError>>,
}

impl From<ConfigError> for LoadFailure {
    fn from(error: ConfigError) -> Self {
        Self { message: error.to_string(), error: Some(Box::new(error)) }
    }
}

/// Why a configuration was rejected, for the user.
#[derive(Debug)]
struct Rejection {
    message: String,
    error: Option<Box<ConfigError>>,
    /// What cannot change while the server runs.
    restart_needed: Option<&'static str>,
}

impl From<RunError> for Rejection {
    fn from(error: RunError) -> Self {
        Self { message: error.to_string(), error: None, restart_needed: None }
    }
}

impl From<LoadFailure> for Rejection {
    fn from(failure: LoadFailure) -> Self {
        Self { message: failure.message, error: failure.error, restart_needed: None }
    }
}

impl From<AuthError> for Rejection {
    fn from(error: AuthError) -> Self {
        RunError::from(error).into()
    }
}

/// A running configuration that can be reloaded.
pub struct Reloader {
    host: Arc<dyn ReloadHost>,
    options: InstanceOptions,
    authenticator: Option<Authenticator>,
    client_scope: ClientScope,
    /// Locked during a reload, which may take as long as its upstreams take to connect.
    running: Mutex<RunningConfig>,
    /// The instances, in the order of the plan. Locked only briefly, so that shutdown does not wait for a reload.
    instances: StdMutex<Vec<ServerInstance>>,
    /// What operators see of the reloads.
    history: StdMutex<ReloadHistory>,
    /// Whether the servers are closed or closing.
    closing: watch::Sender<bool>,
    /// Whether failed fetches of documents are being retried.
    is_fetching: AtomicBool,
    /// When the running configuration was loaded, for the metrics.
    loaded_at: Gauge,
    /// The metrics of the process, if metrics are counted.
    _process: Option<ProcessMetrics>,
}

struct RunningConfig {
    plan: Plan,
}

impl Reloader {
    /// A reloader for the running servers of a plan.
    pub fn new(
        plan: &Plan,
        host: Arc<dyn ReloadHost>,
        options: InstanceOptions,
        served: Vec<ServerInstance>,
        callers: Option<Authenticator>,
        scope: ClientScope,
    ) -> Arc<Self> {
        let running = Mutex::new(RunningConfig { plan: plan.clone() });
        let (served, closing) = (StdMutex::new(served), watch::Sender::new(false));
        let fetches = AtomicBool::new(false);
        let history = ReloadHistory {
            plan: Arc::new(plan.clone()),
            loaded: SystemTime::now(),
            text: config_text(&*host),
            accepted: 0,
            rejected: 0,
            rejection: None,
        };
        let metrics = options.telemetry.metrics();
        let features = if cfg!(feature = "wordpress") { "wordpress" } else { "" };
        let build = BuildInfo {
            version: env!("CARGO_PKG_VERSION"),
            revision: option_env!("CREOLE_REVISION").unwrap_or(""),
            features,
        };
        let process = metrics.is_enabled().then(|| process::register(metrics, build));
        let loaded_at = metrics.gauge(&table::CONFIG_LOADED, &[]);
        for outcome in ["accepted", "refused"] {
            metrics.add(&table::CONFIG_RELOADS, &[outcome], 0);
        }
        let reloader = Arc::new(Self {
            host,
            options,
            authenticator: callers,
            client_scope: scope,
            running,
            instances: served,
            history: StdMutex::new(history),
            closing,
            is_fetching: fetches,
            loaded_at,
            _process: process,
        });
        reloader.describe_replica(config_text(&*reloader.host).as_deref());
        reloader.set_loaded_now();
        reloader
    }

    /// Whether there is a file to reload. Presets do not change.
    pub fn has_file(&self) -> bool {
        self.host.file().is_some()
    }

    /// Reloads whenever the configuration file or an included file changes, until the process ends.
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

    /// Retries failed fetches of documents with increasing delays until none is missing.
    fn retry_fetches(self: &Arc<Self>) {
        let reloader = Arc::downgrade(self);
        if self.is_fetching.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            let mut wait = FETCH_RETRY_DELAY;
            loop {
                sleep(wait).await;
                wait = (wait * 2).min(MAX_FETCH_RETRY_DELAY);
                let Some(reloader) = reloader.upgrade() else { return };
                match reloader.reload_documents().await {
                    Ok(true) => {}
                    Ok(false) => return reloader.is_fetching.store(false, Ordering::Release),
                    Err(Rejection { message: reason, .. }) => {
                        tracing::warn!(target: "creole", reason, "cannot fetch the OpenAPI documents again");
                    }
                }
            }
        });
    }

    /// Serves the tools of documents that can be fetched now. Returns whether some are still missing.
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
        tracing::info!(target: "creole", openapi, "the OpenAPI documents were fetched");
        Ok(!missing.is_empty())
    }

    /// Loads the current configuration. A document that cannot be fetched is taken over from the plan `before`.
    async fn load_plan_after(&self, before: &Plan) -> Result<Plan, Rejection> {
        let host = Arc::clone(&self.host);
        // Loading may fetch a document, so it runs on a blocking thread while calls go on.
        let planned = spawn_blocking(move || host.load_plan()).await;
        let planned = planned.map_err(|error| RunError::Serve(error.to_string()))?;
        let mut plan = planned.map_err(Rejection::from)?;
        plan.reuse_documents(before);
        Ok(plan)
    }

    // A separate function: its future takes two pages of the stack, which a start without a file must not touch.
    #[inline(never)]
    fn watch_file(self: &Arc<Self>, file: &Path) {
        let (file, reloader) = (file.to_owned(), Arc::clone(self));
        let mut read = HashMap::from([(file.clone(), stamp(&file))]);
        // Recorded before the task starts, so that no change in between is missed.
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
                    reloader.reload_and_report().await;
                    let parts = reloader.running.lock().await.plan.included_files();
                    let new = parts.into_iter().filter(|file| !read.contains_key(file));
                    let new = new.map(|file| (file, None)).collect();
                    read.extend(current_stamps(&new, stamp).await);
                }
            }
        });
    }

    /// Reloads the configuration and reports the outcome to the user.
    pub async fn reload_and_report(self: &Arc<Self>) {
        let Some(file) = self.host.file() else { return };
        let name = file.display();
        let text = config_text(&*self.host);
        let renewed = self.reload().await;
        self.count_reload(renewed.is_ok());
        self.record(text, renewed.as_ref().map(drop));
        if self.running.lock().await.plan.unfetched_documents().next().is_some() {
            self.retry_fetches();
        }
        match renewed {
            Ok(changed) if changed.is_empty() => {
                self.host.write_message(&format!(
                    "creole: {name} was reloaded; the lists are unchanged"
                ));
            }
            Ok(changed) => {
                let changed = changed.join(", ");
                self.host
                    .write_message(&format!("creole: {name} was reloaded; changed: {changed}"));
            }
            Err(Rejection { message: reason, .. }) => {
                self.host.write_message(&format!(
                    "{reason}\ncreole: {name} was rejected; the previous configuration stays active"
                ));
            }
        }
    }

    /// Tells the other replicas which configuration is in force.
    fn describe_replica(&self, text: Option<&str>) {
        for replicas in self.instances().iter().filter_map(|instance| instance.replicas.as_ref()) {
            replicas.describe(env!("CARGO_PKG_VERSION"), config_digest(text));
        }
    }

    /// Records the outcome of a reload for operators.
    fn record(&self, text: Option<Arc<str>>, outcome: Result<(), &Rejection>) {
        if outcome.is_ok() {
            self.describe_replica(text.as_deref());
        }
        let mut history = self.history.lock();
        match outcome {
            Ok(()) => {
                history.accepted += 1;
                (history.loaded, history.text, history.rejection) = (SystemTime::now(), text, None);
            }
            Err(rejection) => {
                history.rejected += 1;
                history.rejection = Some(RejectedReload {
                    at: SystemTime::now(),
                    text,
                    message: rejection.message.clone(),
                    error: rejection.error.clone(),
                    restart_needed: rejection.restart_needed,
                });
            }
        }
    }

    /// The running instances.
    pub(crate) fn instances(&self) -> Vec<ServerInstance> {
        self.lock().clone()
    }

    /// The configuration file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.host.file()
    }

    /// The plan in force, and the reloads so far.
    pub(crate) fn history(&self) -> MutexGuard<'_, ReloadHistory> {
        self.history.lock()
    }

    fn count_reload(&self, is_accepted: bool) {
        let outcome = if is_accepted { "accepted" } else { "refused" };
        self.options.telemetry.metrics().count(&table::CONFIG_RELOADS, &[outcome]);
        if is_accepted {
            self.set_loaded_now();
        }
    }

    fn set_loaded_now(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.loaded_at.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    }

    async fn reload(&self) -> Result<Vec<&'static str>, Rejection> {
        let mut running = self.running.lock().await;
        let plan = self.load_plan_after(&running.plan).await?;
        if let Some(description) = plan.needs_restart(&running.plan, self.client_scope) {
            let detail =
                format!("{description} cannot change while the server runs; restart the server");
            let rejection = Rejection::from(RunError::Refused(detail));
            return Err(Rejection { restart_needed: Some(description), ..rejection });
        }
        // Set first: whether a connection is observed depends on the log level when it begins.
        self.host.set_log_level(&plan);
        let replaced = self.replace(&mut running, plan).await;
        if replaced.is_err() {
            self.host.set_log_level(&running.plan);
        }
        replaced
    }

    /// Replaces the running servers by those of the plan. Returns the lists that differ.
    async fn replace(
        &self,
        running: &mut RunningConfig,
        plan: Plan,
    ) -> Result<Vec<&'static str>, Rejection> {
        let plans = plan.split();
        let before = self.lock().clone();
        let pending_reloads = before
            .iter()
            .zip(&plans)
            .map(|(served, plan)| served.prepare_replacement(plan, &self.options));
        let pending_reloads: Vec<PendingReload> = pending_reloads.collect::<Result<_, _>>()?;
        let ready = async {
            for pending_reload in &pending_reloads {
                pending_reload.wait_until_ready().await;
            }
        };
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|is_closing| *is_closing) => return Err(shutdown_failure()),
            () = ready => {}
        }
        // Every step that can fail comes first and changes nothing.
        let credentials = match (&self.authenticator, &plan.auth) {
            (Some(callers), Some(auth)) => Some(callers.read(auth_settings(&plan, auth)?)?),
            _ => None,
        };
        let keys: Vec<Option<Secrets>> = plans.iter().map(seal_keys).collect::<Result<_, _>>()?;
        let mut served = self.lock();
        if *self.closing.borrow() {
            return Err(shutdown_failure());
        }
        // Nothing below can fail.
        if let (Some(callers), Some(credentials)) = (&self.authenticator, credentials) {
            callers.apply(credentials);
        }
        for (served, keys) in before.iter().zip(&keys) {
            keys.iter().for_each(|keys| served.reload_keys(keys));
        }
        self.options.export.apply(&plan.telemetry);
        self.history.lock().plan = Arc::new(plan.clone());
        running.plan = plan;
        let (after, changed): (_, Vec<_>) =
            pending_reloads.into_iter().map(PendingReload::swap).unzip();
        *served = after;
        Ok(deduplicated(changed.concat()))
    }

    /// Waits until no other replica waits for a call that runs here.
    pub async fn finish_replica_requests(&self) {
        let served = self.lock().clone();
        for served in served {
            served.finish_replica_requests().await;
        }
    }

    /// Closes the upstream connections. A running reload is abandoned.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let served = self.lock().clone();
        for served in served {
            served.close().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ServerInstance>> {
        self.instances.lock()
    }
}

/// The rejection of a reload that the shutdown interrupts.
fn shutdown_failure() -> Rejection {
    RunError::Serve("the server is shutting down".to_owned()).into()
}

/// Removes duplicates. Each name stays at its first position.
fn deduplicated(mut names: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// The text of the configuration file, for operators.
fn config_text(host: &dyn ReloadHost) -> Option<Arc<str>> {
    std::fs::read_to_string(host.file()?).ok().map(Arc::from)
}

/// The modification time, length and identity of a file.
type Stamp = (Option<SystemTime>, u64, u64);

/// Adds the included files that are not watched yet.
fn add_included_files(plan: &Plan, read: &mut HashMap<PathBuf, Option<Stamp>>) {
    for file in plan.included_files() {
        let now = stamp(&file);
        read.entry(file).or_insert(now);
    }
}

/// The current stamps of these files. A file system may respond slowly, so this does not run on a runtime thread.
async fn current_stamps(
    files: &HashMap<PathBuf, Option<Stamp>>,
    stamp: impl Fn(&Path) -> Option<Stamp> + Send + 'static,
) -> HashMap<PathBuf, Option<Stamp>> {
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    let look = move || names.into_iter().map(|file| (file.clone(), stamp(&file))).collect();
    // Without a result, such as during shutdown, nothing counts as changed.
    spawn_blocking(look).await.unwrap_or_else(|_| files.clone())
}

/// The stamp of a file, which differs after every write: modification time, length and identity.
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
