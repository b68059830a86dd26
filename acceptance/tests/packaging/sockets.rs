//! Sockets that systemd passes: the program serves on them, and a restart refuses no connection.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, thread};

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::{ChildGuard, serve, shell};
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::eventually;
use socket2::{Domain, Socket, Type};

use crate::{configuration, has_systemd};

/// `creole serve` with these arguments, which inherits a socket as the first of so many, as systemd passes it.
fn inheriting(folder: &Path, socket: impl Into<OwnedFd>, count: usize, words: &str) -> Command {
    let script = format!(
        "exec 3<&0 </dev/null; export LISTEN_FDS={count} LISTEN_PID=$$; exec creole serve {words}"
    );
    let mut command = shell(folder, &script);
    let log = File::create(folder.join("log")).unwrap();
    command.stdin(Stdio::from(socket.into())).stdout(Stdio::null()).stderr(log);
    command
}

/// The exit code and the message of a server that cannot use its socket.
#[track_caller]
fn refusal(folder: &Path, socket: impl Into<OwnedFd>, count: usize, words: &str) -> String {
    let mut process = ChildGuard::start(&mut inheriting(folder, socket, count, words));
    let code = process.wait();
    let text = fs::read_to_string(folder.join("log")).unwrap();
    assert_eq!(code, Some(2), "{text}");
    text
}

fn terminate(process: &mut ChildGuard) -> Option<i32> {
    let id = process.child().id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    process.wait()
}

fn health(address: SocketAddr) -> Result<u16, String> {
    Request::new("GET", "/health").send(address).map(|response| response.head.status)
}

#[test]
fn a_restart_under_socket_activation_refuses_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "");
    // systemd holds it while the program restarts.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (served, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let client = || {
        let (served, is_over) = (Arc::clone(&served), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                assert_eq!(health(address), Ok(200));
                served.fetch_add(1, Ordering::AcqRel);
            }
        })
    };
    let clients: Vec<_> = (0..4).map(|_| client()).collect();
    for round in 0..3 {
        let socket = socket.try_clone().unwrap();
        let mut process = ChildGuard::start(&mut inheriting(folder.path(), socket, 1, &file));
        let before = served.load(Ordering::Acquire);
        eventually("clients are served", || served.load(Ordering::Acquire) >= before + 40);
        if round == 2 {
            is_over.store(true, Ordering::Release);
        } else {
            assert_eq!(terminate(&mut process), Some(0));
            continue;
        }
        // They end while the last process serves.
        eventually("the clients end", || clients.iter().all(thread::JoinHandle::is_finished));
        assert_eq!(terminate(&mut process), Some(0));
    }
    for client in clients {
        client.join().expect("no connection was refused and every request was answered");
    }
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.starts_with(&format!("creole: `t` listens on http://{address}/mcp\n")), "{log}");
}

#[test]
fn a_connection_starts_the_server_that_systemd_activates() {
    if !has_systemd() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let log = folder.path().join("log");
    let mut command = Command::new("systemd-socket-activate");
    command.args(["--listen", &address.to_string(), "--setenv"]);
    command.arg(format!("CREOLE_DATA_DIR={}", folder.path().display()));
    command.arg(binary().unwrap()).args(["serve", &file]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
    let mut process = ChildGuard::start(&mut command);
    eventually("the server answers", || health(address) == Ok(200));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains(&format!("listens on http://{address}/mcp")), "{log}");
    assert_eq!(terminate(&mut process), Some(0));
}

#[test]
fn a_socket_that_cannot_be_served_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "");
    let listening = || TcpListener::bind("127.0.0.1:0").unwrap();
    let two = refusal(folder.path(), listening(), 2, &file);
    assert!(
        two.starts_with("error: systemd passes 2 sockets") && two.contains("ListenStream="),
        "{two}"
    );

    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wrong = refusal(folder.path(), datagrams, 1, &file);
    assert!(wrong.contains("no listening TCP socket"), "{wrong}");

    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let wrong = refusal(folder.path(), silent, 1, &file);
    assert!(wrong.contains("it does not listen"), "{wrong}");

    let stdio = refusal(folder.path(), listening(), 1, "--stdio");
    assert!(stdio.contains("add the table `[http]`"), "{stdio}");
}

#[test]
fn the_address_of_the_socket_decides_who_may_be_served_without_authentication() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "");
    let public = TcpListener::bind("0.0.0.0:0").unwrap();
    let address = public.local_addr().unwrap();
    let refused = refusal(folder.path(), public, 1, &file);
    assert!(refused.starts_with(&format!("error: {address} can be reached")), "{refused}");
}

#[test]
fn sockets_for_another_process_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration(folder.path(), "");
    let mut command = serve(folder.path(), &[&file]);
    command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1");
    let mut server = ListeningServer::other(command).unwrap();
    assert_eq!(health(server.address()), Ok(200));
    assert_eq!(server.stop(), Ok(()));
}
