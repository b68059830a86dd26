//! Tables of rules with their decisions, and the laws that all rules obey.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::rule::RuleSettings;

fn policy(default: Effect, rules: Vec<RuleSettings>) -> Policy {
    Policy::compile(&PolicySettings { default, rules }).unwrap()
}

fn rule(name: &str, effect: Effect, change: impl FnOnce(&mut RuleSettings)) -> RuleSettings {
    let mut rule = RuleSettings::new(name, effect);
    change(&mut rule);
    rule
}

fn subject(id: &str, roles: &[&str], scopes: Option<&[&str]>) -> Subject {
    let texts = |all: &[&str]| all.iter().map(|text| Arc::from(*text)).collect();
    Subject { roles: texts(roles), scopes: scopes.map(texts), ..Subject::new(id) }
}

fn tool<'a>(name: &'a str, arguments: &'a Value) -> Request<'a> {
    Request {
        server: "house",
        method: "tools/call",
        item: Some((TargetKind::Tool, name)),
        annotations: None,
        arguments: Some(arguments),
        now: Moment::parse("2026-11-18T12:00:00Z").unwrap(),
    }
}

fn decided(policy: &Policy, subject: &Subject, name: &str, arguments: Value) -> String {
    match policy.decide(subject, &tool(name, &arguments)) {
        Decision::Allowed(rule) => format!("allowed by {rule}"),
        Decision::Denied(Denial { rule, .. }) => format!("denied by {rule}"),
        Decision::Challenge { required, .. } => format!("challenge {}", required.join(" ")),
    }
}

fn team() -> Vec<RuleSettings> {
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    vec![
        rule("readers", Effect::Allow, |rule| {
            (rule.roles, rule.tools) = (texts(&["dev"]), texts(&["files__read_*"]));
        }),
        rule("own tasks", Effect::Allow, |rule| {
            (rule.tools, rule.scopes) = (texts(&["tasks__update"]), texts(&["tasks:write"]));
            rule.when = Some("arguments.owner == principal.name".to_owned());
            rule.message = Some("You may change your own tasks.".to_owned());
        }),
        rule("weekend", Effect::Deny, |rule| {
            rule.tools = texts(&["deploy__*"]);
            rule.when = Some("now.getDayOfWeek() in [0, 6]".to_owned());
        }),
        rule("deployers", Effect::Allow, |rule| {
            (rule.roles, rule.tools) = (texts(&["ops"]), texts(&["deploy__*"]));
        }),
        rule("no secrets", Effect::Deny, |rule| rule.resources = texts(&["file:///secret/*"])),
        rule("all files", Effect::Allow, |rule| rule.resources = texts(&["file:///*"])),
    ]
}

#[test]
fn the_rules_of_a_team_decide_as_they_are_written() {
    let policy = policy(Effect::Deny, team());
    let ada = subject("oauth:corp:ada", &["dev"], Some(&["mcp", "tasks:write"]));
    let bob = subject("oauth:corp:bob", &["ops"], Some(&["mcp"]));
    for (who, name, arguments, expected) in [
        (&ada, "files__read_text", json!({}), "allowed by readers"),
        (&bob, "files__read_text", json!({}), "denied by default"),
        (&ada, "files__write", json!({}), "denied by default"),
        (&ada, "tasks__update", json!({"owner": "ada"}), "allowed by own tasks"),
        (&ada, "tasks__update", json!({"owner": "bob"}), "denied by own tasks"),
        (&ada, "tasks__update", json!({}), "denied by own tasks"),
        (&bob, "tasks__update", json!({"owner": "bob"}), "challenge tasks:write"),
        (&bob, "deploy__web", json!({}), "allowed by deployers"),
        (&ada, "deploy__web", json!({}), "denied by default"),
    ] {
        assert_eq!(decided(&policy, who, name, arguments), expected, "{name}");
    }
    let none = json!({});
    let sunday = Request {
        now: Moment::parse("2026-11-22T12:00:00Z").unwrap(),
        ..tool("deploy__web", &none)
    };
    let Decision::Denied(denial) = policy.decide(&bob, &sunday) else { panic!() };
    assert_eq!((&*denial.rule, &*denial.message), ("weekend", "not allowed: weekend"));
    let read = |uri| Request {
        method: "resources/read",
        item: Some((TargetKind::Resource, uri)),
        ..tool("", &none)
    };
    assert!(matches!(policy.decide(&bob, &read("file:///a")), Decision::Allowed(_)));
    assert!(matches!(policy.decide(&bob, &read("file:///secret/a")), Decision::Denied(_)));
}

