//! `creole list`: prints the lists of a server.

use std::sync::Arc;

use creole::client::Client;
use creole::proto::fault::FaultKind;
use creole::proto::model::{Definition, ListKind};
use creole::proto::wire::Object;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::args::{LIST_KINDS, ListArgs};
use crate::failure::Failure;
use crate::output::layout::{Layout, padded};
use crate::output::render::first_line;
use crate::session::{SessionPurpose, call_failure, with_client};
use crate::{output, schema_property, target};

/// The maximum width of the name column.
const MAX_NAME_COLUMN: usize = 32;

/// Runs the verb.
pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    let (place, rest) = target::target_and_words(&args.words, &args.peer)?;
    let wanted = match rest {
        [] => None,
        [word] => Some(kind(word)?),
        [_, extra, ..] => return Err(Failure::Usage(format!("unexpected argument `{extra}`"))),
    };
    let name = place.name().to_owned();
    let lists = with_client(place, &args.peer, SessionPurpose::Call, async |client| {
        client.wait_until_settled().await;
        let lists = match wanted {
            Some(kind) => vec![(kind, list(client, &name, kind).await?)],
            None => all_lists(client, &name).await?,
        };
        client.report_missing();
        client.check_answered()?;
        Ok(lists)
    })?;
    match args.peer.json {
        true => output::write_data(&json(&lists)),
        false => output::write_data(&printable_text(&text(&lists, Layout::of_stdout()))),
    }
}

fn kind(word: &str) -> Result<ListKind, Failure> {
    LIST_KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind).ok_or_else(|| {
        let message =
            format!("unknown kind `{word}`; write tools, resources, templates or prompts");
        Failure::Usage(message)
    })
}

/// A list of a server, with the original text of each item.
pub(crate) type ListTexts = (ListKind, Vec<String>);

async fn list(client: &Client, name: &str, kind: ListKind) -> Result<Vec<String>, Failure> {
    let items = client.list(kind).await.map_err(|fault| call_failure(name, &fault))?;
    report_excluded(client, name, kind);
    Ok(texts(client, &items))
}

/// Reports the excluded items of a list with the reasons.
fn report_excluded(client: &Client, name: &str, kind: ListKind) {
    for item in client.excluded_items(kind) {
        output::write_message(&format!("creole: `{name}`: {} excluded: {item}", kind.member()));
    }
}

/// The original texts of the items.
pub(crate) fn texts(client: &Client, items: &[Arc<Definition>]) -> Vec<String> {
    let rules = client.connection().greeting().rules;
    items.iter().map(|item| item.text(rules).to_owned()).collect()
}

/// Fetches every list that the server declares. One that it does not implement is empty.
async fn all_lists(client: &Client, name: &str) -> Result<Vec<ListTexts>, Failure> {
    let mut lists = Vec::new();
    for kind in declared_lists(client) {
        match client.list(kind).await {
            Ok(items) => {
                report_excluded(client, name, kind);
                lists.push((kind, texts(client, &items)));
            }
            Err(fault) if fault.kind == FaultKind::MethodNotFound => {}
            Err(fault) => return Err(call_failure(name, &fault)),
        }
    }
    Ok(lists)
}

/// The kinds of lists that the server declares.
pub(crate) fn declared_lists(client: &Client) -> impl Iterator<Item = ListKind> {
    let can = client.connection().greeting().server_info.capabilities;
    LIST_KINDS.iter().map(|(_, kind)| *kind).filter(move |kind| match kind {
        ListKind::Tools => can.tools,
        ListKind::Resources | ListKind::Templates => can.resources,
        ListKind::Prompts => can.prompts,
        ListKind::Skills => false,
    })
}

/// One document with a member for each list.
fn json(lists: &[ListTexts]) -> String {
    let member = |(kind, items): &ListTexts| format!("\"{}\":[{}]", kind.member(), items.join(","));
    let members: Vec<String> = lists.iter().map(member).collect();
    format!("{{{}}}\n", members.join(","))
}

