//! A server to connect to, and its addresses.

use std::sync::Arc;
use std::time::Duration;

use creole::client::{ChildServer, Program, Transport};
use creole::input::{ElicitAction, form};
use creole::internal::client::{CallEvent, Connection, ConnectionSetup};
use creole::proto::client::{CallRequest, ClientLimits, OpenMode, Profile};
use creole::proto::dialect::builtin;
use creole::proto::fault::Fault;
use creole::proto::model::ClientCapabilities;
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::{Era, Revision};
use creole::proto::wire::Raw;
use creole::{Context, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Long enough for any machine; only failing tests reach it.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The signals of the tool `wait`.
#[derive(Clone, Default)]
pub(crate) struct ToolWatch {
    pub(crate) started: Arc<Notify>,
    pub(crate) dropped: Arc<Notify>,
}

struct DropNotify(Arc<Notify>);

impl Drop for DropNotify {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A server whose tools return, send events, wait, send input requests and end the process.
pub(crate) fn server(watch: &ToolWatch) -> Server {
    let echo = Tool::new("echo", "Says it again", |arguments: Value| async move {
        arguments["message"].as_str().unwrap_or_default().to_owned()
    });
    let watch = watch.clone();
    let wait = Tool::new("wait", "Waits for ever", move |_: Value, context: Context| {
        let watch = watch.clone();
        async move {
            let _dropped = DropNotify(watch.dropped);
            context.progress(1.0, Some(2.0), Some("waiting")).await;
            watch.started.notify_one();
            context.cancelled().await;
            "never".to_owned()
        }
    });
    let tell = Tool::new("tell", "Tells, then answers", |_: Value, context: Context| async move {
        for step in 1..=3 {
            context.progress(f64::from(step), Some(3.0), None).await;
        }
        "told".to_owned()
    });
    let exit = Tool::new("exit", "Ends the process", |_: Value| async move {
        std::process::abort();
        #[expect(unreachable_code, reason = "the type of the response")]
        String::new()
    });
    let ask = Tool::new("ask", "Asks for a name", asking).requests_input_first();
    Server::new("test").tool(echo).tool(wait).tool(tell).tool(exit).tool(ask)
}

async fn asking(_: Value, context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let result = context.elicit_with("name", form("Who?", &schema))?;
    match result.action {
        ElicitAction::Accept => Ok(format!("hello {}", result.content.unwrap_or_default()["name"])),
        _ => Err(ToolError::failed("no name")),
    }
}

/// Not a test: the server that children run, which are this test binary started with [`child`].
#[test]
fn serves_on_its_standard_streams() {
    if std::env::var_os("CREOLE_TEST_SERVES").is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server(&ToolWatch::default()).serve_stdio()).unwrap();
}

/// This test binary as a server on its standard streams. The test runner's banner is a protocol violation.
pub(crate) fn child() -> Program {
    // With one thread, the test runner would write the test's name before the first message.
    let args = ["support::serves_on_its_standard_streams", "--exact", "--test-threads=2"];
    let program = Program::new("child", std::env::current_exe().unwrap());
    program.args(args).env("CREOLE_TEST_SERVES", "1")
}

pub(crate) fn sh(script: &str) -> Program {
    Program::new("files", "sh").args(["-c", script])
}

pub(crate) fn profile(limits: ClientLimits) -> Arc<Profile> {
    Arc::new(Profile {
        dialect: builtin("spec").unwrap(),
        identity: Raw::parse(r#"{"name":"tester","version":"1"}"#).unwrap(),
        limits,
        extensions: Vec::new(),
    })
}

pub(crate) fn capabilities() -> Arc<ClientCapabilities> {
    Arc::new(ClientCapabilities { elicitation_form: true, ..ClientCapabilities::default() })
}

pub(crate) fn opening(era: Era) -> OpenMode {
    let rules = Revision::newest(era).rules();
    match era {
        Era::Stateless => OpenMode::Stateless { rules },
        Era::Handshake => {
            OpenMode::Handshake { proposed_rules: rules, capabilities: capabilities() }
        }
    }
}

pub(crate) async fn open(
    transport: impl Transport + 'static,
    era: Era,
) -> Result<Connection, Fault> {
    open_within(transport, era, ClientLimits::default()).await
}

pub(crate) async fn open_within(
    transport: impl Transport + 'static,
    era: Era,
    limits: ClientLimits,
) -> Result<Connection, Fault> {
    let setup = ConnectionSetup::new(profile(limits), opening(era));
    timeout(LONG, Connection::open(Box::new(transport), setup)).await.unwrap()
}

pub(crate) async fn open_child(program: &Program, era: Era) -> Result<Connection, Fault> {
    open(ChildServer::start(program).await?, era).await
}

pub(crate) fn tool(name: &str, arguments: Value) -> CallRequest {
    let arguments = Some(Raw::from_value(&arguments));
    let mut request = CallRequest::new(Operation::CallTool { name: name.to_owned(), arguments });
    request.options.capabilities = capabilities();
    request.options.progress = true;
    request
}

/// The first text of a tool's result.
pub(crate) fn text(outcome: Outcome) -> String {
    let Outcome::Complete(Payload::Relayed(relayed)) = outcome else { panic!("{outcome:?}") };
    let result: Value = relayed.result().decode().unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn fault(outcome: Outcome) -> Fault {
    let Outcome::Fail(fault) = outcome else { panic!("{outcome:?}") };
    fault
}

pub(crate) async fn call(connection: &Connection, request: CallRequest) -> Outcome {
    timeout(LONG, connection.call_without_input(request)).await.unwrap()
}

/// Calls, and responds to every input request with this content.
pub(crate) async fn call_answering(
    connection: &Connection,
    request: CallRequest,
    content: Value,
) -> Outcome {
    let response = Raw::from_value(&json!({"action": "accept", "content": content}));
    let on_news = |event: CallEvent| {
        if let CallEvent::InputRequested(input_request) = event {
            input_request.responder.respond(Ok(response.clone()));
        }
    };
    timeout(LONG, connection.call(request, on_news)).await.unwrap()
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}"#;

/// A script that performs the handshake: it responds to the first line, whatever its id, and reads the second.
pub(crate) fn shaking(rest: &str) -> String {
    let hello = HELLO.replace(r#""id":0"#, r#""id":'"$id"'"#);
    format!(
        "id() {{ printf '%s' \"$1\" | sed -E 's/.*\"id\":([0-9]+).*/\\1/'; }}\n\
         read -r line; id=$(id \"$line\"); echo '{hello}'; read -r line\n{rest}"
    )
}
