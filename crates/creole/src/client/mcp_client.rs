//! The client for programs that use one server. It detects the server's era, makes calls, and answers input requests in
//! the style of that era.

mod callbacks;
mod reconnecting;
mod tasks;
pub(crate) mod typed;

use crate::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use creole_proto::client::{CallRequest, ClientLimits, NegotiationResult, Profile};
use creole_proto::dialect::{Dialect, DialectText, builtin};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::MirroredHeader;
use creole_proto::model::{
    ClientCapabilities, CompletionRequest, Definition, ExcludedItem, Implementation, InputRequest,
    Level, ListKind,
};
use creole_proto::operation::{Event, InputResponses, Operation, Outcome, Payload};
use creole_proto::revision::{Era, Revision, Rules};
use creole_proto::wire::{Object, Raw};
use serde::Serialize;
use tokio::task::JoinSet;

use super::connection::{Connection, OnLog};
use super::connector;
use super::connector::{Address, ClientOffer, Connector};
use super::era::DetectedEra;
use super::pending_call::{CallEvent, CallStep};
use super::transport::Transport;
use crate::chain::BoxFuture;
use callbacks::{Callback, Callbacks};
use reconnecting::{ReconnectSettings, ReconnectingConnection};

/// The dialect of servers without a known dialect.
const SPEC_DIALECT: &str = "spec";

/// The maximum number of input rounds of one call.
const MAX_ROUNDS: usize = 10;

/// The maximum number of pages that are read of one list.
const MAX_PAGES: usize = 1000;

/// A client builder: its identity, and the input requests that it answers.
#[derive(Debug)]
pub struct ClientBuilder {
    identity: Implementation,
    dialect: Option<Dialect>,
    limits: ClientLimits,
    log: Option<Level>,
    callbacks: Callbacks,
    era: Era,
    revision: Option<Revision>,
}

impl ClientBuilder {
    /// A client of this name that answers no input requests.
    pub fn new(name: &str, version: &str) -> Self {
        let (name, version) = (name.to_owned(), version.to_owned());
        Self {
            identity: Implementation { name, version, ..Implementation::default() },
            dialect: None,
            limits: ClientLimits::default(),
            log: None,
            callbacks: Callbacks::default(),
            era: Rules::CANONICAL.era,
            revision: None,
        }
    }

