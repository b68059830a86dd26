//! Resolves the table `[state]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use creole::client::oauth::SecretText;
use creole::state::{PostgresSettings, State, StateError, StateLimits, ValkeySettings};

use crate::plan::items::database::password;
use crate::plan::upstream::CaCertificates;
use crate::plan::{count, file, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Ranged, Spanned};
use crate::tables::state::{SentinelTable, StateTable};

/// Where tasks and sessions are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum StatePlan {
    /// In an SQLite file.
    File(PathBuf),
    /// In a store on the network.
    Store(Box<StateStorePlan>),
}

/// A store on the network.
#[derive(Clone, Debug, PartialEq)]
pub struct StateStorePlan {
    /// What is reached at the address.
    pub kind: StoreKind,
    /// The address, without a password.
    pub url: String,
    /// The password of the user.
    pub password: Option<SecretText>,
    /// The name of the replicas.
    pub name: String,
    /// The limit on the time of an operation.
    pub timeout: Duration,
    /// The certificates of the trusted authorities. Default: those of the system.
    pub certificates: Option<CaCertificates>,
    /// Whether an unencrypted connection to another machine is allowed.
    pub is_insecure: bool,
}

/// The kinds of stores, with the settings of each.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreKind {
    /// Valkey or Redis.
    Valkey {
        /// How many replicas of the server must confirm a conditional write.
        wait_replicas: u32,
        /// Whether the server belongs to a cluster.
        is_cluster: bool,
        /// The sentinels, as `HOST:PORT`, and the name of the server that they watch.
        sentinel: Option<(Vec<String>, String)>,
    },
    /// PostgreSQL, and its address without a connection pooler.
    Postgres {
        /// The address for the connection that waits for notifications.
        listen_url: Option<String>,
    },
}

/// The default name of the replicas.
const DEFAULT_NAME: &str = "creole";
/// The longest name. Names of servers are appended to it.
const MAX_NAME: usize = 24;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// The storage, and the file of the seal keys.
pub(super) fn resolve(
    table: Option<StateTable>,
    folder: &Path,
) -> Result<(Option<StatePlan>, Option<PathBuf>), ConfigProblem> {
    let Some(mut table) = table else { return Ok((None, None)) };
    let keys_file = table.keys_file.take().map(|value| file("keys_file", value)).transpose()?;
    let state = match (table.url.take(), table.file.take()) {
        (None, None) => {
            refuse_store_settings(&table)?;
            None
        }
        (None, Some(path)) => {
            refuse_store_settings(&table)?;
            Some(StatePlan::File(file("file", path)?))
        }
        (Some(_), Some(path)) => {
            let message = "`url` and `file` exclude each other; remove one of them";
            return Err(ConfigProblem::new(message).at(path.span));
        }
        (Some(url), None) if keys_file.is_none() => {
            let message =
                "`url` needs `keys_file`: the replicas encrypt what they store with its key";
            let help = "create the file with `openssl rand -hex 32`, and give it to all replicas";
            return Err(ConfigProblem::new(message).help(help).at(url.span));
        }
        (Some(url), None) => Some(StatePlan::Store(Box::new(store(url, table, folder)?))),
    };
    Ok((state, keys_file))
}

/// Refuses the settings of a store where there is none.
fn refuse_store_settings(table: &StateTable) -> Result<(), ConfigProblem> {
    let texts = [
        ("password", &table.password),
        ("password_file", &table.password_file),
        ("name", &table.name),
        ("ca_file", &table.ca_file),
        ("listen_url", &table.listen_url),
    ];
    let texts = texts.into_iter().filter_map(|(key, value)| Some((key, &value.as_ref()?.span)));
    let others = [
        ("wait_replicas", table.wait_replicas.as_ref().map(|it| &it.span)),
        ("cluster", table.cluster.as_ref().map(|it| &it.span)),
        ("sentinel", table.sentinel.as_ref().map(|it| &it.span)),
    ];
    let others = others.into_iter().filter_map(|(key, span)| Some((key, span?)));
    let Some((key, span)) = texts.chain(others).next() else { return Ok(()) };
    let message = format!("`{key}` has no effect without `url`");
    Err(ConfigProblem::new(message).help("add `url`, or remove it").at(span.clone()))
}

fn store(
    url: Spanned<String>,
    mut table: StateTable,
    folder: &Path,
) -> Result<StateStorePlan, ConfigProblem> {
    let certificates = table.ca_file.take().map(|path| certificates(path, folder)).transpose()?;
    let password = password(table.password.take(), table.password_file.take(), folder)?;
    let name = table.name.take().map_or_else(|| Ok(DEFAULT_NAME.to_owned()), checked_name)?;
    let timeout = table.timeout_seconds.map_or(DEFAULT_TIMEOUT, |it| seconds(it.get()));
    let is_insecure = table.insecure.unwrap_or_default();
    let Spanned { value: url, span } = url;
    let kind = match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => postgres(table)?,
        Some("valkey" | "valkeys" | "redis" | "rediss" | "unix") => valkey(table)?,
        _ => {
            let help = "use `valkey://`, `valkeys://`, `redis://`, `rediss://`, `unix://` or `postgres://`";
            let problem = ConfigProblem::new("`url` has no known scheme").help(help);
            return Err(problem.at(span).hide_value());
        }
    };
    let password = password.map(SecretText::new);
    let plan = StateStorePlan { kind, url, password, name, timeout, certificates, is_insecure };
    let checked = match plan.settings(&plan.name) {
        StoreSettings::Valkey(settings) => settings.check(),
        StoreSettings::Postgres(settings) => settings.check(),
    };
    // The address may contain a password.
    checked.map_err(|reason| ConfigProblem::new(reason).at(span).hide_value())?;
    Ok(plan)
}

