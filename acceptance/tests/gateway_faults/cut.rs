//! Tests of connections that die silently. All are detected within the same timeout, so the test cuts all at once.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use creole_acceptance::gateway::{
    HandshakeClient, PendingRequest, PendingResponse, ScriptedHttpServer, StatelessClient,
};
use creole_acceptance::http::{Connection, ListeningServer, Request};
use creole_test_wait::blocking::within;
use serde_json::json;

use crate::show;

/// The timeout of each step. The documented limit is 45 s, and its parts have their own tests. The rest is for busy
/// machines.
const LONG: Duration = Duration::from_secs(90);

/// A gateway in front of a working site.
struct Scene {
    site: ScriptedHttpServer,
    gateway: ListeningServer,
}

impl Scene {
    fn new() -> Self {
        let site = ScriptedHttpServer::new(show());
        let (gateway, _) = crate::sites::before(&site);
        let mut call = StatelessClient::new(gateway.address()).begin_call("work", json!({}));
        site.hears("tools/call").text("well");
        assert_eq!(call.answer()["result"]["content"][0]["text"], "well");
        Self { site, gateway }
    }

    fn call(&self) -> PendingResponse {
        StatelessClient::new(self.gateway.address()).begin_call("work", json!({}))
    }

    fn called(&self) -> (PendingResponse, PendingRequest) {
        (self.call(), self.site.hears("tools/call"))
    }

    /// The gateway's socket to a client.
    fn to_client(&self, port: u16) -> PathBuf {
        self.has_open(|local, other| local == self.gateway.address().port() && other == port)
    }

    /// The gateway's socket to the site.
    fn to_site(&self) -> PathBuf {
        self.has_open(|_, other| other == self.site.port())
    }

    /// Waits until the gateway has a connection between such ports, and returns its socket.
    #[track_caller]
    fn has_open(&self, is_match: impl Fn(u16, u16) -> bool) -> PathBuf {
        let open = || {
            connections().into_iter().find(|(local, other, name)| {
                is_match(*local, *other) && self.gateway.sockets().contains(name)
            })
        };
        match within(LONG, open) {
            Some((_, _, name)) => name,
            None => panic!("{}", self.gateway.log()),
        }
    }

    /// Waits until this socket is closed.
    #[track_caller]
    fn frees(&self, socket: &PathBuf) {
        let freed = within(LONG, || !self.gateway.sockets().contains(socket));
        assert!(freed.is_some(), "{}", self.gateway.log());
    }
}

/// The open connections of this machine: the ports of both sides, and the name of the first side's socket.
fn connections() -> Vec<(u16, u16, PathBuf)> {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let port = |address: &str| u16::from_str_radix(address.split_once(':')?.1, 16).ok();
    let connection = |row: &str| {
        let row: Vec<&str> = row.split_whitespace().collect();
        let name = format!("socket:[{}]", row.get(9)?).into();
        let is_open = row[3] == "01";
        is_open.then_some((port(row[1])?, port(row[2])?, name))
    };
    table.lines().filter_map(connection).collect()
}

/// Asserts that the call fails with an error that names the upstream and the cause.
#[track_caller]
fn fails(mut call: PendingResponse, reason: &str) {
    let response = call.within(LONG).expect("an answer");
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert_eq!(response["error"]["data"]["upstream"], "site", "{response}");
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("`site`") && message.contains(reason), "{message}");
}

/// A server that vanishes after it received the call and before it responds.
fn before_the_answer() {
    let scene = Scene::new();
    let (call, request) = scene.called();
    scene.site.cut();
    let socket = scene.to_site();
    request.cut();
    fails(call, "no longer responds");
    scene.frees(&socket);
}

/// A server that vanishes in the middle of a resumable stream.
fn within_a_stream() {
    let scene = Scene::new();
    let (mut call, mut request) = scene.called();
    request.stream();
    let message = json!({"jsonrpc": "2.0", "method": "notifications/message",
                      "params": {"level": "emergency", "data": "here"}});
    request.event_with_id("1", &message);
    // The event was read once the gateway has acknowledged it, and it causes no message to the caller.
    assert_eq!(call.within(crate::A_MOMENT), None);
    scene.site.cut();
    let socket = scene.to_site();
    request.cut();
    fails(call, "can no longer be reached");
    scene.frees(&socket);
}

/// A server that vanishes before the call arrives.
fn before_the_call() {
    let scene = Scene::new();
    scene.site.starve();
    let call = scene.call();
    let socket = scene.to_site();
    fails(call, "no longer responds");
    scene.frees(&socket);
}

/// A caller that vanishes: the upstream receives the cancellation.
fn a_caller() {
    let scene = Scene::new();
    let (call, mut request) = scene.called();
    let socket = scene.to_client(call.port());
    call.cut();
    assert!(request.is_left(LONG), "{}", scene.gateway.log());
    scene.frees(&socket);
}

/// A client that vanishes while it listens.
fn a_listener() {
    let scene = Scene::new();
    let client = HandshakeClient::open(scene.gateway.address(), "2025-06-18", json!({}), None);
    let listening = client.listen();
    let socket = scene.to_client(listening.port());
    listening.cut();
    scene.frees(&socket);
    drop(listening);
}

/// The same with the transport of 2024-11-05.
fn an_old_listener() {
    let scene = Scene::new();
    let address = scene.gateway.address();
    let mut connection = Connection::open(address).unwrap();
    let request = Request::new("GET", "/sse").with("Accept", "text/event-stream");
    connection.write(&request.bytes(address)).unwrap();
    assert_eq!(connection.head().unwrap().status, 200);
    let closer = connection.ender().unwrap();
    let socket = scene.to_client(closer.port());
    closer.cut();
    scene.frees(&socket);
    drop(connection);
}

#[test]
fn a_link_that_is_cut_is_noticed_its_calls_fail_and_its_connections_are_freed() {
    let scenes = [
        before_the_answer,
        within_a_stream,
        before_the_call,
        a_caller,
        a_listener,
        an_old_listener,
    ];
    let scenes = scenes.map(|scene: fn()| thread::spawn(scene));
    let ends = scenes.map(thread::JoinHandle::join);
    assert!(ends.iter().all(Result::is_ok), "a cut connection was not detected");
}
