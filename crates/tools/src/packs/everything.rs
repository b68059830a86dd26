//! The pack `everything`: the fixtures of the official conformance suite and of this project's tests.
//!
//! The suite defines the names, texts and keys. Their purpose is documented in its scenarios.

mod behaviour;
mod changing;
mod content;
mod input_requests;
mod prompts;
mod resources;
mod rounds;
mod schemas;
mod skills;
mod tasks;

use creole::Server;

/// Adds the pack. The first tool takes no arguments and the first resource is readable, because the suite tries both.
pub(crate) fn add(mut server: Server) -> Server {
    let tools = content::tools().into_iter().chain(behaviour::tools()).chain(schemas::tools());
    for tool in tools.chain(input_requests::tools()).chain(rounds::tools()).chain(tasks::tools()) {
        server = server.tool(tool);
    }
    for prompt in prompts::all() {
        server = server.prompt(prompt);
    }
    skills::add(changing::add(resources::add(server)))
}
