//! Tests of unusual documents, their tools and the requests of these tools.

use std::fs;

use serde_json::{Map, Value, json};

use super::request::ServiceContext;
use super::*;
use crate::recipe::http::{Auth, RequestMethod};
use crate::recipe::secret::{Secret, SecretSource};
use crate::recipe::tool::ToolHints;

const PETS: &str = include_str!("tests/pets.yaml");

/// Reads a document with modified settings.
fn changed(text: &str, change: impl FnOnce(&mut ApiSettings)) -> Result<Api, ApiError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.yaml");
    fs::write(&path, text).unwrap();
    let mut settings = ApiSettings::new("pets", DocumentSource::File(path));
    settings.base = Some("https://api.example.org/v1/".to_owned());
    change(&mut settings);
    read(&settings)
}

fn all_methods(settings: &mut ApiSettings) {
    settings.methods = vec![
        RequestMethod::Get,
        RequestMethod::Post,
        RequestMethod::Put,
        RequestMethod::Patch,
        RequestMethod::Delete,
    ];
}

/// The same token for all operations.
fn signed_in(settings: &mut ApiSettings) {
    settings.auth = Some(Auth::Bearer(stored_secret("hunter2000")));
}

fn tool<'a>(api: &'a Api, name: &str) -> &'a ApiTool {
    let names: Vec<&str> = api.tools.iter().map(|tool| tool.name.as_str()).collect();
    api.tools.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("{name}: {names:?}"))
}

/// The request line and the body.
fn sent(api: &Api, name: &str, values: Value) -> Result<(String, String), String> {
    let Value::Object(values) = values else { panic!("arguments are an object") };
    let (sent, _) = build(api, name, &values)?;
    let body = String::from_utf8(sent.body.to_vec()).unwrap();
    Ok((format!("{} {}", sent.method, sent.url), body))
}

fn build(
    api: &Api,
    name: &str,
    values: &Map<String, Value>,
) -> Result<(creole::internal::fetch::FetchRequest, Vec<Secret>), String> {
    let options = &api.options;
    let common = ServiceContext {
        base: &options.base,
        headers: &options.headers,
        auth: options.auth.as_ref(),
    };
    tool(api, name).operation.build(&common, values, &[]).map_err(|error| format!("{error:?}"))
}

fn schema(api: &Api, name: &str) -> Value {
    tool(api, name).schema.decode().unwrap()
}

fn stored_secret(text: &str) -> SecretSource {
    SecretSource::Inline(Secret(text.to_owned()))
}

#[test]
fn only_what_reads_becomes_a_tool_and_the_report_says_why() {
    let api = changed(PETS, signed_in).unwrap();
    let names: Vec<&str> = api.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["list_pets", "get_pet", "get_pets_id_photos", "search"]);
    let lines: Vec<String> = api.report.operations.iter().map(ToString::to_string).collect();
    for expected in [
        "+ GET /pets: list_pets",
        "- POST /pets: its method POST is not in `methods`",
        "- GET /old: it is deprecated",
        "- HEAD /pets: its method HEAD has no response body",
        "+ GET /pets/{id}/photos: get_pets_id_photos (it has no `operationId`)",
    ] {
        assert!(lines.contains(&expected.to_owned()), "{expected}\n{lines:#?}");
    }
    assert_eq!(api.report.to_string(), "4 tools from 17 operations, server api.example.org");
    assert_eq!(api.report.excluded_reasons()[0].1, 7);
}

#[test]
fn operations_are_chosen_by_name() {
    let api = changed(PETS, |settings| {
        settings.include = ["createPet", "tag:pets"].map(Selector::new).to_vec();
        settings.exclude = vec![Selector::new("/pets/{id}/*")];
        settings.prefix = "p_".to_owned();
    });
    let api = api.unwrap();
    let names: Vec<&str> = api.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["p_list_pets", "p_create_pet", "p_get_pet"]);
    let wrong = changed(PETS, |settings| settings.exclude = vec![Selector::new("deletPet")]);
    let error = wrong.unwrap_err();
    assert_eq!(error.part, SettingsPart::Exclude(0));
    assert_eq!(error.message, "`deletPet` matches no operation of the document");
}

