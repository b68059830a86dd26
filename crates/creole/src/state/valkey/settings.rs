//! The settings of a connection to a Valkey or Redis server.

use std::fmt;
use std::time::Duration;

/// How a Valkey or Redis server is reached, and which part of it is used.
#[derive(Clone)]
#[non_exhaustive]
pub struct ValkeySettings {
    /// The address: `valkey://`, `valkeys://`, `redis://` or `rediss://`, then `USER@`, host, port and `/DATABASE`; or
    /// `unix://` with the path of a socket. The schemes that end with `s` encrypt.
    pub address: String,
    /// The password. It is never part of the address, because addresses are shown in messages.
    pub password: Option<String>,
    /// The namespace. Processes of the same name share their data, and do not see that of other names.
    pub name: String,
    /// The limit on the time of an operation.
    pub timeout: Duration,
    /// How many replicas of the server must acknowledge a conditional write.
    pub wait_replicas: u32,
    /// The trusted authorities in PEM form; otherwise those of the system.
    pub ca_certificates: Option<Vec<u8>>,
    /// The sentinels that know the server. The address then gives only scheme, user and database.
    pub sentinel: Option<ValkeySentinel>,
    /// Whether the server is a node of a cluster.
    pub cluster: bool,
    /// Whether an unencrypted connection to another machine is allowed.
    pub insecure: bool,
}

/// The sentinels that know which server is the master.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValkeySentinel {
    /// Their addresses, as `HOST:PORT`.
    pub nodes: Vec<String>,
    /// The name of the master.
    pub master: String,
}

impl ValkeySettings {
    /// Settings for an address, with the default of everything else.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            password: None,
            name: "creole".to_owned(),
            timeout: Duration::from_secs(2),
            wait_replicas: 0,
            ca_certificates: None,
            sentinel: None,
            cluster: false,
            insecure: false,
        }
    }

    /// Sets the password.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the namespace.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the limit on the time of an operation.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many replicas must acknowledge a conditional write.
    #[must_use]
    pub fn wait_replicas(mut self, count: u32) -> Self {
        self.wait_replicas = count;
        self
    }

    /// Sets the trusted authorities, in PEM form.
    #[must_use]
    pub fn ca_certificates(mut self, certificates: impl Into<Vec<u8>>) -> Self {
        self.ca_certificates = Some(certificates.into());
        self
    }

    /// Asks these sentinels, as `HOST:PORT`, for the server of this name.
    #[must_use]
    pub fn sentinel(mut self, nodes: Vec<String>, master: impl Into<String>) -> Self {
        self.sentinel = Some(ValkeySentinel { nodes, master: master.into() });
        self
    }

    /// Sets whether the server is a node of a cluster.
    #[must_use]
    pub fn cluster(mut self, is_cluster: bool) -> Self {
        self.cluster = is_cluster;
        self
    }

    /// Sets whether an unencrypted connection to another machine is allowed.
    #[must_use]
    pub fn insecure(mut self, is_allowed: bool) -> Self {
        self.insecure = is_allowed;
        self
    }
}

impl fmt::Debug for ValkeySettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ValkeySettings")
            .field("address", &self.address)
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
