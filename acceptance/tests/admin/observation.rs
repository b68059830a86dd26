//! What operators see of a running process: its log, tasks, upstreams, configuration, refusals, and who looked.

use std::io::Read;

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::http::{Connection, Events, Head};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use super::answers::{assert_valid, call_tool, schema};
use super::{Admin, body, key, request};

/// Opens a stream of the log at this level.
fn open_log(admin: &Admin, bearer: &str, level: &str) -> (Connection, Head) {
    let request = request("GET", &format!("/api/v1/log?level={level}"), None)
        .replacing("Accept", "text/event-stream")
        .with("Authorization", &format!("Bearer {bearer}"));
    let mut stream = Connection::open(admin.address()).unwrap();
    stream.write(&request.bytes(admin.address())).unwrap();
    let head = stream.head().unwrap();
    assert_eq!((head.status, head.field("content-type")), (200, Some("text/event-stream")));
    (stream, head)
}

/// The next event of this kind whose data has this text.
#[track_caller]
fn next_event(events: &mut Events<impl Read>, kind: &str, text: &str) -> Value {
    loop {
        let event = events.next().expect("an event");
        if event.kind.as_deref() == Some(kind) && event.data.contains(text) {
            return serde_json::from_str(&event.data).unwrap();
        }
    }
}

#[test]
fn events_of_the_log_are_streamed_and_less_important_ones_are_made_for_their_reader() {
    let admin = Admin::with_link("[log]\nlevel = \"warn\"\n");
    let bearer = admin.sign_in();
    let document = admin.get(&bearer, "/openapi.json");
    let acts = "an operator acts on an upstream";
    let probe = || admin.call(&bearer, "POST", "/upstreams/files/probe", Some(&json!({})));
    assert_eq!(probe().head.status, 202);
    let listed = || admin.get(&bearer, "/log").to_string();
    assert!(!listed().contains(acts), "the log does not write such events: {}", listed());

    let (mut stream, head) = open_log(&admin, &bearer, "info");
    let mut events = Events::new(stream.body(&head));
    assert_eq!(next_event(&mut events, "open", ""), json!({"level": "INFO"}));
    assert_eq!(probe().head.status, 202);
    let event = next_event(&mut events, "log", acts);
    let told = ["level", "target"].map(|name| event[name].as_str().unwrap().to_owned());
    assert_eq!(told, ["INFO", "creole::admin"]);
    assert_eq!(
        (&event["fields"]["upstream"], &event["fields"]["by"]),
        (&json!("files"), &json!("admin"))
    );
    let stream =
        &document["paths"]["/log"]["get"]["responses"]["200"]["content"]["text/event-stream"];
    let mut of_event = stream["x-events"]["log"]["schema"].clone();
    of_event["components"] = document["components"].clone();
    assert_valid(&of_event, &event, "an event of the log");
    assert!(listed().contains(acts), "it stays for others: {}", listed());

    // Texts of others cannot change how the log is shown.
    let hostile = "/api/v1/upstreams/%1b%5B2J%E2%80%AE/probe";
    let asked = request("POST", hostile, Some(&json!({})));
    admin.send(&asked.with("Authorization", &format!("Bearer {bearer}")));
    assert!(!listed().contains('\u{1b}') && !listed().contains('\u{202e}'));

    admin.call(&bearer, "POST", "/logout", Some(&json!({})));
    assert_eq!(next_event(&mut events, "end", ""), json!({"reason": "signed-out"}));
    let wrong = Admin::with_keys();
    let answer = wrong.call(&key("admin-read"), "GET", "/log?level=loud", None);
    assert_eq!((answer.head.status, body(&answer)["code"].as_str()), (400, Some("invalid-query")));
}

