//! Tests of finding the session of a POST, and of checking its headers.

use alloc::string::{String, ToString};

use super::*;
use crate::dialect::builtin;
use crate::wire::{ScanLimits, scan};

const MODERN: &str = "2026-07-28";

fn spec() -> Dialect {
    builtin("spec").unwrap()
}

fn request(method: &str, rest: &str, claimed: Option<&str>) -> String {
    let meta = claimed.map_or(String::new(), |version| {
        format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        )
    });
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{meta}{rest}}}}}"#)
}

fn belongs(body: &str, version: Option<&str>) -> Result<PostKind, FaultKind> {
    let head = McpHeaders { protocol_version: version.map(str::as_bytes), ..McpHeaders::default() };
    let frame = scan(body.as_bytes(), &ScanLimits::default()).unwrap();
    classify_post(&frame, &head, &spec()).map_err(|fault| fault.kind)
}

#[test]
fn the_body_decides_the_era_of_a_request() {
    use PostKind::{Initialize, Session, Stateless};
    let ping = request("ping", "", None);
    let list = request("tools/list", "", Some(MODERN));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let rows = [
        (&*list, None, Ok(Stateless)),
        (&*list, Some("2025-11-25"), Ok(Stateless)),
        (&request("initialize", "", Some(MODERN)), Some(MODERN), Ok(Stateless)),
        (&request("initialize", "", None), None, Ok(Initialize)),
        (&request("initialize", "", None), Some(MODERN), Ok(Stateless)),
        (&request("server/discover", "", None), None, Ok(Stateless)),
        (&*ping, None, Ok(Session)),
        (&*ping, Some(MODERN), Ok(Stateless)),
        (&*ping, Some("1900-01-01"), Err(FaultKind::UnsupportedVersion)),
        (answer, None, Ok(Session)),
        (answer, Some(MODERN), Err(FaultKind::InvalidRequest)),
        ("[]", None, Ok(Session)),
        ("[]", Some(MODERN), Err(FaultKind::InvalidRequest)),
    ];
    for (body, version, expected) in rows {
        assert_eq!(belongs(body, version), expected, "{body} {version:?}");
    }
}

fn checked(body: &str, version: &str, method: &str, name: &str) -> Result<(), FaultKind> {
    let field = |value: &'static str| (value != "-").then_some(value.as_bytes());
    let leak = |value: &str| field(String::leak(value.to_string()));
    let head = McpHeaders {
        protocol_version: leak(version),
        method: leak(method),
        name: leak(name),
        ..McpHeaders::default()
    };
    let Frame::One(fields) = scan(body.as_bytes(), &ScanLimits::default()).unwrap() else {
        panic!("{body} is an array");
    };
    check_stateless_request(&fields, &head, &spec()).map(|_| ()).map_err(|fault| fault.kind)
}

#[test]
fn headers_mirror_the_body() {
    let mismatch = Err(FaultKind::HeaderMismatch);
    let call = request("tools/call", r#","name":"add""#, Some(MODERN));
    let read = request("resources/read", r#","uri":"file:///ü""#, Some(MODERN));
    let rows = [
        (&*call, MODERN, "tools/call", "add", Ok(())),
        (&*call, MODERN, "tools/call", "=?base64?YWRk?=", Ok(())),
        (&*call, MODERN, "tools/call", "  add ", Ok(())),
        (&*call, "-", "tools/call", "add", mismatch),
        (&*call, "2025-11-25", "tools/call", "add", mismatch),
        (&*call, MODERN, "-", "add", mismatch),
        (&*call, MODERN, "TOOLS/CALL", "add", mismatch),
        (&*call, MODERN, "tools/call, tools/call", "add", mismatch),
        (&*call, MODERN, "tools/call", "-", mismatch),
        (&*call, MODERN, "tools/call", "sub", mismatch),
        (&*call, MODERN, "tools/call", "=?base64?!?=", mismatch),
        (&*read, MODERN, "resources/read", "=?base64?ZmlsZTovLy/DvA==?=", Ok(())),
        (&*read, MODERN, "resources/read", "file:///", mismatch),
    ];
    for (body, version, method, name, expected) in rows {
        assert_eq!(checked(body, version, method, name), expected, "{version} {method} {name}");
    }
}

#[test]
fn faults_come_in_the_order_that_the_official_suite_fixes() {
    let bare = request("tools/list", "", None);
    assert_eq!(checked(&bare, MODERN, "-", "-"), Err(FaultKind::InvalidParams));
    let unknown = request("tools/list", "", Some("v999"));
    assert_eq!(checked(&unknown, MODERN, "-", "-"), Err(FaultKind::HeaderMismatch));
    assert_eq!(checked(&unknown, "v999", "-", "-"), Err(FaultKind::UnsupportedVersion));
    // An unknown method is left to the machine, whatever the headers contain.
    let removed = request("ping", "", Some(MODERN));
    assert_eq!(checked(&removed, MODERN, "-", "-"), Ok(()));
}
