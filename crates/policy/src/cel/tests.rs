//! Tables of expressions with their values.

use serde_json::{Value, json};

use super::*;
use crate::subject::Subject;

fn subject() -> Subject {
    let claims = json!({ "department": "tools", "tags": ["a", "b"] });
    let Value::Object(claims) = claims else { unreachable!() };
    Subject {
        client: Some("editor".into()),
        roles: vec!["dev".into(), "ops".into()],
        scopes: Some(vec!["mcp".into()]),
        claims,
        ..Subject::new("oauth:corp:ada")
    }
}

fn evaluate_with(text: &str, arguments: &Value) -> Result<bool, String> {
    let expression = Expression::compile(text).map_err(|error| format!("load: {error}"))?;
    let annotations = json!({ "readOnlyHint": true });
    let input = EvaluationInput {
        subject: &subject(),
        server: "house",
        method: "tools/call",
        item: InputItem::Tool { name: "files__read", annotations: Some(&annotations) },
        arguments: Some(arguments),
        // A Wednesday.
        now: Moment::parse("2026-11-18T23:30:15.250Z").unwrap(),
    };
    expression.is_true(&input).map_err(|error| error.to_string())
}

fn evaluate(text: &str) -> Result<bool, String> {
    let arguments = json!({
        "owner": "ada", "count": 3, "ratio": 1.5, "list": [1, 2, 3], "none": null, "deep": {"x": {"y": "z"}},
        "big": 18_446_744_073_709_551_615_u64, "when": "2026-01-01T00:00:00Z", "path": "/home/ada/../bob",
    });
    evaluate_with(text, &arguments)
}

#[test]
fn these_expressions_are_true() {
    for text in [
        "true",
        "!false && (true || false)",
        "principal.id == 'oauth:corp:ada' && principal.kind == \"oauth\"",
        "principal.name == arguments.owner",
        "principal.issuer == 'corp' && principal.client == 'editor'",
        "'dev' in principal.roles && !('root' in principal.roles)",
        "principal.scopes == ['mcp']",
        "principal.claims.department == 'tools'",
        "principal.claims['department'].startsWith('to')",
        "has(principal.claims.department) && !has(principal.claims.other)",
        "has(principal.client)",
        "server == 'house' && method == 'tools/call'",
        "tool.name.endsWith('read') && tool.annotations.readOnlyHint",
        "arguments.deep.x.y == 'z' && arguments['deep'].x['y'] == 'z'",
        "has(arguments.owner) && !has(arguments.other)",
        "has(arguments.none) && arguments.none == null",
        "arguments.count == 3 && arguments.count == 3.0 && arguments.count == 3u",
        "arguments.count != '3'",
        "arguments.big == 18446744073709551615u && arguments.big > 9223372036854775807",
        "arguments.ratio > 1 && arguments.ratio < 2u && 1 < arguments.ratio",
        "9007199254740993 > 9007199254740992.0",
        "1 + 2 * 3 - 4 / 2 == 5 && 7 % 3 == 1 && -(2) == -2",
        "-9223372036854775808 < 0 && 0x1F == 31 && 1e3 == 1000.0 && .5 == 0.5",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2]",
        "'a' < 'b' && 'é' > 'z'",
        "size('aé') == 2 && 'aé'.size() == 2 && size([1, 2]) == 2 && size({'a': 1}) == 1",
        "'abc'.contains('b') && 'abc'.matches('^a.c$') && matches('abc', 'b')",
        r"'a\n\t\x41\u00e9\101' == 'a' + '\n\tAéA'",
        r"r'\d' == '\\d' && '12'.matches(r'^\d+$')",
        "'''a'b''' == \"a'b\"",
        "[1, 2][1] == 2 && {'a': 1}['a'] == 1 && {'a': 1}.a == 1 && {1: 'x'}[1] == 'x'",
        "2 in [1, 2] && 'a' in {'a': 1} && !(3 in [])",
        "arguments.count > 2 ? arguments.owner == 'ada' : false",
        "arguments.list.all(x, x > 0) && arguments.list.exists(x, x == 2)",
        "arguments.list.exists_one(x, x > 2) && [].all(x, false) && ![].exists(x, true)",
        "arguments.list.map(x, x * 2) == [2, 4, 6] && arguments.list.map(x, x > 1, x) == [2, 3]",
        "arguments.list.filter(x, x != 2) == [1, 3]",
        "arguments.deep.all(key, key == 'x')",
        "arguments.list.filter(x, x > 1).all(y, y > 1)",
        // What decides wins over what fails, in either order.
        "true || arguments.missing == 1",
        "arguments.missing == 1 || true",
        "!(false && arguments.missing == 1) && !(arguments.missing == 1 && false)",
        "[1, 'x', 3].exists(x, x > 2)",
        "int('3') == 3 && int(2.9) == 2 && double(1) == 1.0 && uint(3) == 3u && string(3) == '3'",
        "bool('true') && string(true) == 'true'",
        "now.getFullYear() == 2026 && now.getMonth() == 10 && now.getDate() == 18",
        "now.getDayOfMonth() == 17 && now.getDayOfWeek() == 3 && now.getDayOfYear() == 321",
        "now.getHours() == 23 && now.getMinutes() == 30 && now.getSeconds() == 15",
        "now.getMilliseconds() == 250",
        "now.getHours('+02:00') == 1 && now.getDate('+02:00') == 19 && now.getHours('-05:30') == 18",
        "timestamp(arguments.when) < now && now - timestamp(arguments.when) > duration('24h')",
        "now + duration('1h30m') == timestamp('2026-11-19T01:00:15.250Z')",
        "duration('90m').getHours() == 1 && duration('1.5s').getMilliseconds() == 500",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60 // the seconds since 1970",
        "timestamp('2024-12-31T12:00:00Z').getDayOfYear() == 365",
        "timestamp('2000-03-01T00:00:00Z').getDayOfWeek() == 3",
    ] {
        assert_eq!(evaluate(text), Ok(true), "{text}");
    }
}

