//! Tests of configured tools.

use std::path::PathBuf;

use creole_tools::recipe::http::{Auth, RequestMethod, ResponseFormat};
use creole_tools::recipe::secret::SecretSource;
use creole_tools::recipe::tool::{ToolAction, ToolRecipe};
use creole_tools::recipe::tool_result::ResultFormat;
use serde_json::json;

use super::*;

fn tool(text: &str) -> ToolRecipe {
    match plan(&format!("[server]\n{text}")).recipes.as_slice() {
        [Recipe::Tool(tool)] => (**tool).clone(),
        other => panic!("{other:?}"),
    }
}

/// The error for a table `[tools.t]` with these lines, which begin at the third line of the file.
fn error(lines: &str) -> String {
    refusal(&format!("[server]\n[tools.t]\n{lines}")).to_string()
}

#[track_caller]
fn assert_says(lines: &str, description: &str, location: &str) {
    let text = error(lines);
    assert!(text.contains(description), "{text}");
    assert!(text.contains(&format!("creole.toml:{location}")), "{text}");
}

#[test]
fn a_command_is_all_that_was_written() {
    let tool = tool(
        r#"
        [tools.log]
        title = "The log"
        description = "Shows the log"
        command = ["git", "log", ["-n", "{count}"], { when = "all", words = ["--all"] }, "--", "{paths}"]
        stdin = "{note}"
        env = { TOKEN = "${WHO}" }
        env_files = { KEY = "key.txt" }
        env_pass = ["LANG"]
        cwd = "repo"
        exit_codes = [0, 1]
        result = "json"
        output_schema = { type = "object" }
        progress = true
        concurrency = 2
        timeout_seconds = 5
        output_limit_bytes = 100
        read_only = true
        [tools.log.arguments.count]
        type = "integer"
        description = "How many"
        minimum = 1
        maximum = 9.5
        default = 3
        [tools.log.arguments.all]
        type = "boolean"
        required = false
        [tools.log.arguments.paths]
        type = "array"
        items = "string"
        max_items = 4
        [tools.log.arguments.note]
        type = "string"
        enum = ["a", "b"]
        required = false
        "#,
    );
    assert_eq!((tool.name.as_str(), tool.title.as_deref()), ("log", Some("The log")));
    assert_eq!((tool.timeout, tool.max_result_bytes), (Duration::from_secs(5), 100));
    assert_eq!(tool.hints.read_only, Some(true));
    assert_eq!(tool.output_schema, Some(json!({ "type": "object" })));
    let [count, all, paths, note] = &tool.arguments[..] else { panic!("{tool:?}") };
    let expected = json!({
        "type": "integer", "description": "How many", "minimum": 1, "maximum": 9.5, "default": 3,
    });
    assert_eq!((&count.schema, count.required), (&expected, false));
    assert!(!all.required && paths.required && note.is_choice);
    let items = json!({ "type": "array", "items": { "type": "string" }, "maxItems": 4 });
    assert_eq!(paths.schema, items);
    let ToolAction::Command(command) = &tool.action else { panic!("{tool:?}") };
    assert_eq!((command.program.as_path(), command.words.len()), (Path::new("git"), 5));
    assert_eq!(command.directory, Some(PathBuf::from("repo")));
    assert_eq!((&command.success_codes, &command.result), (&vec![0, 1], &ResultFormat::Json));
    assert_eq!(command.env[1], ("KEY".to_owned(), SecretSource::File("key.txt".into())));
    assert!(command.progress && command.max_concurrent == 2 && command.stdin.is_some());
    assert!(!format!("{tool:?}").contains("ann"), "a secret is not shown");
}

#[test]
fn a_service_is_all_that_was_written() {
    let tool = tool(
        r#"
        [tools.find]
        description = "Finds"
        http.method = "PUT"
        http.url = "https://example.com/{kind}/things?x=1"
        http.query = { q = "{words}" }
        http.headers = { X-Trace = "t-{kind}" }
        http.body = { list = ["{words}"], deep = { n = 1, s = "{{x}} {kind}" } }
        http.auth = { user = "ann", password_file = "secret.txt" }
        http.retries = 3
        http.pick = "/items"
        http.result = "text"
        [tools.find.arguments]
        kind = { type = "string" }
        words = { type = "array" }
        "#,
    );
    let ToolAction::Http(http) = &tool.action else { panic!("{tool:?}") };
    assert_eq!((http.method, http.retries, http.allow_private), (RequestMethod::Put, 3, false));
    assert_eq!(
        http.auth,
        Some(Auth::Basic { user: "ann".into(), password: SecretSource::File("secret.txt".into()) })
    );
    assert_eq!(
        (http.response.pick.as_deref(), http.response.format),
        (Some("/items"), ResponseFormat::Text)
    );
    assert_eq!(http.body.as_ref().map(|body| body.templates().len()), Some(2));
}

