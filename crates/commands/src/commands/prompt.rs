//! `creole prompt`: renders one prompt.

use std::collections::BTreeMap;

use creole::client::Client;
use creole::proto::model::ListKind;
use serde_json::{Value, json};

use super::{only_word, unknown_name};
use crate::args::PromptArgs;
use crate::failure::{Failure, suggestion};
use crate::output::render::{block, for_stdout};
use crate::session::{SessionPurpose, call_failure, with_client};
use crate::{output, target, tool_arguments};

/// Runs the verb.
pub(crate) fn run(args: &PromptArgs) -> Result<(), Failure> {
    let (place, rest) = target::target_and_words(&args.words, &args.peer)?;
    let prompt = only_word(rest, "the prompt", "creole list")?;
    let name = place.name().to_owned();
    let pairs = args.arguments.iter().map(|entry| tool_arguments::split_argument(entry));
    let arguments: BTreeMap<&str, &str> = pairs.collect::<Result<_, _>>()?;
    let result = with_client(place, &args.peer, SessionPurpose::Call, async |client| {
        check(client, &name, prompt, &arguments).await?;
        client.get_prompt(prompt, &arguments).await.map_err(|fault| call_failure(&name, &fault))
    })?;
    if args.peer.json {
        return output::write_data(&format!("{}\n", result.as_str()));
    }
    output::write_data(&for_stdout(&text(&result.decode().unwrap_or(json!({})))))
}

/// Checks that the prompt exists and has its required arguments.
async fn check(
    client: &Client,
    name: &str,
    prompt: &str,
    arguments: &BTreeMap<&str, &str>,
) -> Result<(), Failure> {
    let prompts =
        client.list(ListKind::Prompts).await.map_err(|fault| call_failure(name, &fault))?;
    let Some(found) = prompts.iter().find(|item| item.name() == prompt) else {
        let known: Vec<&str> = prompts.iter().map(|item| item.name()).collect();
        return Err(Failure::Call(unknown_name(name, "prompt", prompt, &known)));
    };
    let rules = client.connection().greeting().rules;
    let definition: Value = serde_json::from_str(found.text(rules)).unwrap_or_default();
    if let Some(refusal) = unknown_argument(prompt, &definition, arguments) {
        return Err(Failure::Usage(refusal));
    }
    match missing_arguments(&definition, arguments) {
        missing if missing.is_empty() => Ok(()),
        missing => {
            Err(Failure::Usage(format!("the prompt `{prompt}` also needs {}", missing.join(" "))))
        }
    }
}

/// The error for an argument that the prompt does not have.
fn unknown_argument(
    prompt: &str,
    definition: &Value,
    variables: &BTreeMap<&str, &str>,
) -> Option<String> {
    let arguments = definition["arguments"].as_array().into_iter().flatten();
    let known: Vec<&str> = arguments.filter_map(|argument| argument["name"].as_str()).collect();
    let name = variables.keys().find(|name| !known.contains(name))?;
    Some(output::printable(&match known.as_slice() {
        [] => format!("the prompt `{prompt}` takes no arguments, so `{name}` is not sent"),
        known => {
            format!("the prompt `{prompt}` has no argument `{name}`: {}", suggestion(name, known))
        }
    }))
}

fn missing_arguments(definition: &Value, variables: &BTreeMap<&str, &str>) -> Vec<String> {
    let arguments = definition["arguments"].as_array().into_iter().flatten();
    arguments
        .filter(|argument| argument["required"] == true)
        .filter_map(|argument| argument["name"].as_str())
        .filter(|name| !variables.contains_key(name))
        .map(|name| format!("--arg {name}=TEXT"))
        .collect()
}

/// The messages, each below its role.
fn text(result: &Value) -> String {
    let messages = result["messages"].as_array().into_iter().flatten();
    let said = messages.map(|message| {
        format!("{}:\n{}", message["role"].as_str().unwrap_or("user"), block(&message["content"]))
    });
    said.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_printed_under_their_role() {
        let content = json!({"type": "text", "text": "Hi"});
        let result = json!({"messages": [
            {"role": "user", "content": content}, {"role": "assistant", "content": content}
        ]});
        assert_eq!(text(&result), "user:\nHi\n\nassistant:\nHi");
    }

    #[test]
    fn a_missing_prompt_argument_is_named() {
        let definition = json!({"arguments": [{"name": "a", "required": true}, {"name": "b"}]});
        assert_eq!(missing_arguments(&definition, &BTreeMap::new()), ["--arg a=TEXT"]);
        assert!(missing_arguments(&definition, &BTreeMap::from([("a", "1")])).is_empty());
    }

    #[test]
    fn an_unknown_prompt_argument_is_refused() {
        let definition = json!({"arguments": [{"name": "goal"}]});
        let refused =
            |definition, name| unknown_argument("plan", definition, &BTreeMap::from([(name, "x")]));
        assert_eq!(refused(&definition, "goal"), None);
        let expected = "the prompt `plan` has no argument `gaol`: did you mean `goal`?";
        assert_eq!(refused(&definition, "gaol").as_deref(), Some(expected));
        assert!(refused(&json!({}), "x").unwrap().contains("takes no arguments"));
    }
}
