//! The pack `guide`: a description of this server and its usage, as a resource and as prompts.

use creole::{
    Content, Prompt, PromptMessage, PromptResult, Resource, Role, Server, ToolError, Variables,
};

const GUIDE: &str = include_str!("guide.md");

/// The tones of a plan.
const TONES: [&str; 3] = ["brief", "friendly", "formal"];

const INTRODUCE: &str = "Read the resource creole://guide, list this server's tools, and tell me in a few \
                         sentences what I can do with them. Do not call any tool yet.";

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    let guide = Resource::text("creole://guide", "guide", "text/markdown", GUIDE)
        .about("What this server is and how to call its tools");
    let introduce = Prompt::new("introduce", "Ask what this server can do", |_, _| async {
        Ok(user_prompt("An introduction to this server", INTRODUCE))
    });
    let plan = Prompt::new("plan_task", "Split a goal into tasks", |arguments, _| async move {
        plan_prompt(&arguments)
    })
    .required("goal", "The goal")
    .optional("tone", "The tone of the answer: brief, friendly or formal")
    .complete("tone", |typed, _| async move { tones(&typed) });
    server.resource(guide).prompt(introduce).prompt(plan)
}

fn plan_prompt(arguments: &Variables) -> Result<PromptResult, ToolError> {
    let goal = arguments.get("goal").map(String::as_str).unwrap_or_default();
    let tone =
        arguments.get("tone").map(|tone| format!(" Keep the tone {tone}.")).unwrap_or_default();
    let text = format!(
        "Split the following goal into small tasks, each of which can be done and checked by itself. Create \
         each one with the tool create_task, in the order in which they should be done, and then show me \
         the list.{tone}\n\nGoal: {goal}"
    );
    Ok(user_prompt("A goal to split into tasks", &text))
}

fn user_prompt(about: &str, text: &str) -> PromptResult {
    PromptResult {
        description: Some(about.to_owned()),
        messages: vec![PromptMessage { role: Role::User, content: Content::text(text) }],
    }
}

fn tones(typed: &str) -> Vec<String> {
    TONES.iter().filter(|tone| tone.starts_with(typed)).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: &PromptResult) -> &str {
        match &result.messages[0].content {
            Content::Text { text, .. } => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plan_names_the_goal_the_tool_and_the_tone() {
        let mut arguments = Variables::from([("goal".to_owned(), "ship it".to_owned())]);
        let plain = plan_prompt(&arguments).unwrap();
        assert!(text(&plain).contains("create_task") && text(&plain).ends_with("Goal: ship it"));
        assert!(!text(&plain).contains("tone"));
        arguments.insert("tone".to_owned(), "brief".to_owned());
        assert!(text(&plan_prompt(&arguments).unwrap()).contains("Keep the tone brief."));
    }

    #[test]
    fn tones_are_proposed_by_what_was_typed() {
        assert_eq!(tones("f"), ["friendly", "formal"]);
        assert_eq!(tones("").len(), 3);
        assert!(tones("x").is_empty());
    }
}
