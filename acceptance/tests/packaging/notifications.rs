//! What the program tells systemd: `sd_notify` and the watchdog.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::{PATIENCE, serve};
use creole_test_wait::blocking::eventually;

use crate::configuration;

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    /// Messages that were received and not yet expected, without those of the watchdog.
    waiting: VecDeque<String>,
    watchdog_messages: usize,
}

impl Manager {
    fn bind(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, waiting: VecDeque::new(), watchdog_messages: 0 }
    }

    /// The lines of the next message that is not of the watchdog.
    #[track_caller]
    fn next(&mut self) -> Vec<String> {
        while self.waiting.is_empty() {
            self.receive();
        }
        let message = self.waiting.pop_front().unwrap();
        message.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn receive(&mut self) {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message arrives");
        let message = String::from_utf8(bytes[..length].to_vec()).unwrap();
        match message.as_str() {
            "WATCHDOG=1\n" => self.watchdog_messages += 1,
            _ => self.waiting.push_back(message),
        }
    }
}

#[test]
fn systemd_hears_when_the_server_is_ready_reloads_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let mut manager = Manager::bind(&path);
    let file = configuration(folder.path(), "");
    let mut command = serve(folder.path(), &[&file]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let mut server = ListeningServer::other(command).unwrap();
    let ready = format!("STATUS=creole: `t` listens on http://{}/mcp", server.address());
    assert_eq!(manager.next(), ["READY=1", &ready]);
    let response = Request::new("GET", "/ready").send(server.address()).unwrap();
    assert_eq!(response.head.status, 200);
    // Twice per timeout of the watchdog.
    while manager.watchdog_messages < 3 {
        manager.receive();
    }
    server.signal("HUP");
    let reloading = manager.next();
    assert_eq!(reloading[0], "RELOADING=1");
    let time = reloading[1].strip_prefix("MONOTONIC_USEC=").unwrap();
    assert!(time.parse::<u64>().is_ok_and(|time| time > 0), "{reloading:?}");
    assert_eq!(reloading[2..], ["STATUS=Reloading the configuration"]);
    assert_eq!(manager.next(), ["READY=1", &ready]);
    server.signal("TERM");
    assert_eq!(manager.next(), ["STOPPING=1", "STATUS=Finishing the running calls"]);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_watchdog_for_another_process_and_a_missing_manager_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let mut manager = Manager::bind(&path);
    let file = configuration(folder.path(), "");
    let mut command = serve(folder.path(), &[&file]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000").env("WATCHDOG_PID", "1");
    let mut server = ListeningServer::other(command).unwrap();
    assert_eq!(manager.next()[0], "READY=1");
    server.signal("TERM");
    assert_eq!(manager.next()[0], "STOPPING=1");
    assert_eq!((server.wait(), manager.watchdog_messages), (Some(0), 0));

    let mut command = serve(folder.path(), &[&file]);
    command.env("NOTIFY_SOCKET", folder.path().join("missing"));
    let mut server = ListeningServer::other(command).unwrap();
    server.until_said("cannot notify systemd");
    assert_eq!(server.stop(), Ok(()));
}

#[test]
fn children_know_nothing_of_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let _manager = Manager::bind(&path);
    let file = configuration(folder.path(), "[upstreams.one]\npreset = \"everything\"\n");
    let mut command = serve(folder.path(), &[&file]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "30000000");
    command.env("LISTEN_FDNAMES", "creole.socket").env("LISTEN_FDS", "1").env("LISTEN_PID", "1");
    let mut server = ListeningServer::other(command).unwrap();
    let id = server.id();
    // The upstream and the reaper.
    let children = eventually("two children run", || {
        let children = children(id);
        (children.len() >= 2).then_some(children)
    });
    let is_told =
        |entry: &str| ["NOTIFY_", "WATCHDOG_", "LISTEN_"].iter().any(|it| entry.starts_with(it));
    for child in children {
        // Before it runs its program, a child shows the environment of its parent.
        eventually("its environment has nothing of systemd", || {
            let bytes = fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
            let is_clean = !String::from_utf8_lossy(&bytes).split('\0').any(is_told);
            !bytes.is_empty() && is_clean
        });
    }
    assert_eq!(server.stop(), Ok(()));
}

/// The children of all threads of a process.
fn children(id: u32) -> Vec<String> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{id}/task")).unwrap() {
        // A thread may have ended.
        let listed = fs::read_to_string(thread.unwrap().path().join("children"));
        let listed = listed.unwrap_or_default();
        children.extend(listed.split_whitespace().map(str::to_owned));
    }
    children
}
