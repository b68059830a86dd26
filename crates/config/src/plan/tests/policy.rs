//! Tests of `[policy]`: what it means, and the errors for invalid rules.

use creole_policy::{Effect, RuleSettings};

use crate::plan::tests::{plan, refusal};

fn rules(text: &str) -> String {
    format!("[server]\n[policy]\n[[policy.rules]]\nname = \"a\"\neffect = \"allow\"\n{text}")
}

#[test]
fn a_policy_denies_what_it_does_not_allow_unless_it_says_otherwise() {
    assert_eq!(plan("[server]").policy, None);
    let empty = plan("[server]\n[policy]").policy.unwrap();
    assert_eq!((empty.default, empty.rules.len()), (Effect::Deny, 0));
    let open = plan("[server]\n[policy]\ndefault = \"allow\"").policy.unwrap();
    assert_eq!(open.default, Effect::Allow);
    let text = rules("roles = [\"dev\"]\ntools = [\"files__*\"]\nwhen = \"arguments.x == 1\"");
    let expected = RuleSettings {
        roles: vec!["dev".to_owned()],
        tools: vec!["files__*".to_owned()],
        when: Some("arguments.x == 1".to_owned()),
        ..RuleSettings::new("a", Effect::Allow)
    };
    assert_eq!(plan(&text).policy.unwrap().rules, [expected]);
}

#[test]
fn an_invalid_rule_is_refused_with_its_place_and_what_to_do() {
    for (text, expected) in [
        ("roles = []", "3:1 `roles` is empty, so it matches nothing"),
        ("tools = [\"\"]", "6:10 an entry of `tools` is empty"),
        ("scopes = [\"a b\"]", "6:11 the scope `a b` has a character that scopes cannot have"),
        ("when = \"arguments.x =\"", "6:8 the rule `a`: `=` is not an operator"),
        ("when = \"principal.nam == 1\"", "6:8 the rule `a`: `principal` has no member `nam`"),
        ("when = \"'x'.matches('(')\"", "6:8 the rule `a`: invalid regular expression `(`"),
        ("message = \" \"", "6:11 `message` is empty"),
        (
            "[[policy.rules]]\nname = \"a\"\neffect = \"deny\"",
            "7:8 the rule `a`: two rules are called `a`",
        ),
        (
            "[[policy.rules]]\nname = \"default\"\neffect = \"deny\"",
            "7:8 the rule `default`: no rule may be called",
        ),
        (
            "[[policy.rules]]\nname = \"b\"\neffect = \"deny\"\nscopes = [\"x\"]",
            "9:11 the rule `b`: a rule that denies cannot require scopes",
        ),
        ("tool = [\"x\"]", "6:1 unknown key `tool`"),
    ] {
        let error = refusal(&rules(text));
        let place = error.location.map(|place| format!("{}:{} ", place.line, place.column));
        let shown = format!("{}{}", place.unwrap_or_default(), error.message);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
}

#[test]
fn layers_that_rename_stand_behind_the_policy() {
    let layer = |kind: &str| match kind {
        "audit" => "[[server.chain]]\nkind = \"audit\"\nfile = \"a.log\"\n",
        _ => "[[server.chain]]\nkind = \"rename\"\nadd = \"x\"\n",
    };
    let chain = |kinds: [&str; 2]| format!("[server]\n{}{}", layer(kinds[0]), layer(kinds[1]));
    plan(&format!("{}[policy]\n", chain(["audit", "rename"])));
    plan(&chain(["rename", "audit"]));
    let error = refusal(&format!("{}[policy]\n", chain(["rename", "audit"])));
    assert!(error.message.contains("would not record what the policy refuses"), "{error}");
}
