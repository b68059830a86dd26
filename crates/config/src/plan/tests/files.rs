//! Tests of files as resources and prompts, and of the errors for invalid tables.

use creole_tools::recipe::resource::ResourceBody;

use super::*;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    std::fs::write(folder.path().join("rules.md"), "Rules").unwrap();
    folder
}

fn read(folder: &Path, text: &str) -> Result<Plan, String> {
    Plan::read(text, folder, PACKS, &environment)
        .map_err(|problem| problem.into_error("creole.toml", text).to_string())
}

#[test]
fn everything_about_files_is_in_the_plan() {
    let directory = folder();
    let text = r#"
        [server]
        [folders.docs]
        path = "docs"
        include = ["*.md"]
        max_files = 7
        hidden = true
        hard_links = true
        watch = false
        [folders.off]
        path = "docs"
        enabled = false
        [prompts.mine]
        path = "docs"
        prefix = "my_"
        [resources.rules]
        uri = "acme://rules"
        file = "rules.md"
        [resources.hello]
        uri = "acme://hello/{who}"
        text = "Hello {{ who }}"
        values = { who = ["ann"] }
    "#;
    let plan = read(directory.path(), text).unwrap_or_else(|shown| panic!("\n{shown}"));
    let names: Vec<&str> = plan.recipes.iter().map(Recipe::name).collect();
    assert_eq!(names, ["docs", "mine", "rules", "hello"]);
    let Recipe::Folder(docs) = &plan.recipes[0] else { panic!("{:?}", plan.recipes[0]) };
    assert_eq!((docs.max_files, docs.hidden, docs.watch), (7, true, false));
    assert!(docs.hard_links);
    assert_eq!(docs.path, directory.path().join("docs"));
    let Recipe::Resource(rules) = &plan.recipes[2] else { panic!("{:?}", plan.recipes[2]) };
    assert_eq!(rules.body, ResourceBody::File(directory.path().join("rules.md")));
    assert_eq!(plan.offered_recipes().count(), 4);
}

#[test]
fn each_of_several_servers_chooses_its_files() {
    let directory = folder();
    let tables = "[folders.docs]\npath = \"docs\"\n[prompts.mine]\npath = \"docs\"\n\
                  [resources.r]\nuri = \"a:b\"\ntext = \"\"\n";
    let text = format!(
        "[[servers]]\nname = \"a\"\nfolders = []\n[[servers]]\nname = \"b\"\nprompts = [\"mine\"]\nresources = []\n{tables}"
    );
    let plan = read(directory.path(), &text).unwrap_or_else(|shown| panic!("\n{shown}"));
    let offered = |plan: &Plan| {
        plan.offered_recipes().map(|recipe| recipe.name().to_owned()).collect::<Vec<_>>()
    };
    let each: Vec<Vec<String>> = plan.split().iter().map(offered).collect();
    assert_eq!(each, [vec!["mine", "r"], vec!["docs", "mine"]]);
    let text = format!("[server]\nfolders = [\"dcs\"]\n{tables}");
    let shown = read(directory.path(), &text).unwrap_err();
    assert!(
        shown.contains("unknown folder `dcs`") && shown.contains("did you mean `docs`"),
        "{shown}"
    );
}

#[test]
fn each_error_is_shown_with_its_position() {
    let directory = folder();
    for (text, output, at) in [
        ("[folders.docs]\npath = \"dosc\"", "dosc` does not exist", "creole.toml:3:8"),
        ("[folders.docs]\n", "`path` is missing", "creole.toml:2:1"),
        (
            "[folders.docs]\npath = \"docs\"\nexclude = [\"a\", \"{b,c}\"]",
            "invalid pattern `{b,c}`",
            ":4:17",
        ),
        ("[folders.docs]\npath = \"docs\"\nmax_files = 0", "0 is not an integer", ":4:13"),
        ("[folders.docs]\npath = \"docs\"\nhiden = true", "unknown key `hiden`", ":4:1"),
        ("[folders.\"a/b\"]\npath = \"docs\"", "invalid name `a/b`", ":2:10"),
        ("[prompts.p]\npath = \"rules.md\"", "rules.md` does not exist", ":3:8"),
        ("[resources.r]\nuri = \"a:b\"", "the resource has neither `text` nor `file`", ":2:12"),
        (
            "[resources.r]\nuri = \"a:b\"\ntext = \"\"\nfile = \"rules.md\"",
            "the resource has both `text` and `file`",
            ":5:8",
        ),
        ("[resources.r]\nuri = \"a:b\"\nfile = \"docs\"", "docs` does not exist", ":4:8"),
        ("[resources.r]\nuri = \"rules\"\ntext = \"\"", "invalid URI `rules`", ":3:7"),
        ("[resources.r]\nuri = \"a:{?b}\"\ntext = \"\"", "`uri` has braces without a name", ":3:7"),
        (
            "[resources.r]\nuri = \"a:{b}\"\ntext = \"\"\nvalues = { c = [] }",
            "`uri` has no `{c}`",
            ":2:12",
        ),
        (
            "[resources.r]\nuri = \"a:b\"\ntext = \"\"\n[resources.s]\nuri = \"a:b\"\ntext = \"\"",
            "two resources have the URI `a:b`",
            ":6:7",
        ),
    ] {
        let shown = read(directory.path(), &format!("[server]\n{text}\n")).unwrap_err();
        assert!(shown.contains(output) && shown.contains(at), "{text}\n{shown}");
    }
}
