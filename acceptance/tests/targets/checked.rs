//! Tests of `config check`: it rejects what `serve` rejects, and with `--connect` it tries the configured upstreams.

use super::Sandbox;

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
    for (text, description) in [
        (open, "can be reached from other machines"),
        (audit, "no/such"),
        (state, "no/such"),
        (tool, "the program `no-such-program` was not found"),
        (tls, "none.pem"),
    ] {
        let sandbox = Sandbox::with(text);
        let checked = sandbox.run(&["config", "check", "creole.toml"]);
        let served = sandbox.run(&["serve", "creole.toml"]);
        assert_eq!((checked.code, &checked.stderr), (served.code, &served.stderr), "{text}");
        assert_ne!(checked.code, Some(0));
        assert!(checked.stderr.contains(description) && checked.stdout.is_empty(), "{checked:?}");
    }
    let words = ["config", "check", "creole.toml", "--dangerously-without-auth"];
    assert_eq!(Sandbox::with(open).run(&words).code, Some(0));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let sandbox =
        Sandbox::with("[upstreams.files]\ncommand = [\"no-such-program\", \"--token\"]\n");
    let output = sandbox.run(&["config", "check", "creole.toml"]);
    assert_eq!(output.code, Some(2));
    let description =
        "error: upstream `files`: the program `no-such-program` was not found in PATH";
    assert!(output.stderr.starts_with(description), "{output:?}");
}

#[test]
fn a_pattern_that_matches_nothing_is_named() {
    let own = "[server]\npacks = [\"echo\"]\nchain = [{ kind = \"filter\", deny = [\"ehco\"] }]\n";
    let output = Sandbox::with(own).run(&["config", "check", "creole.toml"]);
    let expected = "error: `ehco` in `deny` of a filter matches no listed item\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), expected));
    // The items of an upstream are known only after it was contacted.
    let sandbox = Sandbox::with(FILTERED);
    assert_eq!(sandbox.run(&["config", "check", "creole.toml"]).code, Some(0));
    let output = sandbox.run(&["config", "check", "creole.toml", "--connect"]);
    let expected = "error: upstream `echo`: `ehco` in `deny` of a filter matches no listed item\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), expected));
}

#[test]
fn layers_that_write_files_are_tried_and_write_nothing() {
    let output =
        "{ kind = \"audit\", file = \"audit.log\" }, { kind = \"pin\", file = \"pins.json\" }";
    let own = format!(
        "[server]\npacks = [\"echo\"]\nchain = [{output}, {{ kind = \"filter\", deny = [\"ehco\"] }}]\n"
    );
    let sandbox = Sandbox::with(&own);
    let finished = sandbox.run(&["config", "check", "creole.toml"]);
    let expected = "error: `ehco` in `deny` of a filter matches no listed item\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(2), expected));
    let behind = format!("[upstreams.echo]\ncommand = [\"true\"]\nchain = [{output}]\n");
    for text in [own.replace("ehco", "echo"), behind] {
        let sandbox = Sandbox::with(&text);
        let finished = sandbox.run(&["config", "check", "creole.toml"]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let made = ["audit.log", "pins.json"].map(|name| sandbox.path().join(name).exists());
        assert_eq!(made, [false; 2], "nothing is written");
        std::fs::write(sandbox.path().join("pins.json"), "no JSON").unwrap();
        let finished = sandbox.run(&["config", "check", "creole.toml"]);
        assert_ne!(finished.code, Some(0), "{finished:?}");
        assert!(finished.stderr.contains("cannot use the pin file"), "{finished:?}");
    }
    let missing = "[upstreams.echo]\ncommand = [\"true\"]\nchain = [{ kind = \"audit\", file = \"no/such.log\" }]\n";
    let finished = Sandbox::with(missing).run(&["config", "check", "creole.toml"]);
    assert_ne!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("no/such.log"), "{finished:?}");
}

#[test]
fn connect_reaches_upstreams_databases_and_documents() {
    let good = FILTERED.replace("\"ehco\", ", "");
    let output = Sandbox::with(&good).run(&["config", "check", "creole.toml", "--connect"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert!(output.stdout.contains("\necho      ready"), "{output:?}");
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
    let output = Sandbox::with(bad).run(&["config", "check", "creole.toml", "--connect"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    for description in [
        "upstream `dead` is not available: ",
        "upstream `api` is not available: cannot fetch the document: ",
        "tool `all_books`: database `books`: not available: ",
        "tool `far_books`: database `far`: not available: 127.0.0.1/x: ",
    ] {
        assert!(output.stderr.contains(description), "{description}\n{}", output.stderr);
    }
}