#[test]
fn a_verdict_says_what_is_known_before_a_call() {
    let policy = policy(Effect::Deny, team());
    let ada = subject("oauth:corp:ada", &["dev"], Some(&["mcp"]));
    let ops = subject("user:bob", &["ops"], None);
    let none = json!({});
    let verdict = |who: &Subject, name| policy.verdict(who, &tool(name, &none));
    assert_eq!(verdict(&ada, "files__read_a"), Verdict::Yes);
    assert_eq!(verdict(&ada, "files__write"), Verdict::No("default".into()));
    // It depends on the arguments, and the scope could still be granted.
    assert_eq!(verdict(&ada, "tasks__update"), Verdict::Depends);
    assert_eq!(verdict(&ops, "deploy__web"), Verdict::Depends);
    assert_eq!(verdict(&ada, "deploy__web"), Verdict::No("default".into()));
}

#[test]
fn an_expression_that_fails_never_lets_anybody_in() {
    for condition in ["arguments.missing == 1", "arguments.owner > 1", "arguments.owner"] {
        let when = Some(condition.to_owned());
        let allow = rule("allow", Effect::Allow, |rule| rule.when = when.clone());
        let deny = rule("deny", Effect::Deny, |rule| rule.when = when.clone());
        let who = subject("local", &[], None);
        let arguments = json!({"owner": "ada"});
        let only = policy(Effect::Deny, vec![allow.clone()]);
        assert_eq!(decided(&only, &who, "t", arguments.clone()), "denied by allow");
        let both = policy(Effect::Allow, vec![allow, deny]);
        assert_eq!(decided(&both, &who, "t", arguments.clone()), "denied by deny");
    }
    let unreadable = Request { arguments: None, ..tool("t", &Value::Null) };
    let when = Some("!(arguments.x == 1)".to_owned());
    let allow = rule("allow", Effect::Allow, |rule| rule.when = when);
    let only = policy(Effect::Deny, vec![allow]);
    assert!(matches!(only.decide(&subject("local", &[], None), &unreadable), Decision::Denied(_)));
}

#[test]
fn the_challenge_names_the_rule_that_lacks_the_fewest_scopes() {
    let with = |name: &str, scopes: &[&str]| {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        rule(name, Effect::Allow, |rule| rule.scopes = scopes)
    };
    let rules = vec![with("b", &["x", "y"]), with("c", &["z", "mcp"]), with("a", &["v", "w"])];
    let policy = policy(Effect::Deny, rules);
    let who = subject("oauth:corp:ada", &[], Some(&["mcp"]));
    assert_eq!(decided(&policy, &who, "t", json!({})), "challenge z mcp");
    let none = subject("oauth:corp:ada", &[], Some(&[]));
    assert_eq!(decided(&policy, &none, "t", json!({})), "challenge v w");
    let local = subject("local", &[], None);
    assert_eq!(decided(&policy, &local, "t", json!({})), "allowed by a");
}

#[test]
fn methods_without_an_item_are_only_denied_by_their_name() {
    let none = json!({});
    let who = subject("local", &[], None);
    let everything = policy(Effect::Deny, vec![rule("all", Effect::Deny, |_| {})]);
    assert_eq!(everything.denies_method(&who, "house", "tools/list"), None);
    let named = rule("lists", Effect::Deny, |rule| rule.methods = vec!["tools/*".to_owned()]);
    let named = policy(Effect::Allow, vec![named]);
    assert_eq!(named.denies_method(&who, "house", "tools/list").as_deref(), Some("lists"));
    assert_eq!(named.denies_method(&who, "house", "prompts/list"), None);
    assert_eq!(decided(&named, &who, "t", none.clone()), "denied by lists");
}

#[test]
fn an_expression_about_one_kind_of_item_decides_nothing_about_the_others() {
    let deny = rule("x", Effect::Deny, |rule| rule.when = Some("tool.name == 'x'".to_owned()));
    let policy = policy(Effect::Allow, vec![deny]);
    let (who, none) = (subject("local", &[], None), json!({}));
    let resource = Request {
        method: "resources/read",
        item: Some((TargetKind::Resource, "x")),
        ..tool("", &none)
    };
    assert_eq!(policy.verdict(&who, &resource), Verdict::Yes);
    assert_eq!(policy.verdict(&who, &tool("x", &none)), Verdict::No("x".into()));
}

#[test]
fn an_invalid_rule_is_refused_with_its_member() {
    let compiled = |rules: Vec<RuleSettings>| {
        Policy::compile(&PolicySettings { default: Effect::Deny, rules }).unwrap_err()
    };
    let plain = |name: &str| rule(name, Effect::Allow, |_| {});
    assert_eq!(
        compiled(vec![plain("a"), plain("a")]).to_string(),
        "`name`: two rules are called `a`"
    );
    assert_eq!(compiled(vec![plain("default")]).member, "name");
    let error = compiled(vec![rule("a", Effect::Allow, |rule| rule.when = Some("1 +\n x".into()))]);
    assert!(error.message.starts_with("unknown variable `x`"), "{error}");
    assert!(error.message.ends_with("(line 2, column 2 of the expression)"), "{error}");
    let both =
        rule("a", Effect::Allow, |rule| rule.when = Some("tool.name == resource.uri".into()));
    assert!(compiled(vec![both]).message.contains("two kinds of items"));
    let deny = rule("a", Effect::Deny, |rule| rule.scopes = vec!["x".into()]);
    assert_eq!(compiled(vec![deny]).member, "scopes");
}

