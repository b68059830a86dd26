//! Tests of queries as tools and tables as resources. Every database must behave the same.

use std::fs;
use std::path::Path;

use creole_acceptance::peers::postgres::PASSWORD;
use creole_acceptance::process_under_test::Server;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{postgres, start, start_with, told};

/// The content of the database, in SQL that every supported database accepts.
const CONTENT: &str = "
    CREATE TABLE products (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL, price DECIMAL(9,2));
    INSERT INTO products VALUES (3, 'tea', 2.5), (1, 'milk', 1.25), (2, 'it''s \"jam\"', NULL);
    CREATE TABLE secrets (word VARCHAR(40));
    INSERT INTO secrets VALUES ('sesame');
";

const TOOLS: &str = r#"
[server]
name = "shop"

[tools.product]
description = "Finds a product"
database = "shop"
query = "SELECT name, id FROM products WHERE name = {name} OR id = {id} ORDER BY id"
[tools.product.arguments]
name = { type = "string", required = false }
id = { type = "integer", required = false }

[tools.all]
description = "All products, many times"
database = "shop"
query = "SELECT a.id AS a, b.id AS b FROM products a, products b ORDER BY a.id, b.id;"

[tools.none]
description = "Asks for what is not there"
database = "shop"
query = "SELECT * FROM nowhere"

[tools.change]
description = "Would change something"
database = "shop"
query = "DELETE FROM products RETURNING id"

[tools.large]
description = "More than fits"
database = "shop"
query = "SELECT name FROM products ORDER BY id"
output_limit_bytes = 30
"#;

