//! Looks up whether an operation's target exists, by its visible name.

use creole_proto::model::Reference;
use creole_proto::operation::Operation;

use super::Registry;

impl Registry {
    /// Whether the target of an operation exists; true for operations without one.
    #[doc(hidden)]
    pub fn has_target(&self, operation: &Operation) -> bool {
        match operation {
            Operation::CallTool { name, .. } => self.read().tools.get_visible(name).is_some(),
            Operation::GetPrompt { name, .. } => self.has_prompt(name),
            Operation::ReadResource { uri } | Operation::Subscribe { uri } => {
                self.find_reader(uri).is_some()
                    || self.remote_endpoint(&mut operation.clone()).is_some()
            }
            Operation::Complete(request) => match &request.reference {
                Reference::Prompt(name) => self.has_prompt(name),
                Reference::Resource(uri) => {
                    self.has_template(uri) || self.remote_endpoint(&mut operation.clone()).is_some()
                }
            },
            _ => true,
        }
    }

    fn has_prompt(&self, name: &str) -> bool {
        self.read().prompts.get_visible(name).is_some()
    }

    fn has_template(&self, uri_template: &str) -> bool {
        let state = self.read();
        let mut own = state.templates.iter().filter_map(|template| template.local());
        own.any(|template| template.definition.uri_template == uri_template)
    }
}
