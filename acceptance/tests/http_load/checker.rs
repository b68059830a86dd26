//! Tests of the checker: it accepts a correct server and detects every violation.

use creole_acceptance::load::{Breach, Era, History};

use crate::crowd::Crowd;
use crate::dishonest::Misbehaviour;
use crate::{dishonest, turn};

const CROWD: Crowd =
    Crowd { clients: 12, calls: 20, connections: 6, eras: [Era::Modern; 2], sleeps: false };

async fn history(misbehaviour: Misbehaviour) -> History {
    let _turn = turn().await;
    CROWD.call(dishonest::start(misbehaviour).await).await
}

/// Fails unless the checker finds a breach of this kind.
#[track_caller]
fn assert_found(history: &History, is_expected: impl Fn(&Breach) -> bool) {
    let breaches = history.breaches();
    let found = breaches.iter().filter(|finding| is_expected(&finding.breach)).count();
    println!("{found} of {} calls", history.calls());
    assert!(found > 0, "the breach was not found; instead: {:?}", breaches.first());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correct_server_passes() {
    history(Misbehaviour::None).await.assert_right(CROWD.clients * CROWD.calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_swaps_the_answers_of_two_clients_is_caught() {
    let history = history(Misbehaviour::Swaps).await;
    assert_found(&history, |breach| matches!(breach, Breach::WrongTenant { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_repeats_an_earlier_response_is_detected() {
    let history = history(Misbehaviour::Remembers).await;
    assert_found(&history, |breach| {
        matches!(breach, Breach::WrongTenant { .. } | Breach::WrongNonce(_))
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_answer_on_the_same_stream_is_caught() {
    let history = history(Misbehaviour::AnswersTwice).await;
    assert_found(&history, |breach| *breach == Breach::AnsweredTwice);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unexpected_response_is_detected() {
    let history = history(Misbehaviour::RespondsTwice).await;
    assert_found(
        &history,
        |breach| matches!(breach, Breach::Unanswered(reason) if reason.contains("without a request")),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_with_another_id_is_caught() {
    let history = history(Misbehaviour::ChangesId).await;
    assert_found(&history, |breach| matches!(breach, Breach::WrongId(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_never_answered_is_caught() {
    let history = history(Misbehaviour::Hangs).await;
    assert_found(&history, |breach| matches!(breach, Breach::Unanswered(_)));
    assert_eq!(history.breaches().len(), history.calls());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_call_is_caught() {
    let history = history(Misbehaviour::Refuses).await;
    assert_found(&history, |breach| matches!(breach, Breach::Refused(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[should_panic(expected = "breaches in 240 calls, the first:")]
async fn a_dishonest_server_fails_the_test() {
    history(Misbehaviour::Swaps).await.assert_right(CROWD.clients * CROWD.calls);
}
