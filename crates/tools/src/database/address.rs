//! Database addresses. Their secrets are never displayed.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use creole::internal::tls::TlsClient;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::tls::TlsMode;
use crate::recipe::Secret;
use crate::recipe::http::encode::percent_decode;

/// Maximum duration of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of a database.
#[derive(Clone, Debug, PartialEq)]
pub enum DatabaseAddress {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server.
    Postgres(PostgresServer),
}

/// A PostgreSQL server with a database and a user.
#[derive(Clone)]
pub struct PostgresServer {
    config: Box<Config>,
    /// The encryption of the connection.
    tls_mode: TlsMode,
    /// The address as configured.
    text: Secret,
}

impl PostgresServer {
    /// The connection settings.
    pub(crate) fn config(&self) -> Config {
        (*self.config).clone()
    }

    /// The encryption of the connection.
    pub(crate) fn tls_mode(&self) -> &TlsMode {
        &self.tls_mode
    }

    /// The server and the database, without the user.
    pub fn display_address(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!(
            "{host}/{}",
            self.config.get_dbname().or(self.config.get_user()).unwrap_or_default()
        )
    }
}

impl PartialEq for PostgresServer {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
            && self.config.get_password() == other.config.get_password()
            && self.tls_mode == other.tls_mode
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({})", self.display_address())
    }
}

impl DatabaseAddress {
    /// Parses an address: `sqlite:FILE`, relative to this folder, or `postgres://USER@HOST/DATABASE`.
    ///
    /// # Errors
    /// When it is invalid, or names unreadable certificates. The message describes the correction and contains no
    /// secrets.
    pub fn parse(text: &str, password: Option<&str>, folder: &Path) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            if password.is_some() {
                return Err("an SQLite file has no password".to_owned());
            }
            if file.is_empty() || file.chars().any(char::is_control) {
                return Err("the address has no file; write `sqlite:FILE`".to_owned());
            }
            return Ok(Self::Sqlite(folder.join(file)));
        }
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            let right = "write `sqlite:FILE` or `postgres://USER@HOST/DATABASE`";
            return Err(format!("the kind of database is unknown; {right}"));
        }
        let (plain, options) = TlsOptions::split_from(text)?;
        // The parser's message may contain the password.
        let parsed = plain
            .parse::<Config>()
            .map_err(|_| "invalid PostgreSQL address; write `postgres://USER@HOST/DATABASE`");
        let mut config = parsed?;
        if let Some(password) = password {
            config.password(password);
        }
        let privacy = options.resolve(is_local(&config), folder)?;
        config.application_name("creole").connect_timeout(CONNECT_TIMEOUT).ssl_mode(privacy.mode());
        let text = Secret(text.to_owned());
        Ok(Self::Postgres(PostgresServer { config: Box::new(config), tls_mode: privacy, text }))
    }

    /// The address without secrets.
    pub fn redacted(&self) -> String {
        match self {
            Self::Sqlite(file) => file.display().to_string(),
            Self::Postgres(server) => server.display_address(),
        }
    }
}

/// The encryption options of an address, named as in PostgreSQL's own clients.
#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    root: Option<String>,
}

impl TlsOptions {
    /// The address without the options, and the options.
    fn split_from(text: &str) -> Result<(String, Self), String> {
        let Some((location, query)) = text.split_once('?') else {
            return Ok((text.to_owned(), Self::default()));
        };
        let (mut options, mut rest) = (Self::default(), Vec::new());
        for pair in query.split('&') {
            let known = match pair.split_once('=') {
                Some(("sslmode", value)) => Some((&mut options.mode, value)),
                Some(("sslrootcert", value)) => Some((&mut options.root, value)),
                _ => None,
            };
            match known {
                Some((Some(_), _)) => return Err("the address has `sslmode` twice".into()),
                Some((location, value)) => *location = Some(percent_decode(value)),
                None => rest.push(pair),
            }
        }
        let mark = if rest.is_empty() { "" } else { "?" };
        Ok((format!("{location}{mark}{}", rest.join("&")), options))
    }

