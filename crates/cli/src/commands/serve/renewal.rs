//! The configuration read again while the server runs: all of it holds from now on, or nothing changes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::auth::Authenticator;
use creole::seal::Secrets;
use creole_gateway::plan::ClientScope;
use creole_gateway::{ConfigSource, Plan};
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::premises::secrets;
use super::served::{Heir, Served};
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::{log, output};

/// How often the file is looked at, which also works where systems tell of no changes: on network file systems and
/// mounted volumes. A file that still changes between two looks is not read yet.
const LOOK: Duration = Duration::from_millis(500);

/// How long a document that could not be fetched is left alone, at first and at most.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// A configuration that runs, and can be read again.
pub(super) struct Renewal {
    args: ServeArgs,
    callers: Option<Authenticator>,
    told: ClientScope,
    /// Held while the configuration is read again, which may take as long as its servers take to be reached.
    running: Mutex<Running>,
    /// The servers, in the order of the plan. Held for a moment only, so that the end waits for no reload.
    served: StdMutex<Vec<Served>>,
    /// Whether the servers were closed, or are being closed.
    closing: watch::Sender<bool>,
    /// Whether documents are being fetched again.
    fetches: AtomicBool,
}

struct Running {
    plan: Plan,
}

impl Renewal {
    pub(super) fn new(
        plan: &Plan,
        args: &ServeArgs,
        served: Vec<Served>,
        callers: Option<Authenticator>,
        told: ClientScope,
    ) -> Arc<Self> {
        let running = Mutex::new(Running { plan: plan.clone() });
        let (served, closing) = (StdMutex::new(served), watch::Sender::new(false));
        let fetches = AtomicBool::new(false);
        Arc::new(Self { args: args.clone(), callers, told, running, served, closing, fetches })
    }

    /// Whether there is a file that can be read again; what ships inside stays as it is.
    pub(super) fn is_of_a_file(&self) -> bool {
        matches!(self.args.chosen.source(), ConfigSource::File(_))
    }

    /// Reads the configuration again whenever its file changes or one that is part of it, for as long as the process
    /// lives.
    pub(super) fn watch(self: &Arc<Self>) {
        if let ConfigSource::File(file) = self.args.chosen.source() {
            self.follow(file);
            let is_missing =
                |running: &Running| running.plan.unfetched_documents().next().is_some();
            if self.running.try_lock().is_ok_and(|running| is_missing(&running)) {
                self.fetch_again();
            }
        }
    }

