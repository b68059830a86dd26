//! Tests of `config check`: it rejects what `serve` rejects, and with `--connect` it tries the configured upstreams.

use super::Place;

const FILTERED: &str = r#"
[upstreams.echo]
preset = "fpf-governance"
chain = [{ kind = "filter", deny = ["ehco", "hello"] }]
"#;

#[test]
fn a_configuration_that_serve_refuses_is_not_approved() {
    let open = "[server]\n[http]\nlisten = \"0.0.0.0:0\"\n";
    let audit = "[server]\nchain = [{ kind = \"audit\", file = \"no/such/audit.log\" }]\n";
    let state = "[server]\n[state]\nfile = \"no/such/state.sqlite\"\n";
    let tool = "[tools.x]\ndescription = \"x\"\ncommand = [\"no-such-program\"]\n";
    let tls = "[server]\n[http]\ntls = { certificate = \"none.pem\", key = \"none.pem\" }\n";
    for (text, what) in [
        (open, "can be reached from other machines"),
        (audit, "no/such"),
        (state, "no/such"),
        (tool, "the program `no-such-program` was not found"),
        (tls, "none.pem"),
    ] {
        let place = Place::with(text);
        let checked = place.run(&["config", "check", "creole.toml"]);
        let served = place.run(&["serve", "creole.toml"]);
        assert_eq!((checked.code, &checked.stderr), (served.code, &served.stderr), "{text}");
        assert_ne!(checked.code, Some(0));
        assert!(checked.stderr.contains(what) && checked.stdout.is_empty(), "{checked:?}");
    }
    let words = ["config", "check", "creole.toml", "--dangerously-without-auth"];
    assert_eq!(Place::with(open).run(&words).code, Some(0));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let place = Place::with("[upstreams.files]\ncommand = [\"no-such-program\", \"--token\"]\n");
    let ran = place.run(&["config", "check", "creole.toml"]);
    assert_eq!(ran.code, Some(2));
    let what = "error: upstream `files`: the program `no-such-program` was not found in PATH";
    assert!(ran.stderr.starts_with(what), "{ran:?}");
}

#[test]
fn a_pattern_that_matches_nothing_is_named() {
    let own = "[server]\npacks = [\"echo\"]\nchain = [{ kind = \"filter\", deny = [\"ehco\"] }]\n";
    let ran = Place::with(own).run(&["config", "check", "creole.toml"]);
    let expected = "error: `ehco` in `deny` of a filter matches no listed item\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), expected));
    // The items of an upstream are known only after it was contacted.
    let place = Place::with(FILTERED);
    assert_eq!(place.run(&["config", "check", "creole.toml"]).code, Some(0));
    let ran = place.run(&["config", "check", "creole.toml", "--connect"]);
    let expected = "error: upstream `echo`: `ehco` in `deny` of a filter matches no listed item\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), expected));
}

#[test]
fn layers_that_write_files_are_tried_and_write_nothing() {
    let written =
        "{ kind = \"audit\", file = \"audit.log\" }, { kind = \"pin\", file = \"pins.json\" }";
    let own = format!(
        "[server]\npacks = [\"echo\"]\nchain = [{written}, {{ kind = \"filter\", deny = [\"ehco\"] }}]\n"
    );
    let place = Place::with(&own);
    let ran = place.run(&["config", "check", "creole.toml"]);
    let expected = "error: `ehco` in `deny` of a filter matches no listed item\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), expected));
    let behind = format!("[upstreams.echo]\ncommand = [\"true\"]\nchain = [{written}]\n");
    for text in [own.replace("ehco", "echo"), behind] {
        let place = Place::with(&text);
        let ran = place.run(&["config", "check", "creole.toml"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let made = ["audit.log", "pins.json"].map(|name| place.path().join(name).exists());
        assert_eq!(made, [false; 2], "nothing is written");
        std::fs::write(place.path().join("pins.json"), "no JSON").unwrap();
        let ran = place.run(&["config", "check", "creole.toml"]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("cannot use the pin file"), "{ran:?}");
    }
    let missing = "[upstreams.echo]\ncommand = [\"true\"]\nchain = [{ kind = \"audit\", file = \"no/such.log\" }]\n";
    let ran = Place::with(missing).run(&["config", "check", "creole.toml"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("no/such.log"), "{ran:?}");
}

#[test]
fn connect_reaches_upstreams_databases_and_documents() {
    let good = FILTERED.replace("\"ehco\", ", "");
    let ran = Place::with(&good).run(&["config", "check", "creole.toml", "--connect"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.contains("\necho      ready"), "{ran:?}");
    let bad = r#"
[upstreams.dead]
url = "http://127.0.0.1:1/mcp"
[openapi.api]
url = "http://127.0.0.1:1/api.json"
base_url = "https://example.org"
[databases.books]
url = "sqlite:books.sqlite"
[databases.far]
url = "postgres://nobody@127.0.0.1:1/x?sslmode=disable"
[tools.all_books]
description = "All books"
database = "books"
query = "SELECT title FROM books"
[tools.far_books]
description = "All books"
database = "far"
query = "SELECT title FROM books"
"#;
    let ran = Place::with(bad).run(&["config", "check", "creole.toml", "--connect"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    for what in [
        "upstream `dead` is not available: ",
        "upstream `api` is not available: cannot fetch the document: ",
        "tool `all_books`: database `books`: not available: ",
        "tool `far_books`: database `far`: not available: 127.0.0.1/x: ",
    ] {
        assert!(ran.stderr.contains(what), "{what}\n{}", ran.stderr);
    }
}
