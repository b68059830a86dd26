//! Tests of several servers in one configuration.

use crate::plan::tests::{plan, refusal};

fn error(text: &str) -> String {
    refusal(text).to_string()
}

const TWO: &str = r#"
[[servers]]
name = "front"
packs = ["echo"]

[[servers]]
name = "back"
path = "/inner"
dialect = "bossman"
packs = ["tasks"]
upstreams = ["files"]

[upstreams.files]
command = ["files"]

[upstreams.wiki]
url = "https://wiki.example.com/mcp"
"#;

#[test]
fn each_server_is_a_plan_of_its_own() {
    let plan = plan(TWO);
    let each = plan.split();
    let told: Vec<_> = each
        .iter()
        .map(|plan| {
            let behind: Vec<_> =
                plan.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            (plan.server.name.as_str(), plan.server.path.as_deref(), behind)
        })
        .collect();
    assert_eq!(
        told,
        [("front", None, vec!["files", "wiki"]), ("back", Some("/inner"), vec!["files"])]
    );
    assert_eq!(plan.only_named("back").unwrap(), each[1]);
    assert_eq!(plan.only_named("side"), None);
}

#[test]
fn one_of_several_servers_without_a_path_is_selected_by_name() {
    let plan = plan("[[servers]]\nname = \"a\"\n[[servers]]\nname = \"b\"\n");
    assert_eq!(plan.split()[1].server.path.as_deref(), Some("/b/mcp"));
}

#[test]
fn contradictions_are_refused_with_their_position() {
    let both = "[server]\nname = \"a\"\n[[servers]]\nname = \"b\"\n";
    assert!(error(both).contains("both `[server]` and `[[servers]]` are present"));
    let same = "[[servers]]\nname = \"a\"\n[[servers]]\nname = \"a\"\n";
    assert!(error(same).contains("two servers have the same name"));
    let unknown = "[server]\nupstreams = [\"fils\"]\n[upstreams.files]\ncommand = [\"x\"]\n";
    assert!(error(unknown).contains("did you mean `files`"), "{}", error(unknown));
    assert!(
        error("[log]\nlevel = \"warn\"\n").contains("the configuration describes nothing to serve")
    );
    let pathless = "[[servers]]\nname = \"a\"\n[[servers]]\nname = \"b c\"\n";
    assert!(error(pathless).contains("set its `path`"));
}

#[test]
fn a_file_that_only_has_an_upstream_is_a_server_too() {
    let plan = plan("[upstreams.files]\ncommand = [\"x\"]\n");
    assert_eq!((plan.server.name.as_str(), plan.upstreams.len()), ("creole", 1));
    assert!(plan.server.packs.is_empty() && plan.other_servers.is_empty());
}