#[test]
fn overrides_have_the_last_word() {
    let own = OperationOverride {
        name: Some("find".into()),
        title: Some("Find pets".into()),
        about: Some("Finds pets".into()),
        hints: ToolHints { idempotent: Some(true), ..ToolHints::default() },
    };
    let api =
        changed(PETS, |settings| settings.overrides = vec![("GET /pets".into(), own.clone())]);
    let api = api.unwrap();
    let find = tool(&api, "find");
    assert_eq!((find.title.as_deref(), find.about.as_str()), (Some("Find pets"), "Finds pets"));
    assert_eq!((find.hints.read_only, find.hints.idempotent), (Some(true), Some(true)));
    let twice = vec![("GET /pets".to_owned(), own.clone()), ("getPet".to_owned(), own.clone())];
    let error = changed(PETS, |settings| settings.overrides = twice).unwrap_err();
    assert_eq!(error.message, "two operations have the name `find`");
    let none = vec![("getPets".to_owned(), own)];
    let error = changed(PETS, |settings| settings.overrides = none).unwrap_err();
    assert_eq!(
        (error.part, error.message.as_str()),
        (SettingsPart::Override(0), "the document has no operation `getPets`")
    );
}

#[test]
fn parameters_stand_where_the_document_says() {
    let api = changed(PETS, |_| {}).unwrap();
    let rows = [
        ("list_pets", json!({}), "/pets"),
        ("list_pets", json!({ "limit": 10, "tags": ["a", "b,c"] }), "/pets?limit=10&tags=a,b%2Cc"),
        (
            "list_pets",
            json!({ "status": ["x", "y"], "filter": { "name": "a&b" } }),
            "/pets?status=x&status=y&filter%5Bname%5D=a%26b",
        ),
        (
            "list_pets",
            json!({ "where": { "a": [1] }, "sort": "", "limit": null }),
            "/pets?where=%7B%22a%22%3A%5B1%5D%7D&sort=",
        ),
        ("get_pet", json!({ "id": "a b" }), "/pets/a%20b"),
        ("get_pets_id_photos", json!({ "id": [3, 4] }), "/pets/;id=3;id=4/photos"),
        ("search", json!({ "q": "a/b:c&d" }), "/search?fixed=1&q=a/b:c%26d"),
    ];
    for (name, values, expected) in rows {
        let (line, _) = sent(&api, name, values.clone()).unwrap();
        assert_eq!(line, format!("GET https://api.example.org/v1{expected}"), "{values}");
    }
    for id in ["", ".", "..", "a/b", "a\\b", "\n"] {
        assert!(sent(&api, "get_pet", json!({ "id": id })).is_err(), "{id:?}");
    }
    let values = json!({ "id": "1", "X-Trace": ["a", "b"], "session": "s;t", "id_header": "h" });
    let (sent, _) = build(&api, "get_pet", values.as_object().unwrap()).unwrap();
    assert_eq!(sent.headers["x-trace"], "a,b");
    assert_eq!(sent.headers["id"], "h");
    assert_eq!(sent.headers["cookie"], "session=s%3Bt");
    let hostile = json!({ "id": "1", "X-Trace": ["a\r\nb: c"] });
    assert!(build(&api, "get_pet", hostile.as_object().unwrap()).is_err());
    let members = schema(&api, "get_pet");
    let members: Vec<&String> = members["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["X-Trace", "id", "id_header", "session"],
        "no Authorization, no Content-MD5"
    );
}

#[test]
fn schemas_are_self_contained() {
    let api = changed(PETS, all_methods).unwrap();
    let list = schema(&api, "list_pets");
    assert_eq!(
        list["properties"]["limit"],
        json!({
            "type": "integer", "minimum": 1, "exclusiveMaximum": 101, "maximum": 101, "default": 20,
            "description": "How many",
        })
    );
    assert_eq!(list["required"], json!([]));
    assert_eq!(list["additionalProperties"], json!(false));
    let create = schema(&api, "create_pet");
    assert_eq!(create["required"], json!(["name"]));
    let members: Vec<&String> = create["properties"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["dry_run", "limit", "name", "name_query", "owner", "parent", "tag"]);
    assert_eq!(
        create["properties"]["tag"],
        json!({ "type": ["string", "null"], "enum": ["a", "b", null] })
    );
    let text = create.to_string();
    assert!(text.contains("recursive: Pet") && !text.contains("$ref"), "{text}");
    for tool in api.tools.iter() {
        let schema = creole::Schema::new(tool.schema.as_str());
        let violations = schema.validate(&json!({})).err().unwrap_or_default();
        assert!(
            !violations.iter().any(|violation| violation.is_broken_schema()),
            "{}: {violations:?}",
            tool.name
        );
        assert!(tool.schema.as_str().len() <= 16_384, "{}", tool.name);
    }
}

