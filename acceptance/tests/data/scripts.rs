//! Tests of scripts around a server, around an upstream and as tools, and of changes of their files.

use std::fs;
use std::path::Path;

use creole_acceptance::process_under_test::{Server, call, check};
use serde_json::{Value, json};

use crate::{start, told};

/// Replaces a file in one step, as careful editors do.
fn write(folder: &Path, name: &str, text: &str) {
    let fresh = folder.join("fresh");
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, folder.join(name)).unwrap();
}

const CONFIGURATION: &str = r#"
[server]
name = "front"
chain = [{ kind = "script", file = "front.js", compute_ms = 300 }]

[upstreams.behind]
command = ["${CREOLE}", "serve", "--preset", "default"]
prefix = ""

[[upstreams.behind.chain]]
kind = "script"
file = "behind.js"

[tools.slug]
description = "Makes a slug"
script = { file = "slug.js" }
arguments.title = { type = "string" }
"#;

fn configuration() -> String {
    let binary = creole_acceptance::stage::stdio::binary().unwrap();
    CONFIGURATION.replace("${CREOLE}", binary.to_str().unwrap())
}

fn scripts(folder: &Path) {
    write(
        folder,
        "front.js",
        "async function request(call, next) {
           if (call.arguments?.message === 'spin') for (;;);
           if (call.arguments?.message === 'refuse') throw new Error('not here');
           const result = await next(call);
           if (call.name === 'echo') result.content.push({ type: 'text', text: `for ${call.client.name}` });
           return result;
         }",
    );
    write(
        folder,
        "behind.js",
        "function metadata(definition, kind) {
           if (kind !== 'tools') return;
           if (definition.name === 'delete_task') return null;
           return { ...definition, description: definition.description + ' (behind)' };
         }
         async function request(call, next) {
           if (call.name === 'echo') call.arguments.message = call.arguments.message.trim();
           return next(call);
         }",
    );
    write(
        folder,
        "slug.js",
        "function tool({ title }) { return title.toLowerCase().replace(/[^a-z0-9]+/g, '-'); }",
    );
}

/// Calls a tool and skips the notifications before its response.
#[track_caller]
fn called(server: &mut Server, tool: &str, arguments: &Value) -> Value {
    server.write(call(700, tool, arguments));
    loop {
        let response = server.answer();
        if response["id"] == 700 {
            return response;
        }
    }
}

#[track_caller]
fn tools(server: &mut Server) -> Vec<Value> {
    server.write(format!(
        "{}\n",
        json!({ "jsonrpc": "2.0", "id": 800, "method": "tools/list", "params": {} })
    ));
    loop {
        let response = server.answer();
        if response["id"] == 800 {
            return response["result"]["tools"].as_array().unwrap().clone();
        }
    }
}

#[test]
fn scripts_see_calls_in_both_directions_and_hidden_tools_are_unknown() {
    let folder = tempfile::tempdir().unwrap();
    scripts(folder.path());
    let mut server = start(folder.path(), &configuration());
    let listed = tools(&mut server);
    let described = |name: &str| {
        listed.iter().find(|tool| tool["name"] == name).map(|tool| tool["description"].clone())
    };
    assert!(described("echo").unwrap().as_str().unwrap().ends_with(" (behind)"));
    assert_eq!(described("delete_task"), None);
    assert_eq!(described("slug"), Some(json!("Makes a slug")));
    let echoed = called(&mut server, "echo", &json!({ "message": "  hi  " }));
    assert_eq!(echoed["result"]["content"][0]["text"], "hi");
    assert_eq!(echoed["result"]["content"][1]["text"], "for acceptance");
    assert_eq!(
        told(&called(&mut server, "slug", &json!({ "title": "Hello, World" }))).as_deref(),
        Ok("hello-world")
    );
    assert!(told(&called(&mut server, "delete_task", &json!({ "id": "task_x" }))).is_err());
    assert_eq!(
        told(&called(&mut server, "echo", &json!({ "message": "refuse" }))).unwrap_err(),
        "not here"
    );
    // A script that loops forever fails its own call. Other calls succeed meanwhile.
    server.write(call(900, "echo", &json!({ "message": "spin" })));
    for number in 0..5 {
        server.write(call(901 + number, "echo", &json!({ "message": "quick" })));
    }
    let mut spun = None;
    let mut quick = 0;
    while spun.is_none() || quick < 5 {
        let response = server.answer();
        match response["id"].as_u64() {
            Some(900) => spun = Some(told(&response).unwrap_err()),
            Some(_) => {
                assert_eq!(response["result"]["content"][0]["text"], "quick", "{response}");
                quick += 1;
            }
            None => {}
        }
    }
    assert!(spun.unwrap().contains("front.js failed: the script used more than 300 ms"));
    assert_eq!(server.finish().code, Some(0));
}

#[test]
fn an_edited_script_takes_effect_and_an_invalid_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    scripts(folder.path());
    let mut server = start(folder.path(), &configuration());
    assert_eq!(
        told(&called(&mut server, "slug", &json!({ "title": "A b" }))).as_deref(),
        Ok("a-b")
    );
    write(
        folder.path(),
        "behind.js",
        "const metadata = (it, kind) => kind === 'tools' && it.name !== 'echo' ? null : it;",
    );
    server.until_said("was reloaded; changed: tools");
    assert_eq!(tools(&mut server).len(), 2);
    write(folder.path(), "slug.js", "function tool({ title }) {\n  return (title;\n}");
    server.until_said("the previous configuration stays active");
    assert_eq!(
        told(&called(&mut server, "slug", &json!({ "title": "A b" }))).as_deref(),
        Ok("a-b")
    );
    write(folder.path(), "slug.js", "function tool({ title }) { return title.length; }");
    server.until_said("the lists are unchanged");
    assert_eq!(told(&called(&mut server, "slug", &json!({ "title": "A b" }))).as_deref(), Ok("3"));
    let log = server.finish().log;
    assert!(log.contains("slug.js:2:") && log.contains("SyntaxError"), "{log}");
}

#[test]
fn an_invalid_script_is_reported_with_its_position_at_startup() {
    let folder = tempfile::tempdir().unwrap();
    scripts(folder.path());
    fs::write(folder.path().join("creole.toml"), configuration()).unwrap();
    let (code, output, _) = check(folder.path());
    assert_eq!(code, Some(0));
    assert!(
        output.contains("chain    script") && output.contains("slug: runs the script slug.js"),
        "{output}"
    );
    for (text, description) in [
        ("function request( {", "front.js:1:"),
        ("let request = 1;", "none of the known functions"),
        ("const tool = () => 1;", "has no function `metadata` or `request`"),
    ] {
        write(folder.path(), "front.js", text);
        let (code, _, output) = check(folder.path());
        assert_eq!(code, Some(2), "{output}");
        assert!(output.contains(description) && output.contains("creole.toml:4:"), "{output}");
    }
}
