//! Tests of line framing on a real pipe (security A37 to A39).

use std::time::Duration;

use creole_acceptance::process_under_test::{Server, shell};
use creole_test_wait::blocking::delay;
use serde_json::json;

use crate::{MEBIBYTE, error_code, json_of};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// The stdout of a shell script, which must succeed and print nothing on stderr.
#[track_caller]
fn printed(script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = shell(folder.path(), script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_ping_echoed_into_creole_is_answered() {
    assert_eq!(printed(&format!("echo '{PING}' | creole serve")), format!("{PONG}\n"));
}

#[test]
fn a_one_liner_needs_no_newline() {
    assert_eq!(printed(&format!("printf '%s' '{PING}' | creole serve")), format!("{PONG}\n"));
}

#[test]
fn a_session_fits_into_a_shell_one_liner() {
    let initialize = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let call = r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
    let printed = printed(&format!(
        "printf '%s\\n' '{initialize}' '{initialized}' '{call}' | creole serve | tail -n 1"
    ));
    assert_eq!(json_of(&printed)["result"]["content"][0]["text"], "hi");
}

#[test]
fn a_call_without_a_session_fits_into_a_one_liner_too() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let printed = printed(&format!("echo '{call}' | creole serve"));
    assert_eq!(json_of(&printed)["result"]["content"][0]["text"], "hi", "{printed}");
}

#[test]
fn nothing_at_all_is_answered_with_nothing() {
    assert_eq!(printed("creole serve < /dev/null"), "");
    assert_eq!(printed("printf '\\n\\r\\n  \\n' | creole serve"), "");
}

#[test]
fn a_hundred_thousand_lines_of_garbage_get_an_error_each_and_leak_nothing() {
    const LINES: usize = 100_000;
    let mut server = Server::start(&[]);
    server.ping();
    let before = server.weight();
    for start in (0..LINES).step_by(1000) {
        let lines: Vec<u8> = (start..start + 1000).flat_map(garbage).collect();
        server.write(&lines);
    }
    for number in 0..LINES {
        let response = server.answer();
        // The deeply nested lines are valid JSON as far as they are read, and are rejected for their depth.
        assert!(matches!(error_code(&response), -32700 | -32600), "line {number}: {response}");
    }
    server.ping();
    let after = server.weight();
    assert!(after.growth_since(before) < 40 * MEBIBYTE, "{before:?} {after:?}");
    assert_idle(&server);
    let ended = server.finish();
    assert_eq!((ended.code, ended.output.len(), ended.log.as_str()), (Some(0), 0, ""));
}

/// A line that is not JSON, as broken programs, terminals and attackers send it.
fn garbage(number: usize) -> Vec<u8> {
    let mut line = match number % 6 {
        0 => format!("line {number} of a log").into_bytes(),
        1 => format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping""#).into_bytes(),
        2 => noise(number),
        3 => "[".repeat(number % 200 + 1).into_bytes(),
        4 => format!("\u{1b}[31mwarning\u{1b}[0m {number}").into_bytes(),
        _ => vec![0xff, 0xfe, b'{', b'}'],
    };
    line.push(b'\n');
    line
}

/// Pseudo-random bytes, the same in every run, that begin unlike JSON.
fn noise(seed: usize) -> Vec<u8> {
    let mut state = seed as u32 | 1;
    let mut line = vec![b'?'];
    line.extend((0..60).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    }));
    line.retain(|byte| *byte != b'\n');
    line
}

/// Asserts that an idle server uses no processor time.
#[track_caller]
fn assert_idle(server: &Server) {
    let before = server.weight().processor;
    delay(Duration::from_millis(500));
    let spent = server.weight().processor - before;
    assert!(spent <= Duration::from_millis(50), "an idle server used {spent:?} of processor time");
}

#[test]
fn a_line_of_fifty_mebibytes_is_refused_once_and_not_stored() {
    for preset in ["default", "bossman", "bb-mcp-server", "fpf-governance"] {
        let mut server = Server::start(&["--preset", preset, "--log", "off"]);
        server.write("?\n");
        assert_eq!(error_code(&server.answer()), -32700);
        let before = server.weight();
        for _ in 0..50 {
            server.write(vec![b'x'; 1 << 20]);
        }
        let refused = server.answer();
        assert_eq!(error_code(&refused), -32600, "{preset}: {refused}");
        server.write("\n?\n");
        let next = server.answer();
        assert_eq!(error_code(&next), -32700, "{preset}: the line after it is read: {next}");
        let after = server.weight();
        assert!(after.growth_since(before) < 8 * MEBIBYTE, "{preset}: {before:?} {after:?}");
        let ended = server.finish();
        assert_eq!((ended.code, ended.output), (Some(0), vec![]), "{preset}");
    }
}

