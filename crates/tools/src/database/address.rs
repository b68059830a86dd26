//! Where a database is. What is secret in an address is never shown.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::recipe::Secret;

/// How long it may take to connect.
const CONNECTING: Duration = Duration::from_secs(5);

/// Where a database is.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// A file.
    Sqlite(PathBuf),
    /// A server.
    Postgres(Server),
}

/// A PostgreSQL server, a database on it and who asks.
#[derive(Clone)]
pub struct Server {
    config: Box<Config>,
    /// What it was made of.
    text: Secret,
}

impl Server {
    /// How it is connected to.
    pub(crate) fn config(&self) -> Config {
        (*self.config).clone()
    }

    /// The server and the database, without who asks.
    pub fn place(&self) -> String {
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

impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.config.get_password() == other.config.get_password()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({})", self.place())
    }
}

impl Address {
    /// Reads an address: `sqlite:FILE`, as seen from this folder, or `postgres://USER@HOST/DATABASE`.
    ///
    /// # Errors
    /// When it is none, or one that would send data in the clear over a network; says what would be right, and nothing of
    /// what may be secret.
    pub fn parse(text: &str, password: Option<&str>, folder: &Path) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            if password.is_some() {
                return Err("an SQLite file has no password".to_owned());
            }
            if file.is_empty() || file.chars().any(char::is_control) {
                return Err("the address names no file; write `sqlite:FILE`".to_owned());
            }
            return Ok(Self::Sqlite(folder.join(file)));
        }
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            let right = "write `sqlite:FILE` or `postgres://USER@HOST/DATABASE`";
            return Err(format!("the address is of no database that is known; {right}"));
        }
        // The parser's own words may repeat a password.
        let parsed = text.parse::<Config>().map_err(|_| {
            "the address of the PostgreSQL server cannot be read; write `postgres://USER@HOST/DATABASE`"
        });
        let mut config = parsed?;
        if let Some(password) = password {
            config.password(password);
        }
        check_way(&config)?;
        config.application_name("creole").connect_timeout(CONNECTING).ssl_mode(SslMode::Disable);
        Ok(Self::Postgres(Server { config: Box::new(config), text: Secret(text.to_owned()) }))
    }

    /// What people may be told of it.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(file) => file.display().to_string(),
            Self::Postgres(server) => server.place(),
        }
    }
}

/// That nothing travels over a network in the clear that nobody allowed to.
fn check_way(config: &Config) -> Result<(), String> {
    if !matches!(config.get_ssl_mode(), SslMode::Disable | SslMode::Prefer) {
        return Err("connections to PostgreSQL are not encrypted here; leave `sslmode` out and reach the server by a \
                    socket of this machine, or through an encrypted tunnel that ends here"
            .to_owned());
    }
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let is_meant = config.get_ssl_mode() == SslMode::Disable;
    if is_meant || config.get_hosts().iter().all(is_local) && config.get_hostaddrs().is_empty() {
        return Ok(());
    }
    Err("connections to PostgreSQL are not encrypted here, and this server is on another machine; add `?sslmode=disable` \
         if the network between is trusted, or use a tunnel"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, String> {
        Address::parse(text, None, Path::new("/data"))
    }

    #[test]
    fn files_and_servers_are_told_apart() {
        for text in ["sqlite:shop.db", "sqlite://shop.db"] {
            assert_eq!(parse(text), Ok(Address::Sqlite("/data/shop.db".into())));
        }
        let server = parse("postgres://ann:hunter2000@127.0.0.1:6543/shop").unwrap();
        assert_eq!(server.shown(), "127.0.0.1/shop");
        assert!(parse("postgres://ann@localhost/shop").is_ok());
        assert!(parse("postgresql:///shop?host=/run/postgresql&user=ann").is_ok());
        assert!(parse("postgres://ann@db.example.com/shop?sslmode=disable").is_ok());
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for (text, why) in [
            ("mysql://ann:hunter2000@localhost/shop", "no database that is known"),
            ("postgres://ann:hunter2000@localhost:no/shop", "cannot be read"),
            ("postgres://ann:hunter2000@localhost/shop?sslmode=require", "not encrypted here"),
            ("postgres://ann:hunter2000@db.example.com/shop", "on another machine"),
            ("sqlite:", "names no file"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(why) && !said.contains("hunter2000"), "{text}: {said}");
        }
        let server = parse("postgres://ann:hunter2000@localhost/shop");
        assert!(!format!("{server:?}").contains("hunter2000"));
        assert!(Address::parse("sqlite:a", Some("x"), Path::new("")).is_err());
    }

    #[test]
    fn another_password_is_another_address() {
        let with = |password| {
            Address::parse("postgres://ann@localhost/shop", Some(password), Path::new("")).unwrap()
        };
        assert_eq!(with("a"), with("a"));
        assert_ne!(with("a"), with("b"));
    }
}
