//! Tests of Markdown files as prompts.

use std::fs;

use serde_json::json;

use super::{initialized, stage, write};

const CONFIG: &str = "[server]\n[prompts.mine]\npath = \"prompts\"\nprefix = \"my_\"\n";
const GREET: &str = "---\ntitle: Greet\ndescription: Greets somebody\narguments:\n  - name: who\n    required: true\n    \
                     values: [Ann, Bob]\n---\nHello {{ who }}.\n";

fn text(response: &serde_json::Value, message: usize) -> &str {
    response["result"]["messages"][message]["content"]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn a_file_is_a_prompt_that_is_listed_completed_and_rendered() {
    let talk = "---\narguments:\n  - name: tone\n    default: kind\n---\n# user\nBe {{ tone \
        }}.\n# assistant\nI am.\n";
    let folder =
        stage(&[("creole.toml", CONFIG), ("prompts/greet.md", GREET), ("prompts/talk.md", talk)]);
    let mut client = initialized(folder.path());
    let list = client.ask("prompts/list", &json!({}));
    let greet = &list["result"]["prompts"][0];
    let expected = json!({"name": "my_greet", "title": "Greet", "description": "Greets somebody",
        "arguments": [{"name": "who", "description": "", "required": true}]});
    assert_eq!(*greet, expected);
    let got = client.ask("prompts/get", &json!({"name": "my_greet", "arguments": {"who": "Ann"}}));
    assert_eq!(
        (text(&got, 0), &got["result"]["description"]),
        ("Hello Ann.", &json!("Greets somebody"))
    );
    let talk = client.ask("prompts/get", &json!({ "name": "my_talk" }));
    assert_eq!((text(&talk, 0), text(&talk, 1)), ("Be kind.", "I am."));
    assert_eq!(talk["result"]["messages"][1]["role"], "assistant");
    let missing = client.ask("prompts/get", &json!({ "name": "my_greet" }));
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    let reference = json!({ "type": "ref/prompt", "name": "my_greet" });
    let params = json!({ "ref": reference, "argument": { "name": "who", "value": "b" } });
    let completed = client.ask("completion/complete", &params);
    assert_eq!(completed["result"]["completion"]["values"], json!(["Bob"]));
}

#[test]
fn a_change_is_visible_at_once_and_an_invalid_file_keeps_its_last_valid_version() {
    let folder = stage(&[("creole.toml", CONFIG), ("prompts/greet.md", GREET)]);
    let mut client = initialized(folder.path());
    let get = json!({"name": "my_greet", "arguments": {"who": "Ann"}});
    write(folder.path(), "prompts/greet.md", &GREET.replace("Hello", "Welcome"));
    client.wait_for_notification("notifications/prompts/list_changed", |_| true);
    assert_eq!(text(&client.ask("prompts/get", &get), 0), "Welcome Ann.");

    write(folder.path(), "prompts/greet.md", &GREET.replace("{{ who }}", "{{ whom }}"));
    write(folder.path(), "prompts/other.md", "Another one.");
    while client.list("prompts", "name").len() < 2 {
        client.wait_for_notification("notifications/prompts/list_changed", |_| true);
    }
    assert_eq!(text(&client.ask("prompts/get", &get), 0), "Welcome Ann.");
    assert_eq!(text(&client.ask("prompts/get", &json!({ "name": "my_other" })), 0), "Another one.");

    fs::remove_file(folder.path().join("prompts/other.md")).unwrap();
    client.wait_for_notification("notifications/prompts/list_changed", |_| true);
    while client.list("prompts", "name").len() > 1 {
        client.wait_for_notification("notifications/prompts/list_changed", |_| true);
    }
    let ended = client.server.finish();
    assert!(
        ended.log.contains("the last valid version of a prompt is kept")
            && ended.log.contains(
                "prompts/greet.md:9:10: unknown argument `whom`; the arguments are `who`"
            ),
        "{}",
        ended.log
    );
}

#[test]
fn a_folder_that_begins_empty_offers_prompts_all_the_same() {
    let folder = stage(&[("creole.toml", CONFIG)]);
    fs::create_dir(folder.path().join("prompts")).unwrap();
    let mut client = initialized(folder.path());
    assert!(client.list("prompts", "name").is_empty());
    write(folder.path(), "prompts/late.md", "Late.");
    client.wait_for_notification("notifications/prompts/list_changed", |_| true);
    assert_eq!(client.list("prompts", "name"), ["my_late"]);
}
