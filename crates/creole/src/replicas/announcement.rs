//! What a replica announces of itself in a log from time to time: its name, the newest format of records that it reads,
//! its version and its configuration. By the log, each replica knows the others, and which format all of them read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::{HEARTBEAT, ReplicaShared};
use crate::state::{LogRetention, State, StateError};
use crate::telemetry::metrics::Gauge;

/// The log.
const LOG: &str = "replicas";

/// How much of the log is kept: a replica that starts learns of all others from it.
const RETENTION: LogRetention = LogRetention { entries: 4096, ttl: Duration::from_secs(90) };

/// The time between two announcements of few replicas.
const MIN_INTERVAL: Duration = Duration::from_secs(4);

/// The longest time between two announcements.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

/// The time between the announcements of two of many replicas: together, they make ten operations a second.
const SPACING: Duration = Duration::from_millis(200);

/// What precedes the name of a replica that leaves.
const LEFT: &str = "-";

/// What a replica tells the others about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaDescription {
    /// The version of its program.
    pub version: String,
    /// The SHA-256 of its configuration, in hexadecimal digits.
    pub config: String,
    /// When it started, in seconds since 1970.
    pub started: u64,
}

/// Another replica.
#[derive(Clone, Debug)]
pub struct OtherReplica {
    /// Its name.
    pub name: String,
    /// What it tells about itself.
    pub description: ReplicaDescription,
    /// Since when this process knows it with this configuration.
    pub config_since: Instant,
}

/// An entry of the log.
#[derive(Serialize, Deserialize)]
struct AnnouncementEntry {
    name: String,
    /// The newest format of records that it reads.
    format: u8,
    #[serde(flatten)]
    description: ReplicaDescription,
}

/// Announces the replica until its last handle is dropped, and shows the number of replicas. Must be called within a
/// tokio runtime.
pub(super) fn start(shared: &Arc<ReplicaShared>, count: Option<Gauge>) {
    let (mut described, shared) = (shared.description.subscribe(), Arc::downgrade(shared));
    let show = move |number| count.iter().for_each(|gauge| gauge.set(number));
    show(1);
    tokio::spawn(async move {
        let mut known = KnownReplicas::default();
        while let Some(shared) = shared.upgrade() {
            // While the state fails, what is known stays. The failure has metrics of its own.
            let description = described.borrow_and_update().clone();
            if known.update(&shared.state, &shared.name, description).await.is_ok() {
                show(i64::try_from(known.count().max(1)).unwrap_or(i64::MAX));
                known.choose_format(&shared.state);
                *shared.others.lock() = known.others(&shared.name);
            }
            drop(shared);
            // A change is announced at once. At the end of the replica there is no more of them.
            _ = timeout(known.interval(), described.changed()).await;
        }
    });
}

/// Tells the other replicas that this one leaves.
pub(super) async fn leave(shared: &ReplicaShared) -> Result<(), StateError> {
    let entry = format!("{LEFT}{}", shared.name);
    shared.state.append(LOG, entry.into(), RETENTION).await.map(drop)
}

/// The replicas that announced themselves, this one among them.
#[derive(Default)]
struct KnownReplicas {
    read_up_to: u64,
    replicas: HashMap<String, Announcement>,
    /// Whether an update over too many versions was reported.
    is_gap_reported: bool,
}

/// The last announcement of a replica.
struct Announcement {
    read_at: Instant,
    newest_format: u8,
    description: ReplicaDescription,
    /// When the first announcement with this configuration was read.
    config_since: Instant,
}

impl KnownReplicas {
    /// Announces this replica, and reads what the others announced since.
    async fn update(
        &mut self,
        state: &State,
        name: &str,
        description: ReplicaDescription,
    ) -> Result<(), StateError> {
        let (name, format) = (name.to_owned(), state.formats().newest);
        let entry = serde_json::to_vec(&AnnouncementEntry { name, format, description });
        state.append(LOG, entry.unwrap_or_default().into(), RETENTION).await?;
        let mut read = state.read_after(LOG, self.read_up_to, RETENTION.entries).await;
        if let Err(StateError::Trimmed { resume_after }) = read {
            self.read_up_to = resume_after;
            read = state.read_after(LOG, resume_after, RETENTION.entries).await;
        }
        for (number, entry) in read? {
            self.read_up_to = number;
            self.apply(&String::from_utf8_lossy(&entry));
        }
        let (now, window) = (Instant::now(), 2 * self.interval() + HEARTBEAT);
        self.replicas.retain(|_, announced| announced.read_at + window > now);
        Ok(())
    }

    /// All but this one, the oldest first.
    fn others(&self, own: &str) -> Vec<OtherReplica> {
        let others = self.replicas.iter().filter(|(name, _)| *name != own);
        let mut others: Vec<_> = others
            .map(|(name, announced)| OtherReplica {
                name: name.clone(),
                description: announced.description.clone(),
                config_since: announced.config_since,
            })
            .collect();
        others.sort_by(|a, b| {
            (a.description.started, &a.name).cmp(&(b.description.started, &b.name))
        });
        others
    }

    fn apply(&mut self, entry: &str) {
        if let Some(name) = entry.strip_prefix(LEFT) {
            self.replicas.remove(name);
        } else if let Ok(entry) = serde_json::from_str::<AnnouncementEntry>(entry) {
            let AnnouncementEntry { name, format: newest_format, description } = entry;
            let read_at = Instant::now();
            let before = self.replicas.get(&name);
            let before = before.filter(|before| before.description.config == description.config);
            let config_since = before.map_or(read_at, |before| before.config_since);
            let announcement = Announcement { read_at, newest_format, description, config_since };
            self.replicas.insert(name, announcement);
        }
    }

    fn count(&self) -> usize {
        self.replicas.len()
    }

    /// The time until the next announcement.
    fn interval(&self) -> Duration {
        let count = u32::try_from(self.count()).unwrap_or(u32::MAX);
        SPACING.saturating_mul(count).clamp(MIN_INTERVAL, MAX_INTERVAL)
    }

    /// Lets the state write the newest format that all replicas read.
    fn choose_format(&mut self, state: &State) {
        let formats = state.formats();
        let newest_formats = self.replicas.values().map(|announced| announced.newest_format);
        let Some(common) = newest_formats.min() else { return };
        if common < formats.oldest && !self.is_gap_reported {
            self.is_gap_reported = true;
            tracing::warn!(
                "a replica reads records up to format {common}, and this version reads {} to {}: they cannot share \
                 sessions and calls; update all replicas one version at a time",
                formats.oldest,
                formats.newest
            );
        }
        // After an outage, a replica may be about to announce itself again.
        if common <= state.written_format() || !state.was_unavailable_within(RETENTION.ttl) {
            state.write_format(common);
        }
    }
}
