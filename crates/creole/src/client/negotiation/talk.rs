//! What is said to a process, and what it answers, before the conversation is open.

use std::time::Duration;

use creole_proto::client::era_probe::{ProbeReply, ProbeVerdict, judge_reply};
use creole_proto::client::{ClientEvent, Machine, Outbox};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::Era;
use creole_proto::wire::{self, Frame};
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::connection::{Before, Connection, Setup};
use super::super::lines::ChildServer;
use super::super::probe::unsupported;
use super::{Agreed, Terms};
use crate::process::{Child, ChildInput, ChildOutput, Program};

/// The longest answer that is looked at, and the most that is kept of what else is said.
const LONGEST: usize = 1024 * 1024;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// How long a process may be silent before whoever runs it is told so: a server that listens elsewhere, or waits for
/// something, would else be waited for without a word.
const NOTICE: Duration = Duration::from_secs(5);

/// What came of asking.
pub(super) enum Came {
    /// It speaks this era.
    Agreed(Era),
    /// It refuses all that it was asked.
    Refused(Fault),
    /// It ended.
    Ended,
    /// It does not answer.
    Stuck,
}

/// A process that is asked which era it speaks.
pub(super) struct Talk<'a> {
    name: &'a str,
    terms: Terms<'a>,
    child: Child,
    stdin: ChildInput,
    stdout: ChildOutput,
    /// What was read and not looked at yet.
    unread: Vec<u8>,
    /// Lines that are for whoever has the conversation.
    kept: Vec<Vec<u8>>,
    asked: Vec<Asked>,
    /// When its silence is logged; nothing once it was.
    notice: Option<Instant>,
}

/// How many lines of a process that gave no answer are shown, and how much of each.
const MOST_SHOWN: usize = 5;
const LONGEST_SHOWN: usize = 200;

/// An opening request that was sent.
struct Asked {
    era: Era,
    /// The number before that of the request.
    after: u64,
    refusal: Option<Fault>,
}

impl<'a> Talk<'a> {
    /// Starts a process and asks it in this era.
    pub(super) async fn start(
        program: &'a Program,
        terms: Terms<'a>,
        era: Era,
    ) -> Result<Self, Fault> {
        let (child, stdin, stdout) = Child::start(program).await?;
        let (unread, kept, asked) = (Vec::new(), Vec::new(), Vec::new());
        let (name, notice) = (&*program.name, Some(Instant::now() + NOTICE));
        let mut talk = Self { name, terms, child, stdin, stdout, unread, kept, asked, notice };
        talk.ask(era).await;
        Ok(talk)
    }

    /// Whether it was asked `server/discover`.
    pub(super) fn was_discovered(&self) -> bool {
        self.asked.iter().any(|asked| asked.era == Era::Stateless)
    }

    /// Waits until it is known which era it speaks. It is asked in the second one too if it refuses the first, or is
    /// silent about it for so long; and it is taken for stuck if it then goes on being silent.
    pub(super) async fn agree(
        &mut self,
        second: Era,
        silence: Option<Duration>,
        stuck: Option<Duration>,
    ) -> Came {
        let limit = self.terms.profile.limits.handshake_timeout;
        let first = timeout(silence.unwrap_or(limit).min(limit), self.wait()).await;
        match first {
            Ok(Came::Refused(fault)) if is_absence(&fault) => return Came::Refused(fault),
            Ok(Came::Refused(_)) => {}
            Ok(came) => return came,
            Err(_) if silence.is_some() => {}
            Err(_) => return Came::Refused(self.silent(limit)),
        }
        self.ask(second).await;
        match timeout(stuck.unwrap_or(limit).min(limit), self.wait()).await {
            Ok(came) => came,
            Err(_) if stuck.is_some() => Came::Stuck,
            Err(_) => Came::Refused(self.silent(limit)),
        }
    }

    /// Waits until one of the openings is accepted, or all are refused. Cancel-safe.
    pub(super) async fn wait(&mut self) -> Came {
        while let Some(line) = self.next().await {
            match self.judge(&line) {
                Judged::Accepted(era) => {
                    self.kept.push(line);
                    return Came::Agreed(era);
                }
                Judged::Refused => {}
                Judged::Final(fault) => return Came::Refused(fault),
                Judged::Other => self.keep(line),
            }
            if let Some(fault) = self.refusal() {
                return Came::Refused(fault);
            }
        }
        Came::Ended
    }