#[test]
fn servers_choose_their_tools() {
    let text = r#"
        [[servers]]
        name = "a"
        tools = ["one"]
        [[servers]]
        name = "b"
        [tools.one]
        description = "One"
        command = ["true"]
        [tools.two]
        description = "Two"
        command = ["true"]
        [tools.three]
        description = "Three"
        command = ["true"]
        enabled = false
    "#;
    let plan = plan(text);
    let offered: Vec<Vec<String>> = plan
        .split()
        .iter()
        .map(|plan| plan.offered_recipes().map(|recipe| recipe.name().to_owned()).collect())
        .collect();
    assert_eq!(offered, [vec!["one"], vec!["one", "two"]]);
    assert!(plan.has_own_items());
    let output = refusal(&text.replace("[\"one\"]", "[\"tow\"]")).to_string();
    assert!(
        output.contains("unknown tool `tow`") && output.contains("did you mean `two`"),
        "{output}"
    );
}

#[test]
fn a_tool_that_is_half_described_is_refused() {
    assert_says("command = [\"x\"]", "`description` is missing", "2:1");
    assert_says("description = ' '\ncommand = [\"x\"]", "`description` is empty", "3:15");
    assert_says(
        "description = 'x'",
        "the tool has no `command`, `query`, `http` or `script`",
        "2:8",
    );
    assert_says("description = 'x'\ncommand = []", "has no program", "4:11");
    assert_says("description = 'x'\ncommand = [\"\"]", "has no program", "4:12");
    assert_says("description = 'x'\ncommand = [['a']]", "has no program", "4:11");
    assert_says(
        "description = 'x'\ncommand = [1]",
        "an argument of a command is a string, a list of strings",
        "4:11",
    );
    assert_says("description = 'x'\ncomand = ['a']", "did you mean `command`", "4:1");
    let both = "description = 'x'\ncommand = ['a']\nhttp = { url = 'https://a/' }";
    assert_says(both, "more than one of `command`, `query`, `http` and `script`", "5:8");
    let stray = "description = 'x'\nstdin = 'a'\nhttp = { url = 'https://a/' }";
    assert_says(stray, "`stdin` is only valid for tools with a `command`", "4:9");
    let text = refusal("[server]\n[tools.'a b']\ndescription = 'x'\ncommand = ['a']").to_string();
    assert!(text.contains("invalid tool name `a b`") && text.contains(":2:8"), "{text}");
}

#[test]
fn a_command_that_callers_could_bend_is_refused() {
    let lines = |command: &str, arguments: &str| {
        format!("description = 'x'\ncommand = {command}\n[tools.t.arguments]\n{arguments}")
    };
    let text = "a = { type = 'string' }";
    assert_says(&lines("['{a}']", text), "the program cannot contain a placeholder", "4:12");
    assert_says(&lines("['x', '--{a}']", text), "callers would choose the option", "4:18");
    assert_says(&lines("['x', '-{a}']", text), "`enum = […]` for `a`", "4:18");
    let choice = "a = { type = 'string', enum = ['all'] }";
    plan(&format!("[server]\n[tools.t]\n{}", lines("['x', '--{a}']", choice)));
    assert_says(&lines("['x', '{b}']", text), "unknown argument `b`", "4:18");
    assert_says(&lines("['x', '{b']", text), "is not part of a placeholder", "4:17");
    let optional = "a = { type = 'string', required = false }";
    assert_says(&lines("['x', '-n', '{a}']", optional), "`-n` would be passed alone", "4:23");
    let list = "a = { type = 'array' }";
    assert_says(&lines("['x', 'y{a}']", list), "`{a}` is a list", "4:19");
    assert_says(&lines("['x', { when = 'a', words = ['y'] }]", text), "is not a boolean", "4:");
    assert_says(&lines("['x']", text), "the argument `a` is not used", "6:1");
    let shell = lines("['env', 'sh', '-c', 'echo {a}']", text);
    assert_says(
        &shell,
        "`{a}` is part of the script of `sh`: callers would write the script",
        "4:11",
    );
    let key = "dangerously_let_callers_write_scripts = true\n";
    plan(&format!("[server]\n[tools.t]\n{key}{shell}"));
    plan(&format!(
        "[server]\n[tools.t]\n{}",
        lines("['sh', '-c', 'wc \"$1\"', 'sh', '{a}']", text)
    ));
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let command = "description = 'x'\ncommand = ['x']\n";
    assert_says(&format!("{command}result = 'image'"), "needs a media type", "5:10");
    assert_says(
        &format!("{command}mime_type = 'image/png'"),
        "is only valid for image results",
        "5:13",
    );
    assert_says(
        &format!("{command}result = 'image'\nmime_type = 'text/html'"),
        "invalid image media type",
        "6:13",
    );
    let patient = format!("{command}timeout_seconds = 61");
    assert_says(
        &patient,
        "the timeout of `creole` exceeds `call_timeout_seconds`, which is 60 s",
        "5:19",
    );
    plan(&format!("[server]\nlimits.call_timeout_seconds = 90\n[tools.t]\n{patient}"));
    assert_says(&format!("{command}exit_codes = []"), "no call could succeed", "5:14");
    assert_says(
        &format!("{command}output_schema = {{}}"),
        "`output_schema` needs a tool with a JSON result",
        "5:17",
    );
    assert_says(
        &format!("{command}result = 'json'\noutput_schema = {{ type = 'strin' }}"),
        "invalid JSON Schema",
        "6:17",
    );
    assert_says(
        &format!("{command}env = {{ 'A B' = 'x' }}"),
        "invalid environment variable name",
        "5:9",
    );
}

