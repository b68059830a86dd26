//! Sends opening requests to a process and reads its responses, until the session is open.

use std::time::Duration;

use creole_proto::client::era_probe::{ProbeReply, ProbeVerdict, judge_reply};
use creole_proto::client::{ClientEvent, Machine, Outbox};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::{Era, Opening, Rules};
use creole_proto::wire;
use creole_proto::wire::Frame;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::connection::{Connection, ConnectionSetup};
use super::super::connection_setup::PriorMessages;
use super::{NegotiatedConnection, NegotiationTerms, unsupported_fault};
use crate::client::transport::lines::ChildServer;
use crate::process::{Child, ChildInput, ChildOutput, Program};

/// Maximum size of a response, and of the other output that is kept.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Bytes per read.
const CHUNK: usize = 64 * 1024;

/// How long a process may be silent before that is logged. Otherwise the wait for a server that listens on another
/// stream, or waits for an event, would go unexplained.
const SILENCE_NOTICE: Duration = Duration::from_secs(5);

/// The outcome of a negotiation.
pub(super) enum NegotiationOutcome {
    /// The process supports this era.
    Agreed(Era),
    /// The process refuses all opening requests.
    Refused(Fault),
    /// The process ended.
    Ended,
    /// The process does not respond.
    Stuck,
}

/// A negotiation with one process.
pub(super) struct EraNegotiation<'a> {
    name: &'a str,
    terms: NegotiationTerms<'a>,
    child: Child,
    stdin: ChildInput,
    stdout: ChildOutput,
    /// Bytes that were read and not parsed yet.
    unread: Vec<u8>,
    /// Lines that are kept for the connection.
    other_lines: Vec<Vec<u8>>,
    openings: Vec<SentOpening>,
    /// When the silence is logged; `None` once it was.
    silence_notice_at: Option<Instant>,
}

/// How many output lines of a process without a response are quoted, and how much of each.
const MAX_QUOTED_LINES: usize = 5;
const MAX_QUOTED_LINE: usize = 200;

/// An opening request that was sent.
struct SentOpening {
    /// The rules that it uses or proposes.
    rules: &'static Rules,
    /// The id before that of the request.
    after: u64,
    fault: Option<Fault>,
}

impl<'a> EraNegotiation<'a> {
    /// Starts a process and sends the opening request of this era.
    pub(super) async fn start(
        program: &'a Program,
        terms: NegotiationTerms<'a>,
        era: Era,
    ) -> Result<Self, Fault> {
        let (child, stdin, stdout) = Child::start(program).await?;
        let (unread, kept, requests) = (Vec::new(), Vec::new(), Vec::new());
        let (name, notice) = (&*program.name, Some(Instant::now() + SILENCE_NOTICE));
        let mut negotiation = Self {
            name,
            terms,
            child,
            stdin,
            stdout,
            unread,
            other_lines: kept,
            openings: requests,
            silence_notice_at: notice,
        };
        negotiation.send_opening(era).await;
        Ok(negotiation)
    }

    /// Whether `server/discover` was sent.
    pub(super) fn has_sent_discover(&self) -> bool {
        self.openings.iter().any(|opening| opening.rules.opening == Opening::Discover)
    }

    /// Waits until the era is known. The second era is tried too if the process refuses the first, or does not respond
    /// to it in time. The process counts as stuck if it then stays silent.
    pub(super) async fn negotiate(
        &mut self,
        second: Era,
        silence: Option<Duration>,
        stuck: Option<Duration>,
    ) -> NegotiationOutcome {
        let limit = self.terms.profile.limits.handshake_timeout;
        let first = timeout(silence.unwrap_or(limit).min(limit), self.wait_for_outcome()).await;
        match first {
            Ok(NegotiationOutcome::Refused(fault)) if is_unrelated_to_era(&fault) => {
                return NegotiationOutcome::Refused(fault);
            }
            Ok(NegotiationOutcome::Refused(_)) => {}
            Ok(outcome) => return outcome,
            Err(_) if silence.is_some() => {}
            Err(_) => return NegotiationOutcome::Refused(self.silent_fault(limit)),
        }
        self.send_opening(second).await;
        match timeout(stuck.unwrap_or(limit).min(limit), self.wait_for_outcome()).await {
            Ok(outcome) => outcome,
            Err(_) if stuck.is_some() => NegotiationOutcome::Stuck,
            Err(_) => NegotiationOutcome::Refused(self.silent_fault(limit)),
        }
    }

