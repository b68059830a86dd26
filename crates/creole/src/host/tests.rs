//! Calls that are cancelled before their task is known.

use std::sync::mpsc;
use std::task::Waker;
use std::thread;

use creole_proto::wire::scan;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::serve::http::mcp::stream::ResponseStream;
use crate::serve::http::mcp::streams::HttpHost;
use crate::{Context as CallContext, Server, Tool};

const LONG: Duration = Duration::from_secs(10);

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn receive(host: &Arc<HttpHost>, message: &Value) -> StartedCalls {
    let text = message.to_string();
    let scanned = scan(text.as_bytes(), &host.service.profile().limits.scan);
    let principal = "ada".into();
    let caller = RequestCaller { principal: &principal, scopes: None, source: None };
    host.receive_scanned(scanned.as_ref(), COMMON_STREAM, caller)
}

fn cancel(host: &Arc<HttpHost>) {
    let params = json!({"requestId": 1, "reason": "changed my mind"});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(receive(host, &message).len(), 0);
}

/// A session in which this tool is called; the call is not started.
fn called(tool: Tool) -> (Arc<HttpHost>, HostedCall) {
    let service = Server::new("t").tool(tool).start();
    let host = HttpHost::open(service, Origin::new("ada".into()), ResponseStream::resumable());
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    for (id, method, params) in [
        (Some(0), "initialize", params),
        (None, "notifications/initialized", json!({})),
        (Some(1), "tools/call", json!({"name": "t", "arguments": {}})),
    ] {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = id {
            message["id"] = id.into();
        }
        let started = receive(&host, &message);
        for call in started {
            if id == Some(1) {
                return (host, call);
            }
            assert!(host.first_poll(call, &mut Context::from_waker(Waker::noop())).is_none());
        }
    }
    panic!("nothing was called")
}

#[tokio::test]
async fn a_call_that_is_cancelled_during_its_first_poll_is_notified() {
    let (entered, inside) = mpsc::channel();
    let (go_on, wait) = mpsc::channel();
    let (learnt, receiver) = mpsc::channel();
    let wait = Mutex::new(wait);
    let (host, call) = called(Tool::new("t", "Computes", {
        move |_: Nothing, context: CallContext| {
            entered.send(()).unwrap();
            wait.lock().recv().unwrap();
            learnt.send(context.is_cancelled()).unwrap();
            std::future::pending::<String>()
        }
    }));
    let runner = Arc::clone(&host);
    let begun = thread::spawn(move || {
        runner.first_poll(call, &mut Context::from_waker(Waker::noop())).is_some()
    });
    inside.recv_timeout(LONG).unwrap();
    cancel(&host);
    go_on.send(()).unwrap();
    assert!(receiver.recv_timeout(LONG).unwrap(), "the handler sees that the call was cancelled");
    assert!(!begun.join().unwrap(), "a cancelled call does not continue");
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_does_not_begin() {
    let ran = Arc::new(Mutex::new(false));
    let runs = Arc::clone(&ran);
    let (host, call) = called(Tool::new("t", "Notes that it ran", move |_: Nothing| {
        *runs.lock() = true;
        std::future::ready("done")
    }));
    cancel(&host);
    assert!(host.first_poll(call, &mut Context::from_waker(Waker::noop())).is_none());
    assert!(!*ran.lock());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_named_after_its_call_was_cancelled_is_aborted() {
    let waits = |_: Nothing| std::future::pending::<String>();
    let (host, call) = called(Tool::new("t", "Waits", waits));
    let pending = host.first_poll(call, &mut Context::from_waker(Waker::noop())).unwrap();
    assert!(!pending.is_cancelled());
    let key = pending.key;
    let task = tokio::spawn(pending.future);
    cancel(&host);
    host.set_task(key, task.abort_handle());
    let ended = timeout(Duration::from_secs(1), task).await.expect("the task ends");
    assert!(ended.unwrap_err().is_cancelled());
}
