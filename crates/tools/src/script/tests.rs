//! Tests of the abilities and the limits of scripts.

use std::sync::Arc;

use super::*;
use creole_test_wait::blocking::delay;

fn script(text: &str) -> Script {
    limited(text, ScriptLimits::default())
}

fn limited(text: &str, limits: ScriptLimits) -> Script {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.js");
    std::fs::write(&file, text).unwrap();
    Script::load(&file, limits).unwrap()
}

fn compile_error(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.js");
    std::fs::write(&file, text).unwrap();
    let message = Script::load(&file, ScriptLimits::default()).unwrap_err().to_string();
    message.rsplit_once('/').unwrap().1.to_owned()
}

/// The result of a script's tool for an argument.
fn tool(text: &str, argument: &str) -> Result<Option<String>, Box<ScriptError>> {
    script(text).call_blocking(Function::Tool, &[argument.to_owned()])
}

fn small() -> ScriptLimits {
    ScriptLimits { cpu_time: Duration::from_millis(50), memory: 4 << 20, max_concurrent: 2 }
}

#[test]
fn a_function_accepts_and_returns_json() {
    let doubled =
        tool("function tool({ a }) { return { a: a * 2, s: `ä\u{1f980}` }; }", r#"{"a":21}"#);
    assert_eq!(doubled.unwrap().unwrap(), "{\"a\":42,\"s\":\"ä\u{1f980}\"}");
    assert_eq!(tool("const tool = async () => 'later';", "{}").unwrap().unwrap(), "\"later\"");
    assert_eq!(tool("function tool() {}", "{}").unwrap(), None);
}

#[test]
fn an_exception_has_a_position() {
    let error = tool("// one\nfunction tool() {\n  return missing.a;\n}", "{}").unwrap_err();
    assert_eq!((error.name.as_str(), error.line), ("ReferenceError", Some(3)));
    assert!(!error.is_deliberate());
    let meant = tool("function tool() { throw new Error('not you'); }", "{}").unwrap_err();
    assert!(meant.is_deliberate() && meant.to_string() == "not you", "{meant:?}");
    assert_eq!(tool("function tool() { throw 'plain'; }", "{}").unwrap_err().to_string(), "plain");
    let kind = "function tool() { throw Object.assign(new Error('x'), { kind: 'busy', data: { a: 1 } }); }";
    let kind = tool(kind, "{}").unwrap_err();
    assert_eq!(
        (kind.kind.as_deref(), kind.data),
        (Some("busy"), Some(serde_json::json!({"a": 1})))
    );
}

#[test]
fn what_is_no_script_is_refused_with_its_place() {
    let message = compile_error("function tool() {\n  return (;\n}");
    assert!(message.starts_with("a.js:2:") && message.contains("SyntaxError"), "{message}");
    let message = compile_error("let a = 1;\na.b.c();\nfunction tool() {}");
    assert!(message.starts_with("a.js:2:") && message.contains("TypeError"), "{message}");
    assert!(compile_error("let a = 1;").contains("none of the known functions"));
    assert!(compile_error("for (;;) {}").contains("used more than 500 ms"));
}

#[test]
fn there_is_nothing_but_the_language() {
    let reach = "function tool() { return ['fetch', 'require', 'process', 'std', 'os', 'setTimeout', 'performance', 'print',
        'Deno', 'Bun', 'window', 'navigator', 'loadScript', 'scriptArgs'].filter((it) => it in globalThis); }";
    assert_eq!(tool(reach, "{}").unwrap().unwrap(), "[]");
    let import = "async function tool() { return (await import('os')).exec; }";
    assert!(tool(import, "{}").is_err());
    let stored = "const tool = () => typeof std + typeof os + typeof Date.now();";
    assert_eq!(tool(stored, "{}").unwrap().unwrap(), "\"undefinedundefinednumber\"");
}

#[test]
fn limits_end_endless_scripts() {
    let computes = limited("function tool() { try { for (;;); } catch { return 1; } }", small());
    let error = computes.call_blocking(Function::Tool, &["{}".into()]).unwrap_err();
    assert!(error.to_string().contains("more than 50 ms"), "{error}");
    let grows = limited(
        "function tool() { const a = []; for (;;) a.push('x'.repeat(1e5)); }",
        ScriptLimits { cpu_time: Duration::from_secs(20), ..small() },
    );
    let error = grows.call_blocking(Function::Tool, &["{}".into()]).unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
    let deep = limited("function tool() { const f = () => f() + 1; return f(); }", small());
    let error = deep.call_blocking(Function::Tool, &["{}".into()]).unwrap_err();
    assert!(error.to_string().contains("stack"), "{error}");
    let waits = limited("function tool() { return new Promise(() => {}); }", small());
    assert!(waits.call_blocking(Function::Tool, &["{}".into()]).is_err());
    let regex =
        limited("function tool() { return /^(a+)+$/.test('a'.repeat(60) + 'b'); }", small());
    assert!(regex.call_blocking(Function::Tool, &["{}".into()]).is_err());
}