fn any_rule() -> impl Strategy<Value = RuleSettings> {
    let pick = |all: &'static [&'static str]| {
        prop::collection::vec(prop::sample::select(all), 0..2)
            .prop_map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let when = prop::sample::select(vec![
        None,
        Some("arguments.x == 1"),
        Some("arguments.x > 0"),
        Some("!(arguments.x == 1)"),
        Some("arguments.missing"),
        Some("'dev' in principal.roles"),
        Some("now > timestamp('2030-01-01T00:00:00Z')"),
        Some("tool.annotations.readOnlyHint"),
    ]);
    (any::<bool>(), pick(&["dev", "ops"]), pick(&["a", "b*", "*"]), pick(&["s", "t"]), when)
        .prop_map(|(allows, roles, tools, scopes, when)| {
            let effect = if allows { Effect::Allow } else { Effect::Deny };
            rule("", effect, |rule| {
                (rule.roles, rule.tools) = (roles, tools);
                rule.scopes = if allows { scopes } else { Vec::new() };
                rule.when = when.map(str::to_owned);
            })
        })
}

fn any_rules() -> impl Strategy<Value = Vec<RuleSettings>> {
    prop::collection::vec(any_rule(), 0..6).prop_map(|mut rules| {
        rules.iter_mut().enumerate().for_each(|(index, rule)| rule.name = format!("r{index}"));
        rules
    })
}

fn any_subject() -> impl Strategy<Value = Subject> {
    let some = |all: &'static [&'static str]| prop::sample::subsequence(all, 0..=all.len());
    (some(&["dev", "ops"]), some(&["s", "t"]), any::<bool>()).prop_map(
        |(roles, scopes, has_token)| subject("user:x", &roles, has_token.then_some(&*scopes)),
    )
}

fn any_arguments() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({}),
        json!({"x": 1}),
        json!({"x": 2}),
        json!({"x": "y"}),
        Value::Null,
    ])
}

proptest! {
    #[test]
    fn the_order_of_rules_does_not_matter(
        rules in any_rules(), seed in any::<u64>(), who in any_subject(), arguments in any_arguments(),
        name in prop::sample::select(vec!["a", "b1", "c"]), deny in any::<bool>(),
    ) {
        let default = if deny { Effect::Deny } else { Effect::Allow };
        let mut other = rules.clone();
        other.sort_by_key(|rule| (seed ^ u64::from(rule.name.as_bytes()[1])).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (one, other) = (policy(default, rules), policy(default, other));
        let request = tool(name, &arguments);
        prop_assert_eq!(one.decide(&who, &request), other.decide(&who, &request));
        prop_assert_eq!(one.verdict(&who, &request), other.verdict(&who, &request));
    }

    /// With arguments that no rule can read, only rules without expression allow a request.
    #[test]
    fn an_error_never_allows(rules in any_rules(), who in any_subject(), name in prop::sample::select(vec!["a", "b1", "c"])) {
        let request = Request { arguments: None, ..tool(name, &Value::Null) };
        let failing = |rule: &RuleSettings| rule.when.as_ref().is_some_and(|when| when.contains("arguments"));
        let kept = rules.iter().filter(|rule| rule.effect == Effect::Deny || !failing(rule));
        let kept = kept.cloned().map(|mut rule| {
            if failing(&rule) {
                rule.when = None;
            }
            rule
        });
        let strict = policy(Effect::Deny, kept.collect());
        let is_allowed = |policy: &Policy| matches!(policy.decide(&who, &request), Decision::Allowed(_));
        prop_assert_eq!(is_allowed(&policy(Effect::Deny, rules)), is_allowed(&strict));
    }

    /// A list neither shows what no call may use, nor hides what some call may use.
    #[test]
    fn a_verdict_agrees_with_every_decision(
        rules in any_rules(), who in any_subject(), arguments in any_arguments(),
        name in prop::sample::select(vec!["a", "b1", "c"]), deny in any::<bool>(),
    ) {
        let policy = policy(if deny { Effect::Deny } else { Effect::Allow }, rules);
        let request = tool(name, &arguments);
        let decision = policy.decide(&who, &request);
        match policy.verdict(&who, &request) {
            Verdict::Yes => prop_assert!(matches!(decision, Decision::Allowed(_)), "{decision:?}"),
            Verdict::No(_) => prop_assert!(matches!(decision, Decision::Denied(_)), "{decision:?}"),
            Verdict::Depends => {}
        }
    }
}
