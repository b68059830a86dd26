//! Tracks which arguments of a tool its templates use.

use std::collections::HashSet;
use std::ops::Range;

use creole_tools::recipe::argument::{ArgumentType, RecipeArgument};
use creole_tools::recipe::template::Template;

use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::Spanned;

/// The arguments of a tool, and which of them are used.
pub(crate) struct ArgumentUses<'a> {
    arguments: &'a [(Range<usize>, RecipeArgument)],
    used: HashSet<String>,
}

/// Which values a position in a template accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueContext {
    /// Any value.
    Any,
    /// Any value, but a list only if its placeholder is alone.
    ListAlone,
    /// No list and no object.
    Scalar,
}

impl<'a> ArgumentUses<'a> {
    pub(crate) fn new(arguments: &'a [(Range<usize>, RecipeArgument)]) -> Self {
        Self { arguments, used: HashSet::new() }
    }

    /// The argument of this name, which is marked as used.
    pub(crate) fn argument(&mut self, name: &str) -> Result<&'a RecipeArgument, ConfigProblem> {
        let found = self.arguments.iter().find(|(_, argument)| argument.name == name);
        let Some((_, argument)) = found else {
            let known: Vec<&str> = self.arguments.iter().map(|(_, it)| it.name.as_str()).collect();
            let help = match known.is_empty() {
                true => format!("define it in the table `arguments.{name}` of this tool"),
                false => suggestion(name, "the arguments of this tool", &known),
            };
            return Err(ConfigProblem::new(format!("unknown argument `{name}`"))
                .help(help)
                .about_part(&format!("{{{name}}}")));
        };
        self.used.insert(name.to_owned());
        Ok(argument)
    }

    /// A template whose placeholders all name arguments that are allowed in this position.
    pub(crate) fn template(
        &mut self,
        text: &str,
        context: ValueContext,
    ) -> Result<Template, ConfigProblem> {
        let template = Template::parse(text).map_err(ConfigProblem::new)?;
        for name in template.names() {
            let argument = self.argument(name)?;
            let is_alone = template.single_argument().is_some();
            let fits = match (context, argument.kind) {
                (ValueContext::Any, _) => true,
                (ValueContext::ListAlone, ArgumentType::Array) => is_alone,
                (ValueContext::Scalar, ArgumentType::Array | ArgumentType::Object) => false,
                (ValueContext::ListAlone | ValueContext::Scalar, _) => true,
            };
            if !fits {
                let message = match context {
                    ValueContext::ListAlone => {
                        format!("`{{{name}}}` is a list and must be the whole value")
                    }
                    _ => format!("`{{{name}}}` is neither a string nor a number nor a boolean"),
                };
                let help =
                    "write the placeholder of a list alone; it becomes one value per element";
                return Err(ConfigProblem::new(message)
                    .help(help)
                    .about_part(&format!("{{{name}}}")));
            }
        }
        Ok(template)
    }

    /// The same for a text with a position in the file.
    pub(crate) fn template_at(
        &mut self,
        value: &Spanned<String>,
        context: ValueContext,
    ) -> Result<Template, ConfigProblem> {
        self.template(&value.value, context).map_err(|problem| problem.at(value.span.clone()))
    }

    /// Whether every call provides all arguments that a template names.
    pub(crate) fn is_always_filled(&self, template: &Template) -> bool {
        let is_certain = |name: &str| {
            self.arguments
                .iter()
                .any(|(_, argument)| argument.name == name && argument.always_has_value())
        };
        template.names().all(is_certain)
    }

    /// Marks every argument as used.
    pub(crate) fn mark_all_used(&mut self) {
        self.used.extend(self.arguments.iter().map(|(_, argument)| argument.name.clone()));
    }

    /// Checks that every argument is used.
    pub(crate) fn check_used(&self) -> Result<(), ConfigProblem> {
        let idle = self.arguments.iter().find(|(_, argument)| !self.used.contains(&argument.name));
        match idle {
            None => Ok(()),
            Some((span, RecipeArgument { name, .. })) => {
                Err(ConfigProblem::new(format!("the argument `{name}` is not used"))
                    .help(format!(
                        "write `{{{name}}}` where its value belongs, or remove the argument"
                    ))
                    .at(span.clone()))
            }
        }
    }
}
