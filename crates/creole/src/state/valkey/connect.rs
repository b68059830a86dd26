//! Connections to the server that holds the data: directly, through sentinels, or in a cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, RedisConnectionInfo, Value, cmd};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::address::{Endpoint, parse_address, parse_host};
use super::failure::ConnectFailure;
use super::settings::ValkeySettings;
use crate::tls::TlsClient;

/// Maximum number of commands that wait to be written.
const MAX_UNSENT_COMMANDS: usize = 256;

/// Everything that is needed to connect.
#[derive(Debug)]
pub(super) struct ConnectPlan {
    /// The address as messages show it.
    pub(super) store: Arc<str>,
    pub(super) timeout: Duration,
    pub(super) wait_replicas: u32,
    target: Target,
    /// A key of the namespace. All others are on the same server.
    key: String,
    tls: Option<TlsClient>,
    insecure: bool,
    user: Option<String>,
    password: Option<Password>,
    database: i64,
}

/// A password, which no message shows.
struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

#[derive(Debug)]
enum Target {
    Server(Endpoint),
    Sentinels { nodes: Vec<Endpoint>, master: String },
    Cluster(Endpoint),
}

/// A connection, whose task ends when the server closes it, and is ended with it.
#[derive(Debug)]
pub(super) struct OpenConnection {
    pub(super) connection: MultiplexedConnection,
    pub(super) task: TaskGuard,
}

/// A task that ends with its owner.
#[derive(Debug)]
pub(super) struct TaskGuard(pub(super) JoinHandle<()>);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Receives the messages of a connection.
pub(super) type PushHandler = Arc<dyn Fn(PushInfo) + Send + Sync>;

trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

impl ConnectPlan {
    /// Checks the settings; the error is a sentence.
    pub(super) fn new(settings: &ValkeySettings, key: String) -> Result<Self, String> {
        let address = parse_address(&settings.address)?;
        let tls = match (&settings.ca_certificates, address.is_encrypted) {
            (_, false) => None,
            (None, true) => Some(TlsClient::with_system_roots()?),
            (Some(certificates), true) => Some(TlsClient::with_roots(certificates)?),
        };
        if settings.cluster && address.database != 0 {
            return Err("a cluster has only the database 0; leave it out of the address".to_owned());
        }
        let target = match &settings.sentinel {
            Some(_) if settings.cluster => {
                return Err("sentinels and a cluster exclude each other; set one".to_owned());
            }
            Some(sentinel) => {
                let nodes: Result<Vec<_>, _> =
                    sentinel.nodes.iter().map(|node| parse_host(node)).collect();
                Target::Sentinels { nodes: nodes?, master: sentinel.master.clone() }
            }
            None if settings.cluster => Target::Cluster(address.endpoint),
            None => Target::Server(address.endpoint),
        };
        let plan = Self {
            store: settings.address.as_str().into(),
            timeout: settings.timeout,
            wait_replicas: settings.wait_replicas,
            target,
            key,
            tls,
            insecure: settings.insecure,
            user: address.user,
            password: settings.password.clone().map(Password),
            database: address.database,
        };
        plan.check_encryption()?;
        Ok(plan)
    }

    fn check_encryption(&self) -> Result<(), String> {
        match &self.target {
            Target::Server(endpoint) | Target::Cluster(endpoint) => self.check_endpoint(endpoint),
            Target::Sentinels { nodes, .. } if nodes.is_empty() => {
                Err("no sentinel is named; write their addresses as HOST:PORT".to_owned())
            }
            Target::Sentinels { nodes, .. } => {
                nodes.iter().try_for_each(|node| self.check_endpoint(node))
            }
        }
    }

    fn check_endpoint(&self, endpoint: &Endpoint) -> Result<(), String> {
        if self.tls.is_some() || self.insecure || endpoint.is_local() {
            return Ok(());
        }
        Err("the connection to another machine would not be encrypted; write valkeys://, or set \
             insecure = true in a network that you trust"
            .to_owned())
    }

    /// Connects to the server that holds the data.
    pub(super) async fn connect(
        &self,
        messages: Option<PushHandler>,
    ) -> Result<OpenConnection, ConnectFailure> {
        let connecting = async {
            match &self.target {
                Target::Server(endpoint) => self.log_in(endpoint, messages).await,
                Target::Sentinels { nodes, master } => {
                    let endpoint = self.find_master(nodes, master).await?;
                    self.log_in(&endpoint, messages).await
                }
                Target::Cluster(seed) => {
                    let endpoint = self.find_owner(seed).await?;
                    self.log_in(&endpoint, messages).await
                }
            }
        };
        match tokio::time::timeout(self.timeout, connecting).await {
            Ok(connected) => connected,
            Err(_) => {
                Err(ConnectFailure::Unreachable(format!("no connection within {:?}", self.timeout)))
            }
        }
    }

