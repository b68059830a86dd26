//! Tests of the examples about databases and scripts, with a third-party client.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use creole_acceptance::peers;
use creole_acceptance::peers::{Mode, Peer, Steps};
use creole_acceptance::process_under_test::{Server, serve};
use creole_acceptance::stage::stdio::{binary, repository};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::told;

/// Starts an example in this folder with these variables.
fn example(name: &str, folder: &Path, variables: &[(&str, &str)]) -> Server {
    let file = repository().join("examples").join(name);
    let mut command = serve(folder, &[file.to_str().unwrap()]);
    command.envs(variables.iter().copied());
    Server::start_command(command).greeted()
}

/// The Inspector's document about an example.
fn inspected(name: &str, variables: &[(&str, &str)], steps: &Steps) -> Option<Value> {
    if !peers::is_installed(Peer::Inspector) {
        return None;
    }
    let file = repository().join("examples").join(name);
    let mut command: Vec<OsString> = vec!["env".into()];
    command.extend(variables.iter().map(|(name, value)| format!("{name}={value}").into()));
    command.extend([binary().unwrap().into(), "serve".into(), file.into()]);
    let message = peers::run(Peer::Inspector, Mode::Default, steps, &command).unwrap();
    assert_eq!(message["errors"], json!([]), "{message}");
    Some(message)
}

#[test]
fn a_database_as_tools_and_resources() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.sqlite3");
    let content = "
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL);
        CREATE TABLE orders (number INTEGER PRIMARY KEY, product INTEGER, day TEXT, amount INTEGER);
        INSERT INTO products VALUES (1, 'green tea', 3.5), (2, 'black tea', 9);
        INSERT INTO orders VALUES (7, 1, '2026-11-01', 2), (8, 1, '2026-11-02', 1);";
    Connection::open(&file).unwrap().execute_batch(content).unwrap();
    let url = format!("sqlite:{}", file.display());
    let variables = [("SHOP_URL", url.as_str())];
    let mut server = example("database.toml", folder.path(), &variables);
    let mut call = |tool: &str, arguments: Value| told(&server.call(tool, &arguments)).unwrap();
    let cheap = call("find_products", json!({ "part": "tea", "most": 5 }));
    assert_eq!(cheap, r#"{"rows":[{"id":1,"name":"green tea","price":3.5}],"more":false}"#);
    let orders = call("orders_of", json!({ "id": 1 }));
    assert!(
        orders.starts_with(r#"{"rows":[{"number":8,"day":"2026-11-02","amount":1}"#),
        "{orders}"
    );
    let steps =
        Steps::new().call("find_products", json!({ "part": "tea" })).read("table://shop/products");
    let Some(message) = inspected("database.toml", &variables, &steps) else { return };
    assert_eq!(message["tools"], json!(["find_products", "orders_of"]));
    assert_eq!(message["call"]["structuredContent"]["rows"][0]["name"], "black tea");
    assert!(
        message["read"]["contents"][0]["text"].as_str().unwrap().contains("\"columns\""),
        "{message}"
    );
}

#[test]
fn layers_and_a_script_in_front_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    // The example starts `creole` by its name.
    let commands = folder.path().join("commands");
    std::fs::create_dir(&commands).unwrap();
    std::os::unix::fs::symlink(binary().unwrap(), commands.join("creole")).unwrap();
    let path = format!("{}:{}", commands.display(), env::var("PATH").unwrap());
    let data = folder.path().to_str().unwrap();
    let variables = [("PATH", path.as_str()), ("CREOLE_DATA_DIR", data)];
    let mut server = example("middleware.toml", folder.path(), &variables);
    let mut call = |tool: &str, arguments: Value| told(&server.call(tool, &arguments));
    assert_eq!(call("echo", json!({ "message": "hi" })).as_deref(), Ok("hi"));
    let refused = call("echo", json!({ "message": "my password" }));
    assert_eq!(refused.unwrap_err(), "passwords are not for tools");
    assert!(call("delete_task", json!({ "id": "task_x" })).is_err());
    assert_eq!(
        call("slug", json!({ "title": "Crème brûlée, twice" })).as_deref(),
        Ok("creme-brulee-twice")
    );
    assert!(call("slug", json!({ "title": "…" })).unwrap_err().contains("no letters"));
    let steps = Steps::new().call("slug", json!({ "title": "A title" }));
    let Some(message) = inspected("middleware.toml", &variables, &steps) else { return };
    assert_eq!(message["call"]["content"][0]["text"], "a-title");
    let names = message["tools"].as_array().unwrap();
    assert!(names.contains(&json!("echo")) && !names.contains(&json!("delete_task")), "{names:?}");
}