#[test]
fn a_database_file_is_queried() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.sqlite3");
    Connection::open(&file).unwrap().execute_batch(CONTENT).unwrap();
    let before = fs::read(&file).unwrap();
    let database = "[databases.shop]\nurl = \"sqlite:shop.sqlite3\"\ntables = [\"products\", \
        \"gone\"]\nmax_rows = 2\ntimeout_seconds = 1\n";
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let mut server = start(folder.path(), &configuration(database, endless));
    ask_everything(&mut server);
    assert_eq!(server.finish().code, Some(0));
    // If the file exists, `config check` prepares the queries.
    let (code, _, text) = creole_acceptance::process_under_test::check(folder.path());
    assert_eq!(code, Some(2));
    assert!(text.contains("the query of `none` was refused: no such table: nowhere"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_database_server_is_queried_and_used_again_after_a_loss() {
    let Some(mut postgres) = postgres() else { return };
    postgres.run("shop", CONTENT);
    postgres.run("shop", "GRANT SELECT ON products TO reader; CREATE SEQUENCE counted; GRANT ALL ON counted TO reader");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).unwrap();
    let database = format!(
        "[databases.shop]\nurl = \"{}\"\npassword_file = \"password\"\ntables = [\"public.products\", \"products\", \"gone\"]\n\
         max_rows = 2\ntimeout_seconds = 1\nconnections = 2\n",
        postgres.url()
    );
    let mut server = start(folder.path(), &configuration(&database, "SELECT pg_sleep(600)"));
    ask_everything(&mut server);
    // Calls have only the rights of the database user, and writes fail even where the user may write.
    let refused = told(&server.call("secret", &json!({}))).unwrap_err();
    assert!(refused.contains("permission denied"), "{refused}");
    let refused = told(&server.call("count", &json!({}))).unwrap_err();
    assert!(refused.contains("read-only transaction"), "{refused}");
    let read = server.request("resources/read", &json!({ "uri": "table://shop/public.products" }));
    assert!(
        read["result"]["contents"][0]["text"].as_str().unwrap().contains("numeric(9,2)"),
        "{read}"
    );
    assert_eq!(postgres.run("shop", "SELECT count(*) FROM products"), "3");
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'creole'";
    assert!(postgres.run("shop", connections).parse::<u32>().unwrap() <= 2);

    // A lost connection fails no call. A lost server is named in the error and is used again when it is back.
    let end =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'creole'";
    postgres.run("shop", end);
    assert!(told(&server.call("product", &json!({ "id": 1 }))).is_ok());
    postgres.end();
    let lost = told(&server.call("product", &json!({ "id": 1 }))).unwrap_err();
    assert!(lost.contains("the database `shop` is not available"), "{lost}");
    postgres.resume();
    assert!(told(&server.call("product", &json!({ "id": 1 }))).is_ok());
    let ended = server.finish();
    assert!(ended.log.contains("the database `shop` is not available: "), "{}", ended.log);
    assert!(!ended.log.contains(PASSWORD) && !lost.contains(PASSWORD));

    let problem = format!(
        "[server]\n[tools.t]\ndescription = \"t\"\ndatabase = \"shop\"\nquery = \"SELECT \
            1\"\n[databases.shop]\nurl = \"{}\"\npassword = \"${{WORD}}\"\n",
        postgres.url()
    );
    let mut server = start_with(folder.path(), &problem, &[("WORD", "wrong-horse-battery")]);
    let refused = told(&server.call("t", &json!({}))).unwrap_err();
    assert!(refused.contains("is not available"), "{refused}");
    let log = server.finish().log;
    assert!(
        log.contains("password authentication failed") && !log.contains("wrong-horse"),
        "{log}"
    );
}

fn configuration(database: &str, endless: &str) -> String {
    let extra = |name: &str, query: &str| {
        format!("[tools.{name}]\ndescription = \"d\"\ndatabase = \"shop\"\nquery = \"{query}\"\n")
    };
    let secret = extra("secret", "SELECT * FROM secrets");
    let count = extra("count", "SELECT nextval('counted')");
    format!("{TOOLS}{}{secret}{count}{database}", extra("endless", endless))
}

/// The checks that hold for every database.
#[track_caller]
fn ask_everything(server: &mut Server) {
    let mut call = |tool: &str, arguments: Value| server.call(tool, &arguments);
    let value = call("product", json!({ "name": "it's \"jam\"", "id": 3 }));
    let expected =
        r#"{"rows":[{"name":"it's \"jam\"","id":2},{"name":"tea","id":3}],"more":false}"#;
    assert_eq!(told(&value).as_deref(), Ok(expected));
    assert_eq!(value["result"]["structuredContent"]["rows"][1]["name"], "tea");
    for hostile in ["' OR '1'='1", "'; DELETE FROM products; --", "$1", "?1", "{id}", "\\"] {
        let none = told(&call("product", json!({ "name": hostile })));
        assert_eq!(none.as_deref(), Ok(r#"{"rows":[],"more":false}"#), "{hostile}");
    }
    assert!(
        told(&call("product", json!({ "id": "1" }))).is_err(),
        "the arguments do not match the schema"
    );
    assert_eq!(
        told(&call("all", json!({}))).as_deref(),
        Ok(r#"{"rows":[{"a":1,"b":1},{"a":1,"b":2}],"more":true}"#)
    );
    let missing = told(&call("none", json!({}))).unwrap_err();
    assert!(
        missing.contains("the database `shop` refused the query") && missing.contains("nowhere"),
        "{missing}"
    );
    assert!(told(&call("change", json!({}))).unwrap_err().contains("refused the query"));
    let large = told(&call("large", json!({}))).unwrap();
    assert_eq!(large, r#"{"rows":[{"name":"milk"}],"more":true}"#);
    let late = told(&call("endless", json!({}))).unwrap_err();
    assert!(late.contains("timed out and was cancelled"), "{late}");
    assert!(told(&call("product", json!({ "id": 1 }))).is_ok(), "the connection stays usable");
    read_tables(server);
}

#[track_caller]
fn read_tables(server: &mut Server) {
    let mut read = |uri: &str| {
        let response = server.request("resources/read", &json!({ "uri": uri }));
        let text = response["result"]["contents"][0]["text"].as_str().map(str::to_owned);
        text.map(|text| serde_json::from_str::<Value>(&text).unwrap()).ok_or(response)
    };
    let first = read("table://shop/products").unwrap();
    assert_eq!(
        (&first["columns"][0]["name"], &first["columns"][0]["key"]),
        (&json!("id"), &json!(true))
    );
    assert_eq!(first["columns"][1]["required"], true);
    let ids: Vec<&Value> = first["rows"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
    assert_eq!(first["next"], "table://shop/products/2");
    let second = read("table://shop/products/2").unwrap();
    assert_eq!((second["rows"].as_array().unwrap().len(), &second["next"]), (1, &Value::Null));
    for unknown in [
        "table://shop/secrets",
        "table://shop/secrets/1",
        "table://shop/gone",
        "table://shop/products/0",
        "table://shop/products/x",
    ] {
        assert!(read(unknown).is_err(), "{unknown}");
    }
    let listed = server.request("resources/list", &json!({}));
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["uri"].as_str().unwrap())
        .collect();
    assert!(
        uris.contains(&"table://shop/products") && !uris.contains(&"table://shop/secrets"),
        "{uris:?}"
    );
}

#[test]
fn a_configuration_that_would_not_work_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let check = |tables: &str| {
        fs::write(folder.path().join("creole.toml"), format!("[server]\n{tables}")).unwrap();
        creole_acceptance::process_under_test::check(Path::new(folder.path())).2
    };
    let tool = "[tools.t]\ndescription = \"t\"\n";
    for (tables, description) in [
        (format!("{tool}query = \"SELECT 1\"\n"), "a query needs a `database`"),
        (
            format!(
                "{tool}database = \"shp\"\nquery = \"SELECT 1\"\n[databases.shop]\nurl = \"sqlite:x\"\n"
            ),
            "unknown database `shp`",
        ),
        (
            format!(
                "{tool}database = \"shop\"\nquery = \"SELECT '{{a}}'\"\narguments.a = {{ type = \
                    \"string\" }}\n[databases.shop]\nurl = \"sqlite:x\"\n"
            ),
            "is in quotes",
        ),
        (format!("{tool}command = [\"true\"]\nquery = \"SELECT 1\"\n"), "more than one of \
            `command`, `query`, `http` and `script`"),
        (
            format!("{tool}command = [\"true\"]\ndatabase = \"x\"\n"),
            "only valid for tools with a `query`",
        ),
        (
            "[databases.shop]\nurl = \"postgres://a:hunter2000@db.example.com/x?sslrootcert=no.pem\"\n"
                .to_owned(),
            "cannot read the file `no.pem` of `sslrootcert`",
        ),
        (
            "[databases.shop]\nurl = \"sqlite:x\"\ntables = [\"a b\"]\n".to_owned(),
            "invalid table name",
        ),
        ("[tasks]\nurl = \"sqlite:x\"\n".to_owned(), "the pack `tasks` is not enabled"),
    ] {
        let text = check(&tables);
        assert!(text.contains(description) && text.contains("creole.toml:"), "{tables}\n{text}");
        assert!(!text.contains("hunter2000"), "{text}");
    }
}
