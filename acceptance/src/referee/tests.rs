//! Tests that the referee objects to invalid messages, and only to those.

use creole::proto::dialect::builtin;

use super::*;

const CLAIM: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// Plays lines that begin with `>` or `<`. Returns the verdict on the last one. The others must be valid.
fn check_lines(dialect: &str, lines: &[&str]) -> Result<(), String> {
    let mut referee = Referee::new(&builtin(dialect).expect("a built-in dialect"));
    let (last, before) = lines.split_last().expect("a line");
    for line in before {
        say(&mut referee, line).expect("a valid line");
    }
    say(&mut referee, last)
}

fn say(referee: &mut Referee, line: &str) -> Result<(), String> {
    let line = line.replace("CLAIM", CLAIM);
    match line.strip_prefix("> ") {
        Some(sent) => referee.observe(Direction::ToServer, &format!("{sent}\n")),
        None => referee.observe(Direction::ToClient, line.trim_start_matches("< ")),
    }
}

fn verdict(lines: &[&str]) -> Result<(), String> {
    check_lines("spec", lines)
}

fn objects(lines: &[&str], reason: &str) {
    let problem = verdict(lines).expect_err("an objection");
    assert!(problem.contains(reason), "{problem}");
}

/// A handshake, followed by these lines.
fn after_handshake<'a>(version: &'a [&'a str; 2], lines: &[&'a str]) -> Vec<&'a str> {
    version.iter().chain(lines).copied().collect()
}

const V2025_11_25: [&str; 2] = [
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
];
const V2025_03_26: [&str; 2] = [
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
];
const LISTEN: &str = r#"> {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"_meta":{CLAIM},"notifications":{"toolsListChanged":true}}}"#;
const ACKNOWLEDGED: &str = r#"< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true}}}"#;
const CHANGED: &str = r#"< {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#;

#[test]
fn a_correct_session_passes() {
    let lines = after_handshake(
        &V2025_11_25,
        &[
            r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"< {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#,
            r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{CLAIM}}}"#,
            r#"< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}"#,
        ],
    );
    assert_eq!(verdict(&lines), Ok(()));
    assert_eq!(verdict(&[LISTEN, ACKNOWLEDGED, CHANGED]), Ok(()));
}

#[test]
fn a_result_of_the_wrong_shape_is_detected() {
    let lines = [
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t"}]}}"#,
    ];
    objects(&after_handshake(&V2025_11_25, &lines), "not a valid `ListToolsResult`");
    let stateless = [
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{CLAIM}}}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
    ];
    objects(&stateless, "2026-07-28: the published types reject it");
}

