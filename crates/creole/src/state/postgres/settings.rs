//! The settings of a state in a PostgreSQL database.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use creole_oauth::secret::SecretText;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::tls::TlsClient;
use crate::tls::postgres::PostgresTls;

/// Maximum length of the name of a cluster. It is a part of the channel's name, which has at most 63 bytes.
const MAX_NAME_BYTES: usize = 40;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time limit of an operation.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// The settings of a state in a PostgreSQL database.
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresSettings {
    address: SecretText,
    password: Option<SecretText>,
    name: String,
    timeout: Duration,
    ca_certificates: Option<Vec<u8>>,
    listen_address: Option<SecretText>,
    is_insecure: bool,
}

impl PostgresSettings {
    /// The database at `postgres://USER@HOST/DATABASE`. Connections to other machines are encrypted, and the name of
    /// the server is verified.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: SecretText::new(address),
            password: None,
            name: "creole".to_owned(),
            timeout: DEFAULT_TIMEOUT,
            ca_certificates: None,
            listen_address: None,
            is_insecure: false,
        }
    }

    /// Sets the password, which replaces that of the address.
    #[must_use]
    pub fn password(mut self, password: SecretText) -> Self {
        self.password = Some(password);
        self
    }

    /// Sets the name of the cluster. Several clusters may share a database: each sees its own data only.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the time limit of an operation, at most a minute.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Trusts certificates of these authorities, in PEM form, instead of the system's.
    #[must_use]
    pub fn ca_certificates(mut self, certificates: impl Into<Vec<u8>>) -> Self {
        self.ca_certificates = Some(certificates.into());
        self
    }

    /// Sets the address for the connection that waits for messages. It is needed when the main address is that of a
    /// connection pooler, because a pooler does not forward notifications: without it, messages are polled four times a
    /// second. Through a pooler, no prepared statements and no session settings are used.
    #[must_use]
    pub fn listen_address(mut self, address: impl Into<String>) -> Self {
        self.listen_address = Some(SecretText::new(address));
        self
    }

    /// Allows unencrypted connections to another machine.
    #[must_use]
    pub fn insecure(mut self, is_insecure: bool) -> Self {
        self.is_insecure = is_insecure;
        self
    }

    /// Checks the settings without a connection.
    ///
    /// # Errors
    /// The reason, which contains no secret.
    pub fn check(&self) -> Result<(), String> {
        self.checked().map(drop)
    }

    /// The checked settings.
    pub(super) fn checked(&self) -> Result<CheckedSettings, String> {
        check_name(&self.name)?;
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            return Err(format!(
                "the timeout is {:?}; set one between 1 ms and {MAX_TIMEOUT:?}",
                self.timeout
            ));
        }
        let server = self.check_address(&self.address)?;
        let listen = self.listen_address.as_ref();
        let listen = listen.map(|address| self.check_address(address)).transpose()?;
        Ok(CheckedSettings {
            store: display_address(&server.config).into(),
            is_pooled: listen.is_some(),
            listen: listen.unwrap_or_else(|| server.clone()),
            server,
            name: self.name.as_str().into(),
            timeout: self.timeout,
        })
    }

    fn check_address(&self, address: &SecretText) -> Result<PostgresServer, String> {
        let address = address.expose();
        if !["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme)) {
            return Err(
                "the address is not one of PostgreSQL; write `postgres://USER@HOST/DATABASE`"
                    .into(),
            );
        }
        let (plain, mode) = split_encryption_mode(address)?;
        // The parser's message may contain the password.
        let parsed = plain.parse::<Config>();
        let mut config =
            parsed.map_err(|_| "the address is invalid; write `postgres://USER@HOST/DATABASE`")?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("the address names no host; write `postgres://USER@HOST/DATABASE`".into());
        }
        if let Some(password) = &self.password {
            config.password(password.expose());
        }
        let tls = if self.is_encrypted(&config, mode)? { Some(self.tls_client()?) } else { None };
        let ssl_mode = if tls.is_some() { SslMode::Require } else { SslMode::Disable };
        config.ssl_mode(ssl_mode).application_name(format!("creole/{}", self.name));
        Ok(PostgresServer { config: Box::new(config), tls: PostgresTls::new(tls) })
    }

    fn is_encrypted(&self, config: &Config, mode: Option<EncryptionMode>) -> Result<bool, String> {
        match mode {
            Some(EncryptionMode::Required) => Ok(true),
            _ if is_local(config) || self.is_insecure => Ok(false),
            None => Ok(true),
            Some(EncryptionMode::Disabled) => Err(
                "the address disables encryption, and the server is not on this machine; remove `sslmode` or allow \
                 insecure connections"
                    .to_owned(),
            ),
        }
    }

    fn tls_client(&self) -> Result<TlsClient, String> {
        match &self.ca_certificates {
            None => TlsClient::with_system_roots(),
            Some(certificates) => TlsClient::with_roots(certificates),
        }
        .map_err(|reason| format!("the encryption of the connection {reason}"))
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may contain a password.
        formatter
            .debug_struct("PostgresSettings")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("is_insecure", &self.is_insecure)
            .finish_non_exhaustive()
    }
}

