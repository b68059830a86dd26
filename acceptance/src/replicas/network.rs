//! A network of namespaces: each replica has its own network, with one link to clients and upstreams and one link to the
//! store. A test cuts each link without either end noticing, as a network does that fails.

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio, id};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::peers::iproute;

/// The networks of this process so far.
static NETWORKS: AtomicU8 = AtomicU8::new(0);

/// The maximum number of networks of a process: they share 256 addresses.
const MAX_NETWORKS: u8 = 4;

/// What a link of a replica is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Clients and upstreams.
    Clients,
    /// The store.
    Store,
}

impl Link {
    /// Both links.
    pub const ALL: [Self; 2] = [Self::Clients, Self::Store];

    /// The name of its interface in a namespace.
    fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Store => "store",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Clients => 'c',
            Self::Store => 's',
        }
    }
}

/// Namespaces, with a bridge for each kind of link in the namespace of the test. All of it ends when this is dropped.
pub struct TestNetwork {
    number: u8,
    replicas: u8,
}

impl TestNetwork {
    /// Makes a namespace for each replica.
    ///
    /// # Errors
    /// When `ip` cannot be installed, or the system permits no namespaces.
    pub fn new(replicas: u8) -> Result<Self, String> {
        iproute::prepared().map_err(|missing| missing.to_string())?;
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        assert!(number < MAX_NETWORKS, "a process has at most {MAX_NETWORKS} networks");
        let network = Self { number, replicas };
        network.configure().map_err(|error| format!("they are not permitted here: {error}"))?;
        Ok(network)
    }

    /// The number of replicas.
    #[must_use]
    pub fn replicas(&self) -> u8 {
        self.replicas
    }

    /// The address of the test, and of its servers, for this link.
    #[must_use]
    pub fn test_address(&self, link: Link) -> Ipv4Addr {
        self.address(link, 1)
    }

    /// The address of a replica for clients.
    #[must_use]
    pub fn replica_address(&self, replica: u8) -> Ipv4Addr {
        self.address(Link::Clients, replica + 2)
    }

    /// The same command in the namespace of a replica. The process keeps its id.
    #[must_use]
    pub fn enter(&self, replica: u8, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.namespace(replica)]);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside
    }

    /// Cuts a link of a replica: packets are lost in both directions, and no connection ends.
    ///
    /// # Panics
    /// When that is not possible.
    #[track_caller]
    pub fn cut(&self, replica: u8, link: Link) {
        self.set_link(replica, link, "down");
    }

    /// Repairs a link that was cut.
    ///
    /// # Panics
    /// When that is not possible.
    #[track_caller]
    pub fn repair(&self, replica: u8, link: Link) {
        self.set_link(replica, link, "up");
    }

    #[track_caller]
    fn set_link(&self, replica: u8, link: Link, state: &str) {
        let line = format!("link set {} {state}\n", self.port(link, replica));
        run_ip(&[], &line).unwrap_or_else(|error| panic!("{line}{error}"));
    }

    fn configure(&self) -> Result<(), String> {
        let mut outer = String::new();
        for link in Link::ALL {
            let (bridge, address) = (self.bridge(link), self.test_address(link));
            outer += &format!("link add {bridge} type bridge\n");
            outer += &format!("addr add {address}/27 dev {bridge}\nlink set {bridge} up\n");
        }
        for replica in 0..self.replicas {
            let namespace = self.namespace(replica);
            outer += &format!("netns add {namespace}\n");
            for link in Link::ALL {
                let (port, bridge) = (self.port(link, replica), self.bridge(link));
                let inner = link.name();
                outer +=
                    &format!("link add {port} type veth peer name {inner} netns {namespace}\n");
                outer += &format!("link set {port} master {bridge} up\n");
            }
        }
        run_ip(&[], &outer)?;
        (0..self.replicas).try_for_each(|replica| self.configure_inside(replica))
    }

    fn configure_inside(&self, replica: u8) -> Result<(), String> {
        let mut inner = "link set lo up\n".to_owned();
        for link in Link::ALL {
            let (name, address) = (link.name(), self.address(link, replica + 2));
            inner += &format!("addr add {address}/27 dev {name}\nlink set {name} up\n");
        }
        run_ip(&["-netns", &self.namespace(replica)], &inner)
    }

    /// An address in the part of a link. The process has addresses of its own.
    fn address(&self, link: Link, host: u8) -> Ipv4Addr {
        let [.., high, low] = id().to_be_bytes();
        let offset = (self.number * 2 + link as u8) * 32;
        Ipv4Addr::new(10, 128 | high, low, offset + host)
    }

    fn bridge(&self, link: Link) -> String {
        format!("{}{}", self.prefix(), link.letter())
    }

    fn port(&self, link: Link, replica: u8) -> String {
        format!("{}{}{replica}", self.prefix(), link.letter())
    }

    fn namespace(&self, replica: u8) -> String {
        format!("creole-{}-{replica}", self.prefix())
    }

    /// Interfaces have names of at most 15 bytes.
    fn prefix(&self) -> String {
        format!("cr{}n{}", id(), self.number)
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        let mut lines = String::new();
        for link in Link::ALL {
            // A port also ends with its namespace, which lives as long as a process in it.
            let ports = (0..self.replicas).map(|replica| self.port(link, replica));
            for device in ports.chain([self.bridge(link)]) {
                lines += &format!("link del {device}\n");
            }
        }
        for replica in 0..self.replicas {
            lines += &format!("netns del {}\n", self.namespace(replica));
        }
        // After a failed setup, some of it does not exist.
        _ = run_ip(&["-force"], &lines);
    }
}

/// Runs commands of `ip`, one in a line.
fn run_ip(options: &[&str], lines: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(options).args(["-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(|error| error.to_string())?;
    let mut input = process.stdin.take().ok_or("no input")?;
    input.write_all(lines.as_bytes()).map_err(|error| error.to_string())?;
    drop(input);
    let output = process.wait_with_output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
