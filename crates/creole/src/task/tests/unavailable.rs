//! Tasks whose state cannot store their changes for a while.

use tokio::sync::watch;

use super::*;
use crate::state::StateLimits;

/// Waits until it is released, and then returns a result.
fn held_result(text: &'static str) -> (watch::Sender<bool>, RunCall) {
    let (release, released) = watch::channel(false);
    let run: RunCall = Arc::new(move |_| {
        let mut released = released.clone();
        Box::pin(async move {
            released.wait_for(|is_released| *is_released).await.unwrap();
            support::done(text)
        })
    });
    (release, run)
}

/// Leaves no byte of the state free.
async fn fill(state: &State) {
    let mut length = 0;
    while state.put("filler", vec![0; length].into(), None).await.is_ok() {
        length += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_waits_for_a_state_that_cannot_store_it() {
    let state = State::memory(StateLimits { bytes: 4096, ..StateLimits::default() });
    let tasks = tasks_in(state.clone(), TaskLimits::default());
    let (release, run) = held_result("the result");
    let id = make(&tasks, modern("ada"), run).await.unwrap().id;
    fill(&state).await;
    release.send_replace(true);
    let early = timeout(Duration::from_secs(30), until(&tasks, &id, TaskState::is_terminal)).await;
    assert!(early.is_err(), "the state is full: {early:?}");
    state.remove("filler").await.unwrap();
    let ended = until(&tasks, &id, TaskState::is_terminal).await;
    assert!(text(&ended).contains("the result"), "{ended:?}");
}
