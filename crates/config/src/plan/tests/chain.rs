//! Tests of how the tables of a chain are resolved, and of the errors for invalid ones.

use std::collections::BTreeMap;

use creole_proto::model::ListKind;
use creole_proto::wire::Raw;

use super::*;
use crate::plan::layer::{AuditArgumentsPlan, AuditPlan, AuditTargetPlan, PinPlan, RedactPlan};
use creole_gateway::audit::AuditFileSettings;
use creole_gateway::layers::{
    FilterSettings, NamePatterns, RenameSettings, RetrySettings, Rewrite, Timeout,
};

fn chain(tables: &str) -> Vec<LayerPlan> {
    plan(&format!("[server]\n{tables}")).server.chain
}

fn layer(table: &str) -> LayerPlan {
    chain(&format!("[[server.chain]]\n{table}")).remove(0)
}

#[test]
fn layers_keep_the_order_of_the_file() {
    let layers = chain(
        "[[server.chain]]\nkind = \"timeout\"\nseconds = 5\n\
         [[server.chain]]\nkind = \"pin\"\nfile = \"pins.json\"\n\
         [[server.chain]]\nkind = \"retry\"\n",
    );
    let timeout = Timeout { after: Duration::from_secs(5), names: NamePatterns::default() };
    let retry = RetrySettings {
        attempts: 3,
        delay: Duration::from_millis(100),
        max_delay: Duration::from_secs(5),
        names: NamePatterns::default(),
    };
    let pin = LayerPlan::Pin(PinPlan::File("pins.json".into()));
    assert_eq!(layers, [LayerPlan::Timeout(timeout), pin, LayerPlan::Retry(retry)]);
    let inline = plan("[server]\nchain = [{ kind = \"timeout\", seconds = 5 }]").server.chain;
    assert_eq!(inline, layers[..1]);
}

#[test]
fn pins_are_in_a_file_or_in_the_state() {
    let pin = |table: &str| layer(&format!("kind = \"pin\"\n{table}"));
    let file = LayerPlan::Pin(PinPlan::File("a".into()));
    assert_eq!(pin("file = \"a\""), file);
    assert_eq!(pin("file = \"a\"\nshared = false"), file);
    assert_eq!(pin("shared = true"), LayerPlan::Pin(PinPlan::Shared));
}