#[test]
fn a_line_of_fifty_mebibytes_that_never_ends_is_refused_once() {
    let mut server = Server::start(&[]);
    for _ in 0..50 {
        server.write(vec![b'x'; 1 << 20]);
    }
    let ended = server.finish();
    assert_eq!((ended.code, ended.output.len()), (Some(0), 1), "{:?}", ended.output);
    assert_eq!(error_code(&json_of(&ended.output[0])), -32600);
}

/// A ping of exactly this many bytes.
fn ping_of(bytes: usize) -> String {
    let (start, end) = (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""#, r#""}}"#);
    format!("{start}{}{end}", "a".repeat(bytes - start.len() - end.len()))
}

#[test]
fn a_line_of_one_mebibyte_is_read_and_one_byte_more_is_refused() {
    let mut server = Server::start(&["--preset", "default"]);
    for end in ["\n", "\r\n"] {
        server.write(format!("{}{end}", ping_of(1_048_576)));
        assert_eq!(server.line(), PONG);
        server.write(format!("{}{end}", ping_of(1_048_577)));
        let refused = server.answer();
        assert_eq!(error_code(&refused), -32600, "{refused}");
        assert!(refused.get("id").is_none_or(serde_json::Value::is_null), "{refused}");
        server.ping();
    }
}

#[test]
fn a_mebibyte_is_also_the_limit_of_the_last_line() {
    for (bytes, expected) in [(1_048_576, json!({})), (1_048_577, json!(null))] {
        let mut server = Server::start(&[]);
        server.write(ping_of(bytes));
        let ended = server.finish();
        assert_eq!((ended.code, ended.output.len()), (Some(0), 1), "{:?}", ended.output);
        assert_eq!(json_of(&ended.output[0])["result"], expected);
    }
}

#[test]
fn an_incomplete_last_line_is_a_parse_error_and_a_clean_exit() {
    let mut server = Server::start(&[]);
    server.write(&PING[..PING.len() / 2]);
    let ended = server.finish();
    assert_eq!((ended.code, ended.output.len()), (Some(0), 1), "{:?}", ended.output);
    assert_eq!(error_code(&json_of(&ended.output[0])), -32700);
}

#[test]
fn input_may_arrive_byte_by_byte() {
    let mut server = Server::start(&[]);
    for byte in format!("{PING}\r\n\n{PING}\n").bytes() {
        server.write([byte]);
        // Time for the server to read each byte separately. If it is too short, the test only becomes easier.
        delay(Duration::from_micros(300));
    }
    assert_eq!(server.line(), PONG);
    assert_eq!(server.line(), PONG);
    assert_eq!(server.finish().output, Vec::<String>::new());
}

#[test]
fn a_letter_of_several_bytes_may_be_cut_anywhere() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"é世😀"}}}"#;
    let mut server = Server::start(&["--preset", "fpf-governance"]);
    for byte in format!("{call}\n").bytes() {
        server.write([byte]);
        delay(Duration::from_micros(300));
    }
    assert_eq!(server.answer()["result"]["content"][0]["text"], "é世😀");
}

#[test]
fn messages_in_one_write_are_answered_one_by_one() {
    let mut server = Server::start(&[]);
    server.write(format!("{PING}\r\n\r\n   \n{PING}\n{PING}\r\n"));
    for _ in 0..3 {
        assert_eq!(server.line(), PONG);
    }
    assert_eq!(server.finish().output, Vec::<String>::new());
}

#[test]
fn json_spread_over_lines_is_an_error_for_each_line() {
    let mut server = Server::start(&[]);
    server.write("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"method\": \"ping\"\n}\n");
    let ended = server.finish();
    let codes: Vec<_> = ended.output.iter().map(|line| error_code(&json_of(line))).collect();
    assert_eq!(codes, [-32700; 5], "{:?}", ended.output);
}
