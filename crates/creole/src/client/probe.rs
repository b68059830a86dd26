//! Asking a server which era it is of, before anything depends on it.

use std::time::Duration;

use creole_proto::client::verdict::{Heard, Reason, Verdict, verdict};
use creole_proto::client::{Machine, Opening, Outbox, Profile};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::framing::{Line, Lines};
use creole_proto::revision::{Era, Revision, Rules};
use creole_proto::wire::{self, Frame};
use std::sync::Arc;
use tokio::time::timeout;

use super::era::Found;
use super::http::{Heard as HeardOverHttp, Target};
use crate::chain::BoxFuture;
use crate::process::{Child, ChildInput, ChildOutput, Program};

/// How long a process may be silent before that is an answer.
const SILENCE: Duration = Duration::from_secs(3);

/// How long it is listened to after that.
const LATE: Duration = Duration::from_secs(60);

/// The longest answer that is looked at.
const LONGEST: usize = 1024 * 1024;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// What a process has yet to say after it was taken for silent; nothing if it never says anything else.
pub type Late = BoxFuture<'static, Option<Found>>;

/// Asks a process that is started for this alone: some servers end at any request before the handshake. One that is
/// silent may still be starting, and is listened to for a little longer by whoever polls what is handed back.
///
/// # Errors
/// When it cannot be started, or speaks only versions that nobody here knows.
pub async fn child(
    program: &Program,
    profile: &Arc<Profile>,
) -> Result<(Found, Option<Late>), Fault> {
    let (question, rules) = question(profile);
    let (child, stdin, stdout) = Child::start(program).await?;
    let mut conversation = Box::pin(async move {
        let heard = converse(&stdin, stdout, &question).await;
        drop((stdin, child));
        heard
    });
    let judge = move |line: Option<Vec<u8>>| match &line {
        Some(line) => verdict(Heard::Line(line), rules),
        None => verdict(Heard::Exit, rules),
    };
    if let Ok(heard) = timeout(SILENCE, &mut conversation).await {
        return found(&program.name, judge(heard), None).map(|found| (found, None));
    }
    let name = program.name.clone();
    let late = async move {
        let heard = timeout(LATE, conversation).await.ok()?;
        found(&name, judge(heard), None).ok()
    };
    let silent = verdict(Heard::LineSilence, rules);
    found(&program.name, silent, None).map(|found| (found, Some(Box::pin(late) as Late)))
}

/// Sends a line and waits for the first that is an answer; nothing if the streams end.
async fn converse(stdin: &ChildInput, mut stdout: ChildOutput, question: &[u8]) -> Option<Vec<u8>> {
    let mut sent = 0;
    while sent < question.len() {
        sent += stdin.write(&question[sent..]).await.ok()?;
    }
    let (mut lines, mut chunk) = (Lines::new(LONGEST), Vec::new());
    loop {
        chunk.clear();
        if stdout.read(&mut chunk, CHUNK).await.ok()? == 0 {
            return None;
        }
        let mut rest = &chunk[..];
        while let Some(line) = lines.next(&mut rest) {
            if let Line::Complete(line) = line
                && is_answer(line)
            {
                return Some(line.to_vec());
            }
        }
    }
}

fn is_answer(line: &[u8]) -> bool {
    let Ok(Frame::One(fields)) = wire::scan(line, &wire::Limits::default()) else { return false };
    fields.method.is_none() && (fields.result.is_some() || fields.error.is_some())
}

/// Asks over HTTP.
///
/// # Errors
/// When the server cannot be reached, wants other credentials, or is no MCP server.
pub async fn http(target: &Target, profile: &Arc<Profile>) -> Result<Found, Fault> {
    let (question, rules) = question(profile);
    let HeardOverHttp { status, body, fault } = target.probe(&question, rules, LONGEST).await?;
    let verdict = verdict(Heard::Http { status, body: &body }, rules);
    found(target.name(), verdict, Some(fault))
}

/// The question, as a line.
fn question(profile: &Arc<Profile>) -> (Vec<u8>, &'static Rules) {
    let rules = Revision::newest(Era::Stateless).rules();
    let mut out = Outbox::default();
    Machine::new(Arc::clone(profile), Opening::Stateless { rules }).open(Duration::ZERO, &mut out);
    (out.take_bytes(), rules)
}

fn found(name: &str, verdict: Verdict, refused: Option<Fault>) -> Result<Found, Fault> {
    match verdict {
        Verdict::Stateless(rules) => Ok(Found::Stateless(rules)),
        // An error of both eras: the older way of opening tells more.
        Verdict::Handshake | Verdict::NoEvidence(Reason::Ambiguous(_)) => Ok(Found::Handshake),
        Verdict::Unsupported(versions) => {
            let versions = versions.join(", ");
            let detail =
                format!("`{name}` speaks only versions that are not known here: {versions}");
            Err(Fault::new(FaultKind::UnsupportedVersion, detail).about(name))
        }
        Verdict::NoEvidence(_) => Err(refused.unwrap_or_else(|| {
            let detail = format!("`{name}` did not say how it wants to be spoken to");
            Fault::new(FaultKind::BackendUnavailable, detail).about(name)
        })),
    }
}