#[test]
fn a_second_answer_is_seen() {
    let lines = [
        r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#,
    ];
    objects(&lines, "a response to 1, which is not a pending request");
    objects(&[lines[0], r#"< {"jsonrpc":"2.0","id":"1","result":{}}"#], "a response to \"1\"");
}

#[test]
fn an_answer_to_a_notification_is_seen() {
    let lines = [
        r#"> {"jsonrpc":"2.0","method":"notifications/any"}"#,
        r#"< {"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}"#,
    ];
    objects(&lines, "no message waits for a response");
    let broken = [r#"> {"jsonrpc":"2.0","method":"notifications/any""#, lines[1]];
    assert_eq!(verdict(&broken), Ok(()));
}

#[test]
fn an_input_request_needs_a_handshake_and_a_capability() {
    let question = r#"< {"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
    objects(&[question], "without a handshake");
    assert_eq!(verdict(&after_handshake(&V2025_11_25, &[question])), Ok(()));
    objects(&after_handshake(&V2025_03_26, &[question]), "did not declare roots");
    objects(&after_handshake(&V2025_11_25, &[question, question]), "two requests");
}

#[test]
fn a_log_message_below_the_level_is_seen() {
    let level =
        r#"> {"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}"#;
    let set = r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#;
    let info = r#"< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    assert_eq!(verdict(&after_handshake(&V2025_11_25, &[info])), Ok(()));
    objects(&after_handshake(&V2025_11_25, &[level, set, info]), "requested no log messages");
    objects(&after_handshake(&V2025_03_26, &[info]), "declared no logging");
    let silent =
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{CLAIM},"name":"t"}}"#;
    objects(&[silent, info], "no pending request wants");
}

#[test]
fn a_subscription_is_acknowledged_first_and_gets_only_the_requested_notifications() {
    objects(&[LISTEN, CHANGED], "not acknowledged yet");
    let bare = r#"< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    objects(&[LISTEN, ACKNOWLEDGED, bare], "without a subscription");
    let other = CHANGED.replace("tools", "prompts");
    objects(&[LISTEN, ACKNOWLEDGED, &other], "does not include");
    objects(&[LISTEN, ACKNOWLEDGED, ACKNOWLEDGED], "acknowledged twice");
    let foreign = CHANGED.replace("\"l\"", "\"m\"");
    objects(&[LISTEN, ACKNOWLEDGED, &foreign], "no subscription has the id");
    let more = ACKNOWLEDGED.replace("toolsListChanged", "promptsListChanged");
    objects(&[LISTEN, &more], "was not requested");
}

#[test]
fn progress_increases_and_ends_with_the_answer() {
    let call = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{CLAIM,"progressToken":7},"name":"t"}}"#;
    let progress = r#"< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;
    let answer = r#"< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;
    assert_eq!(verdict(&[call, progress]), Ok(()));
    objects(&[call, progress, progress], "does not increase");
    objects(&[call, answer, progress], "no pending request has");
}

#[test]
fn only_a_revision_with_batches_has_them() {
    let ping = r#"> [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    let pong = r#"< [{"jsonrpc":"2.0","id":1,"result":{}}]"#;
    assert_eq!(verdict(&after_handshake(&V2025_03_26, &[ping, pong])), Ok(()));
    objects(&after_handshake(&V2025_11_25, &[ping, pong]), "has no batches");
    objects(&["< []"], "an empty batch");
}

#[test]
fn a_null_id_is_excused_only_where_an_id_cannot_be_left_out() {
    let refused = r#"< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#;
    assert_eq!(verdict(&after_handshake(&V2025_03_26, &["> {", refused])), Ok(()));
    assert_eq!(
        check_lines("fpf-governance", &after_handshake(&V2025_11_25, &["> {", refused])),
        Ok(())
    );
    objects(&after_handshake(&V2025_11_25, &["> {", refused]), "must be omitted, not null");
}

#[test]
fn a_protocol_of_its_own_is_judged_as_json_rpc() {
    let own = [
        r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1.0"}}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1.0","capabilities":{"tools":true}}}"#,
        r#"> {"jsonrpc":"2.0","method":"x"}"#,
        r#"< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
    ];
    assert_eq!(check_lines("bb-mcp-server", &own), Ok(()));
    let nameless = r#"< {"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;
    assert!(check_lines("bb-mcp-server", &[own[0], own[1], own[2], nameless]).is_err());
}

