//! Tasks under races, limits and foreign principals, in memory and in a file.

mod support;
mod unavailable;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{
    ClientCapabilities, InputRequest, Task, TaskOutcome, TaskPreference, TaskState,
};
use creole_proto::operation::{Caller, Event, Operation, Outcome, Payload};
use creole_proto::revision::{Era, Revision};
use creole_proto::server::{CallKey, InputResponse};
use creole_proto::wire::Raw;
use creole_test_wait::{delay, eventually_async};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::timeout;

use super::record::ResponsesByKey;
use super::store::{TaskChange, TaskKey, TaskStore};
use super::work::RunCall;
use super::{TaskLimits, Tasks};
use crate::call::{Call, ClientChannel, Context, Origin};
use crate::chain::BoxFuture;
use crate::input::form;
use crate::item::tool::ToolError;
use crate::random::failure;
use crate::seal::Sealer;
use crate::state::State;
use support::{
    ask, get, immediate_result, kind, make, modern, never, older, tasks, tasks_in, text, until,
    update, with_input_request,
};

#[tokio::test(start_paused = true)]
async fn a_task_of_another_principal_is_unknown_to_every_method() {
    let tasks = tasks(TaskLimits::default());
    let id = make(&tasks, older("ada"), with_input_request()).await.unwrap().id;
    until(&tasks, &id, |state| matches!(state, TaskState::InputRequired(_))).await;
    let id = || id.clone();
    for stranger in [modern("eve"), older("eve"), older("")] {
        let operations = [
            Operation::GetTask { id: id() },
            Operation::TaskResult { id: id() },
            Operation::CancelTask { id: id() },
            update(&id(), &json!({})),
        ];
        for operation in operations {
            let unknown = ask(&tasks, operation, &stranger).await;
            assert_eq!(unknown, Err(Fault::new(FaultKind::UnknownTask, "")));
        }
        assert_eq!(tasks.follow_tasks(vec![id()], &stranger, None).await, Ok(Vec::new()));
        let Ok(Payload::Tasks(page)) = ask(&tasks, Operation::ListTasks(None), &stranger).await
        else {
            panic!("no list");
        };
        assert!(page.tasks.is_empty() && page.next.is_none());
    }
    assert!(matches!(get(&tasks, &id(), &modern("ada")).await, Ok(TaskState::InputRequired(_))));
}

