//! Tests of OpenAPI services in a configuration.

use std::fs;

use creole_tools::openapi::Api;
use creole_tools::recipe::http::Auth;
use creole_tools::recipe::secret::SecretSource;
use tempfile::TempDir;

use super::*;

const DOCUMENT: &str = "\
openapi: 3.0.3
servers: [{url: 'https://api.example.com'}]
paths:
  /pets: {get: {operationId: listPets, tags: [pets]}, post: {operationId: createPet}}
  /pets/{id}: {get: {operationId: getPet}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}, token: {type: http, scheme: bearer}, oauth: {type: oauth2}}}
";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), DOCUMENT).unwrap();
    fs::write(folder.path().join("old.yaml"), "swagger: '2.0'\n").unwrap();
    folder
}

fn read(text: &str) -> Result<Plan, String> {
    let folder = folder();
    Plan::read(text, folder.path(), PACKS, &environment)
        .map_err(|problem| problem.into_error("creole.toml", text).to_string())
}

fn api(plan: &Plan) -> &Api {
    plan.recipes.iter().find_map(Recipe::api).unwrap()
}

/// Checks that the lines of a table `[openapi.x]`, which begin at the fourth line of the file, are rejected there.
#[track_caller]
fn assert_says(lines: &str, description: &str, location: &str) {
    let text = read(&format!("[server]\n[openapi.x]\nfile = 'api.yaml'\n{lines}")).unwrap_err();
    assert!(text.contains(description), "{text}");
    assert!(text.contains(&format!("creole.toml:{location}")), "{text}");
}

#[test]
fn a_service_is_all_that_was_written() {
    let plan = read(
        r#"
        [server]
        openapi = ["pets"]
        [openapi.pets]
        file = "api.yaml"
        base_url = "https://${WHO}.example.com/v1/"
        prefix = "p_"
        methods = ["GET", "POST"]
        include = ["*"]
        exclude = ["/pets/*"]
        deprecated = true
        retries = 1
        allow_private = true
        timeout_seconds = 5
        output_limit_bytes = 100
        headers = { X-Version = "1" }
        auth = { user = "ann", password_file = "secret.txt" }
        [openapi.pets.security]
        token = { bearer = "${WHO}" }
        key = { value_file = "key.txt" }
        [openapi.pets.operations.createPet]
        name = "make"
        title = "Make"
        description = "Makes"
        read_only = false
        destructive = false
        idempotent = true
        open_world = false
        [openapi.other]
        file = "none.yaml"
        base_url = "https://example.com"
        enabled = false
        "#,
    );
    let plan = plan.unwrap_or_else(|text| panic!("{text}"));
    let api = api(&plan);
    assert_eq!(api.options.base, "https://ann.example.com/v1");
    let names: Vec<&str> = api.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["p_list_pets", "make"]);
    assert_eq!((api.tools[1].about.as_str(), api.tools[1].hints.idempotent), ("Makes", Some(true)));
    assert_eq!((api.options.timeout, api.options.max_result_bytes), (Duration::from_secs(5), 100));
    assert!(
        matches!(&api.options.auth, Some(Auth::Basic { password: SecretSource::File(path), .. })
        if path.ends_with("secret.txt"))
    );
    assert!(!format!("{:?}", api.tools).contains("ann"), "a secret is not shown");
    assert_eq!(plan.offered_recipes().count(), 1);
}