    async fn log_in(
        &self,
        endpoint: &Endpoint,
        messages: Option<PushHandler>,
    ) -> Result<OpenConnection, ConnectFailure> {
        let mut info = RedisConnectionInfo::default().set_db(self.database);
        if let Some(user) = &self.user {
            info = info.set_username(user);
        }
        if let Some(password) = &self.password {
            info = info.set_password(&password.0);
        }
        self.open(endpoint, info, messages).await
    }

    async fn open(
        &self,
        endpoint: &Endpoint,
        mut info: RedisConnectionInfo,
        messages: Option<PushHandler>,
    ) -> Result<OpenConnection, ConnectFailure> {
        let mut config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(MAX_UNSENT_COMMANDS);
        if let Some(handle) = messages {
            info = info.set_protocol(ProtocolVersion::RESP3);
            config = config.set_push_sender(move |message| {
                handle(message);
                Ok::<(), ()>(())
            });
        }
        let stream = self.dial(endpoint).await?;
        let opened = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (connection, driver) = opened.map_err(|error| ConnectFailure::from_setup(&error))?;
        Ok(OpenConnection { connection, task: TaskGuard(tokio::spawn(driver)) })
    }

    async fn dial(&self, endpoint: &Endpoint) -> Result<Box<dyn ByteStream>, ConnectFailure> {
        self.check_endpoint(endpoint).map_err(ConnectFailure::Refused)?;
        let (host, port) = match endpoint {
            Endpoint::Tcp { host, port } => (host, *port),
            #[cfg(unix)]
            Endpoint::Unix(path) => {
                let opened = tokio::net::UnixStream::connect(path).await;
                return Ok(Box::new(opened.map_err(ConnectFailure::unreachable)?));
            }
            #[cfg(not(unix))]
            Endpoint::Unix(_) => {
                let problem = "this system has no Unix sockets; write valkey://HOST";
                return Err(ConnectFailure::Refused(problem.to_owned()));
            }
        };
        let stream = TcpStream::connect((host.as_str(), port)).await;
        let stream = stream.map_err(ConnectFailure::unreachable)?;
        stream.set_nodelay(true).map_err(ConnectFailure::unreachable)?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => {
                let encrypted = tls.connect(host, stream).await;
                Ok(Box::new(encrypted.map_err(ConnectFailure::unreachable)?))
            }
        }
    }

    /// The server that the first reachable sentinel names.
    async fn find_master(
        &self,
        nodes: &[Endpoint],
        master: &str,
    ) -> Result<Endpoint, ConnectFailure> {
        let mut problem = ConnectFailure::unreachable("no sentinel answered");
        for node in nodes {
            match self.ask_sentinel(node, master).await {
                Ok(found) => return Ok(found),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    async fn ask_sentinel(
        &self,
        node: &Endpoint,
        master: &str,
    ) -> Result<Endpoint, ConnectFailure> {
        let mut sentinel = self.open(node, RedisConnectionInfo::default(), None).await?;
        let mut command = cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
        let found: Option<(String, u16)> = command
            .query_async(&mut sentinel.connection)
            .await
            .map_err(|error| ConnectFailure::from_setup(&error))?;
        let (host, port) = found.ok_or_else(|| {
            ConnectFailure::Refused(format!(
                "the sentinels know no master {master:?}; write its name in their configuration"
            ))
        })?;
        Ok(Endpoint::Tcp { host, port })
    }

    /// The node of the cluster that holds the keys.
    async fn find_owner(&self, seed: &Endpoint) -> Result<Endpoint, ConnectFailure> {
        let mut node = self.log_in(seed, None).await?;
        let failed = |error| ConnectFailure::from_setup(&error);
        let mut command = cmd("CLUSTER");
        command.arg("KEYSLOT").arg(&self.key);
        let slot: i64 = command.query_async(&mut node.connection).await.map_err(failed)?;
        let mut command = cmd("CLUSTER");
        command.arg("SLOTS");
        let ranges: Vec<Vec<Value>> =
            command.query_async(&mut node.connection).await.map_err(failed)?;
        ranges.iter().find_map(|range| owner_of_slot(range, slot, seed)).ok_or_else(|| {
            ConnectFailure::unreachable(format!("no node of the cluster has the slot {slot}"))
        })
    }
}

/// The first node of a range of slots, if the slot is in it. A node that does not know its own host has the seed's.
fn owner_of_slot(range: &[Value], slot: i64, seed: &Endpoint) -> Option<Endpoint> {
    let [Value::Int(first), Value::Int(last), Value::Array(node), ..] = range else { return None };
    if !(*first..=*last).contains(&slot) {
        return None;
    }
    let [host, Value::Int(port), ..] = node.as_slice() else { return None };
    let host = match (host, seed) {
        (Value::BulkString(host), _) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        (_, Endpoint::Tcp { host, .. }) => host.clone(),
        (_, Endpoint::Unix(_)) => return None,
    };
    Some(Endpoint::Tcp { host, port: u16::try_from(*port).ok()? })
}