#[test]
fn bodies_are_encoded_by_their_media_types() {
    let api = changed(PETS, |settings| {
        all_methods(settings);
        signed_in(settings);
    });
    let api = api.unwrap();
    let (line, body) = sent(
        &api,
        "create_pet",
        json!({
            "name": "x", "name_query": "y", "tag": null, "dry_run": true,
        }),
    )
    .unwrap();
    assert_eq!(line, "POST https://api.example.org/v1/pets?name=y&dry_run=true");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({ "name": "x", "tag": null }));
    let (_, body) = sent(&api, "replace_pet", json!({ "id": "1", "body": [{ "a": 1 }] })).unwrap();
    assert_eq!(body, r#"[{"a":1}]"#);
    let (_, body) =
        sent(&api, "patch_pet", json!({ "id": "1", "body": { "kind": "cat" } })).unwrap();
    assert_eq!(body, r#"{"kind":"cat"}"#);
    let (_, body) = sent(
        &api,
        "submit",
        json!({
            "text": "a&b=c", "list": [1, 2], "deep": { "x": { "y": 1 } }, "data": { "z": "&" },
        }),
    )
    .unwrap();
    assert_eq!(
        body,
        "data=%7B%22z%22%3A%22%26%22%7D&deep%5Bx%5D%5By%5D=1&list=1&list=2&text=a%26b%3Dc"
    );
    let (_, body) = sent(&api, "upload", json!({ "title": "a\r\n--x" })).unwrap();
    let parts: Vec<&str> = body.split("\r\n").collect();
    assert_eq!(parts[1], "Content-Disposition: form-data; name=\"title\"");
    assert!(parts[0].starts_with("--creole-") && body.ends_with("--\r\n"), "{body}");
    let title = parts[3];
    assert_eq!(title, "a", "a line break of a value is no end of a part");
    let (line, body) = sent(&api, "delete_pet", json!({ "id": "1" })).unwrap();
    assert_eq!((line.as_str(), body.as_str()), ("DELETE https://api.example.org/v1/pets/1", ""));
    let (_, body) = sent(&api, "say", json!({ "body": "plain & simple" })).unwrap();
    assert_eq!(body, "plain & simple");
    let lines: Vec<String> = api.report.operations.iter().map(ToString::to_string).collect();
    for expected in [
        "+ POST /pets/{id}/photos: post_pets_id_photos (it has no `operationId`; `file` is bytes, given in Base64)",
        "- POST /xml: its body is `application/xml`; only JSON, forms, text and bytes are supported",
        "- POST /elsewhere: its server is uploads.example.org",
        "+ POST /upload: upload (`attachment` is bytes, given in Base64; `more` is bytes, given in Base64)",
    ] {
        assert!(lines.contains(&expected.to_owned()), "{expected}\n{lines:#?}");
    }
}

#[test]
fn bytes_are_given_in_base64_and_sent_as_they_are() {
    let api = changed(PETS, all_methods).unwrap();
    let send = |name: &str, values: Value| {
        let (sent, _) = build(&api, name, values.as_object().unwrap())?;
        let media = sent.headers["content-type"].to_str().unwrap().to_owned();
        Ok::<_, String>((media, sent.body.to_vec()))
    };
    let photo = send("put_pets_id_photos", json!({ "id": "1", "body": "/wD+" })).unwrap();
    assert_eq!(photo, ("image/png".to_owned(), vec![0xff, 0, 0xfe]));

    let value = json!({ "title": "T", "attachment": "/w==", "more": ["/g", "AA=="] });
    let (media, body) = send("upload", value).unwrap();
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    let part = |head: &str, bytes: &[u8]| {
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n");
        [head.as_bytes(), bytes, b"\r\n"].concat()
    };
    let file = |name: &str, media: &str| {
        format!("name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {media}")
    };
    let expected = [
        part(&file("attachment", "image/jpeg"), &[0xff]),
        part(&file("more", "application/octet-stream"), &[0xfe]),
        part(&file("more", "application/octet-stream"), &[0]),
        part("name=\"title\"", b"T"),
        format!("--{boundary}--\r\n").into_bytes(),
    ];
    assert_eq!(String::from_utf8_lossy(&body), String::from_utf8_lossy(&expected.concat()));
    assert_eq!(body, expected.concat());

    for invalid in
        [json!("not base64!"), json!("/wD"), json!("data:image/png;base64,/wD+"), json!("a\r\nb")]
    {
        let refusal =
            send("put_pets_id_photos", json!({ "id": "1", "body": invalid })).unwrap_err();
        assert!(refusal.contains("is not Base64"), "{refusal}");
    }
    let announced = schema(&api, "upload");
    let base64 = json!({ "type": "string", "contentEncoding": "base64" });
    assert_eq!(announced["properties"]["more"]["items"], base64);
    assert_eq!(
        announced["properties"]["attachment"]["description"],
        "A picture (bytes, in Base64)"
    );
}

#[test]
fn annotations_follow_the_method() {
    let api = changed(PETS, all_methods).unwrap();
    let hints = |name: &str| tool(&api, name).hints;
    assert_eq!(hints("list_pets").read_only, Some(true));
    assert_eq!(
        (hints("delete_pet").read_only, hints("delete_pet").destructive),
        (Some(false), Some(true))
    );
    assert_eq!(hints("replace_pet").idempotent, Some(true));
    assert_eq!(
        (hints("create_pet").destructive, hints("create_pet").idempotent),
        (None, Some(false))
    );
}

#[test]
fn secrets_are_sent_as_the_schemes_define_and_are_not_arguments() {
    let security = |settings: &mut ApiSettings| {
        settings.security = vec![
            ("token".to_owned(), SchemeSecret::Bearer(stored_secret("hunter2000"))),
            ("key".to_owned(), SchemeSecret::Value(stored_secret("hunter 2001"))),
        ];
        settings.headers = vec![("X-Version".to_owned(), Secret("7".to_owned()))];
    };
    let api = changed(PETS, security).unwrap();
    let none = Map::new();
    let (sent, secrets) = build(&api, "list_pets", &none).unwrap();
    assert_eq!(sent.headers["authorization"], "Bearer hunter2000");
    assert_eq!(sent.headers["x-version"], "7");
    assert_eq!(secrets, [Secret("hunter2000".into())]);
    let (sent, _) = build(&api, "search", &none).unwrap();
    assert_eq!(sent.url.query(), Some("fixed=1&api_key=hunter%202001"));
    assert!(!schema(&api, "search").to_string().contains("api_key"));
    assert!(!format!("{api:?}").contains("hunter"));
    let open = changed(PETS, |_| {}).unwrap();
    let lines: Vec<String> = open.report.operations.iter().map(ToString::to_string).collect();
    let expected = "+ GET /search?fixed=1: search (no secret is configured for `key`)";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
    let own =
        changed(PETS, |settings| settings.auth = Some(Auth::Bearer(stored_secret("hunter2002"))));
    let (sent, _) = build(&own.unwrap(), "search", &none).unwrap();
    assert_eq!(sent.headers["authorization"], "Bearer hunter2002");
}

#[test]
fn other_kinds_of_documents_are_refused() {
    let rows = [
        ("swagger: '2.0'\n", "the document is Swagger 2.0"),
        ("openapi: 4.0.0\n", "the document is OpenAPI 4.0.0"),
        ("openapi: 2\n", "the document is OpenAPI 2"),
        ("a: 1\n", "the document is not an OpenAPI document"),
        ("[]", "the document is not an OpenAPI document"),
        ("a: [", "cannot read the document: it is not YAML: "),
    ];
    for (text, expected) in rows {
        let error = changed(text, |_| {}).unwrap_err();
        assert!(error.message.starts_with(expected), "{}", error.message);
        assert_eq!(error.part, SettingsPart::Document);
    }
    assert!(changed("openapi: 3.1\npaths: {}", |_| {}).unwrap().tools.is_empty());
    assert!(changed("openapi: 3.0.4\n", |_| {}).unwrap().tools.is_empty());
}

#[test]
fn names_that_are_the_same_are_numbered_by_their_paths() {
    let text = "openapi: 3.1.0\npaths:\n  /b: {get: {operationId: listThings}}\n  /a: {get: \
        {operationId: list-things}}\n";
    let api = changed(text, |_| {}).unwrap();
    let lines: Vec<String> = api.report.operations.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "+ GET /a: list_things",
            "+ GET /b: list_things_2 (several operations have the name `list_things`)"
        ]
    );
}

