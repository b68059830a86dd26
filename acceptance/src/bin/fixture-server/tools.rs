//! The tools: one for each thing that a server may do in a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use creole::ask::{form, sample};
use creole::proto::model::ToolResult;
use creole::proto::wire::Raw;
use creole::{BoxFuture, Context, Registry, Server, Tool, ToolError};
use serde_json::{Value, json};

/// The server with all the tools.
pub(super) fn add(server: Server) -> Server {
    server
        .tool(tool("echo", &["text"], |given, _| async move { Ok(text(&given["text"])) }))
        .tool(tool("weather", &[], |_, _| async { Ok(weather()) }))
        .tool(tool("count", &[], |_, context| async move { Ok(count(&context).await) }))
        .tool(tool("greet", &[], |_, context| async move { greet(&context) }))
        .tool(tool("think", &[], |_, context| async move { think(&context) }))
        .tool(tool("wait", &["file"], |given, context| async move { wait(&given, &context).await }))
        .setup(|registry| registry.add_tool(grow(registry)))
}

type Answer = Result<ToolResult, ToolError>;

/// A tool whose arguments are texts.
fn tool<R>(name: &str, needs: &[&str], run: fn(Value, Context) -> R) -> Tool
where
    R: Future<Output = Answer> + Send + 'static,
{
    let run = move |given, context| -> BoxFuture<'static, Answer> { Box::pin(run(given, context)) };
    Tool::raw(name, "", schema(needs), run)
}

fn schema(texts: &[&str]) -> Raw {
    let properties: serde_json::Map<_, _> =
        texts.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    Raw::of(&json!({"type": "object", "properties": properties, "required": texts}))
}

fn text(said: &Value) -> ToolResult {
    ToolResult::text(said.as_str().unwrap_or_default())
}

fn weather() -> ToolResult {
    let found = json!({"city": "Berlin", "temperature": 21.5});
    ToolResult { structured: Some(Raw::of(&found)), ..ToolResult::text(found.to_string()) }
}

async fn count(context: &Context) -> ToolResult {
    for at in [1.0, 2.0, 3.0] {
        context.progress(at, Some(3.0), None).await;
    }
    ToolResult::text("counted")
}

fn greet(context: &Context) -> Answer {
    let schema = json!({
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
    });
    let answer = context.elicit("name", form("Who are you?", &schema))?;
    let name = answer.content.as_ref().and_then(|content| content["name"].as_str());
    Ok(ToolResult::text(format!("Hello, {}!", name.unwrap_or("nobody"))))
}

fn think(context: &Context) -> Answer {
    let thought = context.sample("thought", sample("Think.", 100))?;
    Ok(ToolResult::text(format!("Thought: {}", thought.text())))
}

/// Waits to be cancelled, and notes in the file that it was.
async fn wait(given: &Value, context: &Context) -> Answer {
    let noting = Noting(given["file"].as_str().unwrap_or_default().to_owned());
    context.progress(1.0, Some(2.0), None).await;
    context.cancelled().await;
    drop(noting);
    Ok(ToolResult::text("waited"))
}

/// Makes its file when it is dropped: a cancelled call may end anywhere.
struct Noting(String);

impl Drop for Noting {
    fn drop(&mut self) {
        // Whoever waits for the file notices that it is missing.
        let _ = std::fs::write(&self.0, "cancelled");
    }
}

/// Adds a tool each time, and so changes the list of tools.
fn grow(registry: &Registry) -> Tool {
    let (registry, grown) = (registry.downgrade(), Arc::new(AtomicUsize::new(1)));
    Tool::raw("grow", "", schema(&[]), move |_, _| {
        let name = format!("grown{}", grown.fetch_add(1, Ordering::Relaxed));
        if let Some(registry) = registry.upgrade() {
            registry.add_tool(tool(&name, &[], |_, _| async { Ok(ToolResult::text("")) }));
        }
        Box::pin(async { Ok(ToolResult::text("grown")) })
    })
}