#[test]
fn an_argument_that_cannot_be_is_refused() {
    let lines = |argument: &str| {
        format!("description = 'x'\ncommand = ['x', '{{a}}']\n[tools.t.arguments]\n{argument}")
    };
    assert_says(&lines("a = {}"), "`type` is missing", "6:5");
    assert_says(&lines("a = { type = 'text' }"), "unknown value `text`", "6:14");
    assert_says(
        &lines("a = { type = 'string', minimum = 1 }"),
        "arguments that are numbers",
        "6:34",
    );
    assert_says(&lines("a = { type = 'integer', default = 'x' }"), "is not in its `enum`", "6:35");
    assert_says(&lines("a = { type = 'string', pattern = '(' }"), "invalid JSON Schema", "6:1");
    assert_says(
        &lines("a = { type = 'string', required = true, default = 'x' }"),
        "a required argument cannot have a `default`",
        "6:35",
    );
    assert_says(&lines("'a b' = { type = 'string' }"), "invalid argument name", "6:1");
}

#[test]
fn a_service_that_callers_could_bend_is_refused() {
    let lines = |http: &str| {
        format!(
            "description = 'x'\nhttp = {{ {http} }}\n[tools.t.arguments]\na = {{ type = 'string', required = false }}"
        )
    };
    for url in ["https://{a}/x", "https://a.{a}", "https://a:{a}/", "https://a{a}/"] {
        assert_says(
            &lines(&format!("url = '{url}'")),
            "the host cannot contain a placeholder",
            "4:16",
        );
    }
    assert_says(&lines("url = 'ftp://a/{a}'"), "invalid URL", "4:16");
    assert_says(
        &lines("url = 'https://u:hunter2@a/{a}'"),
        "contains a user name or a password",
        "4:16",
    );
    assert!(!error(&lines("url = 'https://u:hunter2@a/{a}'")).contains("hunter2"));
    assert_says(&lines("url = 'https://h/{a}'"), "a placeholder in a URL needs a value", "4:16");
    let with =
        |rest: &str| lines(&format!("url = 'https://h/', query = {{ q = '{{a}}' }}, {rest}"));
    assert_says(&with("headers = { Host = 'x' }"), "set by the transport", "4:");
    assert_says(&with("headers = { 'a b' = 'x' }"), "invalid header name", "4:");
    assert_says(&with("body = 1"), "a `GET` request has no `body`", "4:");
    assert_says(&with("method = 'POST', retries = 1"), "`retries` needs an idempotent tool", "4:");
    assert_says(&with("method = 'get'"), "unknown value `get`", "4:");
    assert_says(&with("pick = 'items'"), "invalid JSON pointer", "4:");
    assert_says(&with("template = '{{ body'"), "invalid template", "4:");
    assert_says(
        &with("auth = { bearer = 'a', user = 'b' }"),
        "the keys of `auth` do not form",
        "4:",
    );
    assert_says(&with("auth = { bearer = \"hunter2\\n\" }"), "not allowed in a header", "4:");
    assert_says(&with("auth = { user = 'a:b', password = 'c' }"), "contains a colon", "4:");
    assert_says(&with("allow_privat = true"), "did you mean `allow_private`", "4:");
    assert_says(&with("allow_private = 'yes'"), "expected", "4:");
}
