//! Tests of the examples about files.

use creole_acceptance::process_under_test::Server;
use creole_acceptance::stage::stdio::repository;
use serde_json::json;

use super::Client;

fn example(name: &str) -> Client {
    let config = repository().join("examples").join(name);
    Client {
        server: Server::start(&[config.to_str().unwrap()]).greeted(),
        id: 100,
        heard: Vec::new(),
    }
}

#[test]
fn the_folder_is_listed_and_read() {
    let mut client = example("folder.toml");
    let expected = [
        "acme://rules",
        "folder://handbook/contacts.csv",
        "folder://handbook/policies/travel.md",
        "folder://handbook/welcome.md",
    ];
    assert_eq!(client.list("resources", "uri"), expected);
    assert!(client.read("folder://handbook/welcome.md").starts_with("# Welcome"));
    assert!(client.read("acme://rules").starts_with("Trains are paid"));
    let rules = client.ask("resources/list", &json!({}))["result"]["resources"][0].clone();
    assert_eq!(
        (&rules["title"], &rules["description"], &rules["mimeType"]),
        (&json!("Rules for travel"), &json!("What is paid on a journey"), &json!("text/markdown"))
    );
    assert_eq!(client.read("acme://greeting/fr"), "Bonjour from Acme.");
    assert_eq!(client.read("acme://greeting/xx"), "Hello from Acme.");
    let reference = json!({ "type": "ref/resource", "uri": "acme://greeting/{language}" });
    let params = json!({ "ref": reference, "argument": { "name": "language", "value": "" } });
    let completed = client.ask("completion/complete", &params);
    assert_eq!(completed["result"]["completion"]["values"], json!(["de", "en", "fr"]));
    assert_eq!(client.server.finish().log, "");
}

#[test]
fn the_prompts_are_listed_and_got() {
    let mut client = example("prompts.toml");
    assert_eq!(client.list("prompts", "name"), ["review", "standup"]);
    let arguments = json!({ "language": "rust", "code": "let a = 1;" });
    let review = client.ask("prompts/get", &json!({ "name": "review", "arguments": arguments }));
    let messages = &review["result"]["messages"];
    let asked = messages[0]["content"]["text"].as_str().unwrap();
    assert!(asked.starts_with("Review this change to a rust program. Look at correctness first."));
    assert!(asked.contains("```\nlet a = 1;\n```"), "{asked}");
    assert_eq!(messages[1]["role"], "assistant");
    let notes = json!({ "notes": "much", "blocked": "a review" });
    let standup = client.ask("prompts/get", &json!({ "name": "standup", "arguments": notes }));
    let text = standup["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("I wait for a review.") && text.ends_with("much"), "{text}");
    assert_eq!(client.server.finish().log, "");
}
