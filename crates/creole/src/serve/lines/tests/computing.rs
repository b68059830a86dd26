//! Handlers that compute: they hold a thread, and the connection goes on without them.

use creole_proto::server::ServerLimits;

use super::*;

/// A tool that computes until it is told to end, on any thread, and what it reports.
struct ComputingTool {
    /// Signals that a call of it has begun.
    entered: Receiver<()>,
    /// Lets it end.
    go_on: Sender<()>,
    /// Whether the call was cancelled when it ended.
    cancelled: Receiver<bool>,
}

/// A service with the tools `compute` and `quick`.
fn computing(limits: ServerLimits) -> (Service, ComputingTool) {
    let ((begun, entered), (go_on, wait)) = (channel(), channel());
    let (learnt, cancelled) = channel();
    let wait = Mutex::new(wait);
    let compute = move |_: Nothing, context: Context| {
        begun.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        learnt.send(context.is_cancelled()).unwrap();
        std::future::ready("computed")
    };
    let quick = async |_: Nothing, context: Context| {
        context.progress(1.0, None, None).await;
        "quick"
    };
    let server = Server::new("t").limits(limits).tool(Tool::new("compute", "Computes", compute));
    let service = server.tool(Tool::new("quick", "Answers", quick)).start();
    (service, ComputingTool { entered, go_on, cancelled })
}

fn call(id: u64, tool: &str) -> String {
    let meta = json!({"progressToken": id});
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// The messages of a connection, however they are divided into chunks.
struct Messages(MemoryConnection, Vec<u8>);

impl Messages {
    async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.1.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.1.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let bytes = timeout(LONG, self.0.receive()).await.expect("an answer in time").unwrap();
            self.1.extend_from_slice(&bytes);
        }
    }
}

/// While a tool computes: a ping, another call with its progress, and a second tool that computes.
async fn goes_on(
    mut send: impl AsyncFnMut(String),
    line: MemoryConnection,
    tool: ComputingTool,
) -> Messages {
    let mut messages = Messages(line, Vec::new());
    send(HELLO.into()).await;
    assert_eq!(messages.next().await["id"], 0);
    // The rest of the chunk must not be lost.
    send(call(1, "compute") + PING).await;
    assert_eq!(messages.next().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    send(call(3, "quick")).await;
    assert_eq!(messages.next().await["method"], "notifications/progress");
    assert_eq!(messages.next().await["id"], 3);
    send(call(4, "compute")).await;
    send(PING.into()).await;
    assert_eq!(messages.next().await["id"], 2);
    tool.go_on.send(()).unwrap();
    tool.go_on.send(()).unwrap();
    let mut ids = [messages.next().await, messages.next().await].map(|value| value["id"].as_u64());
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(4)]);
    send(PING.into()).await;
    assert_eq!(messages.next().await["id"], 2, "the connection goes on as before");
    messages
}

async fn on_thread() {
    let (service, tool) = computing(ServerLimits::default());
    let (line, far) = memory_pair();
    let (pieces, input) = channel();
    let output = far.split().1;
    let served = tokio::spawn(serve(service, PieceSource(input), output, ReaderStarter::Threads));
    let _open = goes_on(async |text| pieces.send(text.leak()).unwrap(), line, tool).await;
    drop(pieces);
    assert_eq!(timeout(LONG, served).await.unwrap().unwrap().unwrap(), EndReason::InputClosed);
}

#[tokio::test]
async fn a_computing_tool_delays_nothing_on_a_runtime_with_one_thread() {
    on_thread().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_computing_tool_delays_nothing_on_a_runtime_with_threads() {
    on_thread().await;
}

#[tokio::test]
async fn a_computing_tool_is_cancelled_and_its_deadline_applies() {
    let limits =
        ServerLimits { call_idle_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let (service, tool) = computing(limits);
    let (line, far) = memory_pair();
    let (pieces, input) = channel();
    let output = far.split().1;
    tokio::spawn(serve(service, PieceSource(input), output, ReaderStarter::Threads));
    let mut messages = Messages(line, Vec::new());
    pieces.send(HELLO).unwrap();
    assert_eq!(messages.next().await["id"], 0);

    pieces.send(call(1, "compute").leak()).unwrap();
    let timed_out = messages.next().await;
    assert_eq!(timed_out["id"], 1);
    assert!(timed_out["error"].is_object(), "{timed_out}");
    tool.entered.recv_timeout(LONG).unwrap();

    pieces.send(call(5, "compute").leak()).unwrap();
    tool.entered.recv_timeout(LONG).unwrap();
    let params = json!({"requestId": 5});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    pieces.send(format!("{cancel}\n").leak()).unwrap();
    pieces.send(PING).unwrap();
    assert_eq!(messages.next().await["id"], 2);

    tool.go_on.send(()).unwrap();
    tool.go_on.send(()).unwrap();
    for _ in 0..2 {
        assert!(tool.cancelled.recv_timeout(LONG).unwrap(), "the handler sees it");
    }
}
