//! Properties of the server machine that hold for any order of frames, outcomes, input requests and notifications.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[path = "machine/random_input.rs"]
mod random_input;
#[path = "machine/watch.rs"]
mod watch;

use core::time::Duration;

use creole_proto::dialect::builtin;
use creole_proto::framing::{FramedLine, LineDecoder};
use creole_proto::operation::{Outcome, Payload};
use creole_proto::server::{Action, Machine, Outbox, Profile, ServerLimits};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, proptest};
use proptest::sample::select;

use random_input::{ClientLine, MachineStep};
use watch::MachineAudit;

/// The dialects: the specification's rules, strict states with batches, and a separate protocol.
const DIALECTS: &[&str] = &["spec", "bossman", "bb-mcp-server"];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_or_cancelled_whatever_happens(
        dialect in select(DIALECTS), prelude in random_input::prelude(), steps in vec(random_input::step(), 0..60)
    ) {
        let mut watch = MachineAudit::new(builtin(dialect).unwrap());
        prelude.iter().chain(&steps).for_each(|step| watch.take(step));
        watch.close();
        watch.settle_accounts();
    }

    #[test]
    fn every_call_ends_by_itself(
        dialect in select(DIALECTS), prelude in random_input::prelude(), steps in vec(random_input::step(), 0..30)
    ) {
        let mut watch = MachineAudit::new(builtin(dialect).unwrap());
        prelude.iter().chain(&steps).for_each(|step| watch.take(step));
        watch.wait_for_all();
        watch.close();
        watch.settle_accounts();
    }

    #[test]
    fn nothing_is_sent_after_the_end(
        dialect in select(DIALECTS),
        prelude in random_input::prelude(),
        before in vec(random_input::step(), 0..30),
        after in vec(random_input::step(), 1..30),
    ) {
        let mut watch = MachineAudit::new(builtin(dialect).unwrap());
        prelude.iter().chain(&before).for_each(|step| watch.take(step));
        watch.close();
        for step in &after {
            watch.take_after_the_end(step);
        }
    }

    #[test]
    fn the_outcome_of_a_cancelled_call_is_dropped(
        prelude in random_input::prelude(), request in random_input::request(), outcome in random_input::outcome(),
    ) {
        let mut watch = MachineAudit::new(builtin("spec").unwrap());
        prelude.iter().for_each(|step| watch.take(step));
        watch.take(&MachineStep::Say(request.clone()));
        watch.take(&MachineStep::Say(ClientLine::Cancel(request.id().unwrap())));
        let silent = watch.is_idle();
        watch.take(&MachineStep::Finish(0, outcome));
        assert!(!silent || watch.was_last_step_silent());
    }

    #[test]
    fn every_split_of_the_stream_gives_the_same_session(
        dialect in select(DIALECTS),
        said in vec(random_input::anything(), 0..20),
        splits in vec(1_usize..200, 1..20),
    ) {
        let stream: Vec<u8> = said.iter().flat_map(|message| [message.text(), b"\n".to_vec()].concat()).collect();
        let whole = run_session(dialect, &[&stream]);
        assert_eq!(run_session(dialect, &stream.chunks(1).collect::<Vec<_>>()), whole);
        let mut rest = &stream[..];
        let mut chunks = Vec::new();
        for length in splits.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*length).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        assert_eq!(run_session(dialect, &chunks), whole);
    }
}

/// The output of a server with an endpoint that returns immediately, for these chunks.
fn run_session(dialect: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let mut lines = LineDecoder::new(4096);
    let mut machine =
        Machine::new(Profile::new(builtin(dialect).unwrap(), ServerLimits::default()).into());
    let mut out = Outbox::default();
    for chunk in chunks {
        lines.feed(chunk, |line| receive(line, &mut machine, &mut out));
    }
    if let Some(line) = lines.finish() {
        receive(line, &mut machine, &mut out);
    }
    machine.close(Duration::ZERO, &mut out);
    out.take_bytes()
}

fn receive(line: FramedLine<'_>, machine: &mut Machine, out: &mut Outbox) {
    match line {
        FramedLine::Complete(frame) => machine.receive(frame, Duration::ZERO, out),
        FramedLine::TooLong(_) => machine.reject_overlong(out),
        FramedLine::TooLongEnd(_) => {}
    }
    while let Some(action) = out.next_action() {
        if let Action::Start(call) = action {
            let empty = Outcome::Complete(Payload::Empty);
            machine.finish(call.key, empty, Duration::ZERO, out);
        }
    }
}