#[test]
fn an_expression_that_cannot_be_evaluated_fails_and_is_neither_true_nor_false() {
    for (text, reason) in [
        ("arguments.missing == 'x'", "there is no `missing`"),
        ("arguments.owner.name == 'x'", "`name` is read from a string, which has no members"),
        ("arguments.owner > 3", "a string and a int cannot be compared"),
        ("arguments.owner", "expected a bool, found a string"),
        ("arguments.owner && true", "expected a bool, found a string"),
        ("resource.uri == 'x'", "the request is about another kind of item"),
        ("1 / 0 == 1", "the result is out of range"),
        ("9223372036854775807 + 1 > 0", "the result is out of range"),
        ("1 + 1.0 == 2.0", "this operator cannot be used on a int and a double"),
        ("[1][1] == 1", "the index is outside of the list"),
        ("[1][-1] == 1", "the index is outside of the list"),
        ("size(3) == 1", "`size` cannot be used on a int"),
        ("timestamp('yesterday') < now", "this string is no timestamp"),
        ("duration('1 day') < duration('1h')", "this string is no duration"),
        ("arguments.list.all(x, x > 'a')", "a int and a string cannot be compared"),
        ("!arguments.count", "expected a bool, found a int"),
    ] {
        assert_eq!(evaluate(text), Err(reason.to_owned()), "{text}");
    }
}