#[test]
fn a_task_is_listed_without_its_id_and_can_be_cancelled() {
    let admin = Admin::with_packs(&["echo", "everything"]);
    let bearer = admin.sign_in();
    assert_eq!(admin.get(&bearer, "/tasks")["items"], json!([]));
    let client = StatelessClient::new(admin.server.address())
        .that_can(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let created = client.call("slow_compute", json!({"seconds": 600}));
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}"));
    let tasks = admin.get(&bearer, "/tasks");
    let document = admin.get(&bearer, "/openapi.json");
    assert_valid(&schema(&document, "get", "/tasks", "200"), &tasks, "/tasks");
    assert!(!tasks.to_string().contains(id), "an id gives access to the task: {tasks}");
    let task = &tasks["items"][0];
    let told = ["server", "target", "status", "revision", "principal"]
        .map(|name| task[name].as_str().unwrap().to_owned());
    assert_eq!(told, ["team", "slow_compute", "working", "2026-07-28", "local"]);
    let path = format!("/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(admin.call(&bearer, "DELETE", &path, None).head.status, 204);
    let state = client.request("tasks/get", json!({"taskId": id}));
    assert_eq!(state["result"]["status"], "cancelled", "{state}");
    let again = admin.call(&bearer, "DELETE", &path, None);
    assert_eq!((again.head.status, body(&again)["code"].as_str()), (409, Some("conflict")));
    assert_eq!(admin.call(&bearer, "DELETE", "/tasks/0123456789abcdef", None).head.status, 404);
}

#[test]
fn an_upstream_is_shown_with_its_connections_starts_capabilities_fidelity_and_history() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let show = || admin.get(&bearer, "/upstreams/files");
    eventually(|| format!("it is ready: {}", show()), || show()["state"] == "ready");
    // A caller of the handshake era has a session of its own with the upstream.
    let wanted = json!({
        "method": "tools/call",
        "params": {"name": "files__echo", "arguments": {"message": "hello"}},
        "as": {"revision": "2025-06-18"},
    });
    let ran = admin.call(&bearer, "POST", "/servers/team/calls", Some(&wanted)).text();
    assert!(ran.contains("event: result"), "{ran}");
    let upstream = show();
    assert_eq!(upstream["starts"], json!({"ready": 1, "failed": 0}));
    let offered = upstream["capabilities"].as_array().unwrap();
    assert!(offered.contains(&json!("tools")), "{upstream}");
    assert_eq!(upstream["server"]["name"], "creole", "{upstream}");
    let connections = &upstream["connections"];
    let owners: Vec<&str> = connections["owners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|owner| owner["owner"].as_str().unwrap())
        .collect();
    assert!(owners.contains(&"gateway"), "{connections}");
    let caller = owners.iter().find(|owner| owner.len() == 8).expect("the caller as a hash");
    assert!(caller.chars().all(|it| it.is_ascii_hexdigit()), "{caller}");
    let open = connections["idle"].as_u64().unwrap() + connections["busy"].as_u64().unwrap();
    assert_eq!(open, owners.len() as u64, "{connections}");
    let states: Vec<&str> = upstream["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["waiting", "starting", "ready"]);
    assert_eq!(upstream["since"], upstream["history"][2]["at"]);
    let features: Vec<&str> = upstream["fidelity"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["feature"].as_str().unwrap())
        .collect();
    assert!(features.contains(&"elicitation") && features.contains(&"tasks"), "{features:?}");
    let cells = upstream["fidelity"][0]["cells"].as_object().unwrap();
    assert_eq!(cells.len(), 5, "a cell for each revision of clients: {cells:?}");
    // The same as `creole check` says of the same server.
    let checked = admin.creole(&["check", "--json", "--", binary(), "serve", "--log", "off"]);
    let report: Value =
        serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{checked:?}"));
    for row in upstream["fidelity"].as_array().unwrap() {
        for (client, cell) in row["cells"].as_object().unwrap() {
            let expected = &report["clients"][row["feature"].as_str().unwrap()][client]["support"];
            let shown = cell["support"].as_str().unwrap().replace('-', "absent");
            assert_eq!(*expected, shown, "{row} {client}");
        }
    }
}

/// The path of the binary under test.
fn binary() -> &'static str {
    let path = creole_acceptance::stage::stdio::binary().unwrap();
    Box::leak(path.display().to_string().into_boxed_str())
}

#[test]
fn the_configuration_is_shown_with_the_values_in_force() {
    let admin = Admin::with_link("capture = \"ask\"\n");
    let bearer = admin.sign_in();
    let config = admin.get(&bearer, "/config");
    let value = |path: &str| {
        let all = config["effective"].as_array().unwrap();
        let found = all.iter().find(|it| it["path"] == path);
        let found = found.unwrap_or_else(|| panic!("{path} is not in {config}"));
        (found["value"].clone(), found["from"].as_str().unwrap().to_owned())
    };
    assert_eq!(value("server.name"), (json!("team"), "file".to_owned()));
    assert_eq!(value("server.page_size").1, "default");
    assert_eq!(value("admin.console"), (json!(true), "default".to_owned()));
    assert_eq!(value("admin.capture"), (json!("ask"), "file".to_owned()));
    assert_eq!(value("upstreams.files.prefix"), (json!("files__"), "default".to_owned()));
    assert_eq!(value("http.path"), (json!("/mcp"), "default".to_owned()));
    assert_eq!(value("upstreams.files.env.API_TOKEN"), (json!("•••"), "file".to_owned()));
}

#[test]
fn who_looks_at_payloads_is_in_the_audit_log_once() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let filter = json!({"filter": {"target": "echo"}, "minutes": 1, "max": 1});
    admin.call(&bearer, "POST", "/captures", Some(&filter));
    call_tool(&admin, "echo", json!({"message": "hello"}));
    let calls = admin.get(&bearer, "/calls?target=echo");
    let id = calls["items"][0]["id"].as_str().unwrap().to_owned();
    for _ in 0..3 {
        assert_eq!(admin.get(&bearer, &format!("/calls/{id}"))["payloads"], "captured");
    }
    let looks = || {
        let lines = admin.get(&bearer, "/audit?q=payloads/view");
        lines["items"].as_array().unwrap().clone()
    };
    let line = eventually("the line is written", || looks().into_iter().next());
    let told = ["via", "method", "target", "server", "outcome", "id", "principal"]
        .map(|name| line[name].as_str().unwrap_or_default().to_owned());
    assert_eq!(told[..6], ["console", "payloads/view", "echo", "team", "ok", &id]);
    assert!(!told[6].is_empty(), "it says who looked: {line}");
    assert_eq!(looks().len(), 1, "a page that is read again is one look");
}