/// A thousand operations, each with members of several levels.
#[test]
fn a_thousand_operations_are_read_at_once() {
    let mut paths = Map::new();
    for number in 0..1000 {
        paths.insert(
            format!("/things/{number}/{{id}}"),
            json!({ "post": {
                "operationId": format!("makeThing{number}"),
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
                "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Thing" } } } },
            } }),
        );
    }
    let document = json!({ "openapi": "3.0.3", "paths": paths, "components": { "schemas": {
        "Thing": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "pattern": "^[a-z]+$" }, "parts": { "type": "array", "items": { "$ref": "#/components/schemas/Thing" } } } },
    } } });
    let started = std::time::Instant::now();
    let api = changed(&document.to_string(), all_methods).unwrap();
    println!("a thousand operations: {} ms", started.elapsed().as_millis());
    assert_eq!(api.tools.len(), 1000);
    let bytes: usize = api.tools.iter().map(|tool| tool.schema.as_str().len()).sum();
    assert!(bytes < 16 * 1024 * 1024, "{bytes}");
}

/// Documents that would recurse forever or exhaust the process.
#[test]
fn hostile_documents_are_bounded() {
    let chain: Map<String, Value> = (0..50_000)
        .map(|value| {
            (format!("S{value}"), json!({ "$ref": format!("#/components/schemas/S{}", value + 1) }))
        })
        .collect();
    let mut nots = json!({ "$ref": "#/components/schemas/Not" });
    for _ in 0..50 {
        nots = json!({ "not": nots });
    }
    let mut schemas = chain;
    schemas.insert("Not".to_owned(), nots);
    let many: Value = (0..20_000).map(|value| (format!("m{value}"), json!({}))).collect();
    schemas.insert("Many".to_owned(), json!({ "properties": many }));
    let post = |schema: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        json!({ "post": { "operationId": "same", "requestBody": { "content": { "application/json": { "schema": schema } } } } })
    };
    let mut paths: Map<String, Value> = (0..5000)
        .map(|value| (format!("/same{value}"), json!({ "get": { "operationId": "same" } })))
        .collect();
    for name in ["S0", "Not", "Many"] {
        paths.insert(format!("/{name}"), post(name));
    }
    let parameters: Vec<Value> =
        (0..5000).map(|value| json!({ "name": format!("p{value}"), "in": "query" })).collect();
    paths.insert("/parameters".to_owned(), json!({ "get": { "parameters": parameters } }));
    let document =
        json!({ "openapi": "3.1.0", "paths": paths, "components": { "schemas": schemas } });
    let api = changed(&document.to_string(), all_methods).unwrap();
    let lines: Vec<String> = api.report.operations.iter().map(ToString::to_string).collect();
    assert!(lines.contains(&"- GET /parameters: it has more than 1000 parameters".to_owned()));
    assert_eq!(api.tools.len(), 5003);
    assert!(api.tools.iter().all(|tool| tool.schema.as_str().len() <= 16_384));
}

#[test]
fn a_report_steers_no_terminal() {
    let text = "openapi: 3.1.0\npaths:\n  \"/a\\e[2J\": {post: {requestBody: {content: {\"x/\\e]0;y\": {}}}}}\n";
    let api = changed(text, all_methods).unwrap();
    assert_eq!(
        api.report.operations[0].to_string(),
        "- POST /a[2J: its body is `x/]0`; only JSON, forms, text and bytes are supported"
    );
}
