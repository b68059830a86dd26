//! A client machine and a server machine that exchange their frames directly.

use core::time::Duration;
use std::sync::Arc;

use creole_proto::client::{ClientEvent, FrameKind, OpenMode};
use creole_proto::dialect::builtin;
use creole_proto::model::ClientCapabilities;
use creole_proto::operation::{Caller, Operation, Outcome};
use creole_proto::revision::{Era, Revision};
use creole_proto::wire::Raw;
use creole_proto::{client, server};

/// Handles the calls of the server.
pub(crate) type TestEndpoint = fn(&Operation, &Caller) -> Outcome;

/// Two machines, and the calls that the server machine started.
pub(crate) struct MachinePair {
    pub(crate) client: client::Machine,
    pub(crate) server: server::Machine,
    pub(crate) to_client: client::Outbox,
    pub(crate) to_server: server::Outbox,
    pub(crate) events: Vec<ClientEvent>,
    /// The client's frames, as text.
    pub(crate) sent: Vec<String>,
    pub(crate) started: Vec<server::Call>,
    pub(crate) now: Duration,
    endpoint: Option<TestEndpoint>,
}

/// The open mode for this revision, of a client with all capabilities.
pub(crate) fn opening(revision: Revision) -> OpenMode {
    let rules = revision.rules();
    match rules.era {
        Era::Stateless => OpenMode::Stateless { rules },
        Era::Handshake => OpenMode::Handshake { proposed_rules: rules, capabilities: everything() },
    }
}

/// The capabilities of a client that supports every input request.
pub(crate) fn everything() -> Arc<ClientCapabilities> {
    Arc::new(ClientCapabilities {
        elicitation_form: true,
        elicitation_url: true,
        sampling: true,
        roots: true,
        tasks: true,
        raw: None,
    })
}

/// A client machine of this dialect.
pub(crate) fn client(dialect: &str, mode: OpenMode) -> client::Machine {
    let profile = client::Profile {
        dialect: builtin(dialect).unwrap(),
        identity: Raw::parse(r#"{"name":"tester","version":"1"}"#).unwrap(),
        limits: client::ClientLimits::default(),
        extensions: Vec::new(),
    };
    client::Machine::new(profile.into(), mode)
}

impl MachinePair {
    /// A client and a server of this dialect, with an open session.
    pub(crate) fn open(dialect: &str, mode: OpenMode, endpoint: TestEndpoint) -> Self {
        let mut pair = Self::new(dialect, mode, Some(endpoint));
        pair.client.open(pair.now, &mut pair.to_client);
        pair.exchange();
        pair
    }

    /// A client and a server that have exchanged nothing; without an endpoint, calls wait for the test.
    pub(crate) fn new(dialect: &str, mode: OpenMode, endpoint: Option<TestEndpoint>) -> Self {
        let limits = server::ServerLimits::default();
        let profile = server::Profile::new(builtin(dialect).unwrap(), limits);
        Self {
            client: client(dialect, mode),
            server: server::Machine::new(profile.into()),
            to_client: client::Outbox::default(),
            to_server: server::Outbox::default(),
            events: Vec::new(),
            sent: Vec::new(),
            started: Vec::new(),
            now: Duration::ZERO,
            endpoint,
        }
    }

    /// Makes a call and exchanges frames until there are none.
    pub(crate) fn call(&mut self, request: client::CallRequest) -> client::CallKey {
        let key = self.client.request(&request, self.now, &mut self.to_client);
        self.exchange();
        key
    }

    /// From now on calls wait for the test.
    pub(crate) fn hold(&mut self) {
        self.endpoint = None;
    }

    /// Delivers the frames that the client has sent, and no others.
    pub(crate) fn carry(&mut self) {
        for frame in self.to_client.frames() {
            self.server.receive(frame.text, self.now, &mut self.to_server);
        }
        self.to_client.clear_frames();
    }

    /// Finishes a call that the server started.
    pub(crate) fn finish(&mut self, call: server::CallKey, outcome: Outcome) {
        self.server.finish(call, outcome, self.now, &mut self.to_server);
        self.exchange();
    }

    /// Exchanges frames until there are none.
    pub(crate) fn exchange(&mut self) {
        loop {
            let said: Vec<(FrameKind, Vec<u8>)> =
                self.to_client.frames().map(|frame| (frame.kind, frame.text.to_vec())).collect();
            self.to_client.clear_frames();
            for (_, text) in &said {
                self.sent.push(String::from_utf8(text.clone()).unwrap());
                self.server.receive(text, self.now, &mut self.to_server);
            }
            self.start();
            let heard: Vec<_> = self.to_server.frames().map(|frame| frame.text.to_vec()).collect();
            self.to_server.clear_frames();
            for text in &heard {
                self.client.receive(text, None, self.now, &mut self.to_client);
            }
            while let Some(event) = self.to_client.next_event() {
                self.events.push(event);
            }
            if said.is_empty() && heard.is_empty() {
                return;
            }
        }
    }

    fn start(&mut self) {
        while let Some(action) = self.to_server.next_action() {
            let server::Action::Start(call) = action else { continue };
            match self.endpoint {
                Some(endpoint) => {
                    let outcome = endpoint(&call.operation, &call.caller);
                    self.server.finish(call.key, outcome, self.now, &mut self.to_server);
                }
                None => self.started.push(call),
            }
        }
    }

    /// The outcome of a call, which must be unique.
    pub(crate) fn outcome(&self, key: client::CallKey) -> Option<&Outcome> {
        let mut outcomes = self.events.iter().filter_map(|event| match event {
            ClientEvent::CallDone(call, outcome) if *call == key => Some(outcome),
            _ => None,
        });
        let first = outcomes.next();
        assert!(outcomes.next().is_none(), "{key:?} got two outcomes: {:?}", self.events);
        first
    }
}