#[test]
fn refused_clients_are_among_the_denials_with_the_line_of_the_configuration() {
    let admin = Admin::with_auth();
    let bearer = admin.sign_in();
    // Recording begins with the first visit.
    assert_eq!(admin.get(&bearer, "/denials")["total"], 0);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let post = || creole_acceptance::http::Request::post(message.clone());
    for request in [
        post(),
        post(),
        post().with("Authorization", "Bearer creole_wrong"),
        post().with("Authorization", &format!("Bearer {}", key("client"))),
        post().with("Origin", "https://evil.example"),
    ] {
        let status = request.send(admin.server.address()).unwrap().head.status;
        assert!([401, 403].contains(&status), "{status}");
    }
    let denials = admin.get(&bearer, "/denials");
    assert_eq!(denials["total"], 5, "{denials}");
    let find = |layer: &str, reason: &str| {
        let all = denials["items"].as_array().unwrap();
        let found = all
            .iter()
            .find(|it| it["layer"] == layer && it["reason"].as_str().unwrap().contains(reason));
        found.unwrap_or_else(|| panic!("{layer}, {reason}: {denials}")).clone()
    };
    let anonymous = find("auth", "401");
    assert_eq!((&anonymous["target"], &anonymous["remote"]), (&json!("/mcp"), &json!("127.0.0.1")));
    assert!(anonymous["count"].as_u64().unwrap() >= 3, "one group for one address: {denials}");
    let without_role = find("auth", "403: missing role");
    assert_eq!(without_role["principal"], "key:client");
    let foreign = find("guard", "403");
    assert_eq!(foreign["principal"], Value::Null);
    let text = admin.get(&bearer, "/config")["text"].as_str().unwrap().to_owned();
    let line = usize::try_from(anonymous["line"].as_u64().unwrap()).unwrap();
    assert_eq!(text.lines().nth(line - 1), Some("[auth]"));
    let document = admin.get(&bearer, "/openapi.json");
    assert_valid(&schema(&document, "get", "/denials", "200"), &denials, "/denials");
}