#[tokio::test]
async fn a_call_is_forwarded_and_continues_with_the_response() {
    let around = script(
        "async function request(call, next) {
            const first = await next({ ...call, n: 1 });
            try { await next({ ...call, n: 2 }); } catch (error) { return [first, error.message, error.kind]; }
        }",
    );
    let mut session = around.begin(Function::Request, vec![r#"{"m":"x"}"#.into()]).await.unwrap();
    assert_eq!(session.next_step().await, ScriptStep::Next(1, r#"{"m":"x","n":1}"#.into()));
    session.resume(1, Ok(r#"{"r":1}"#.into()));
    assert_eq!(session.next_step().await, ScriptStep::Next(2, r#"{"m":"x","n":2}"#.into()));
    session.resume(2, Err(r#"{"message":"no","kind":"busy"}"#.into()));
    assert_eq!(
        session.next_step().await,
        ScriptStep::Done(Ok(Some(r#"[{"r":1},"no","busy"]"#.into())))
    );
}

#[tokio::test]
async fn calls_share_nothing_and_wait_without_a_thread() {
    let counting = script(
        "let count = 0; async function request(call, next) { count += 1; await next(call); return count; }",
    );
    let mut sessions = Vec::new();
    for _ in 0..50 {
        let mut session = counting.begin(Function::Request, vec!["{}".into()]).await.unwrap();
        assert!(matches!(session.next_step().await, ScriptStep::Next(1, _)));
        sessions.push(session);
    }
    for session in &mut sessions {
        session.resume(1, Ok("null".into()));
        assert_eq!(session.next_step().await, ScriptStep::Done(Ok(Some("1".into()))));
    }
}

#[tokio::test]
async fn an_abandoned_script_ends_and_frees_its_slot() {
    let spinning = Arc::new(limited(
        "async function request() { for (;;); }",
        ScriptLimits { cpu_time: Duration::from_secs(3600), ..small() },
    ));
    for _ in 0..6 {
        drop(spinning.begin(Function::Request, vec!["{}".into()]).await.unwrap());
    }
    let quick = script("const request = async () => 'quick';");
    for _ in 0..8 {
        let mut session = quick.begin(Function::Request, vec!["{}".into()]).await.unwrap();
        assert_eq!(session.next_step().await, ScriptStep::Done(Ok(Some("\"quick\"".into()))));
    }
}

#[tokio::test]
async fn forwarding_is_bounded_and_a_missing_await_is_reported() {
    let greedy = script(
        "async function request(call, next) { for (let i = 0; i < 101; i++) next(call); await null; return 1; }",
    );
    let mut session = greedy.begin(Function::Request, vec!["{}".into()]).await.unwrap();
    let mut passed = 0;
    while let ScriptStep::Next(..) = session.next_step().await {
        passed += 1;
    }
    assert_eq!(passed, 100);
    let idle = script("const request = () => new Promise(() => {});");
    let mut session = idle.begin(Function::Request, vec!["{}".into()]).await.unwrap();
    let ScriptStep::Done(Err(error)) = session.next_step().await else { panic!("it ends") };
    assert!(error.to_string().contains("never resolved"), "{error}");
}

#[test]
fn global_state_of_one_item_does_not_affect_another() {
    let stumbles = script(
        "let n = 0; function metadata() { if (n++ > 2) throw new Error('again'); return 1; }",
    );
    let computes = limited(
        "function metadata() { const end = Date.now() + 20; while (Date.now() < end); return 1; }",
        ScriptLimits { cpu_time: Duration::from_millis(100), ..ScriptLimits::default() },
    );
    for round in 0..10 {
        if round == 5 {
            // Longer than the idle timeout of an engine.
            delay(Duration::from_millis(100));
        }
        for script in [&stumbles, &computes] {
            assert_eq!(script.call_blocking(Function::Metadata, &[]), Ok(Some("1".to_owned())));
        }
    }
    let waits = script("async function metadata() { await new Promise(() => 1); }");
    let told = waits.call_blocking(Function::Metadata, &[]).unwrap_err();
    assert_eq!(
        told.message,
        "the function returned a promise that is not resolved; it must not wait"
    );
}