#[test]
fn the_settings_of_a_layer_take_effect() {
    let filter =
        layer("kind = \"filter\"\nkinds = [\"prompts\"]\nallow = [\"a*\"]\ndeny = [\"ab\"]");
    let expected = FilterSettings {
        kinds: vec![ListKind::Prompts],
        allow: NamePatterns::new(["a*"]),
        deny: NamePatterns::new(["ab"]),
        ..FilterSettings::default()
    };
    assert_eq!(filter, LayerPlan::Filter(expected));
    let rename = layer("kind = \"rename\"\nnames = { a = \"b\" }\nstrip = \"x_\"");
    let expected = RenameSettings {
        kinds: vec![ListKind::Tools],
        names: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        strip: "x_".to_owned(),
        add: String::new(),
    };
    assert_eq!(rename, LayerPlan::Rename(expected));
    let rewrite = layer(
        "kind = \"rewrite\"\n[server.chain.tools.\"a b\"]\nfixed = { k = [1, \"x\"] }\ndescription = \"\"",
    );
    let LayerPlan::Rewrite(Rewrite { tools }) = rewrite else { panic!("{rewrite:?}") };
    assert_eq!(tools["a b"].fixed["k"], Raw::parse(r#"[1,"x"]"#).unwrap());
    assert_eq!(tools["a b"].description.as_deref(), Some(""));
    let audit =
        layer("kind = \"audit\"\nfile = \"a.log\"\narguments = \"redacted\"\npointers = [\"/p\"]");
    let redacted = RedactPlan {
        patterns: Vec::new(),
        pointers: vec!["/p".to_owned()],
        replacement: "[redacted]".to_owned(),
    };
    let expected = AuditPlan {
        to: AuditTargetPlan::File(AuditFileSettings {
            path: "a.log".into(),
            max_bytes: 104_857_600,
            keep: 5,
            sync: false,
        }),
        arguments: AuditArgumentsPlan::Redacted(redacted),
        chain: false,
        required: false,
        remote: true,
    };
    assert_eq!(audit, LayerPlan::Audit(expected));
    let audit =
        layer("kind = \"audit\"\nto = \"stdout\"\nchain = true\nrequired = true\nremote = false");
    let expected = AuditPlan {
        to: AuditTargetPlan::Stdout,
        arguments: AuditArgumentsPlan::Digest,
        chain: true,
        required: true,
        remote: false,
    };
    assert_eq!(audit, LayerPlan::Audit(expected));
}

#[test]
fn each_error_of_a_layer_names_its_position_and_problem() {
    let cases = [
        ("seconds = 1", "2:1 `kind` is missing"),
        ("kind = 1", "3:8 expected a string in quotes"),
        ("kind = \"timout\"", "3:8 unknown kind of layer `timout`"),
        ("kind = \"timeout\"", "2:1 `seconds` is missing"),
        ("kind = \"timeout\"\nsecond = 1\nseconds = 1", "4:1 unknown key `second`"),
        (
            "kind = \"timeout\"\nseconds = \"1\"",
            "4:11 expected an integer from 1 to 86400, found the string \"1\"",
        ),
        ("kind = \"timeout\"\nseconds = 0", "4:11 0 is not an integer from 1 to 86400"),
        ("kind = \"timeout\"\nseconds = 1\nnames = [\"\"]", "5:10 a name is empty"),
        (
            "kind = \"retry\"\ndelay_ms = 50\nmax_delay_ms = 20",
            "4:12 `delay_ms` is 50, but `max_delay_ms` is 20",
        ),
        ("kind = \"rate-limit\"\nseconds = 5", "2:1 this layer does nothing"),
        ("kind = \"filter\"", "2:1 this layer does nothing"),
        ("kind = \"filter\"\nallow = []", "2:1 `allow` is empty, so every item would be hidden"),
        (
            "kind = \"filter\"\nkinds = [\"prompts\"]\nread_only = true",
            "4:10 only tools have hints, and `kinds` of this layer does not include tools",
        ),
        ("kind = \"filter\"\nkinds = [\"toys\"]\ndeny = [\"x\"]", "4:10 unknown value `toys`"),
        (
            "kind = \"rename\"\nkinds = [\"resources\"]\nadd = \"x\"",
            "4:10 only tools and prompts can be renamed",
        ),
        (
            "kind = \"rename\"\nnames = { a = \"c\", b = \"c\" }",
            "4:24 two items would have the name `c`",
        ),
        ("kind = \"rename\"\nnames = { a = \"b c\" }", "4:15 invalid name `b c` in `names`"),
        ("kind = \"rename\"\nstrip = \"x\"\nadd = \"x\"", "2:1 this layer does nothing"),
        ("kind = \"rewrite\"\ntools.x = {}", "4:7 this layer does nothing"),
        (
            "kind = \"rewrite\"\ntools.x = { fixed = { a = 1979-05-27 } }",
            "4:27 `a` is a TOML date, and JSON has no dates",
        ),
        (
            "kind = \"rewrite\"\ntools.x = { fixed = { a = 1 }, defaults = { a = 2 } }",
            "4:7 the argument `a` is in both `defaults` and `fixed`",
        ),
        (
            "kind = \"redact\"\npatterns = [\"(\"]",
            "4:13 invalid regular expression `(`: unclosed group",
        ),
        (
            "kind = \"redact\"\npatterns = [\"x*\"]",
            "4:13 the pattern `x*` matches the empty string",
        ),
        ("kind = \"redact\"\npointers = [\"user\"]", "4:13 invalid JSON pointer `user`"),
        ("kind = \"size-limit\"", "2:1 this layer does nothing"),
        ("kind = \"audit\"\nfile = \" \"", "4:8 `file` is empty"),
        (
            "kind = \"audit\"\nfile = \"a\"\npatterns = [\"x\"]",
            "5:12 arguments are not logged, so this key has no effect",
        ),
        ("kind = \"audit\"", "2:1 `file` is missing"),
        ("kind = \"audit\"\nto = \"file\"", "2:1 `file` is missing"),
        (
            "kind = \"audit\"\nto = \"stdout\"\nkeep = 1",
            "5:8 the lines go to `stdout`, so this key has no effect",
        ),
        (
            "kind = \"audit\"\nto = \"otlp\"\nfile = \"a\"",
            "5:8 the lines go to `otlp`, so this key has no effect",
        ),
        ("kind = \"pin\"", "2:1 this layer does nothing"),
        (
            "kind = \"pin\"\nfile = \"a\"\nshared = true",
            "5:10 `file` and `shared` exclude each other",
        ),
    ];
    for (table, expected) in cases {
        let text = format!("[server]\n[[server.chain]]\n{table}");
        assert_eq!(error_text(&refusal(&text)), expected, "{table}");
    }
}

#[test]
fn a_mistyped_kind_is_helped_with() {
    let help = refusal("[server]\n[[server.chain]]\nkind = \"rate_limits\"").help.unwrap();
    assert_eq!(help, "did you mean `rate-limit`?");
}
