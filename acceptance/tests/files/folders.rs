//! Tests of a folder as resources.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Client, initialized, stage, write};

const CONFIG: &str = "[server]\npage_size = 2\n[folders.docs]\npath = \"docs\"\nexclude = [\"drafts\"]\n\
                      max_file_bytes = 1000\n";
const SECRET: &str = "the secret outside";

fn folder() -> tempfile::TempDir {
    stage(&[
        ("creole.toml", CONFIG),
        ("secret.txt", SECRET),
        ("docs2/secret.txt", SECRET),
        ("docs/a.md", "Alpha"),
        ("docs/guide/b c.md", "Beta"),
        ("docs/guide/deep/d.txt", "Delta"),
        ("docs/drafts/x.md", SECRET),
        ("docs/.env", SECRET),
        ("docs/large.txt", &"x".repeat(1001)),
    ])
}

fn error_code(client: &mut Client, uri: &str) -> i64 {
    let response = client.ask("resources/read", &json!({ "uri": uri }));
    assert!(!response.to_string().contains(SECRET), "{uri}: {response}");
    response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{uri}: {response}"))
}

#[test]
fn files_are_listed_by_pages_read_and_completed() {
    let folder = folder();
    fs::write(folder.path().join("docs/logo.png"), [0x89, b'P', b'N', b'G', 0xff]).unwrap();
    let mut client = initialized(folder.path());
    let expected = [
        "folder://docs/a.md",
        "folder://docs/guide/b%20c.md",
        "folder://docs/guide/deep/d.txt",
        "folder://docs/large.txt",
        "folder://docs/logo.png",
    ];
    assert_eq!(client.list("resources", "uri"), expected);
    let first = client.ask("resources/list", &json!({}))["result"]["resources"][0].clone();
    assert_eq!(
        (&first["name"], &first["title"], &first["mimeType"], &first["size"]),
        (&json!("a.md"), &json!("a.md"), &json!("text/markdown"), &json!(5))
    );
    let modified = first["annotations"]["lastModified"].as_str().unwrap();
    assert!(modified.len() == 24 && modified.ends_with('Z'), "{first}");
    assert!(!first.to_string().contains(folder.path().to_str().unwrap()), "{first}");

    assert_eq!(client.read("folder://docs/guide/b%20c.md"), "Beta");
    let logo = client.ask("resources/read", &json!({ "uri": "folder://docs/logo.png" }));
    let logo = &logo["result"]["contents"][0];
    assert_eq!((&logo["blob"], &logo["mimeType"]), (&json!("iVBOR/8="), &json!("image/png")));

    let templates = client.ask("resources/templates/list", &json!({}));
    let template = &templates["result"]["resourceTemplates"][0];
    assert_eq!(
        (&template["name"], &template["uriTemplate"]),
        (&json!("docs"), &json!("folder://docs/{+path}"))
    );
    let mut complete = |typed: &str| {
        let reference = json!({ "type": "ref/resource", "uri": "folder://docs/{+path}" });
        let params = json!({ "ref": reference, "argument": { "name": "path", "value": typed } });
        client.ask("completion/complete", &params)["result"]["completion"]["values"].clone()
    };
    assert_eq!(complete(""), json!(["a.md", "guide/", "large.txt", "logo.png"]));
    assert_eq!(complete("guide/"), json!(["guide/b c.md", "guide/deep/"]));
    assert_eq!(client.server.finish().code, Some(0));
}