#[test]
fn what_is_wrong_is_told_where_it_stands() {
    let base = "base_url = 'https://example.com'\n";
    let rows = [
        ("", "the URL of the service is not configured", "3:8"),
        ("", "write `base_url = \"https://api.example.com\"`", "3:8"),
        ("base_url = 'example.com'", "invalid URL", "4:12"),
        ("base_url = 'https://example.com/?x=1'", "invalid base URL", "4:12"),
        ("base_url = 'https://a@example.com'", "contains a user name or a password", "4:12"),
        (&format!("{base}trust_servers = true"), "`base_url` and `trust_servers`", "5:17"),
        (&format!("{base}exclude = ['getPets']"), "`getPets` matches no operation", "5:12"),
        (&format!("{base}include = ['tag:pet']"), "`tag:pet` matches no operation", "5:12"),
        (&format!("{base}include = ['']"), "an empty pattern matches no operation", "5:12"),
        (&format!("{base}prefix = 'a b'"), "invalid prefix", "5:10"),
        (&format!("{base}methods = ['HEAD']"), "unknown value `HEAD`", "5:12"),
        (&format!("{base}operations.getPets.name = 'x'"), "no operation `getPets`", "5:12"),
        (&format!("{base}operations.getPet.name = 'a b'"), "invalid tool name `a b`", "5:26"),
        (&format!("{base}security.no = {{ value = 'x' }}"), "no security scheme `no`", "5:10"),
        (&format!("{base}security.key = {{ bearer = 'x' }}"), "`key` needs an API key", "5:10"),
        (
            &format!("{base}security.key = {{ bearer = 'x', value = 'y' }}"),
            "do not form one kind of credentials",
            "5:",
        ),
        (&format!("{base}security.key = {{}}"), "do not form one kind of credentials", "5:"),
        (
            &format!("{base}security.oauth = {{ client_id = 'x', client_secret = 'y' }}"),
            "`token_url` is missing",
            "5:",
        ),
        (
            &format!("{base}security.oauth = {{ client_id = 'x', token_url = 'https://x.org' }}"),
            "`client_secret` is missing",
            "5:",
        ),
        (
            &format!("{base}timeout_seconds = 61"),
            "exceeds `call_timeout_seconds`, which is 60 s",
            "5:19",
        ),
        (&format!("{base}headers = {{ Host = 'x' }}"), "set by the transport", "5:13"),
        (&format!("{base}uri = 'x'"), "unknown key `uri`", "5:1"),
        (
            &format!("{base}url = 'https://x.org/api.yaml'"),
            "the service has both `file` and `url`",
            "5:7",
        ),
    ];
    for (lines, description, location) in rows {
        assert_says(lines, description, location);
    }
}

#[test]
fn documents_that_cannot_be_used_are_refused_at_their_name() {
    let rows = [
        ("none.yaml", "cannot read the document: "),
        ("old.yaml", "the document is Swagger 2.0"),
        ("", "`file` is empty"),
    ];
    for (file, description) in rows {
        let text = format!("[server]\n[openapi.x]\nfile = '{file}'\nbase_url = 'https://x.org'");
        let output = read(&text).unwrap_err();
        assert!(output.contains(description) && output.contains("creole.toml:3:8"), "{output}");
    }
}

#[test]
fn two_tools_of_a_server_are_never_called_the_same() {
    let two = |servers: &str, prefix: &str| {
        read(&format!(
            "{servers}\n[openapi.a]\nfile = 'api.yaml'\ntrust_servers = true\n\
             [openapi.b]\nfile = 'api.yaml'\ntrust_servers = true\n{prefix}"
        ))
    };
    let text = two("[server]", "").unwrap_err();
    assert!(text.contains("the tool `list_pets` also exists in `a`"), "{text}");
    assert!(two("[server]", "prefix = 'b_'").is_ok());
    let apart =
        "[[servers]]\nname = 'x'\nopenapi = ['a']\n[[servers]]\nname = 'y'\nopenapi = ['b']";
    assert!(two(apart, "").is_ok());
    let result = read(
        "[server]\n[tools.get_pet]\ndescription = 'x'\nhttp = { url = 'https://x.org' }\n\
         [openapi.a]\nfile = 'api.yaml'\ntrust_servers = true",
    );
    assert!(result.unwrap_err().contains("the tool `get_pet` also exists in `tools`"));
    let result =
        read("[server]\nopenapi = ['b']\n[openapi.a]\nfile = 'api.yaml'\ntrust_servers = true");
    assert!(result.unwrap_err().contains("unknown service `b`"));
}
