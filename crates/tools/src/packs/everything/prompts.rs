//! Prompts: plain, with arguments, with a resource, with an image, and one with an input request.

use creole::{
    Content, Contents, Context, Prompt, PromptMessage, PromptResult, Role, ToolError, Variables,
};

use crate::packs::everything::content::image;
use crate::packs::everything::resources::complete_from;
use crate::packs::everything::rounds::text_form;

pub(crate) fn all() -> [Prompt; 5] {
    [
        Prompt::new("test_simple_prompt", "A prompt without arguments", |_, _| async {
            Ok(messages([Content::text("This is a simple prompt for testing.")]))
        }),
        Prompt::new(
            "test_prompt_with_arguments",
            "A prompt with two arguments",
            |arguments, _| async move { Ok(with_arguments(&arguments)) },
        )
        .required("arg1", "First test argument")
        .required("arg2", "Second test argument")
        .complete("arg1", |typed, _| async move {
            complete_from(&typed, &["test1", "test2", "other"])
        }),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            "A prompt with a resource",
            |arguments, _| async move { Ok(with_resource(&arguments)) },
        )
        .required("resourceUri", "URI of the resource to embed"),
        Prompt::new("test_prompt_with_image", "A prompt with a picture", |_, _| async {
            Ok(messages([image(), Content::text("Please analyze the image above.")]))
        }),
        Prompt::new(
            "test_input_required_result_prompt",
            "A prompt that asks first",
            |_, context| async move { prompt_with_input_request(&context) },
        ),
    ]
}

fn with_arguments(arguments: &Variables) -> PromptResult {
    let (first, second) = (argument_value(arguments, "arg1"), argument_value(arguments, "arg2"));
    messages([Content::text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
}

fn with_resource(arguments: &Variables) -> PromptResult {
    let text = "Embedded resource content for testing.";
    let resource = Contents::text(argument_value(arguments, "resourceUri"), "text/plain", text);
    let request = Content::text("Please process the embedded resource above.");
    messages([Content::Resource { resource }, request])
}

fn prompt_with_input_request(context: &Context) -> Result<PromptResult, ToolError> {
    let input_request = text_form("What context should the prompt use?", "context");
    let result = context.elicit_with("user_context", input_request)?;
    let text = result.text("context").unwrap_or_else(|| "none".to_owned());
    Ok(messages([Content::text(format!("Use this context: {text}"))]))
}

fn argument_value<'a>(arguments: &'a Variables, name: &str) -> &'a str {
    arguments.get(name).map(String::as_str).unwrap_or_default()
}

fn messages<const N: usize>(blocks: [Content; N]) -> PromptResult {
    let said = |content| PromptMessage { role: Role::User, content };
    PromptResult { description: None, messages: blocks.into_iter().map(said).collect() }
}
