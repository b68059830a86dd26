//! Tests of databases and scripts in a configuration.

use std::fs;
use std::path::Path;

use creole_tools::recipe::tool::ToolAction;
use tempfile::TempDir;

use super::*;

/// Resolves a text in a folder with these scripts.
fn read(folder: &TempDir, text: &str) -> Result<Plan, ConfigProblem> {
    let (packs, lookup) = (["tasks"], |_: &str| Err(VarError::NotPresent));
    Plan::read(text, folder.path(), &packs, &lookup)
}

fn scripts() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("layer.js"), "const request = (call, next) => next(call);")
        .unwrap();
    fs::write(folder.path().join("tool.js"), "const tool = () => 1;").unwrap();
    folder
}

const SCRIPTS: &str = r#"
    [server]
    chain = [{ kind = "script", file = "layer.js", compute_ms = 5000, memory_mb = 2, concurrency = 3 }]
    [upstreams.behind]
    command = ["x"]
    chain = [{ kind = "script", file = "layer.js" }]
    [tools.t]
    description = "t"
    script = { file = "tool.js" }
"#;

#[test]
fn scripts_are_part_of_a_plan_and_their_files_are_watched() {
    let folder = scripts();
    let plan = read(&folder, SCRIPTS).unwrap();
    assert_eq!(plan.included_files(), ["layer.js", "tool.js"].map(|name| folder.path().join(name)));
    assert_eq!(plan, read(&folder, SCRIPTS).unwrap());
    fs::write(folder.path().join("tool.js"), "const tool = () => 2;").unwrap();
    let changed = read(&folder, SCRIPTS).unwrap();
    assert_ne!(plan, changed);
    assert_eq!(plan.upstreams, changed.upstreams);
    fs::write(folder.path().join("layer.js"), "const metadata = (it) => it;").unwrap();
    assert_ne!(plan.upstreams, read(&folder, SCRIPTS).unwrap().upstreams);
}

#[test]
fn a_script_without_the_function_that_is_called_is_refused() {
    let folder = scripts();
    let swapped = SCRIPTS.replace("\"tool.js\"", "\"layer.js\"");
    let problem =
        read(&folder, &swapped).unwrap_err().into_error("creole.toml", &swapped).to_string();
    assert!(
        problem.contains("has no function `tool`") && problem.contains("creole.toml:9:"),
        "{problem}"
    );
    let missing = SCRIPTS.replace("tool.js", "gone.js");
    let problem =
        read(&folder, &missing).unwrap_err().into_error("creole.toml", &missing).to_string();
    assert!(problem.contains("gone.js: cannot read the file"), "{problem}");
}

#[test]
fn tools_share_a_database_and_servers_select_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        [[servers]]
        name = "one"
        databases = ["shop"]
        [[servers]]
        name = "two"
        databases = []
        packs = ["tasks"]
        [tasks]
        url = "sqlite:tasks.db"
        [databases.shop]
        url = "sqlite:shop.db"
        tables = ["products"]
        max_rows = 7
        [databases.off]
        url = "sqlite:off.db"
        enabled = false
        [tools.a]
        description = "a"
        database = "shop"
        query = "SELECT {x}"
        arguments.x = { type = "string" }
        [tools.b]
        description = "b"
        database = "shop"
        query = "SELECT 1"
    "#;
    let plan = read(&folder, text).unwrap();
    let databases: Vec<_> = plan
        .recipes
        .iter()
        .filter_map(Recipe::tool)
        .map(|tool| match &tool.action {
            ToolAction::Query(query) => query.database.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(databases[0] == databases[1] && databases[0].limits().max_rows == 7);
    assert_eq!(databases[0].file(), Some(&*folder.path().join("shop.db")));
    let count = |plan: &Plan| plan.offered_recipes().count();
    assert_eq!(plan.split().iter().map(count).collect::<Vec<_>>(), [3, 2]);
    let tasks = plan.tasks.clone().unwrap().redacted();
    assert_eq!(Path::new(&tasks), folder.path().join("tasks.db"));
    let read_only = |tool: &creole_tools::recipe::ToolRecipe| tool.hints.read_only == Some(true);
    assert!(plan.recipes.iter().filter_map(Recipe::tool).all(read_only));
    assert!(read(&folder, &text.replace("\"shop\"]", "\"off\"]")).is_err());
}