#[test]
fn nothing_outside_of_the_folder_is_read() {
    let folder = folder();
    let path_of = |path: &str| folder.path().join(path);
    symlink(path_of("secret.txt"), path_of("docs/link.txt")).unwrap();
    symlink(path_of("docs2"), path_of("docs/folder")).unwrap();
    symlink("..", path_of("docs/up")).unwrap();
    fs::hard_link(path_of("secret.txt"), path_of("docs/hard.txt")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(path_of("docs/pipe")).status().unwrap();
    assert!(fifo.success());
    let mut client = initialized(folder.path());
    let listed = client.list("resources", "uri").join(" ");
    for name in ["link", "hard", "folder/", "up", "pipe", "drafts", ".env", "secret"] {
        assert!(!listed.contains(&format!("docs/{name}")), "{name}: {listed}");
    }
    for path in [
        "../secret.txt",
        "%2e%2e/secret.txt",
        "..%2Fsecret.txt",
        "%2E%2E%2Fsecret.txt",
        "a.md/../../secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "link.txt",
        "hard.txt",
        "folder/secret.txt",
        "up/secret.txt",
        "pipe",
        "drafts/x.md",
        ".env",
        "%2Eenv",
        "..\\secret.txt",
        "..%5Csecret.txt",
        "a.md%00",
        "a.md%00.txt",
        "%61.md",
        "a.md?",
        "a.md#x",
        "",
        "guide",
        "guide/",
        ".",
        "..",
        "../docs2/secret.txt",
        "%ff",
        "a.md%2",
        "a.md.",
        "a.md%20",
    ] {
        assert_eq!(error_code(&mut client, &format!("folder://docs/{path}")), -32002, "{path}");
    }
    for uri in
        ["folder://docs2/secret.txt", "folder://docs", "file:///etc/passwd", "folder:///etc/passwd"]
    {
        assert_eq!(error_code(&mut client, uri), -32002, "{uri}");
    }
    let long = format!("folder://docs/{}", "a/".repeat(3000));
    assert_eq!(error_code(&mut client, &long), -32002);
    let large = client.ask("resources/read", &json!({ "uri": "folder://docs/large.txt" }));
    let text = large["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("larger than 1000 bytes"), "{large}");
    assert_eq!(client.read("folder://docs/a.md"), "Alpha", "the server still responds");
}

#[test]
fn a_session_hears_of_changes() {
    let folder = folder();
    let mut client = initialized(folder.path());
    let uri = "folder://docs/a.md";
    assert_eq!(client.ask("resources/subscribe", &json!({ "uri": uri }))["result"], json!({}));
    write(folder.path(), "docs/a.md", "Other");
    client.wait_for_notification("notifications/resources/updated", |params| params["uri"] == uri);
    assert_eq!(client.read(uri), "Other");

    write(folder.path(), "docs/new/n.md", "New");
    client.wait_for_notification("notifications/resources/list_changed", |_| true);
    assert!(client.list("resources", "uri").contains(&"folder://docs/new/n.md".to_owned()));
    // The new folder is watched as well.
    write(folder.path(), "docs/new/o.md", "Newer");
    client.wait_for_notification("notifications/resources/list_changed", |_| true);
    fs::remove_file(folder.path().join("docs/a.md")).unwrap();
    client.wait_for_notification("notifications/resources/updated", |params| params["uri"] == uri);
    assert!(!client.list("resources", "uri").contains(&uri.to_owned()));
    assert_eq!(client.server.finish().code, Some(0), "a file watch must not delay the exit");
}

#[test]
fn a_listener_of_the_stateless_era_hears_of_changes() {
    let folder = folder();
    let mut client = initialized(folder.path());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let uri = "folder://docs/guide/b%20c.md";
    let expected = json!({ "resourcesListChanged": true, "resourceSubscriptions": [uri] });
    let listen = json!({ "notifications": expected, "_meta": meta });
    client.server.write(creole_acceptance::process_under_test::request(
        7,
        "subscriptions/listen",
        &listen,
    ));
    let message =
        client.wait_for_notification("notifications/subscriptions/acknowledged", |_| true);
    assert_eq!(message["params"]["notifications"], expected);
    let is_mine = |params: &serde_json::Value| {
        params["_meta"]["io.modelcontextprotocol/subscriptionId"] == json!(7)
    };
    write(folder.path(), "docs/guide/b c.md", "Changed");
    client.wait_for_notification("notifications/resources/updated", |params| {
        params["uri"] == uri && is_mine(params)
    });
    write(folder.path(), "docs/z.md", "");
    client.wait_for_notification("notifications/resources/list_changed", is_mine);
}

#[test]
fn a_replaced_folder_is_served_with_its_new_content() {
    let folder = folder();
    let mut client = initialized(folder.path());
    write(folder.path(), "next/only.md", "Only");
    fs::rename(folder.path().join("docs"), folder.path().join("before")).unwrap();
    fs::rename(folder.path().join("next"), folder.path().join("docs")).unwrap();
    client.wait_for_notification("notifications/resources/list_changed", |_| true);
    while client.list("resources", "uri") != ["folder://docs/only.md"] {
        client.wait_for_notification("notifications/resources/list_changed", |_| true);
    }
    assert_eq!(client.read("folder://docs/only.md"), "Only");
}

#[test]
fn a_large_folder_is_cut_and_the_log_says_how_to_help() {
    let folder =
        stage(&[("creole.toml", "[server]\n[folders.docs]\npath = \"docs\"\nmax_files = 3\n")]);
    for number in 0..20 {
        write(folder.path(), &format!("docs/{number:02}.md"), &number.to_string());
    }
    let mut client = initialized(folder.path());
    assert_eq!(client.list("resources", "uri").len(), 3);
    assert_eq!(client.read("folder://docs/19.md"), "19");
    let log = client.server.finish().log;
    assert!(log.contains("folder `docs` has more than 3 files: 3 are listed"), "{log}");
    assert!(log.contains("`include`") && log.contains("`max_files`"), "{log}");
}
