//! The pack `everything`: the fixtures that the official conformance suite and our own tests call for.
//!
//! The names, texts and keys are the suite's; what it wants them for is in its scenarios.

mod behaviour;
mod changing;
mod content;
mod input_requests;
mod prompts;
mod resources;
mod rounds;
mod samples;
mod schemas;
mod skills;
mod tasks;

use creole::Server;

/// Adds the pack. The first tool takes no arguments and the first resource can be read: the suite tries
/// both.
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