    /// Fetches documents again that could not be fetched, for as long as there are any, less and less often.
    fn fetch_again(self: &Arc<Self>) {
        let renewal = Arc::downgrade(self);
        if self.fetches.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            let mut wait = RETRY;
            loop {
                sleep(wait).await;
                wait = (wait * 2).min(LONGEST_RETRY);
                let Some(renewal) = renewal.upgrade() else { return };
                match renewal.renew_documents().await {
                    Ok(true) => {}
                    Ok(false) => return renewal.fetches.store(false, Ordering::Release),
                    Err(failure) => {
                        let reason = failure.to_string();
                        tracing::warn!(target: "creole", reason, "documents were not fetched again");
                    }
                }
            }
        });
    }

    /// Serves the tools of documents that can be fetched now and could not before; tells whether some still cannot.
    async fn renew_documents(&self) -> Result<bool, Failure> {
        let mut running = self.running.lock().await;
        let plan = self.planned_after(&running.plan).await?;
        let names = |plan: &Plan| {
            plan.unfetched_documents().map(|(name, _)| name.to_owned()).collect::<Vec<String>>()
        };
        let (before, missing) = (names(&running.plan), names(&plan));
        let fetched: Vec<&str> =
            before.iter().filter(|name| !missing.contains(name)).map(String::as_str).collect();
        if fetched.is_empty() || plan.needs_restart(&running.plan, self.told).is_some() {
            return Ok(!before.is_empty());
        }
        self.replace(&mut running, plan).await?;
        let openapi = fetched.join(", ");
        tracing::info!(target: "creole", openapi, "documents were fetched");
        Ok(!missing.is_empty())
    }

    /// The configuration as it is now. A document that cannot be fetched now stays as it was in this plan.
    async fn planned_after(&self, before: &Plan) -> Result<Plan, Failure> {
        let args = self.args.clone();
        // A document may have to be fetched, and calls go on meanwhile.
        let planned = spawn_blocking(move || super::planned(&args)).await;
        let mut plan = planned.map_err(|error| Failure::Serve(error.to_string()))??;
        plan.reuse_documents(before);
        Ok(plan)
    }

    // Apart, since its future takes two pages of the stack, which a start without a file would touch.
    #[inline(never)]
    fn follow(self: &Arc<Self>, file: &Path) {
        let (file, renewal) = (file.to_owned(), Arc::clone(self));
        let mut read = HashMap::from([(file.clone(), stamp(&file))]);
        // At once, and not when there is time for it: a change in between would be missed.
        if let Ok(running) = self.running.try_lock() {
            note_parts(&running.plan, &mut read);
        }
        tokio::spawn(async move {
            loop {
                sleep(LOOK).await;
                let seen = looked_at(&read, stamp).await;
                if seen.get(&file).is_none_or(Option::is_none) || seen == read {
                    continue;
                }
                sleep(LOOK).await;
                if looked_at(&read, stamp).await == seen {
                    read = seen;
                    renewal.read_again().await;
                    let parts = renewal.running.lock().await.plan.included_files();
                    let new = parts.into_iter().filter(|file| !read.contains_key(file));
                    let new = new.map(|file| (file, None)).collect();
                    read.extend(looked_at(&new, stamp).await);
                }
            }
        });
    }

    /// Reads the configuration again, and says what came of it.
    pub(super) async fn read_again(self: &Arc<Self>) {
        if !self.is_of_a_file() {
            return;
        }
        let name = self.args.chosen.source().name();
        let renewed = self.renew().await;
        if self.running.lock().await.plan.unfetched_documents().next().is_some() {
            self.fetch_again();
        }
        match renewed {
            Ok(changed) if changed.is_empty() => {
                output::talk(&format!("creole: {name} was read again; the lists are the same"));
            }
            Ok(changed) => {
                let changed = changed.join(", ");
                output::talk(&format!("creole: {name} was read again; changed: {changed}"));
            }
            Err(failure) => {
                output::talk(&format!(
                    "{failure}\ncreole: {name} was rejected; the previous configuration stays in force"
                ));
            }
        }
    }

    async fn renew(&self) -> Result<Vec<&'static str>, Failure> {
        let mut running = self.running.lock().await;
        let plan = self.planned_after(&running.plan).await?;
        if let Some(what) = plan.needs_restart(&running.plan, self.told) {
            let detail = format!("{what} cannot change while the server runs; start it again");
            return Err(Failure::Refused(detail));
        }
        let level = super::log_of(&running.plan, &self.args).level;
        // First, because connections are observed or not by what is logged when they begin.
        log::set_level(super::log_of(&plan, &self.args).level);
        let replaced = self.replace(&mut running, plan).await;
        if replaced.is_err() {
            log::set_level(level);
        }
        replaced
    }

    /// Serves what is planned instead of what runs; tells which lists are different.
    async fn replace(
        &self,
        running: &mut Running,
        plan: Plan,
    ) -> Result<Vec<&'static str>, Failure> {
        let plans = plan.split();
        let before = self.lock().clone();
        let heirs =
            before.iter().zip(&plans).map(|(served, plan)| served.succeed(plan, &self.args));
        let heirs: Vec<Heir> = heirs.collect::<Result<_, _>>()?;
        let ready = async {
            for heir in &heirs {
                heir.ready().await;
            }
        };
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|is_closing| *is_closing) => return Err(ends()),
            () = ready => {}
        }
        // All that can fail comes first, and nothing is changed by it.
        let credentials = match (&self.callers, &plan.auth) {
            (Some(callers), Some(auth)) => Some(callers.read(creole_cli::callers(auth)?)?),
            _ => None,
        };
        let keys: Vec<Option<Secrets>> = plans.iter().map(secrets).collect::<Result<_, _>>()?;
        let mut served = self.lock();
        if *self.closing.borrow() {
            return Err(ends());
        }
        // From here on nothing fails.
        if let (Some(callers), Some(credentials)) = (&self.callers, credentials) {
            callers.apply(credentials);
        }
        for (served, keys) in before.iter().zip(&keys) {
            keys.iter().for_each(|keys| served.renew_keys(keys));
        }
        running.plan = plan;
        let (after, changed): (_, Vec<_>) = heirs.into_iter().map(Heir::take_over).unzip();
        *served = after;
        Ok(distinct(changed.concat()))
    }

    /// Ends the conversations with the servers behind. A reload that is under way is given up.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let served = self.lock().clone();
        for served in served {
            served.close().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a reload is given up when the server ends.
fn ends() -> Failure {
    Failure::Serve("the server ends".to_owned())
}

/// Each of them once, in the order of their first places.
fn distinct(mut names: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// When a file was written, how long it is, and which file it is.
type Stamp = (Option<std::time::SystemTime>, u64, u64);

/// Begins to look at files that are part of the configuration and were not looked at before.
fn note_parts(plan: &Plan, read: &mut HashMap<PathBuf, Option<Stamp>>) {
    for file in plan.included_files() {
        let now = stamp(&file);
        read.entry(file).or_insert(now);
    }
}

/// The same files as they are now. A file system may take long to answer, so this is not done on a thread that serves.
async fn looked_at(
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
