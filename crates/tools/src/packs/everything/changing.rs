//! Items that change while the server runs: the lists, and a resource for subscriptions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use creole::{
    Content, Contents, Prompt, PromptMessage, PromptResult, Registry, Resource, Role, Server,
};
use serde_json::Value;

use crate::packs::{NO_ARGUMENTS, tool};

const WATCHED: &str = "test://watched-resource";

pub(crate) fn add(server: Server) -> Server {
    let touched = Arc::new(AtomicU64::new(0));
    let server = server.resource(watched(Arc::clone(&touched)));
    server.setup(move |registry| {
        let toggle = |name, about, change: fn(&Registry) -> &'static str| {
            let registry = registry.downgrade();
            tool(name, about, NO_ARGUMENTS, move |_: Value| {
                let done = registry.upgrade().map_or("The server is gone", |it| change(&it));
                async move { done }
            })
        };
        registry.add_tool(toggle(
            "test_trigger_tool_change",
            "Adds or removes a tool",
            toggle_tool,
        ));
        registry.add_tool(toggle(
            "test_trigger_prompt_change",
            "Adds or removes a prompt",
            toggle_prompt,
        ));
        let changing = registry.downgrade();
        let touch = move |_: Value| {
            let count = touched.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(registry) = changing.upgrade() {
                registry.resource_updated(WATCHED);
            }
            async move { format!("Touched {count} times") }
        };
        registry.add_tool(tool(
            "test_touch_resource",
            "Changes a watched resource",
            NO_ARGUMENTS,
            touch,
        ));
    })
}

fn watched(touched: Arc<AtomicU64>) -> Resource {
    let resource = Resource::new(WATCHED, "watched-resource", move |uri, _| {
        let count = touched.load(Ordering::Relaxed);
        let text = format!("Watched resource content, touched {count} times");
        async move { Ok(vec![Contents::text(uri, "text/plain", text)]) }
    });
    resource.about("A text that test_touch_resource changes").mime_type("text/plain")
}

fn toggle_tool(registry: &Registry) -> &'static str {
    const NAME: &str = "test_added_tool";
    if registry.remove_tool(NAME) {
        return "Removed a tool";
    }
    let answer = |_: Value| async { "Here for now" };
    registry.add_tool(tool(NAME, "Comes and goes", NO_ARGUMENTS, answer));
    "Added a tool"
}

fn toggle_prompt(registry: &Registry) -> &'static str {
    const NAME: &str = "test_added_prompt";
    if registry.remove_prompt(NAME) {
        return "Removed a prompt";
    }
    registry.add_prompt(Prompt::new(NAME, "Comes and goes", |_, _| async {
        let message = PromptMessage { role: Role::User, content: Content::text("Here for now") };
        Ok(PromptResult { description: None, messages: vec![message] })
    }));
    "Added a prompt"
}
