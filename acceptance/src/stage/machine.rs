//! The stage `machine`: the pure protocol machine with a simulated clock. Its calls are polled by hand.
//!
//! Without a transport, a driver or a channel, a transcript here covers the protocol alone.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use creole::internal::call::{ClientChannel, Origin};
use creole::internal::registry::Announcement;
use creole::proto::framing::LineDecoder;
use creole::proto::model::InputRequest;
use creole::proto::operation::{Event, Outcome};
use creole::proto::server::{Action, CallKey, InputRequestKey, InputResponse, Machine, Outbox};
use creole::proto::wire::Raw;
use creole::{BoxFuture, Service};
use creole_test_wait::blocking::within;
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, oneshot};

use super::Stage;

/// The name in a `Skip` header.
pub const NAME: &str = "machine";

/// A machine, its clock, and its calls.
pub struct MachineStage {
    /// Provides timers and threads to handlers. The machine itself needs none.
    runtime: Runtime,
    service: Service,
    machine: Machine,
    lines: LineDecoder,
    outbox: Outbox,
    sent: std::collections::VecDeque<String>,
    calls: BTreeMap<CallKey, Pin<Box<dyn Future<Output = Outcome> + Send>>>,
    asks: BTreeMap<InputRequestKey, oneshot::Sender<InputResponse>>,
    queue: Arc<Queue>,
    changes: broadcast::Receiver<Announcement>,
    now: Duration,
}

impl MachineStage {
    /// A machine of the service, in its initial state.
    pub fn new(service: Service) -> Result<Self, String> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let profile = Arc::clone(service.profile());
        let changes = service.registry().changes();
        Ok(Self {
            runtime: runtime.map_err(|error| error.to_string())?,
            service,
            lines: LineDecoder::new(profile.dialect.max_message),
            machine: Machine::new(profile),
            outbox: Outbox::default(),
            sent: std::collections::VecDeque::new(),
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            queue: Arc::default(),
            changes,
            now: Duration::ZERO,
        })
    }

    /// Performs the actions of the machine until there are none at this moment.
    fn settle(&mut self) {
        loop {
            while let Some(action) = self.outbox.next_action() {
                self.perform(action);
            }
            while let Ok(change) = self.changes.try_recv() {
                self.machine.announce(&change.change, &mut self.outbox);
            }
            let moved = self.take_reports() | self.poll_calls();
            if !moved && self.outbox.bytes().is_empty() {
                return;
            }
            let bytes = self.outbox.take_bytes();
            let text = String::from_utf8_lossy(&bytes);
            self.sent.extend(text.lines().map(str::to_owned));
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Start(call) => {
                let key = call.key;
                let channel = Arc::clone(&self.queue) as Arc<dyn ClientChannel>;
                let (future, _) =
                    self.service.start_call(call, channel, Origin::new("local".into()));
                self.calls.insert(key, Box::pin(future));
            }
            Action::Cancel(call, _) => _ = self.calls.remove(&call),
            Action::InputResponse(ask, response) => {
                if let Some(waiting) = self.asks.remove(&ask) {
                    _ = waiting.send(response);
                }
            }
            Action::ReleaseSubscriptions(_) | Action::RootsChanged | Action::Observe(_) => {}
        }
    }

    fn take_reports(&mut self) -> bool {
        let reports = self.queue.take();
        let moved = !reports.is_empty();
        for report in reports {
            match report {
                Report::Event(call, event) => {
                    self.machine.send_event(call, &event, self.now, &mut self.outbox);
                }
                Report::Ask(call, input_request, trace, answer) => {
                    let (now, out) = (self.now, &mut self.outbox);
                    let asked =
                        self.machine.request_input(call, &input_request, trace.as_ref(), now, out);
                    if let Some(ask) = asked {
                        self.asks.insert(ask, answer);
                    }
                }
            }
        }
        moved
    }

    fn poll_calls(&mut self) -> bool {
        let guard = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        let mut done = Vec::new();
        for (key, call) in &mut self.calls {
            if let Poll::Ready(outcome) = call.as_mut().poll(&mut context) {
                done.push((*key, outcome));
            }
        }
        drop(guard);
        let moved = !done.is_empty();
        if moved {
            self.take_reports();
        }
        for (key, outcome) in done {
            self.calls.remove(&key);
            self.machine.finish(key, outcome, self.now, &mut self.outbox);
        }
        moved
    }
}

impl Stage for MachineStage {
    fn send(&mut self, bytes: &[u8]) {
        let mut chunk = bytes;
        while let Some(line) = self.lines.next(&mut chunk) {
            self.machine.receive_line(line, self.now, &mut self.outbox);
        }
        self.settle();
    }

    fn receive(&mut self, wait: Duration) -> Option<String> {
        within(wait, || {
            self.settle();
            self.sent.pop_front()
        })
    }

    fn advance(&mut self, by: Duration) -> bool {
        self.now += by;
        self.machine.tick(self.now, &mut self.outbox);
        self.settle();
        true
    }

    fn close(&mut self) -> Result<(), String> {
        if let Some(line) = self.lines.finish() {
            self.machine.receive_line(line, self.now, &mut self.outbox);
        }
        self.settle();
        self.machine.handle_end_of_stream(self.now, &mut self.outbox);
        let _ = within(Duration::from_secs(5), || {
            self.settle();
            self.machine.in_flight() == 0
        });
        self.machine.close(self.now, &mut self.outbox);
        self.settle();
        Ok(())
    }
}

/// The queued events of calls.
#[derive(Default)]
struct Queue {
    reports: Mutex<Vec<Report>>,
}

enum Report {
    Event(CallKey, Event),
    Ask(CallKey, InputRequest, Option<Raw>, oneshot::Sender<InputResponse>),
}

impl Queue {
    fn push(&self, report: Report) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
    }

    fn take(&self) -> Vec<Report> {
        std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientChannel for Queue {
    fn send_event(&self, call: CallKey, event: Event) -> BoxFuture<'_, ()> {
        self.push(Report::Event(call, event));
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        call: CallKey,
        input_request: InputRequest,
        trace: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        let (answer, waiting) = oneshot::channel();
        self.push(Report::Ask(call, input_request, trace, answer));
        Box::pin(async { waiting.await.unwrap_or_else(|_| Err("the connection is closed".into())) })
    }
}