    /// The next line, as [`Talk::line`]; a long silence before it is logged.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(notice) = self.notice {
            tokio::select! {
                line = self.line() => return line,
                () = sleep_until(notice) => self.notice = None,
            }
            let (upstream, stderr) = (self.name, self.child.tail().text());
            tracing::warn!(
                upstream,
                stderr,
                "`{upstream}` has not answered for {} s",
                NOTICE.as_secs()
            );
        }
        self.line().await
    }

    /// The fault of a process that does not answer, with its last words.
    fn silent(&self, limit: Duration) -> Fault {
        let detail = format!("`{}` did not answer within {} s", self.name, limit.as_secs());
        self.quoted(Fault::new(FaultKind::Timeout, detail))
    }

    /// The same fault with the last words of this process before those that it has.
    pub(super) fn quoted(&self, mut fault: Fault) -> Fault {
        let words = [self.child.tail().text(), fault.trace.take().unwrap_or_default()];
        let words: Vec<String> = words.into_iter().filter(|text| !text.is_empty()).collect();
        fault.trace = Some(words.join("\n")).filter(|text| !text.is_empty());
        fault
    }

    /// Opens the conversation: the request was sent, and its answer is here.
    pub(super) async fn connect(self, era: Era) -> Result<Agreed, Fault> {
        let other = |asked: &&Asked| asked.era != era;
        let lacks = self.asked.iter().find(other).map(|asked| asked.era);
        let own = self.asked.iter().find(|asked| asked.era == era);
        let after = own.map_or(0, |own| own.after);
        let (transport, setup) = self.into_parts(era);
        let connection = Connection::open(transport, Setup { after, ..setup }).await?;
        Ok(Agreed { connection, lacks })
    }

    /// The fault of a process that ended, with its last words.
    pub(super) async fn fail(self, era: Era) -> Result<Agreed, Fault> {
        let wrote = self.wrote();
        let (transport, setup) = self.into_parts(era);
        let opened = Connection::open(transport, Setup { heard: None, ..setup }).await;
        let connection = opened.map_err(|fault| unanswered(fault, &wrote))?;
        Ok(Agreed { connection, lacks: None })
    }

    /// The first lines that it wrote and that are no answers.
    fn wrote(&self) -> String {
        let cut = |line: &Vec<u8>| {
            String::from_utf8_lossy(line.trim_ascii_end())
                .chars()
                .take(LONGEST_SHOWN)
                .collect::<String>()
        };
        self.kept.iter().take(MOST_SHOWN).map(cut).collect::<Vec<_>>().join("\n")
    }

    fn into_parts(self, era: Era) -> (Box<ChildServer>, Setup) {
        let Self { name, terms, child, stdin, stdout, unread, kept, asked, .. } = self;
        let transport = ChildServer::of(name, child, stdin, stdout, unread);
        let heard = Before { messages: kept, last: asked.len() as u64 };
        (Box::new(transport), Setup { heard: Some(heard), ..terms.setup(era) })
    }

    async fn ask(&mut self, era: Era) {
        let after = self.asked.len() as u64;
        let (_, request) = self.machine(era, after);
        self.asked.push(Asked { era, after, refusal: None });
        let mut sent = 0;
        while sent < request.len() {
            match self.stdin.write(&request[sent..]).await {
                Ok(count) => sent += count,
                // It has ended, which is noticed by whoever reads.
                Err(_) => return,
            }
        }
    }

    /// A machine that has sent its opening request, and the request.
    fn machine(&self, era: Era, after: u64) -> (Machine, Vec<u8>) {
        let (profile, opening) = (Arc::clone(self.terms.profile), self.terms.opening(era));
        let mut machine = Machine::new(profile, opening).with_ids_after_number(after);
        let mut out = Outbox::default();
        machine.open(Duration::ZERO, &mut out);
        (machine, out.take_bytes())
    }

    /// The next line; nothing at the end. Cancel-safe.
    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = memchr(&self.unread) {
                let line = self.unread.drain(..=end).collect::<Vec<u8>>();
                return Some(line);
            }
            if self.unread.len() > LONGEST {
                // No answer to an opening is that long.
                self.unread.clear();
            }
            if self.stdout.read(&mut self.unread, CHUNK).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Keeps a line that is no answer to an opening for whoever has the conversation.
    fn keep(&mut self, line: Vec<u8>) {
        let kept: usize = self.kept.iter().map(Vec::len).sum();
        if kept + line.len() <= LONGEST {
            self.kept.push(line);
        }
    }

    /// The fault of a process that refused all that it was asked: what it says of a handshake says more.
    fn refusal(&self) -> Option<Fault> {
        if self.asked.iter().any(|asked| asked.refusal.is_none()) {
            return None;
        }
        let shaken = self.asked.iter().find(|asked| asked.era == Era::Handshake);
        shaken.or(self.asked.first()).and_then(|asked| asked.refusal.clone())
    }

    fn judge(&mut self, line: &[u8]) -> Judged {
        let line = line.trim_ascii();
        for place in 0..self.asked.len() {
            let asked = &self.asked[place];
            if asked.refusal.is_some() {
                continue;
            }
            let judged = match asked.era {
                Era::Handshake => self.judge_handshake(asked.after, line),
                Era::Stateless => self.judge_discovery(asked.after, line),
            };
            match judged {
                Some(Ok(())) => return Judged::Accepted(asked.era),
                Some(Err(Said::Refused(fault))) => {
                    self.asked[place].refusal = Some(fault);
                    return Judged::Refused;
                }
                Some(Err(Said::Unsupported(fault))) => return Judged::Final(fault),
                None => {}
            }
        }
        Judged::Other
    }

    /// What a line says about a handshake; nothing if it does not answer it.
    fn judge_handshake(&self, after: u64, line: &[u8]) -> Option<Result<(), Said>> {
        let (mut machine, _) = self.machine(Era::Handshake, after);
        let mut out = Outbox::default();
        machine.receive(line, None, Duration::ZERO, &mut out);
        while let Some(happening) = out.next_event() {
            match happening {
                ClientEvent::Opened(_) => return Some(Ok(())),
                ClientEvent::OpenFailed(fault) => return Some(Err(Said::Refused(fault))),
                _ => {}
            }
        }
        None
    }

    /// What a line says about `server/discover`; nothing if it does not answer it. An error without an id does: there
    /// are servers that cannot even read the request.
    fn judge_discovery(&self, after: u64, line: &[u8]) -> Option<Result<(), Said>> {
        let Ok(Frame::One(fields)) = wire::scan(line, &wire::ScanLimits::default()) else {
            return None;
        };
        let is_answer =
            fields.method.is_none() && (fields.result.is_some() || fields.error.is_some());
        let number = (after + 1).to_string();
        let is_own = fields.id.is_none_or(|id| id == number || id == "null");
        if !is_answer || !is_own {
            return None;
        }
        Some(match judge_reply(ProbeReply::Line(line), self.terms.stateless) {
            ProbeVerdict::Stateless(_) if fields.result.is_some() => Ok(()),
            ProbeVerdict::UnsupportedVersions(versions) => {
                Err(Said::Unsupported(unsupported(self.name, &versions)))
            }
            _ => {
                let detail = "the server does not know `server/discover`";
                Err(Said::Refused(Fault::new(FaultKind::MethodNotFound, detail)))
            }
        })
    }
}

/// What a line is to the openings that were sent.
enum Judged {
    Accepted(Era),
    Refused,
    /// There is nothing that could be tried after this.
    Final(Fault),
    Other,
}

/// Why an opening is not accepted.
enum Said {
    Refused(Fault),
    /// It speaks only versions that are not known here.
    Unsupported(Fault),
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// The fault of a process that ended before it answered. What it wrote is for whoever runs it, as its last words are.
fn unanswered(mut fault: Fault, wrote: &str) -> Fault {
    if fault.kind == FaultKind::BackendUnavailable && !fault.detail.contains("MCP") {
        fault.detail.push_str(" without an MCP answer");
        let told = [wrote, fault.trace.as_deref().unwrap_or_default()];
        let told: Vec<&str> = told.into_iter().filter(|text| !text.is_empty()).collect();
        fault.trace = Some(told.join("\n")).filter(|text| !text.is_empty());
    }
    fault
}

/// Whether a fault says nothing about the era.
fn is_absence(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy)
}