#[test]
fn an_invalid_expression_is_refused_at_load() {
    for (text, reason) in [
        ("", "expected a value, found the end"),
        ("1 +", "expected a value, found the end"),
        ("(1", "expected `)`, found the end"),
        ("1 2", "expected an operator or the end, found a number"),
        ("a.b", "unknown variable `a`; the variables are principal, server, method, tool, "),
        ("env.HOME == ''", "unknown variable `env`"),
        (
            "principal == 'x'",
            "`principal` has no value of its own; write `principal.` and a member",
        ),
        ("principal.rules == 1", "`principal` has no member `rules`; it has: id, kind, name, "),
        ("tool.title == ''", "`tool` has no member `title`; it has: name, annotations"),
        ("principal.claims == {}", "a claim must be named"),
        ("principal.claims[arguments.x] == 1", "a claim must be named"),
        ("fetch('http://x')", "unknown function `fetch`"),
        ("'a'.matches(arguments.p)", "the pattern of `matches` must be a literal string"),
        ("'a'.matches('(')", "invalid regular expression `(`: unclosed group"),
        ("'a'.matches('(a{1000}){1000}')", "invalid regular expression"),
        ("now.getHours('Mars/Olympus')", "the time zone `Mars/Olympus` is not installed"),
        ("now.getHours(arguments.zone) == 1", "expected a literal time zone"),
        ("[1].all(x, [2].all(y, true))", "a comprehension must not contain another one"),
        ("has(arguments)", "`has` needs a member"),
        ("size() == 1", "`size` takes 1 arguments, not 0"),
        ("arguments.x = 1", "`=` is not an operator; write `==` to compare"),
        ("'abc", "this string has no end"),
        (r"'\q'", "invalid escape"),
        ("99999999999999999999 > 1", "is too large"),
        ("while == 1", "`while` is a reserved word"),
        ("#", "unexpected character '#'"),
    ] {
        let error = Expression::compile(text).unwrap_err();
        assert!(error.message.contains(reason), "{text}: {error}");
    }
    let deep = format!("{}1{} == 1", "(".repeat(1000), ")".repeat(1000));
    assert!(Expression::compile(&deep).unwrap_err().message.contains("deeper than 64"));
    let long = format!("1{} == 1", " + 1".repeat(900));
    assert!(Expression::compile(&long).unwrap_err().message.contains("deeper than 64"));
    let signs = format!("{}true", "!".repeat(4000));
    assert!(Expression::compile(&signs).unwrap_err().message.contains("deeper than 64"));
    let large = format!("'{}' == ''", "x".repeat(MAX_LENGTH));
    assert!(Expression::compile(&large).unwrap_err().message.contains("longer than 4096"));
}

#[test]
fn the_cost_of_an_evaluation_is_bounded() {
    let many: Vec<usize> = (0..1000).collect();
    let text = "x".repeat(60_000);
    let arguments = json!({ "many": many, "text": text, "long": vec![0; 1001] });
    let is_all = evaluate_with("arguments.many.all(x, x >= 0)", &arguments);
    assert_eq!(is_all, Ok(true));
    for (expression, reason) in [
        ("arguments.many.all(x, x in arguments.many)", "too many steps"),
        ("arguments.many.all(x, arguments.many == arguments.many)", "too many steps"),
        ("arguments.many.all(x, !arguments.text.contains('y'))", "too many steps"),
        ("arguments.many.all(x, arguments.text.matches('x$'))", "too many steps"),
        ("size(arguments.many.map(x, arguments.text + 'x')) > 0", "too many steps"),
        ("0 in arguments.long", "more than 1000 elements"),
        ("size(arguments.many + arguments.many) > 0", "more than 1000 elements"),
    ] {
        let error = evaluate_with(expression, &arguments).unwrap_err();
        assert!(error.contains(reason), "{expression}: {error}");
    }
}

#[test]
fn an_expression_knows_what_it_depends_on() {
    let references = |text: &str| Expression::compile(text).unwrap().references().clone();
    assert!(references("arguments.x == 1").varies_by_call);
    assert!(references("[1].all(x, now > timestamp(x))").varies_by_call);
    let claims =
        references("principal.claims.a == 1 || has(principal.claims.b) && tool.name == ''");
    assert_eq!(claims.claims.iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(claims.items.iter().collect::<Vec<_>>(), [&"tool"]);
    assert!(!claims.varies_by_call && !claims.annotations);
    let members = references("principal.name in principal.roles && tool.annotations.x");
    assert_eq!(members.principal_members().collect::<Vec<_>>(), ["name", "roles"]);
    assert!(members.annotations);
}

#[test]
fn a_time_zone_has_its_own_clock() {
    // The zone is there where the system has a database of time zones.
    let Ok(expression) = Expression::compile("now.getHours('Europe/Berlin') == 0") else {
        let error = Expression::compile("now.getHours('Europe/Berlin') == 0").unwrap_err();
        assert!(error.message.contains("install the package `tzdata`"), "{error}");
        return;
    };
    drop(expression);
    assert_eq!(evaluate("now.getHours('Europe/Berlin') == 0"), Ok(true));
    assert_eq!(
        evaluate("timestamp('2026-07-01T00:00:00Z').getHours('Europe/Berlin') == 2"),
        Ok(true)
    );
}