fn valkey(table: StateTable) -> Result<StoreKind, ConfigProblem> {
    if let Some(listen) = table.listen_url {
        return Err(ConfigProblem::new("`listen_url` is only valid for PostgreSQL").at(listen.span));
    }
    let sentinel =
        table.sentinel.map(|Spanned { value: SentinelTable { nodes, master }, .. }| {
            (nodes.into_iter().map(|node| node.value).collect(), master.value)
        });
    let wait_replicas = table.wait_replicas.map_or(0, |it| Ranged::get(it.value));
    Ok(StoreKind::Valkey {
        wait_replicas: u32::try_from(count(wait_replicas)).unwrap_or(u32::MAX),
        is_cluster: table.cluster.is_some_and(|it| it.value),
        sentinel,
    })
}

fn postgres(table: StateTable) -> Result<StoreKind, ConfigProblem> {
    let others = [
        ("wait_replicas", table.wait_replicas.map(|it| it.span)),
        ("cluster", table.cluster.map(|it| it.span)),
        ("sentinel", table.sentinel.map(|it| it.span)),
    ];
    for (key, span) in others {
        if let Some(span) = span {
            let message = format!("`{key}` is only valid for Valkey and Redis");
            return Err(ConfigProblem::new(message).at(span));
        }
    }
    Ok(StoreKind::Postgres { listen_url: table.listen_url.map(|it| it.value) })
}

/// Reads the certificates of authorities.
fn certificates(value: Spanned<String>, folder: &Path) -> Result<CaCertificates, ConfigProblem> {
    let span = value.span.clone();
    let path = folder.join(file("ca_file", value)?);
    let shown = path.display().to_string();
    CaCertificates::read(path)
        .map_err(|reason| ConfigProblem::new(format!("`{shown}` {reason}")).at(span))
}

fn checked_name(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value: name, span } = value;
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(name);
    }
    let help = format!("use 1 to {MAX_NAME} lowercase letters, digits, `-` and `_`");
    Err(ConfigProblem::new(format!("invalid name `{name}`")).help(help).at(span))
}

/// The settings of a store for the library.
enum StoreSettings {
    Valkey(ValkeySettings),
    Postgres(PostgresSettings),
}

impl StateStorePlan {
    fn settings(&self, name: &str) -> StoreSettings {
        let certificates = self.certificates.as_ref().map(CaCertificates::pem);
        match &self.kind {
            StoreKind::Valkey { wait_replicas, is_cluster, sentinel } => {
                let mut settings = ValkeySettings::new(&self.url)
                    .name(name)
                    .timeout(self.timeout)
                    .wait_replicas(*wait_replicas)
                    .cluster(*is_cluster)
                    .insecure(self.is_insecure);
                if let Some((nodes, master)) = sentinel {
                    settings = settings.sentinel(nodes.clone(), master);
                }
                if let Some(password) = &self.password {
                    settings = settings.password(password.expose());
                }
                if let Some(certificates) = certificates {
                    settings = settings.ca_certificates(certificates);
                }
                StoreSettings::Valkey(settings)
            }
            StoreKind::Postgres { listen_url } => {
                let mut settings = PostgresSettings::new(&self.url)
                    .name(name)
                    .timeout(self.timeout)
                    .insecure(self.is_insecure);
                if let Some(listen_url) = listen_url {
                    settings = settings.listen_address(listen_url);
                }
                if let Some(password) = &self.password {
                    settings = settings.password(password.clone());
                }
                if let Some(certificates) = certificates {
                    settings = settings.ca_certificates(certificates);
                }
                StoreSettings::Postgres(settings)
            }
        }
    }
}

impl StatePlan {
    /// The storage of another server of the same process. Servers do not share tasks and sessions.
    pub(crate) fn of_server(&self, server: &str) -> Self {
        match self {
            Self::File(file) => Self::File(file.with_extension(format!("{server}.sqlite"))),
            Self::Store(store) => {
                let name = format!("{}-{}", store.name, short_digest(server));
                Self::Store(Box::new(StateStorePlan { name, ..(**store).clone() }))
            }
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Store(_) => None,
        }
    }

    /// The files that it includes.
    pub(crate) fn included_files(&self) -> Option<&Path> {
        match self {
            Self::File(_) => None,
            Self::Store(store) => store.certificates.as_ref().map(CaCertificates::file),
        }
    }

    pub(crate) fn resolve_paths(self, folder: &Path) -> Self {
        match self {
            Self::File(file) => Self::File(folder.join(file)),
            store @ Self::Store(_) => store,
        }
    }

    /// Opens the storage.
    pub(crate) async fn open(&self) -> Result<State, StateError> {
        let limits = StateLimits::default();
        match self {
            Self::File(file) => State::sqlite(file, limits).await,
            Self::Store(store) => match store.settings(&store.name) {
                StoreSettings::Valkey(settings) => State::valkey(settings, limits).await,
                StoreSettings::Postgres(settings) => State::postgres(settings, limits).await,
            },
        }
    }
}

/// Where the state is, for a person.
impl std::fmt::Display for StatePlan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => write!(formatter, "{}", file.display()),
            Self::Store(store) => {
                let (scheme, rest) = store.url.split_once("://").unwrap_or_default();
                // User and password come before the host.
                let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
                let host = host.split_once('?').map_or(host, |(host, _)| host);
                write!(formatter, "{scheme}://{host} as `{}`", store.name)
            }
        }
    }
}

/// Eight digits that stand for a name which may be too long, or have other characters than a name of replicas.
fn short_digest(name: &str) -> String {
    let digest = creole::internal::seal::digest(name.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
