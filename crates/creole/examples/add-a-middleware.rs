//! A layer around every call: it counts tool calls and refuses the eleventh.

use std::sync::atomic::{AtomicUsize, Ordering};

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::operation::Operation;
use creole::{BoxFuture, Call, Middleware, Next, Outcome, Server, Tool};

struct AtMost {
    calls: usize,
    seen: AtomicUsize,
}

impl Middleware for AtMost {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let is_tool = matches!(call.operation, Operation::CallTool { .. });
            if is_tool && self.seen.fetch_add(1, Ordering::Relaxed) >= self.calls {
                return Fault::new(FaultKind::Busy, "the ten calls are used up").into();
            }
            next.call(call).await
        })
    }
}

async fn now() -> String {
    format!("{:?}", std::time::SystemTime::now())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    Server::new("metered")
        .tool(Tool::new("now", "Tells the time", now).read_only())
        .with(AtMost { calls: 10, seen: AtomicUsize::new(0) })
        .serve_stdio()
        .await
}