fn text(lists: &[ListTexts], layout: Layout) -> String {
    let mut lines = Vec::new();
    for (kind, items) in lists {
        let items: Vec<(&str, Value)> = items
            .iter()
            .filter_map(|item| Some((item.as_str(), serde_json::from_str(item).ok()?)))
            .collect();
        let name = LIST_KINDS.iter().find(|(_, known)| known == kind).map_or("", |(name, _)| name);
        lines.push(layout.heading(&format!("{name} ({})", items.len())));
        let label = |item: &Value| label(*kind, item);
        let width = items.iter().map(|(_, item)| label(item).width()).max().unwrap_or(0);
        let width = width.min(MAX_NAME_COLUMN);
        for (output, item) in &items {
            let about = description(*kind, item);
            let lead = format!("  {}  ", padded(&label(item), width));
            lines.push(layout.entry(&lead, |text| layout.name(text), &about, str::to_owned));
            let parameters = parameters(*kind, output, item);
            let below = " ".repeat(width + 4);
            lines.extend(
                parameters.map(|line| {
                    layout.entry(&below, str::to_owned, &line, |text| layout.faint(text))
                }),
            );
        }
    }
    lines.join("\n")
}

/// Escaped text with a line end.
fn printable_text(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

/// The name or URI of an item.
fn label(kind: ListKind, item: &Value) -> String {
    let key = if kind == ListKind::Templates { "uriTemplate" } else { kind.key() };
    first_line(item[key].as_str().unwrap_or_default())
}

fn description(kind: ListKind, item: &Value) -> String {
    let text = |key: &str| item[key].as_str();
    let name = text("title").or_else(|| text("name"));
    let described = text("description").map(first_line);
    match kind {
        ListKind::Resources | ListKind::Templates => {
            let parts = [name.map(first_line), described];
            parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
        }
        _ => described.or_else(|| text("title").map(first_line)).unwrap_or_default(),
    }
}

/// The arguments of a tool or a prompt, in the order of the definition's text. Optional ones have a question mark.
fn parameters(kind: ListKind, output: &str, item: &Value) -> Option<String> {
    let parameters: Vec<String> = match kind {
        ListKind::Tools => {
            let schema = &item["inputSchema"];
            let required = schema["required"].as_array();
            let is_required =
                |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
            let text = Object::new(output).and_then(|item| item.get("inputSchema"));
            let names = schema_property::names(text.unwrap_or_default());
            let shown = |name: &String| {
                let summary = schema_property::summary(&schema["properties"][name], schema);
                parameter(name, is_required(name), &summary)
            };
            names.iter().map(shown).collect()
        }
        ListKind::Prompts => item["arguments"]
            .as_array()?
            .iter()
            .filter_map(|argument| {
                let is_required = argument["required"] == true;
                Some(parameter(argument["name"].as_str()?, is_required, ""))
            })
            .collect(),
        _ => return None,
    };
    (!parameters.is_empty()).then(|| parameters.join(", "))
}

fn parameter(name: &str, is_required: bool, summary: &str) -> String {
    let mark = if is_required { "" } else { "?" };
    let summary = summary.replace(['\n', '\r'], " ");
    output::printable(format!("{name}{mark} {summary}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = r#"{"name":"add","description":"Adds.\nMore.","inputSchema":{"properties":{"a":{"type":"integer"},"b":{}},"required":["a"]}}"#;

    #[test]
    fn a_list_is_a_table_of_names() {
        let lists = [
            (ListKind::Tools, vec![ADD.to_owned(), r#"{"name":"subtract"}"#.to_owned()]),
            (ListKind::Resources, vec![r#"{"uri":"a:b","name":"n","description":"d"}"#.to_owned()]),
        ];
        let expected = "\
tools (2)
  add       Adds.
            a integer, b?
  subtract
resources (1)
  a:b  n: d";
        assert_eq!(text(&lists, Layout::PLAIN), expected);
    }

    #[test]
    fn arguments_keep_their_order_and_show_values_and_defaults() {
        let tool = r#"{"name":"t","inputSchema":{"properties":{
            "zoo":{"type":"integer","default":3},"ape":{"enum":["a","b"]},"mid":{"type":"string"}},"required":["mid"]}}"#;
        let lists = [(ListKind::Tools, vec![tool.to_owned()])];
        assert_eq!(
            text(&lists, Layout::PLAIN),
            "tools (1)\n  t\n     zoo? integer = 3, ape? a|b, mid string"
        );
    }

    #[test]
    fn json_has_the_items_as_they_were_written() {
        let lists = [(ListKind::Templates, vec![r#"{"name": 1.0}"#.to_owned()])];
        assert_eq!(json(&lists), "{\"resourceTemplates\":[{\"name\": 1.0}]}\n");
    }
}
