//! Tests of converted responses, and of requests without visible secrets.

use creole::{Content, ToolError, ToolResult};
use http::Response;
use http::header::CONTENT_TYPE;
use serde_json::json;

use super::*;
use crate::recipe::argument::ArgumentValues;
use crate::recipe::secret::Secret;

fn shaped(options: &ResponseOptions, media: &str, body: &str) -> Result<ToolResult, ToolError> {
    let answer = Response::builder().header(CONTENT_TYPE, media);
    let result = answer.body(Bytes::from(body.to_owned())).unwrap();
    response::to_tool_result(
        options,
        &result,
        &ArgumentValues::new(&[], json!({ "who": "ann" })),
        1000,
        None,
    )
}

fn result_text(options: &ResponseOptions, media: &str, body: &str) -> String {
    match shaped(options, media, body) {
        Ok(result) => match &result.content[..] {
            [Content::Text { text, .. }] => text.clone(),
            other => panic!("{other:?}"),
        },
        Err(ToolError::Failed(text)) => format!("failed: {text}"),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_response_is_read_by_its_media_type() {
    let usual = ResponseOptions::default();
    let data = shaped(&usual, "application/vnd.x+json; charset=utf-8", r#"{"a":1}"#).unwrap();
    assert_eq!(data.structured.unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(result_text(&usual, "text/plain", "{}"), "{}");
    assert!(
        result_text(&usual, "application/json", "{")
            .starts_with("failed: the response is not JSON")
    );
    assert_eq!(result_text(&usual, "application/json", ""), "status 200, no body");
    let image = shaped(&usual, "Image/PNG", "x").unwrap();
    assert!(
        matches!(&image.content[..], [Content::Image { mime_type, .. }] if mime_type == "image/png")
    );
}

#[test]
fn a_part_is_picked_and_a_text_is_made_of_it() {
    let pick = ResponseOptions { pick: Some("/items/0/name".into()), ..ResponseOptions::default() };
    let body = r#"{"items":[{"name":"x"}]}"#;
    assert_eq!(
        shaped(&pick, "application/json", body).unwrap().structured.unwrap().as_str(),
        "\"x\""
    );
    assert_eq!(
        result_text(
            &ResponseOptions { format: ResponseFormat::Text, ..pick.clone() },
            "text/plain",
            body
        ),
        "x"
    );
    assert!(result_text(&pick, "application/json", "{}").contains("no value at `/items/0/name`"));
    let template = ResponseOptions {
        pick: Some("/items".into()),
        template: Some(
            "{% for it in body %}{{ it.name }} {{ it.no.more }}{% endfor %}, {{ arguments.who }}"
                .into(),
        ),
        ..ResponseOptions::default()
    };
    assert_eq!(result_text(&template, "application/json", body), "x , ann");
    // Ordered data keeps its order in every conversion.
    let (pick, template) =
        (None, Some("{{ body | tojson }}{% for key in body %} {{ key }}{% endfor %}".into()));
    let whole = ResponseOptions { pick, template, ..ResponseOptions::default() };
    assert_eq!(
        result_text(&whole, "application/json", r#"{"z":1,"a":2}"#),
        r#"{"z": 1, "a": 2} z a"#
    );
}

#[test]
fn a_template_has_bounds() {
    let endless = "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}";
    let endless = ResponseOptions { template: Some(endless.into()), ..ResponseOptions::default() };
    assert!(result_text(&endless, "text/plain", "x").starts_with("failed: "));
    let long = "{% for a in range(2000) %}x{% endfor %}";
    let long = ResponseOptions { template: Some(long.into()), ..ResponseOptions::default() };
    assert!(result_text(&long, "text/plain", "x").contains("longer than 1000 bytes"));
    assert!(check_template("{{ body").is_err());
    assert!(check_template("{{ body }}").is_ok());
}

#[test]
fn no_secret_is_printed() {
    let recipe = HttpRecipe {
        method: RequestMethod::Get,
        url: Template::parse("https://host/?key=hunter2000").unwrap(),
        query: vec![("k".into(), Template::parse("hunter2000").unwrap())],
        headers: vec![("X-Key".into(), Template::parse("hunter2000").unwrap())],
        body: Some(JsonTemplate::Plain(json!("hunter2000"))),
        auth: Some(Auth::Bearer(SecretSource::Inline(Secret("hunter2000".into())))),
        retries: 0,
        allow_private: false,
        response: ResponseOptions::default(),
    };
    assert!(!format!("{recipe:?}").contains("hunter2000"));
    let (sent, secrets) =
        request::build_request(&recipe, &ArgumentValues::new(&[], json!({}))).unwrap();
    assert_eq!(sent.headers["authorization"], "Bearer hunter2000");
    assert!(sent.headers["authorization"].is_sensitive());
    assert_eq!(secrets, [Secret("hunter2000".into())]);
}
