//! A client of ours that proposes one revision and no other: it stands for clients of revisions that no SDK stops at.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use creole::client::http::{HttpServer, Target};
use creole::client::{ChildServer, Connection, News, Notice, Setup, Step as Next, Transport};
use creole::process::Program;
use creole::proto::client::{Limits, Opening, Profile, Refusal, Request};
use creole::proto::dialect::builtin;
use creole::proto::model::{ClientCapabilities, ListKind, Question};
use creole::proto::op::{Change, Event, Operation, Outcome, Payload};
use creole::proto::revision::Revision;
use creole::proto::wire::Raw;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::{Server, Step, Steps};

/// How long one step may take before it is an error.
const STEP: Duration = Duration::from_secs(20);

/// How long the server may take to hear that a call is cancelled.
const CANCELLED: Duration = Duration::from_secs(5);

/// Has the client perform steps against the server that a command starts, and returns a document as the peers do.
pub fn run(revision: &str, steps: &Steps, command: &[OsString]) -> Result<Value, String> {
    perform(revision, steps, Server::Command(command))
}

/// The same against the server at this address.
pub fn run_at(revision: &str, steps: &Steps, url: &str) -> Result<Value, String> {
    perform(revision, steps, Server::Url { url, header: None })
}

fn perform(revision: &str, steps: &Steps, server: Server<'_>) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let connection = connect(revision, server).await?;
        let mut told = Told { connection, document: Map::new(), errors: Vec::new() };
        told.document.insert("protocol".into(), json!(told.connection.greeting().version));
        for step in &steps.0 {
            told.perform(step).await;
        }
        told.connection.close().await;
        told.document.insert("errors".into(), Value::Array(told.errors));
        Ok(Value::Object(told.document))
    })
}

async fn connect(revision: &str, server: Server<'_>) -> Result<Connection, String> {
    let rules = Revision::named(revision).ok_or("no such revision")?.rules();
    let dialect = builtin("spec").ok_or("no such dialect")?;
    let identity = Raw::of(&json!({"name": "creole-acceptance-peer", "version": "1.0.0"}));
    let profile = Profile { dialect, identity, limits: Limits::default() };
    let transport: Box<dyn Transport> = match server {
        Server::Url { url, .. } => {
            let target = Target::new("server", url).map_err(|fault| fault.detail)?;
            Box::new(HttpServer::new(target))
        }
        Server::Command(words) => {
            let (program, arguments) = words.split_first().ok_or("no command")?;
            let program = Program::new("server", program).args(arguments.to_vec());
            Box::new(ChildServer::start(&program).await.map_err(|fault| fault.detail)?)
        }
    };
    let capabilities = ClientCapabilities {
        elicitation_form: true,
        sampling: true,
        ..ClientCapabilities::default()
    };
    let opening = Opening::Handshake { propose: rules, capabilities: Arc::new(capabilities) };
    let setup = Setup::new(Arc::new(profile), opening);
    Connection::open(transport, setup).await.map_err(|fault| fault.detail)
}

/// What came of the steps so far.
struct Told {
    connection: Connection,
    document: Map<String, Value>,
    errors: Vec<Value>,
}

/// What happened in one call.
#[derive(Default)]
struct Heard {
    progress: Vec<Value>,
    asked: bool,
}

impl Told {
    async fn perform(&mut self, step: &Step) {
        let (call, fact) = match step.flag {
            "--progress" => ("progress_call", "progress"),
            "--cancel" => return self.cancel(step).await,
            "--elicit" => ("elicit_call", "elicited"),
            "--sample" => ("sample_call", "sampled"),
            "--roots" => ("roots_call", "roots"),
            "--list-changed" => return self.list_changed(step).await,
            _ => ("call", "called"),
        };
        let mut heard = Heard::default();
        let came = timeout(STEP, follow(&self.connection, step, &mut heard, false)).await;
        self.note(call, came.unwrap_or_else(|_| Err("nothing came in time".to_owned())));
        let fact_value = match step.flag {
            "--progress" => Value::Array(heard.progress),
            _ => json!(heard.asked),
        };
        self.document.insert(fact.into(), fact_value);
    }

    async fn cancel(&mut self, step: &Step) {
        let mut heard = Heard::default();
        // The call is dropped at the first news, which cancels it.
        let came = timeout(STEP, follow(&self.connection, step, &mut heard, true)).await;
        let file = step.arguments.as_ref().and_then(|given| given["file"].as_str());
        let file = Path::new(file.unwrap_or_default());
        let noted = timeout(CANCELLED, async {
            while fs::metadata(file).is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        });
        let is_noted = came.is_ok() && noted.await.is_ok();
        self.document.insert("cancelled".into(), json!(is_noted));
    }

    async fn list_changed(&mut self, step: &Step) {
        let mut notices = self.connection.notices();
        let mut heard = Heard::default();
        let came = timeout(STEP, follow(&self.connection, step, &mut heard, false)).await;
        self.note("list_changed_call", came.unwrap_or_else(|_| Err("nothing came".to_owned())));
        let told = timeout(STEP, async {
            while let Ok(notice) = notices.recv().await {
                if notice == Notice::Changed(Change::List(ListKind::Tools)) {
                    return true;
                }
            }
            false
        });
        self.document.insert("list_changed".into(), json!(told.await.unwrap_or(false)));
    }

    fn note(&mut self, step: &str, came: Result<Value, String>) {
        match came {
            Ok(value) => drop(self.document.insert(step.into(), value)),
            Err(message) => self.errors.push(json!({"step": step, "message": message})),
        }
    }
}

/// Calls the tool of a step, answers what it asks, and returns its result; `briefly` ends at the first news.
async fn follow(
    connection: &Connection,
    step: &Step,
    heard: &mut Heard,
    briefly: bool,
) -> Result<Value, String> {
    let arguments = step.arguments.as_ref().map(Raw::of);
    let mut request = Request::new(Operation::CallTool { name: step.name.clone(), arguments });
    request.terms.progress = true;
    let mut calling = connection.begin(request);
    loop {
        match calling.next().await {
            Next::News(_) if briefly => return Ok(Value::Null),
            Next::News(News::Event(Event::Progress { progress, total, .. })) => {
                heard.progress.push(json!({"progress": progress, "total": total}));
            }
            Next::News(News::Asked(asked)) => {
                heard.asked = true;
                asked.reply.answer(answer(&asked.question));
            }
            Next::News(_) => {}
            Next::Done(Outcome::Complete(Payload::Relayed(relayed))) => {
                return relayed.result.decode().map_err(|error| error.to_string());
            }
            Next::Done(Outcome::Fail(fault)) => return Err(fault.detail),
            other => return Err(format!("{other:?}")),
        }
    }
}

/// What the other peers answer as well.
fn answer(question: &Question) -> Result<Raw, Refusal> {
    match question {
        Question::Form { .. } => {
            Ok(Raw::of(&json!({"action": "accept", "content": {"name": "peer"}})))
        }
        Question::Sample { .. } => {
            let content = json!({"type": "text", "text": "Sampled by the peer."});
            Ok(Raw::of(&json!({"role": "assistant", "content": content, "model": "peer-model"})))
        }
        Question::Url { .. } | Question::Roots => Err(Refusal::unsupported("not here")),
    }
}
