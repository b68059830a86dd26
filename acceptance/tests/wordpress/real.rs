//! Tests of a real WordPress with the test platform: its Application Passwords, errors and data.

use std::process::{Command, Stdio};
use std::rc::Rc;

use creole_acceptance::canaries::base64;
use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::peers;
use creole_acceptance::peers::wordpress::{RunningSite, WordPress};
use creole_acceptance::peers::{Mode, Peer, Steps, if_installed, is_installed};
use creole_acceptance::stage::stdio::repository;
use serde_json::{Value, json};

use crate::faults::called_as;
use crate::stage::{PATH, SiteBackend, SiteStage, front, front_with_every_tool};
use crate::transcripts;

/// A running site, or `None` if it cannot be prepared here.
pub(crate) fn site(variables: &[(&str, &str)]) -> Option<RunningSite> {
    let prepared = if_installed("WordPress", WordPress::prepared())?;
    let site = prepared.start(variables).unwrap_or_else(|text| panic!("{text}"));
    Some(site)
}

fn guide() -> String {
    std::fs::read_to_string(repository().join("docs/guides/wordpress.md")).unwrap()
}

/// The plugin of the guide, with which a site checks Application Passwords early.
pub(crate) fn early_auth() -> String {
    let guide = guide();
    let (_, rest) = guide.split_once("```php\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The `Authorization` header of a user of the site.
pub(crate) fn header_of(site: &RunningSite, user: &str) -> String {
    format!("Basic {}", base64(format!("{user}:{}", site.password(user)).as_bytes()))
}

impl SiteBackend for Rc<RunningSite> {
    fn url(&self) -> String {
        (**self).url()
    }

    fn header_of(&self, user: &str) -> String {
        match user {
            "wrong" => format!("Basic {}", base64(b"admin:abcd efgh ijkl")),
            user => header_of(self, user),
        }
    }

    fn set_platform(&self, is_active: bool) {
        self.plugin("platform-off", (!is_active).then_some(""));
    }
}

#[test]
fn every_transcript_of_the_document_passes_against_wordpress() {
    let Some(site) = site(&[]) else { return };
    let site = Rc::new(site);
    let mut failures = Vec::new();
    for transcript in transcripts::all() {
        let stage = &mut SiteStage::new(Box::new(Rc::clone(&site)));
        failures.extend(transcripts::run_transcript(&transcript, stage));
        site.set_platform(true);
    }
    assert!(failures.is_empty(), "\n\n{}", failures.join("\n"));
}

/// The sequence of the document, unchanged.
const SEQUENCE: &str = r#"
curl -s -X POST $URL -u "$USER:$PASS" \
  -H "Content-Type: application/json" \
  -d '{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1.0"}},"id":1}'
echo
curl -s -X POST $URL -u "$USER:$PASS" \
  -H "Content-Type: application/json" \
  -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
echo
curl -s -X POST $URL -u "$USER:$PASS" \
  -H "Content-Type: application/json" \
  -d '{"jsonrpc":"2.0","method":"tools/list","id":2}'
echo
curl -s -X POST $URL -u "$USER:$PASS" \
  -H "Content-Type: application/json" \
  -d '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"buddyboss_list_members","arguments":{"per_page":3}},"id":3}'
"#;

#[test]
fn the_curl_sequence_of_the_document_runs_unchanged() {
    let Some(site) = site(&[]) else { return };
    let (server, _data) = front(&site.url());
    let output = Command::new("sh")
        .args(["-c", SEQUENCE])
        .env("URL", format!("http://{}{PATH}", server.address()))
        .env("USER", "admin")
        .env("PASS", site.password("admin"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.split('\n').collect();
    let message = |line: usize| serde_json::from_str::<Value>(lines[line]).unwrap();
    assert_eq!(message(0)["result"]["serverInfo"]["name"], "buddyboss-mcp-server");
    assert_eq!(lines[1], "");
    assert_eq!(message(2)["result"]["tools"].as_array().unwrap().len(), 42);
    let text = message(3)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    let members: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(members.len(), 3);
    assert_eq!(message(3)["result"]["content"][1]["text"], "Page 1 of 9, 25 in total.");
}

#[test]
fn the_inspector_lists_and_calls_with_a_password_of_the_site() {
    let Some(site) = site(&[]) else { return };
    if !is_installed(Peer::Inspector) {
        return;
    }
    let (server, _data) = front(&site.url());
    let url = format!("http://{}{PATH}", server.address());
    let steps = Steps::new().call("buddyboss_list_members", json!({"per_page": 3}));
    let header = format!("Authorization: {}", header_of(&site, "admin"));
    let message = peers::inspect_at(Mode::Legacy, &steps, &url, &header).unwrap();
    assert_eq!(message["errors"], json!([]), "{message}");
    // The guide names the tested version.
    let version = message["version"].as_str().unwrap();
    assert!(
        guide().contains(&format!("npx @modelcontextprotocol/inspector@{version} ")),
        "{version}"
    );
    assert_eq!(message["server"]["name"], "buddyboss-mcp-server");
    assert_eq!(message["tools"].as_array().unwrap().len(), 42, "{message}");
    assert_eq!(message["call"]["content"][1]["text"], "Page 1 of 9, 25 in total.");
    let header = format!("Authorization: {}", header_of(&site, "ed"));
    let refused = peers::inspect_at(Mode::Legacy, &steps, &url, &header).unwrap_err();
    assert!(refused.contains("Insufficient permissions."), "{refused}");
}

/// The preset in front of a site, and the caller.
pub(crate) struct SiteCaller {
    server: ListeningServer,
    caller: String,
    _data: tempfile::TempDir,
}

impl SiteCaller {
    fn of(site: &RunningSite, user: &str) -> Self {
        let (server, data) = front(&site.url());
        Self { server, caller: header_of(site, user), _data: data }
    }

    /// One with the tools of both phases.
    pub(crate) fn with_every_tool(site: &RunningSite, user: &str) -> Self {
        let (server, data) = front_with_every_tool(&site.url());
        Self { server, caller: header_of(site, user), _data: data }
    }

    /// Calls a tool, which must succeed. Returns its data.
    #[track_caller]
    pub(crate) fn call_successfully(&self, tool: &str, arguments: Value) -> Value {
        let (text, is_error) = self.call_tool(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Calls a tool, which must fail. Returns the text.
    #[track_caller]
    pub(crate) fn fails(&self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call_tool(tool, arguments);
        assert!(is_error, "{tool}: {text}");
        text
    }

    #[track_caller]
    fn call_tool(&self, tool: &str, arguments: Value) -> (String, bool) {
        called_as(&self.server, &self.caller, &format!("buddyboss_{tool}"), &arguments)
    }
}

#[test]
fn the_tools_change_the_site_as_documented() {
    let Some(site) = site(&[]) else { return };
    site.plugin("early-auth.php", Some(&early_auth()));
    let service = SiteCaller::of(&site, "admin");
    members(&service);
    groups(&service);
    feed(&service);
    people(&service);
}

fn members(service: &SiteCaller) {
    let new = json!({"username": "kim", "email": "kim@example.org", "password": "a long password", "name": "Kim"});
    let kim = service.call_successfully("create_member", new.clone());
    assert!(!kim.to_string().contains("a long password"));
    let id = &kim["id"];
    let read = service.call_successfully("get_member", json!({"id": id}));
    assert_eq!((&read["email"], &read["name"]), (&json!("kim@example.org"), &json!("Kim")));
    assert_eq!(read.get("_links").or(read.get("avatar_urls")), None);
    let again = service.fails("create_member", new);
    assert!(again.contains("existing_user_login, HTTP 500"), "{again}");
    let invalid = json!({"username": "x", "email": "no address", "password": "x"});
    let problem = service.fails("create_member", invalid);
    assert!(problem.contains("rest_invalid_param, HTTP 400"), "{problem}");
    service.call_successfully(
        "update_member",
        json!({"id": id, "name": "Kim Doe", "member_type": "teacher"}),
    );
    assert_eq!(
        service.call_successfully("list_members", json!({"search": "Kim Doe"}))[0]["id"],
        *id
    );
    let unknown = service.fails("update_member", json!({"id": id, "member_type": "nobody"}));
    assert_eq!(unknown, "Error: the site has no member type `nobody`");
    let half =
        service.fails("update_member", json!({"id": id, "name": "K", "member_type": "nobody"}));
    assert!(
        half.starts_with("Error: `name` changed as asked, but `member_type` did not"),
        "{half}"
    );
    let editors = service.call_successfully("list_members", json!({"role": "editor"}));
    assert_eq!(editors.as_array().unwrap().len(), 1);
    assert_eq!(editors[0]["name"], "Ed Doe");
    assert_eq!(
        service.call_successfully("list_members", json!({"role": "nobody-has-it"})),
        json!([])
    );
    let own = service.fails("delete_member", json!({"id": 1, "reassign": id}));
    assert!(own.starts_with("Error: this is your own account"), "{own}");
    service.call_successfully("delete_member", json!({"id": id, "reassign": 1}));
    let gone = service.fails("get_member", json!({"id": id}));
    assert_eq!(gone, format!("Error: Member with ID {id} not found"));
}

fn groups(service: &SiteCaller) {
    let group =
        service.call_successfully("create_group", json!({"name": "Readers", "status": "hidden"}));
    assert_eq!(group["creator_id"], 1, "the caller is the organizer");
    let id = &group["id"];
    assert_eq!(service.call_successfully("list_groups", json!({})).as_array().unwrap().len(), 1);
    assert_eq!(service.call_successfully("list_groups", json!({"status": ["public"]})), json!([]));
    service.call_successfully("update_group", json!({"id": id, "name": "Writers"}));
    assert_eq!(service.call_successfully("get_group", json!({"id": id}))["name"], "Writers");
    let added = json!({"group_id": id, "user_id": 2, "role": "mod"});
    assert_eq!(service.call_successfully("add_group_member", added)["role"], "mod");
    let all = service.call_successfully("list_group_members", json!({"group_id": id}));
    assert_eq!(all, json!([{"id": 2, "role": "mod"}]));
    service.call_successfully(
        "update_group_member",
        json!({"group_id": id, "user_id": 2, "action": "ban"}),
    );
    // The platform would report success for these.
    for (user, action) in [(2, "promote"), (3, "ban"), (3, "unban")] {
        let change = json!({"group_id": id, "user_id": user, "action": action, "role": "mod"});
        let message = service.fails("update_group_member", change);
        assert!(message.ends_with("; nothing was changed"), "{message}");
    }
    service.call_successfully("remove_group_member", json!({"group_id": id, "user_id": 2}));
    assert_eq!(service.call_successfully("list_group_members", json!({"group_id": id})), json!([]));
    service.call_successfully("delete_group", json!({"id": id}));
    let gone = service.fails("get_group", json!({"id": id}));
    assert_eq!(gone, format!("Error: Group with ID {id} not found"));
}

fn feed(service: &SiteCaller) {
    let message = service.fails("create_activity", json!({"content": "Hello", "group_id": 99}));
    assert_eq!(message, "Error: Group with ID 99 not found; nothing was sent");
    let group = service.call_successfully("create_group", json!({"name": "Writers"}))["id"].clone();
    let post = service
        .call_successfully("create_activity", json!({"content": "Hello", "group_id": group}));
    assert_eq!((&post["component"], &post["primary_item_id"]), (&json!("groups"), &group));
    let id = &post["id"];
    assert_eq!(
        service.call_successfully("favorite_activity", json!({"id": id}))["favorited"],
        true
    );
    assert_eq!(
        service.call_successfully("favorite_activity", json!({"id": id}))["favorited"],
        false
    );
    let comment =
        service.call_successfully("comment_activity", json!({"id": id, "content": "Welcome"}));
    assert_eq!(comment["comments"][0]["content"], "Welcome");
    assert_eq!(
        service
            .call_successfully("list_activity_comments", json!({"id": id}))
            .as_array()
            .unwrap()
            .len(),
        1
    );
    service.call_successfully("delete_activity", json!({"id": id}));
    let lost = json!({"recipients": [2, 9999], "message": "Hi"});
    let lost = service.fails("send_message", lost);
    assert_eq!(lost, "Error: Member with ID 9999 not found; nothing was sent");
    let lost = service.fails("mark_message_read", json!({"id": 9999}));
    assert_eq!(lost, "Error: Thread with ID 9999 not found; nothing was sent");
    let sent = json!({"recipients": "2,3", "message": "Hi", "subject": "All"});
    let sent = service.call_successfully("send_message", sent);
    assert_eq!((&sent["sender_id"], &sent["recipients"]), (&json!(1), &json!([2, 3])));
    let read =
        service.call_successfully("mark_message_read", json!({"id": sent["id"], "read": false}));
    assert_eq!(read["unread"], true);
    service.call_successfully("delete_message_thread", json!({"id": sent["id"]}));
}

fn people(service: &SiteCaller) {
    let friend = service.call_successfully("add_friend", json!({"friend_id": 2}));
    assert_eq!(friend["initiator_id"], 1);
    let id = &friend["id"];
    let requests = service.call_successfully("list_friend_requests", json!({"user_id": 1}));
    assert_eq!(requests.as_array().unwrap().len(), 1);
    assert_eq!(service.call_successfully("list_friends", json!({"user_id": 1})), json!([]));
    let gone = service.call_successfully("remove_friend", json!({"id": id}));
    assert_eq!(gone["deleted"], true);
    service.fails("remove_friend", json!({"id": id}));
    let data = json!({"field_id": 1, "user_id": 2, "value": "Ghent"});
    service.call_successfully("update_xprofile_data", data);
    let data = service.call_successfully("get_xprofile_data", json!({"field_id": 1, "user_id": 2}));
    assert_eq!(data["value"]["raw"], "Ghent");
    for value in [json!(["Red", "Blue"]), json!("Red")] {
        let data = json!({"field_id": 2, "user_id": 2, "value": value});
        let stored =
            service.call_successfully("update_xprofile_data", data)["value"]["unserialized"]
                .clone();
        let expected = if value.is_array() { value } else { json!([value]) };
        assert_eq!(stored, expected);
    }
    let data = json!({"field_id": 3, "user_id": 2, "value": "1990-05-17"});
    assert_eq!(
        service.call_successfully("update_xprofile_data", data)["value"]["raw"],
        "1990-05-17 00:00:00"
    );
    not_ours(service);
    assert_eq!(service.call_successfully("list_notifications", json!({})), json!([]));
    assert_eq!(service.call_successfully("list_components", json!({}))[0]["status"], "active");
}

/// A friendship of two other users, and the friendship of the caller with one of them.
fn not_ours(service: &SiteCaller) {
    let others = json!({"friend_id": 3, "initiator_id": 2, "force": true});
    let others = service.call_successfully("add_friend", others)["id"].clone();
    let own = service.call_successfully("add_friend", json!({"friend_id": 2, "force": true}))["id"]
        .clone();
    let message = service.fails("remove_friend", json!({"id": others}));
    assert!(message.contains("between members 2 and 3"), "{message}");
    let left = service.call_successfully("list_friends", json!({"user_id": 1}));
    assert!(left.as_array().unwrap().iter().any(|value| value["id"] == own), "{left}");
    assert_eq!(service.call_successfully("remove_friend", json!({"id": own}))["deleted"], true);
}

#[test]
fn the_plugin_of_the_guide_exposes_only_rest_routes() {
    let Some(site) = site(&[]) else { return };
    site.plugin("early-auth.php", Some(&early_auth()));
    let whoami = "<?php foreach ( array( 'wp_ajax_who', 'wp_ajax_nopriv_who' ) as $hook ) { \
                  add_action( $hook, fn() => wp_send_json( array( 'id' => get_current_user_id() ) ) ); }";
    site.plugin("whoami.php", Some(whoami));
    let address = site.url().trim_start_matches("http://").parse().unwrap();
    let ask = |path: &str| {
        let request =
            Request::to("GET", path, "").with("Authorization", &header_of(&site, "admin"));
        request.send(address).unwrap().message()
    };
    assert_eq!(ask("/wp-json/wp/v2/users/me")["id"], 1);
    assert_eq!(ask("/wp-admin/admin-ajax.php?action=who&rest_route=/")["id"], 0);
}

#[test]
fn a_site_that_checks_passwords_late_is_not_believed() {
    let Some(site) = site(&[]) else { return };
    let service = SiteCaller::of(&site, "admin");
    let post = service.call_successfully("create_activity", json!({"content": "Hello"}));
    for (tool, arguments) in [
        ("comment_activity", json!({"id": post["id"], "content": "Lost"})),
        ("mark_message_read", json!({"id": 1})),
        ("remove_friend", json!({"id": 1})),
    ] {
        let message = service.fails(tool, arguments);
        assert!(message.contains("checks Application Passwords too late"), "{tool}: {message}");
    }
}
