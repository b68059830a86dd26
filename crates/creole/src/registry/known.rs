//! What can be asked for right now, by the names that clients know.

use creole_proto::model::Reference;
use creole_proto::operation::Operation;

use super::Registry;

impl Registry {
    /// Whether there is what an operation names; true of operations that name nothing.
    pub fn knows(&self, operation: &Operation) -> bool {
        match operation {
            Operation::CallTool { name, .. } => self.read().tools.known_as(name).is_some(),
            Operation::GetPrompt { name, .. } => self.knows_prompt(name),
            Operation::ReadResource { uri } | Operation::Subscribe { uri } => {
                self.reader(uri).is_some() || self.elsewhere(&mut operation.clone()).is_some()
            }
            Operation::Complete(request) => match &request.reference {
                Reference::Prompt(name) => self.knows_prompt(name),
                Reference::Resource(uri) => {
                    self.has_template(uri) || self.elsewhere(&mut operation.clone()).is_some()
                }
            },
            _ => true,
        }
    }

    fn knows_prompt(&self, name: &str) -> bool {
        self.read().prompts.known_as(name).is_some()
    }

    fn has_template(&self, uri_template: &str) -> bool {
        let state = self.read();
        let mut own = state.templates.iter().filter_map(|template| template.own());
        own.any(|template| template.definition.uri_template == uri_template)
    }
}