    /// Waits until one of the opening requests is accepted, or all are refused. Cancel-safe.
    pub(super) async fn wait_for_outcome(&mut self) -> NegotiationOutcome {
        while let Some(line) = self.next_line().await {
            match self.classify_line(&line) {
                LineVerdict::Accepted(era) => {
                    self.other_lines.push(line);
                    return NegotiationOutcome::Agreed(era);
                }
                LineVerdict::Refused => {}
                LineVerdict::Final(fault) => return NegotiationOutcome::Refused(fault),
                LineVerdict::Other => self.keep_line(line),
            }
            if let Some(fault) = self.refused_fault() {
                return NegotiationOutcome::Refused(fault);
            }
        }
        NegotiationOutcome::Ended
    }

    /// The next line, as [`EraNegotiation::read_line`]; a long silence before it is logged.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        if let Some(notice) = self.silence_notice_at {
            tokio::select! {
                line = self.read_line() => return line,
                () = sleep_until(notice) => self.silence_notice_at = None,
            }
            let (upstream, stderr) = (self.name, self.child.tail().text());
            tracing::warn!(
                upstream,
                stderr,
                "`{upstream}` has not responded for {} s",
                SILENCE_NOTICE.as_secs()
            );
        }
        self.read_line().await
    }

    /// The fault of a process that does not respond, with the end of its standard error.
    fn silent_fault(&self, limit: Duration) -> Fault {
        let detail = format!("`{}` did not respond within {} s", self.name, limit.as_secs());
        self.with_stderr(Fault::new(FaultKind::Timeout, detail))
    }

    /// The same fault with the end of this process's standard error before the fault's own.
    pub(super) fn with_stderr(&self, mut fault: Fault) -> Fault {
        let words = [self.child.tail().text(), fault.trace.take().unwrap_or_default()];
        let words: Vec<String> = words.into_iter().filter(|text| !text.is_empty()).collect();
        fault.trace = Some(words.join("\n")).filter(|text| !text.is_empty());
        fault
    }

    /// Opens the connection: the request was sent, and its response has arrived.
    pub(super) async fn connect(self, era: Era) -> Result<NegotiatedConnection, Fault> {
        let other = self.openings.iter().find(|opening| !opening.rules.is_of(era));
        let lacks = other.map(|opening| opening.rules.era);
        let own = self.openings.iter().find(|opening| opening.rules.is_of(era));
        let after = own.map_or(0, |own| own.after);
        let (transport, setup) = self.into_parts(era);
        let connection =
            Connection::open(transport, ConnectionSetup { after_id: after, ..setup }).await?;
        Ok(NegotiatedConnection { connection, missing_era: lacks })
    }

    /// The fault of a process that ended, with the end of its standard error.
    pub(super) async fn into_exit_fault(self, era: Era) -> Result<NegotiatedConnection, Fault> {
        let wrote = self.quoted_output();
        let (transport, setup) = self.into_parts(era);
        let opened =
            Connection::open(transport, ConnectionSetup { prior_messages: None, ..setup }).await;
        let connection = opened.map_err(|fault| exit_fault(fault, &wrote))?;
        Ok(NegotiatedConnection { connection, missing_era: None })
    }

    /// The first output lines that are no responses.
    fn quoted_output(&self) -> String {
        let cut = |line: &Vec<u8>| {
            String::from_utf8_lossy(line.trim_ascii_end())
                .chars()
                .take(MAX_QUOTED_LINE)
                .collect::<String>()
        };
        self.other_lines.iter().take(MAX_QUOTED_LINES).map(cut).collect::<Vec<_>>().join("\n")
    }

    fn into_parts(self, era: Era) -> (Box<ChildServer>, ConnectionSetup) {
        let Self {
            name,
            terms,
            child,
            stdin,
            stdout,
            unread,
            other_lines: kept,
            openings: requests,
            ..
        } = self;
        let transport = ChildServer::from_running(name, child, stdin, stdout, unread);
        let prior = PriorMessages { messages: kept, last_request_id: requests.len() as u64 };
        (Box::new(transport), ConnectionSetup { prior_messages: Some(prior), ..terms.setup(era) })
    }

    async fn send_opening(&mut self, era: Era) {
        let after = self.openings.len() as u64;
        let (_, request) = self.machine(era, after);
        self.openings.push(SentOpening { rules: self.terms.rules_in(era), after, fault: None });
        let mut sent = 0;
        while sent < request.len() {
            match self.stdin.write(&request[sent..]).await {
                Ok(count) => sent += count,
                // The process has ended, which the reader notices.
                Err(_) => return,
            }
        }
    }

    /// A machine that has sent its opening request, and the request.
    fn machine(&self, era: Era, after: u64) -> (Machine, Vec<u8>) {
        let (profile, mode) = (Arc::clone(self.terms.profile), self.terms.opening(era));
        let mut machine = Machine::new(profile, mode).with_ids_after_number(after);
        let mut out = Outbox::default();
        machine.open(Duration::ZERO, &mut out);
        (machine, out.take_bytes())
    }

    /// The next line; `None` at the end. Cancel-safe.
    async fn read_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = find_newline(&self.unread) {
                let line = self.unread.drain(..=end).collect::<Vec<u8>>();
                return Some(line);
            }
            if self.unread.len() > MAX_RESPONSE_BYTES {
                // No response to an opening request is that long.
                self.unread.clear();
            }
            if self.stdout.read(&mut self.unread, CHUNK).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Keeps a line that is no response to an opening request for the connection.
    fn keep_line(&mut self, line: Vec<u8>) {
        let kept: usize = self.other_lines.iter().map(Vec::len).sum();
        if kept + line.len() <= MAX_RESPONSE_BYTES {
            self.other_lines.push(line);
        }
    }

    /// The fault of a process that refused all opening requests; its response to a handshake is the most informative.
    fn refused_fault(&self) -> Option<Fault> {
        if self.openings.iter().any(|opening| opening.fault.is_none()) {
            return None;
        }
        let shaken = self.openings.iter().find(|opening| opening.rules.has_handshake());
        shaken.or(self.openings.first()).and_then(|opening| opening.fault.clone())
    }

    fn classify_line(&mut self, line: &[u8]) -> LineVerdict {
        let line = line.trim_ascii();
        for index in 0..self.openings.len() {
            let opening = &self.openings[index];
            if opening.fault.is_some() {
                continue;
            }
            let judged = match opening.rules.opening {
                Opening::Initialize => self.check_handshake_response(opening, line),
                Opening::Discover => self.check_discover_response(opening, line),
            };
            match judged {
                Some(Ok(())) => return LineVerdict::Accepted(opening.rules.era),
                Some(Err(OpeningError::Refused(fault))) => {
                    self.openings[index].fault = Some(fault);
                    return LineVerdict::Refused;
                }
                Some(Err(OpeningError::Unsupported(fault))) => return LineVerdict::Final(fault),
                None => {}
            }
        }
        LineVerdict::Other
    }

    /// The verdict of a line on a handshake; `None` if it is not its response.
    fn check_handshake_response(
        &self,
        opening: &SentOpening,
        line: &[u8],
    ) -> Option<Result<(), OpeningError>> {
        let (mut machine, _) = self.machine(opening.rules.era, opening.after);
        let mut out = Outbox::default();
        machine.receive(line, None, Duration::ZERO, &mut out);
        while let Some(event) = out.next_event() {
            match event {
                ClientEvent::Opened(_) => return Some(Ok(())),
                ClientEvent::OpenFailed(fault) => return Some(Err(OpeningError::Refused(fault))),
                _ => {}
            }
        }
        None
    }

    /// The verdict of a line on `server/discover`; `None` if it is not its response. An error without an id is one:
    /// some servers cannot even parse the request.
    fn check_discover_response(
        &self,
        opening: &SentOpening,
        line: &[u8],
    ) -> Option<Result<(), OpeningError>> {
        let Ok(Frame::One(fields)) = wire::scan(line, &wire::ScanLimits::default()) else {
            return None;
        };
        let is_answer =
            fields.method.is_none() && (fields.result.is_some() || fields.error.is_some());
        let number = (opening.after + 1).to_string();
        let is_own = fields.id.is_none_or(|id| id == number || id == "null");
        if !is_answer || !is_own {
            return None;
        }
        Some(match judge_reply(ProbeReply::Line(line), opening.rules) {
            ProbeVerdict::Stateless(_) if fields.result.is_some() => Ok(()),
            ProbeVerdict::UnsupportedVersions(versions) => {
                Err(OpeningError::Unsupported(unsupported_fault(self.name, &versions)))
            }
            _ => {
                let detail = "the server does not support `server/discover`";
                Err(OpeningError::Refused(Fault::new(FaultKind::MethodNotFound, detail)))
            }
        })
    }
}

/// The meaning of a line for the opening requests.
enum LineVerdict {
    Accepted(Era),
    Refused,
    /// No further attempt makes sense.
    Final(Fault),
    Other,
}

/// Why an opening request is not accepted.
enum OpeningError {
    Refused(Fault),
    /// The server supports only versions that are unknown here.
    Unsupported(Fault),
}

fn find_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// The fault of a process that ended before it responded. Its output is for the operator, as its standard error is.
fn exit_fault(mut fault: Fault, wrote: &str) -> Fault {
    if fault.kind == FaultKind::BackendUnavailable && !fault.detail.contains("MCP") {
        fault.detail.push_str(" without an MCP response");
        let texts = [wrote, fault.trace.as_deref().unwrap_or_default()];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        fault.trace = Some(texts.join("\n")).filter(|text| !text.is_empty());
    }
    fault
}

/// Whether a fault is unrelated to the era.
fn is_unrelated_to_era(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy)
}