/// Settings that were checked.
#[derive(Debug)]
pub(super) struct CheckedSettings {
    /// The address without user and password.
    pub(super) store: Arc<str>,
    pub(super) server: PostgresServer,
    /// The server for the connection that waits for messages.
    pub(super) listen: PostgresServer,
    /// Whether the main address is known to be that of a pooler, whose connections keep no session.
    pub(super) is_pooled: bool,
    pub(super) name: Arc<str>,
    pub(super) timeout: Duration,
}

/// How to connect to a server. The client hides the password in its `Debug` output.
#[derive(Clone, Debug)]
pub(super) struct PostgresServer {
    pub(super) config: Box<Config>,
    pub(super) tls: PostgresTls,
}

/// The parameter `sslmode` of an address. A required encryption always includes the verification of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncryptionMode {
    Disabled,
    Required,
}

/// The address without `sslmode`, and its value.
fn split_encryption_mode(address: &str) -> Result<(String, Option<EncryptionMode>), String> {
    let Some((location, query)) = address.split_once('?') else {
        return Ok((address.to_owned(), None));
    };
    let (mut mode, mut rest) = (None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", "disable")) => mode = Some(EncryptionMode::Disabled),
            Some(("sslmode", "require" | "verify-ca" | "verify-full")) => {
                mode = Some(EncryptionMode::Required);
            }
            Some(("sslmode", _)) => {
                return Err("`sslmode` must be `disable`, `require` or `verify-full`".to_owned());
            }
            _ => rest.push(pair),
        }
    }
    let mark = if rest.is_empty() { "" } else { "?" };
    Ok((format!("{location}{mark}{}", rest.join("&")), mode))
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(format!(
        "the name of the cluster is {name:?}; use 1 to {MAX_NAME_BYTES} lowercase letters, digits, `-` and `_`"
    ))
}

/// Whether the server is on this machine.
fn is_local(config: &Config) -> bool {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(is_local)
        && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

/// The server and the database, without user and password.
fn display_address(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config.get_hostaddrs().first().map(IpAddr::to_string).unwrap_or_default(),
    };
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{host}{port}/{database}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str) -> Result<CheckedSettings, String> {
        PostgresSettings::new(address).checked()
    }

    #[test]
    fn connections_to_other_machines_are_encrypted() {
        for (address, is_encrypted) in [
            ("postgres://ann@localhost/shop", false),
            ("postgres://ann@127.0.0.1:6543/shop", false),
            ("postgres://ann@[::1]/shop", false),
            ("postgresql:///shop?host=/run/postgresql&user=ann", false),
            ("postgres://ann@localhost/shop?sslmode=require", true),
            ("postgres://ann@db.example.com/shop", true),
            ("postgres://ann@localhost/shop?hostaddr=10.0.0.1", true),
            ("postgres://ann@db.example.com/shop?sslmode=verify-full", true),
        ] {
            let checked = check(address).unwrap();
            let mode = checked.server.config.get_ssl_mode();
            assert_eq!(mode == SslMode::Require, is_encrypted, "{address}: {mode:?}");
        }
        let plain = PostgresSettings::new("postgres://ann@db.example.com/shop").insecure(true);
        assert_eq!(plain.checked().unwrap().server.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn invalid_settings_are_refused_without_their_secrets() {
        let new = |address: &str| PostgresSettings::new(address);
        let good = "postgres://ann:hunter2000@localhost/shop";
        for (settings, reason) in [
            (new("mysql://ann:hunter2000@localhost/shop"), "not one of PostgreSQL"),
            (new("postgres://ann:hunter2000@localhost:no/shop"), "the address is invalid"),
            (new("postgres:///shop?password=hunter2000"), "names no host"),
            (new(&format!("{good}?sslmode=prefer")), "`sslmode` must be"),
            (new("postgres://ann:hunter2000@db/shop?sslmode=disable"), "disables encryption"),
            (new(good).listen_address("hunter2000"), "not one of PostgreSQL"),
            (new(good).name("a b"), "the name of the cluster is \"a b\""),
            (new(good).name("x".repeat(41)), "use 1 to 40"),
            (new(good).timeout(Duration::ZERO), "the timeout is 0ns"),
            (new("postgres://ann@db/shop").ca_certificates("none"), "PEM certificates"),
        ] {
            let error = settings.check().unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert!(!error.contains("hunter2000"), "{error}");
            assert!(!format!("{settings:?}").contains("hunter2000"));
        }
    }

    #[test]
    fn the_displayed_address_has_no_user() {
        let checked = check("postgres://ann:hunter2000@127.0.0.1:6543/shop").unwrap();
        assert_eq!(&*checked.store, "postgres://127.0.0.1:6543/shop");
    }
}