#[test]
fn an_invalid_message_is_detected() {
    objects(&["< {"], "not one JSON value");
    objects(&[r#"< {"jsonrpc":"2.0","jsonrpc":"2.0"}"#], "repeat");
    objects(&[r#"< {"jsonrpc":"2.0","id":1}"#], "exactly one of");
    objects(&[r#"< {"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#], "exactly one of");
    objects(&[r#"< {"jsonrpc":"2.0","id":1,"result":{},"extra":1}"#], "has no member `extra`");
    objects(&[r#"< {"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#], "integer `code`");
}

#[test]
fn a_line_may_be_sent_in_pieces_and_without_its_end() {
    let mut referee = Referee::new(&builtin("spec").expect("a built-in dialect"));
    for piece in [r#"{"jsonrpc":"2.0","#, r#""id":1,"method":"ping"}"#] {
        referee.observe(Direction::ToServer, piece).expect("nothing to judge");
    }
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(referee.observe(Direction::ToClient, answer), Ok(()));
    assert!(referee.observe(Direction::ToClient, answer).is_err());
}

const DECLARED: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const HEAD: &str = r#""taskId":"0123456789abcdef","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00.5Z""#;

/// The verdict on the result of a request that declares the extension.
fn on_task(method: &str, result: &str) -> Result<(), String> {
    let params = r#""name":"t","taskId":"0123456789abcdef","inputResponses":{}"#;
    let request = format!(
        r#"> {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{{DECLARED}}}}}}}"#
    );
    let response = format!(r#"< {{"jsonrpc":"2.0","id":1,"result":{{{result}}}}}"#);
    verdict(&[&request, &response.replace("HEAD", HEAD)])
}

#[test]
fn a_task_has_the_members_of_its_state_and_no_others() {
    let result = r#""result":{"resultType":"complete","content":[]}"#;
    let fair = [
        ("tools/call", r#""resultType":"task",HEAD,"status":"working","ttlMs":1"#.to_owned()),
        ("tasks/get", r#""resultType":"complete",HEAD,"status":"working","ttlMs":null"#.to_owned()),
        (
            "tasks/get",
            format!(r#""resultType":"complete",HEAD,"status":"completed","ttlMs":1,{result}"#),
        ),
        ("tasks/cancel", r#""resultType":"complete""#.to_owned()),
    ];
    for (method, fair) in fair {
        on_task(method, &fair).unwrap();
    }
    let unfair = [
        ("tools/call", r#""resultType":"task",HEAD,"status":"working""#.to_owned(), "ttlMs"),
        ("tools/call", format!(r#""resultType":"task",HEAD,"status":"completed","ttlMs":1,{result}"#), "`result`"),
        ("tools/call", r#""resultType":"task","task":{HEAD,"status":"working","ttlMs":1}"#.to_owned(), "taskId"),
        ("tasks/get", r#""resultType":"task",HEAD,"status":"working","ttlMs":1"#.to_owned(), "resultType"),
        ("tasks/get", r#""resultType":"complete",HEAD,"status":"completed","ttlMs":1"#.to_owned(), "no `result`"),
        ("tasks/get", format!(r#""resultType":"complete",HEAD,"status":"failed","ttlMs":1,{result}"#), "`result`"),
        ("tasks/get", r#""resultType":"complete",HEAD,"status":"input_required","ttlMs":1,"inputRequests":{}"#.to_owned(), "has no input requests"),
        ("tasks/get", r#""resultType":"complete",HEAD,"status":"input_required","ttlMs":1,"inputRequests":{"q":{"method":"ping"}}"#.to_owned(), ""),
        ("tasks/get", r#""resultType":"complete",HEAD,"status":"done","ttlMs":1"#.to_owned(), "done"),
        ("tasks/cancel", r#""resultType":"complete",HEAD,"status":"cancelled","ttlMs":1"#.to_owned(), "does not belong"),
    ];
    for (method, unfair, reason) in unfair {
        let problem = on_task(method, &unfair).expect_err(&unfair);
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn a_task_is_sent_to_clients_with_the_capability_and_its_result_names_it() {
    let created = format!(
        r#"< {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"task",{HEAD},"status":"working","ttlMs":1}}}}"#
    );
    let call =
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{CLAIM},"name":"t"}}"#;
    objects(&[call, &created], "cannot follow");
    let created = format!(
        r#"< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{HEAD},"status":"working","ttl":1}}}}}}"#
    );
    let wished =
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#;
    verdict(&after_handshake(&V2025_11_25, &[wished, &created])).unwrap();
    let plain = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    objects(&after_handshake(&V2025_11_25, &[plain, &created]), "cannot follow");
    let waited = r#"> {"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"a"}}"#;
    let nameless = r#"< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    objects(&after_handshake(&V2025_11_25, &[waited, nameless]), "does not name");
}
