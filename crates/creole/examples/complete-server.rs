//! A complete server: three tools, one that asks the user and one that returns a structured value, a resource, a prompt
//! and a middleware. It serves stdio, or HTTP within an axum application: `complete-server 127.0.0.1:8080`.

use std::sync::Arc;
use std::time::Instant;

use creole::serve::http::McpEndpoint;
use creole::{BoxFuture, Call, Context, Next, Outcome, Prompt, Resource, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

type Notes = Arc<Mutex<Vec<String>>>;

/// A note to keep.
#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// The answer of the user.
#[derive(Deserialize, JsonSchema)]
struct Consent {
    /// Delete all notes?
    delete: bool,
}

/// A structured result. Clients get its schema.
#[derive(Serialize, JsonSchema)]
struct Statistics {
    notes: usize,
    words: usize,
}

async fn add(notes: Notes, note: Note) -> &'static str {
    notes.lock().await.push(note.text);
    "kept"
}

async fn count(notes: Notes) -> Statistics {
    let notes = notes.lock().await;
    let words = notes.iter().map(|note| note.split_whitespace().count()).sum();
    Statistics { notes: notes.len(), words }
}

async fn clear(notes: Notes, context: Context) -> Result<&'static str, ToolError> {
    let consent: Consent = context.elicit("Deleted notes cannot be restored.")?;
    if !consent.delete {
        return Ok("kept");
    }
    notes.lock().await.clear();
    Ok("deleted")
}

/// The middleware: logs every call with its duration.
fn log_call(call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let (method, started) = (call.operation.method(), Instant::now());
        let outcome = next.call(call).await;
        tracing::info!(method, elapsed = ?started.elapsed(), "answered");
        outcome
    })
}

pub(crate) fn server() -> Server {
    let notes = Notes::default();
    let summarize = Prompt::new("summarize", "Summarizes the notes", |arguments, _| async move {
        format!("Please summarize the notes in {} words.", arguments["words"])
    });
    Server::new("notes")
        .tool(Tool::with_state("add", "Keeps a note", &notes, add))
        .tool(Tool::with_state("count", "Counts the notes", &notes, count).read_only())
        .tool(Tool::with_state("clear", "Deletes all notes", &notes, clear))
        .prompt(summarize.required("words", "The length of the summary"))
        .resource(Resource::new("notes://all", "notes", move |_, _| {
            let notes = Arc::clone(&notes);
            async move { notes.lock().await.join("\n") }
        }))
        .with(log_call)
}

pub(crate) fn application() -> axum::Router {
    axum::Router::new().route_service("/mcp", McpEndpoint::from(server().start()))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    match std::env::args().nth(1) {
        None => server().serve_stdio().await,
        Some(address) => axum::serve(TcpListener::bind(address).await?, application()).await,
    }
}