#[tokio::test(start_paused = true)]
async fn ids_are_long_and_never_the_same() {
    let tasks = tasks(TaskLimits::default());
    let mut ids = std::collections::HashSet::new();
    for _ in 0..50 {
        let id = make(&tasks, modern("ada"), immediate_result("x")).await.unwrap().id;
        assert_eq!(id.len(), 32);
        assert!(ids.insert(id));
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_bounded_for_each_caller_and_in_all_until_they_expire() {
    let limits = TaskLimits { per_principal: 2, total: 3, ..TaskLimits::default() };
    let tasks = tasks(limits);
    for _ in 0..2 {
        make(&tasks, modern("ada"), immediate_result("x")).await.unwrap();
    }
    let refused = make(&tasks, modern("ada"), immediate_result("x")).await.unwrap_err();
    assert!(refused.kind == FaultKind::Busy && refused.detail.contains('2'), "{refused:?}");
    make(&tasks, modern("eve"), immediate_result("x")).await.unwrap();
    let refused = make(&tasks, modern("bob"), immediate_result("x")).await.unwrap_err();
    assert!(refused.kind == FaultKind::Busy && refused.detail.contains('3'), "{refused:?}");
    delay(limits.ttl + Duration::from_secs(1)).await;
    make(&tasks, modern("bob"), immediate_result("x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_task_frees_its_slot() {
    let tasks = tasks(TaskLimits { per_principal: 1, total: 2, ..TaskLimits::default() });
    make(&tasks, modern("ada"), immediate_result("x")).await.unwrap();
    for _ in 0..5 {
        assert_eq!(kind(make(&tasks, modern("ada"), immediate_result("x")).await), FaultKind::Busy);
    }
    make(&tasks, modern("eve"), immediate_result("x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_expired_task_is_stopped_and_removed_and_ends_its_waiters() {
    struct DropCounter(Arc<AtomicUsize>);
    impl Drop for DropCounter {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let stopped = Arc::new(AtomicUsize::new(0));
    let flag = Arc::clone(&stopped);
    let run: RunCall = Arc::new(move |_| {
        let stopped = DropCounter(Arc::clone(&flag));
        Box::pin(async move {
            let _stopped = stopped;
            std::future::pending().await
        })
    });
    let tasks = tasks(TaskLimits::default());
    let id = make(&tasks, older("ada"), run).await.unwrap().id;
    let waited = ask(&tasks, Operation::TaskResult { id: id.clone() }, &older("ada")).await;
    assert_eq!(kind(waited), FaultKind::UnknownTask);
    assert_eq!(stopped.load(Ordering::SeqCst), 1);
    assert_eq!(kind(get(&tasks, &id, &modern("ada")).await), FaultKind::UnknownTask);
    assert_eq!(
        kind(ask(&tasks, update(&id, &json!({})), &modern("ada")).await),
        FaultKind::UnknownTask
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_leaves_no_task_or_a_complete_one() {
    let tasks = tasks(TaskLimits { per_principal: 1000, ..TaskLimits::default() });
    for polls in 0..6 {
        let mut making = Box::pin(make(&tasks, modern("ada"), immediate_result("x")));
        for _ in 0..polls {
            if polled_once(&mut making).await.is_some() {
                making = Box::pin(make(&tasks, modern("ada"), immediate_result("x")));
            }
        }
        drop(making);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    let ids = tasks.shared.store.list("ada").await.unwrap();
    for id in ids {
        if let Some(record) = tasks.shared.store.read(&TaskKey::new("ada", &id)).await.unwrap() {
            assert!(record.task.state.is_terminal(), "the task has no worker: {record:?}");
        }
    }
}

/// Polls a future once and lets others run.
async fn polled_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    });
    let done = polled.await;
    tokio::task::yield_now().await;
    done
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_long_to_keep_fails_the_task() {
    let tasks = tasks(TaskLimits { record_bytes: 2000, ..TaskLimits::default() });
    let long: &'static str = "x".repeat(3000).leak();
    let id = make(&tasks, modern("ada"), immediate_result(long)).await.unwrap().id;
    let state = until(&tasks, &id, TaskState::is_terminal).await;
    let TaskState::Ended(TaskOutcome::Fault(fault)) = state else { panic!("{state:?}") };
    assert!(fault.kind == FaultKind::ToolFailed && fault.detail.contains("2000"), "{fault:?}");
}

#[tokio::test(start_paused = true)]
async fn input_responses_that_are_too_long_are_refused_and_others_are_accepted() {
    let tasks = tasks(TaskLimits { record_bytes: 2000, ..TaskLimits::default() });
    let id = make(&tasks, modern("ada"), with_input_request()).await.unwrap().id;
    until(&tasks, &id, |state| matches!(state, TaskState::InputRequired(_))).await;
    let long = json!({"a": "x".repeat(3000)});
    assert_eq!(
        kind(ask(&tasks, update(&id, &long), &modern("ada")).await),
        FaultKind::InvalidParams
    );
    ask(&tasks, update(&id, &json!({"a": 1})), &modern("ada")).await.unwrap();
    let state = until(&tasks, &id, TaskState::is_terminal).await;
    assert!(text(&state).contains(r#"{\"a\":1}"#), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn an_input_request_that_is_repeated_after_its_response_ends_the_task() {
    let run: RunCall = Arc::new(|call| {
        let schema = json!({"type": "object"});
        let input_request = form("Again?", &schema);
        let input_requests = vec![creole_proto::model::KeyedInputRequest {
            key: "q".into(),
            question: input_request,
        }];
        drop(call);
        Box::pin(std::future::ready(Outcome::InputRequired {
            requests: input_requests,
            request_state: None,
        }))
    });
    let tasks = tasks(TaskLimits::default());
    let id = make(&tasks, modern("ada"), run).await.unwrap().id;
    until(&tasks, &id, |state| matches!(state, TaskState::InputRequired(_))).await;
    ask(&tasks, update(&id, &json!({})), &modern("ada")).await.unwrap();
    let state = until(&tasks, &id, TaskState::is_terminal).await;
    let TaskState::Ended(TaskOutcome::Fault(fault)) = state else { panic!("{state:?}") };
    assert_eq!(fault.kind, FaultKind::Internal);
}

#[tokio::test(start_paused = true)]
async fn the_list_is_split_into_pages_for_its_owner_only() {
    let tasks = tasks(TaskLimits::default());
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(make(&tasks, older("ada"), immediate_result("x")).await.unwrap().id);
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    for _ in 0..3 {
        let listed = ask(&tasks, Operation::ListTasks(cursor.take()), &older("ada")).await;
        let Ok(Payload::Tasks(page)) = listed else { panic!("{listed:?}") };
        seen.extend(page.tasks.iter().map(|task| task.id.clone()));
        cursor = page.next;
        if let Some(next) = &cursor {
            let stolen = ask(&tasks, Operation::ListTasks(Some(next.clone())), &older("eve")).await;
            assert_eq!(kind(stolen), FaultKind::InvalidParams);
        }
    }
    assert_eq!((seen, cursor), (made, None));
}

/// Runs two changes of one task at the same time on two threads, many times.
async fn race<A, B>(
    state: &State,
    rounds: usize,
    first: impl Fn(TaskStore, TaskKey) -> A,
    second: impl Fn(TaskStore, TaskKey) -> B,
    check: impl Fn(&TaskChange, &TaskChange, &TaskState),
) where
    A: Future<Output = TaskChange> + Send + 'static,
    B: Future<Output = TaskChange> + Send + 'static,
{
    let limits = TaskLimits { per_principal: 10_000, ..TaskLimits::default() };
    let tasks = tasks_in(state.clone(), limits);
    for _ in 0..rounds {
        let id = make(&tasks, modern("ada"), with_input_request()).await.unwrap().id;
        until(&tasks, &id, |state| matches!(state, TaskState::InputRequired(_))).await;
        let key = TaskKey::new("ada", &id);
        let store = tasks.shared.store.clone();
        let one = tokio::spawn(first(store.clone(), key.clone()));
        let other = tokio::spawn(second(store.clone(), key.clone()));
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        let over = until(&tasks, &id, TaskState::is_terminal).await;
        check(&one, &other, &over);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        let later = get(&tasks, &id, &modern("ada")).await.unwrap();
        assert_eq!(later, over, "a finished task does not change");
    }
}

async fn cancelled(store: TaskStore, key: TaskKey) -> TaskChange {
    store.change(&key, super::record::TaskRecord::cancel).await.unwrap()
}

async fn ended(store: TaskStore, key: TaskKey) -> TaskChange {
    let end = TaskOutcome::Result(creole_proto::model::ToolResult::text("end"));
    store.change(&key, |record, now| record.end(end.clone(), now)).await.unwrap()
}

async fn answered(store: TaskStore, key: TaskKey) -> TaskChange {
    let response = Raw::from_value(&json!({"action": "accept", "content": {}}));
    let arguments = ResponsesByKey::from([("q".to_owned(), response)]);
    store.change(&key, |record, now| record.accept_responses(arguments.clone(), now)).await.unwrap()
}

fn has_won(changed: &TaskChange) -> bool {
    matches!(changed, TaskChange::Updated(_))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_end_and_a_cancellation_one_wins_and_stays() {
    let state = State::default();
    race(&state, 100, cancelled, ended, |cancel, end, over| {
        assert!(has_won(cancel) != has_won(end), "{cancel:?} {end:?}");
        assert_eq!(*over == TaskState::Cancelled, has_won(cancel));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_response_and_a_cancellation_never_restart_a_cancelled_task() {
    let state = State::default();
    race(&state, 100, cancelled, answered, |cancel, _, over| {
        // The response may have let the task end before the cancellation came.
        assert_eq!(*over == TaskState::Cancelled, has_won(cancel), "{cancel:?} {over:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_same_answers_one_counts() {
    let state = State::default();
    race(&state, 100, answered, answered, |one, other, over| {
        assert!(has_won(one) != has_won(other), "{one:?} {other:?}");
        assert!(matches!(over, TaskState::Ended(TaskOutcome::Result(_))), "{over:?}");
    })
    .await;
}

#[cfg(feature = "sqlite")]
mod in_a_file {
    use super::support::SilentChannel;
    use super::*;
    use crate::state::StateLimits;

    async fn opened(folder: &tempfile::TempDir) -> State {
        State::sqlite(folder.path().join("state.db"), StateLimits::default()).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn races_have_one_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let state = opened(&folder).await;
        race(&state, 10, cancelled, ended, |cancel, end, over| {
            assert!(has_won(cancel) != has_won(end), "{cancel:?} {end:?}");
            assert_eq!(*over == TaskState::Cancelled, has_won(cancel));
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_task_can_request_input_and_be_awaited_through_another_server() {
        let folder = tempfile::tempdir().unwrap();
        let here = tasks_in(opened(&folder).await, TaskLimits::default());
        let there = tasks_in(opened(&folder).await, TaskLimits::default());
        let id = make(&here, modern("ada"), with_input_request()).await.unwrap().id;
        until(&there, &id, |state| matches!(state, TaskState::InputRequired(_))).await;
        let operation = Operation::TaskResult { id: id.clone() };
        let waiting = {
            let (there, operation) = (there.clone(), operation.clone());
            // A client without the capability for input only waits.
            let mut context = older("ada");
            let mut caller = context.caller().clone();
            caller.capabilities = Arc::default();
            context = Context::new(
                CallKey(2),
                caller,
                Origin::new("ada".into()),
                Arc::new(SilentChannel),
                false,
                None,
            );
            tokio::spawn(async move { ask(&there, operation, &context).await })
        };
        ask(&there, update(&id, &json!({"a": 1})), &modern("ada")).await.unwrap();
        let Payload::Tool(result) = waiting.await.unwrap().unwrap() else { panic!("no result") };
        assert!(Raw::from_value(&result.content).as_str().contains(r#"{\"a\":1}"#));
    }

    #[tokio::test]
    async fn a_task_that_is_over_outlives_its_server_and_another_one_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let (over, open) = {
            let tasks = tasks_in(opened(&folder).await, TaskLimits::default());
            let over = make(&tasks, modern("ada"), immediate_result("kept")).await.unwrap().id;
            until(&tasks, &over, TaskState::is_terminal).await;
            let open = make(&tasks, modern("ada"), never()).await.unwrap().id;
            // As if it had been killed long ago: its heartbeat has expired.
            let store = &tasks.shared.store;
            store
                .write_heartbeat(tasks.shared.worker().unwrap(), Duration::from_millis(1))
                .await
                .unwrap();
            (over, open)
        };
        let tasks = tasks_in(opened(&folder).await, TaskLimits::default());
        assert!(text(&get(&tasks, &over, &modern("ada")).await.unwrap()).contains("kept"));
        let state = until(&tasks, &open, TaskState::is_terminal).await;
        let TaskState::Ended(TaskOutcome::Fault(fault)) = state else { panic!("{state:?}") };
        assert!(fault.detail.contains("has ended"), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn operators_see_tasks_without_their_ids_and_can_cancel_them() {
    let tasks = tasks(TaskLimits::default());
    let id = make(&tasks, modern("ada"), never()).await.unwrap().id;
    let seen = tasks.inspect().await;
    let [task] = &*seen else { panic!("one task: {seen:?}") };
    assert_eq!((task.status, task.revision), ("working", modern("ada").caller().rules.name));
    assert_eq!(task.digest.len(), 16);
    assert!(!format!("{task:?}").contains(&id), "an id gives access: {task:?}");
    assert_eq!(tasks.cancel_inspected("0000000000000000").await, Ok(None));
    assert_eq!(tasks.cancel_inspected(&task.digest).await, Ok(Some(true)));
    assert_eq!(tasks.cancel_inspected(&task.digest).await, Ok(Some(false)), "it has ended");
    assert_eq!(tasks.inspect().await[0].status, "cancelled");
    assert_eq!(get(&tasks, &id, &modern("ada")).await, Ok(TaskState::Cancelled));
    tokio::time::advance(TaskLimits::default().ttl).await;
    eventually_async("the task is removed", async || tasks.inspect().await.is_empty()).await;
}

#[tokio::test]
async fn processes_without_a_random_name_have_no_tasks_instead_of_each_others() {
    let state = State::default();
    let nameless = || failure::during(|| tasks_in(state.clone(), TaskLimits::default()));
    for tasks in [nameless(), nameless()] {
        let refused = make(&tasks, modern("ada"), never()).await.unwrap_err();
        assert_eq!(refused.kind, FaultKind::Internal, "{refused:?}");
    }
}