    /// The resulting mode. By default, connections to other machines are encrypted and the server's certificate is
    /// verified.
    fn resolve(self, is_here: bool, folder: &Path) -> Result<TlsMode, String> {
        let privacy = match self.mode.as_deref() {
            None if is_here => TlsMode::None,
            Some("disable") => TlsMode::None,
            Some("prefer") => TlsMode::Preferred,
            Some("require") => TlsMode::Required,
            None | Some("verify-full") => return verified_tls(self.root.as_deref(), folder),
            Some(_) => {
                return Err(
                    "`sslmode` must be `disable`, `prefer`, `require` or `verify-full`".to_owned()
                );
            }
        };
        match self.root {
            None => Ok(privacy),
            Some(_) => Err("`sslrootcert` is only valid with `sslmode=verify-full`".to_owned()),
        }
    }
}

/// Uses the certificates of a file, relative to this folder, or those of the system.
fn verified_tls(file: Option<&str>, folder: &Path) -> Result<TlsMode, String> {
    let Some(file) = file.filter(|file| *file != "system") else {
        return Ok(TlsMode::Verified(None));
    };
    let certificates = std::fs::read(folder.join(file));
    let certificates = certificates
        .map_err(|error| format!("cannot read the file `{file}` of `sslrootcert`: {error}"))?;
    match TlsClient::with_roots(&certificates) {
        Ok(_) => Ok(TlsMode::Verified(Some(certificates))),
        Err(reason) => Err(format!("the file `{file}` of `sslrootcert` {reason}")),
    }
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
    config.get_hosts().iter().all(is_local) && config.get_hostaddrs().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DatabaseAddress, String> {
        DatabaseAddress::parse(text, None, Path::new("/data"))
    }

    #[test]
    fn files_and_servers_are_distinguished() {
        for text in ["sqlite:shop.db", "sqlite://shop.db"] {
            assert_eq!(parse(text), Ok(DatabaseAddress::Sqlite("/data/shop.db".into())));
        }
        let server = parse("postgres://ann:hunter2000@127.0.0.1:6543/shop").unwrap();
        assert_eq!(server.redacted(), "127.0.0.1/shop");
        assert!(parse("postgres://ann@localhost/shop").is_ok());
        assert!(parse("postgresql:///shop?host=/run/postgresql&user=ann").is_ok());
    }

    #[test]
    fn remote_connections_are_encrypted_unless_the_address_disables_it() {
        for (text, expected) in [
            ("localhost/shop", TlsMode::None),
            ("[::1]/shop", TlsMode::None),
            ("db.example.com/shop", TlsMode::Verified(None)),
            ("localhost/shop?hostaddr=10.0.0.1", TlsMode::Verified(None)),
            ("db.example.com/shop?sslmode=disable", TlsMode::None),
            ("db.example.com/shop?connect_timeout=3&sslmode=prefer", TlsMode::Preferred),
            ("localhost/shop?sslmode=require&connect_timeout=3", TlsMode::Required),
            ("localhost/shop?sslmode=verify-full", TlsMode::Verified(None)),
            ("localhost/shop?sslmode=verify-full&sslrootcert=system", TlsMode::Verified(None)),
        ] {
            match parse(&format!("postgres://ann@{text}")) {
                Ok(DatabaseAddress::Postgres(server)) => {
                    assert_eq!(server.tls_mode, expected, "{text}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for (text, reason) in [
            ("mysql://ann:hunter2000@localhost/shop", "the kind of database is unknown"),
            ("postgres://ann:hunter2000@localhost:no/shop", "invalid PostgreSQL address"),
            (
                "postgres://ann:hunter2000@localhost/shop?sslmode=verify",
                "`sslmode` must be `disable`",
            ),
            ("postgres://ann:hunter2000@localhost/shop?sslmode=require&sslmode=disable", "twice"),
            (
                "postgres://ann:hunter2000@localhost/shop?sslrootcert=a",
                "only valid with `sslmode=verify-full`",
            ),
            ("postgres://ann:hunter2000@h/shop?sslrootcert=none.pem", "cannot read the file `"),
            ("sqlite:", "has no file"),
        ] {
            let output = parse(text).unwrap_err();
            assert!(output.contains(reason) && !output.contains("hunter2000"), "{text}: {output}");
        }
        let server = parse("postgres://ann:hunter2000@localhost/shop");
        assert!(!format!("{server:?}").contains("hunter2000"));
        assert!(DatabaseAddress::parse("sqlite:a", Some("x"), Path::new("")).is_err());
    }

    #[test]
    fn another_password_is_another_address() {
        let with = |password| {
            DatabaseAddress::parse("postgres://ann@localhost/shop", Some(password), Path::new(""))
                .unwrap()
        };
        assert_eq!(with("a"), with("a"));
        assert_ne!(with("a"), with("b"));
    }
}