    /// Sets the preferred era for servers that support both. Default: the newest one. A server can request input during
    /// a call in either era, but many tools were written for [`Era::Handshake`] and request input only there.
    #[must_use]
    pub fn prefer_era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// Sets the only revision that the client uses.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self.era = revision.rules().era;
        self
    }

    /// Sets the dialect of the server.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Answers form elicitations. The response is `{"action":…,"content":…}`, and `None` declines.
    #[must_use]
    pub fn on_form<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(InputRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Raw>> + Send + 'static,
    {
        self.callbacks.form = Some(callback(answer));
        self
    }

    /// Answers URL elicitations. The response is `{"action":…}`, and `None` declines.
    #[must_use]
    pub fn on_url<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(InputRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Raw>> + Send + 'static,
    {
        self.callbacks.url = Some(callback(answer));
        self
    }

    /// Answers sampling requests. The response is the result of `sampling/createMessage`.
    #[must_use]
    pub fn on_sampling<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(InputRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Raw>> + Send + 'static,
    {
        self.callbacks.sample = Some(callback(answer));
        self
    }

    /// Sets the roots: the uri and the name of each.
    #[must_use]
    pub fn roots(mut self, roots: &[(&str, &str)]) -> Self {
        let roots: Vec<_> =
            roots.iter().map(|(uri, name)| serde_json::json!({"uri": uri, "name": name})).collect();
        let response = Raw::from_value(&serde_json::json!({"roots": roots}));
        self.callbacks.roots = Some(callback(move |_| std::future::ready(Some(response.clone()))));
        self
    }

    /// Receives progress, and log messages from this level on.
    #[must_use]
    pub fn on_event(
        mut self,
        min_level: Level,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        self.log = Some(min_level);
        self.callbacks.event = Some(Arc::new(tell));
        self
    }

    /// Connects to a server in an era that it supports. Requires a tokio runtime.
    ///
    /// # Errors
    /// When the server cannot be reached, or has no revision in common with this client.
    pub async fn connect(self, address: Address) -> Result<Client, Fault> {
        let (profile, offer) = (self.profile()?, self.offer());
        let connector = Connector::new(address, profile);
        let connector = match self.revision {
            Some(revision) => connector.pin_revision(revision.rules()),
            None => connector,
        };
        let connection = connector.connect_in(self.era, &offer).await?;
        let rules = connection.greeting().rules;
        let detected = connector.detected_in(rules.era).unwrap_or_else(|| DetectedEra::of(rules));
        let capabilities = Arc::clone(&offer.capabilities);
        let reconnect = Some(ReconnectSettings { connector, era: self.era, offer });
        let line = ReconnectingConnection::new(connection, reconnect, self.log).await;
        Ok(self.into_client(line, detected, capabilities))
    }

    /// Connects over a transport in the [preferred](Self::prefer_era) era, as far as the dialect has it. The era is not
    /// detected, because that may need a second transport. Requires a tokio runtime.
    ///
    /// # Errors
    /// When the server does not respond, or not in its dialect.
    pub async fn connect_over(self, transport: Box<dyn Transport>) -> Result<Client, Fault> {
        let (profile, offer) = (self.profile()?, self.offer());
        let pinned = self.revision.map(Revision::rules);
        let era = match pinned {
            Some(pinned) => pinned.era,
            None if profile.dialect.serves_era(self.era) => self.era,
            None => self.era.other(),
        };
        let connection = connector::open_over(transport, &profile, (era, pinned), &offer).await?;
        let detected = DetectedEra::of(connection.greeting().rules);
        let line = ReconnectingConnection::new(connection, None, self.log).await;
        Ok(self.into_client(line, detected, offer.capabilities))
    }

    fn profile(&self) -> Result<Arc<Profile>, Fault> {
        let spec = || {
            builtin(SPEC_DIALECT).ok_or_else(|| internal_fault("the dialect `spec` is built in"))
        };
        let dialect = self.dialect.clone().map_or_else(spec, Ok)?;
        let identity = Raw::from_value(&self.identity);
        Ok(Arc::new(Profile { dialect, identity, limits: self.limits, extensions: Vec::new() }))
    }

    fn offer(&self) -> ClientOffer {
        let callbacks = self.callbacks.clone();
        let hearing = self.callbacks.event.clone();
        ClientOffer {
            capabilities: Arc::new(self.callbacks.capabilities()),
            on_log: hearing.map(|on_event| Arc::new(move |event| on_event(event)) as OnLog),
            on_violation: None,
            environment: Vec::new(),
            on_input_request: Some(Arc::new(move |input_request| {
                tokio::spawn(callbacks.clone().respond(input_request));
            })),
        }
    }

    fn into_client(
        self,
        line: ReconnectingConnection,
        detected: DetectedEra,
        capabilities: Arc<ClientCapabilities>,
    ) -> Client {
        let (callbacks, log) = (self.callbacks, self.log);
        let dialect = self.dialect.map_or(SPEC_DIALECT.into(), |dialect| dialect.name);
        let (mirrors, tasked, excluded) = (Mutex::default(), Mutex::default(), Mutex::default());
        Client {
            connection: line,
            detected_era: detected,
            dialect,
            capabilities,
            callbacks,
            log,
            mirrored_headers: mirrors,
            task_tools: tasked,
            excluded_items: excluded,
        }
    }
}

fn callback<F, R>(answer: F) -> Callback
where
    F: Fn(InputRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Option<Raw>> + Send + 'static,
{
    Arc::new(move |input_request| {
        Box::pin(answer(input_request)) as BoxFuture<'static, Option<Raw>>
    })
}

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    connection: ReconnectingConnection,
    detected_era: DetectedEra,
    dialect: DialectText,
    capabilities: Arc<ClientCapabilities>,
    callbacks: Callbacks,
    log: Option<Level>,
    /// The mirrored headers of each tool, recorded when tools are listed.
    mirrored_headers: Mutex<HashMap<String, Arc<[MirroredHeader]>>>,
    /// The tools that only run as tasks, recorded when tools are listed.
    pub(super) task_tools: Mutex<BTreeSet<String>>,
    /// The excluded items, which have invalid definitions, recorded when they are listed.
    excluded_items: Mutex<BTreeMap<ListKind, Vec<ExcludedItem>>>,
}

impl Client {
    /// Connects to a server without answering its input requests.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn connect(address: Address) -> Result<Self, Fault> {
        ClientBuilder::new("creole", env!("CARGO_PKG_VERSION")).connect(address).await
    }

    /// The current connection, for operations that this type lacks. A new one replaces it when the server has lost the
    /// session.
    #[doc(hidden)]
    pub fn connection(&self) -> Connection {
        self.connection.connection()
    }

    /// The name, version, capabilities and instructions of the server, and the version of the protocol that it speaks.
    pub fn greeting(&self) -> Arc<NegotiationResult> {
        Arc::clone(self.connection().greeting())
    }

    /// The era of the server, as detected.
    pub fn detected_era(&self) -> DetectedEra {
        self.detected_era
    }

    /// The name of the server's dialect.
    pub fn dialect(&self) -> &str {
        &self.dialect
    }

    /// All items of a list, without unusable tools.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn list(&self, kind: ListKind) -> Result<Vec<Arc<Definition>>, Fault> {
        let mut items = self.list_all(kind).await?;
        if kind == ListKind::Tools {
            self.learn_tasks(&items);
            self.learn_mirrored_headers(&mut items);
        }
        Ok(items)
    }

    /// All items of a list as the server sent them, including unusable tools.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn list_all(&self, kind: ListKind) -> Result<Vec<Arc<Definition>>, Fault> {
        let (mut items, mut excluded, mut cursor) = (Vec::new(), Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let Payload::Page(page) = self.call(Operation::List(kind, cursor)).await? else {
                return Err(internal_fault("the server's response is not a page of a list"));
            };
            items.extend(page.items.iter().cloned());
            excluded.extend(page.excluded.into_vec());
            if page.next.is_none() {
                self.excluded_items.lock().insert(kind, excluded);
                return Ok(items);
            }
            cursor = page.next;
        }
        Err(internal_fault("the server's list has too many pages"))
    }

    /// The excluded items of a list when it was last fetched, because their definitions are invalid.
    #[doc(hidden)]
    pub fn excluded_items(&self, kind: ListKind) -> Vec<ExcludedItem> {
        self.excluded_items.lock().get(&kind).cloned().unwrap_or_default()
    }

    /// Reads a resource. Returns the result as the server sent it.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn read_resource(&self, uri: &str) -> Result<Raw, Fault> {
        self.call_raw(Operation::ReadResource { uri: uri.to_owned() }).await
    }

    /// Renders a prompt. Returns the result as the server sent it.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn get_prompt(&self, name: &str, arguments: &impl Serialize) -> Result<Raw, Fault> {
        let arguments = Some(Raw::from_value(arguments));
        self.call_raw(Operation::GetPrompt { name: name.to_owned(), arguments }).await
    }

    /// Completes an argument. Returns the result as the server sent it.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn complete(&self, request: CompletionRequest) -> Result<Raw, Fault> {
        self.call_raw(Operation::Complete(Box::new(request))).await
    }

    /// Closes the connection.
    pub async fn close(self) {
        self.connection.connection().close().await;
    }

    pub(super) async fn call_raw(&self, operation: Operation) -> Result<Raw, Fault> {
        match self.call(operation).await? {
            Payload::Relayed(relayed) => Ok(relayed.into_result()),
            _ => Err(internal_fault("the server's response has an unexpected kind")),
        }
    }

    /// Makes a call and answers its input requests, inline or by retrying the call. A call that the server rejected
    /// before it ran, because the session was lost or its headers did not match, is retried once.
    ///
    /// # Errors
    /// The server's fault, or why it did not respond.
    pub async fn call(&self, operation: Operation) -> Result<Payload, Fault> {
        let (mut reentry, mut is_mended) = (None, false);
        for _ in 0..MAX_ROUNDS {
            let mut request = self.request(operation.clone());
            request.options.input_responses.clone_from(&reentry);
            self.allow_tasks(&mut request);
            let connection = self.connection();
            match self.call_round(&connection, request, self.mirrored_headers_of(&operation)).await
            {
                Outcome::Complete(Payload::TaskCreated(task)) => {
                    return self.follow_task(task).await;
                }
                Outcome::Complete(payload) => return Ok(payload),
                Outcome::Fail(fault) if is_mended => return Err(fault),
                Outcome::Fail(fault) => {
                    is_mended = Box::pin(self.recover(&connection, &operation, &fault)).await;
                    if !is_mended {
                        return Err(fault);
                    }
                }
                Outcome::Detach(_) => return Err(internal_fault("the call was detached")),
                Outcome::InputRequired { requests: input_requests, request_state: state } => {
                    let responses = match input_requests.is_empty() {
                        true => None,
                        false => Some(self.callbacks.handle_all(input_requests).await?),
                    };
                    reentry = Some(InputResponses { responses, request_state: state });
                }
            }
        }
        Err(Fault::new(
            FaultKind::InputRefused,
            format!("the server requested input in {MAX_ROUNDS} rounds, which is the limit"),
        ))
    }

    /// Prepares the retry of a call that was rejected before it ran. Returns whether a retry is possible.
    async fn recover(&self, connection: &Connection, operation: &Operation, fault: &Fault) -> bool {
        let is_tool = matches!(operation, Operation::CallTool { .. });
        match fault.kind {
            // 2026-07-28 basic/transports/streamable-http, client behavior.
            FaultKind::HeaderMismatch if is_tool => self.list(ListKind::Tools).await.is_ok(),
            _ if fault.may_be_processed() => false,
            _ => self.connection.reconnect(connection).await,
        }
    }

    pub(super) fn request(&self, operation: Operation) -> CallRequest {
        let mut request = CallRequest::new(operation);
        request.options.capabilities = Arc::clone(&self.capabilities);
        request.options.progress = self.callbacks.event.is_some();
        request.options.log_level = self.log;
        request
    }

    pub(super) fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    pub(super) async fn call_round(
        &self,
        connection: &Connection,
        request: CallRequest,
        mirrors: Arc<[MirroredHeader]>,
    ) -> Outcome {
        let mut call = connection.start_call_with(request, mirrors);
        // The callbacks of inline input requests. They are aborted when the call ends.
        let mut tasks = JoinSet::new();
        loop {
            match call.next().await {
                CallStep::Event(CallEvent::Event(event)) => {
                    if let Some(on_event) = &self.callbacks.event {
                        on_event(event);
                    }
                }
                CallStep::Event(CallEvent::InputRequested(input_request)) => {
                    tasks.spawn(self.callbacks.clone().respond(input_request));
                }
                CallStep::Event(CallEvent::InputNotOffered(_) | CallEvent::InputWithdrawn(_)) => {}
                CallStep::Done(outcome) => return outcome,
                CallStep::Ended(_) => return internal_fault("the call has already ended").into(),
            }
        }
    }

    /// Records the mirrored headers of tools. A tool that names an invalid header is unusable and removed (2026-07-28
    /// basic/transports/streamable-http, custom headers from tool parameters).
    fn learn_mirrored_headers(&self, tools: &mut Vec<Arc<Definition>>) {
        let rules = self.connection().greeting().rules;
        if !rules.mirrored_headers {
            return;
        }
        let mut learnt = HashMap::new();
        tools.retain(|tool| {
            let schema = Object::new(tool.text(rules)).and_then(|tool| tool.get("inputSchema"));
            let mirrors = MirroredHeader::find_all(schema.unwrap_or("{}"));
            if let Ok(mirrors) = &mirrors
                && !mirrors.is_empty()
            {
                learnt.insert(tool.name().to_owned(), mirrors.as_slice().into());
            }
            mirrors.is_ok()
        });
        *self.mirrored_headers.lock() = learnt;
    }

    fn mirrored_headers_of(&self, operation: &Operation) -> Arc<[MirroredHeader]> {
        let Operation::CallTool { name, .. } = operation else { return [].into() };
        let known = self.mirrored_headers.lock();
        known.get(name).map_or_else(|| [].into(), Arc::clone)
    }
}

pub(super) fn internal_fault(detail: &str) -> Fault {
    Fault::new(FaultKind::Internal, detail)
}
