//! Runs the same clients over HTTP, each in each of its modes against its own server.

use std::thread;

use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers;
use creole_acceptance::peers::{Mode, Peer};

use crate::{PeerReport, everything, is_installed};

#[test]
fn fastmcp_is_served_over_http() {
    speak_in_every_mode(Peer::FastMcp);
}

#[test]
fn the_inspector_is_served_over_http() {
    speak_in_every_mode(Peer::Inspector);
}

#[test]
fn the_python_sdk_of_version_1_is_served_over_http() {
    speak_in_every_mode(Peer::PythonV1);
}

#[test]
fn the_python_sdk_of_version_2_is_served_over_http() {
    speak_in_every_mode(Peer::PythonV2);
}

#[test]
fn the_typescript_sdk_of_version_1_is_served_over_http() {
    speak_in_every_mode(Peer::TypeScriptV1);
}

#[test]
fn the_typescript_sdk_of_version_2_is_served_over_http() {
    speak_in_every_mode(Peer::TypeScriptV2);
}

#[test]
fn the_rust_sdk_is_served_over_http() {
    speak_in_every_mode(Peer::Rmcp);
}

#[test]
fn clients_of_standard_streams_are_served_through_a_bridge() {
    let server = ListeningServer::start(&["--preset", "everything"]).unwrap();
    for peer in [Peer::PythonV1, Peer::TypeScriptV1].into_iter().filter(|&peer| is_installed(peer))
    {
        let Some(bridge) = crate::if_installed("mcp-remote", peers::bridge(&server.url())) else {
            return;
        };
        let mode = Mode::Legacy;
        let document = peers::run(peer, mode, &everything(peer, mode), &bridge);
        let label = format!("{peer} through mcp-remote");
        PeerReport::of(label, document).has_done_everything(peer, mode);
    }
}

/// Runs all modes concurrently. A peer's default mode is one of the others.
fn speak_in_every_mode(peer: Peer) {
    if !is_installed(peer) {
        return;
    }
    thread::scope(|scope| {
        for &mode in peer.modes().iter().filter(|mode| **mode != Mode::Default) {
            scope.spawn(move || run_steps(peer, mode));
        }
    });
}

fn run_steps(peer: Peer, mode: Mode) {
    let mut server = ListeningServer::start(&["--preset", "everything"]).unwrap();
    let document = peers::run_at(peer, mode, &everything(peer, mode), &server.url());
    let label = format!("{peer} in mode {} over HTTP", mode.name());
    PeerReport::of(label, document).has_done_everything(peer, mode);
    server.stop().unwrap_or_else(|error| panic!("after {peer}: {error}\n{}", server.log()));
}
