//! Tests of route tools with a site whose responses do not match its actions.

use serde_json::{Map, Value, json};

use super::call_as_user;
use super::index::{RouteAction, RouteEndpoint, RoutePart};
use crate::scripted_site::{ScriptedSite, error_response, html, ok};

fn endpoint(verb: RouteAction, route: &str) -> RouteEndpoint {
    let part = |part: &str| match part.strip_prefix(':') {
        Some(name) => RoutePart::Argument { name: name.to_owned(), is_number: true },
        None => RoutePart::Text(part.to_owned()),
    };
    RouteEndpoint { verb, parts: route.split('/').map(part).collect(), schema: Value::Null }
}

async fn call(
    site: &ScriptedSite,
    verb: RouteAction,
    route: &str,
    arguments: Value,
) -> Result<Vec<String>, String> {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let outcome = call_as_user(&endpoint(verb, route), &site.site, &site.user, arguments).await;
    let result = outcome.map_err(|error| match error {
        creole::ToolError::Failed(reason) => reason.to_string(),
        other => format!("{other:?}"),
    })?;
    let text = |content: &creole::Content| match content {
        creole::Content::Text { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    Ok(result.content.iter().map(text).collect())
}

#[tokio::test]
async fn a_write_that_the_platform_would_lose_is_not_sent() {
    let site = ScriptedSite::late(|_| Some(ok(json!({"created": true}))));
    let route = "buddyboss/v1/activity/:id/comment";
    let message = call(&site, RouteAction::Create, route, json!({"id": 3, "content": "x"}))
        .await
        .unwrap_err();
    assert!(message.contains("checks Application Passwords too late"), "{message}");
    assert_eq!(site.lines(), Vec::<String>::new());
    assert!(call(&site, RouteAction::Read, route, json!({"id": 3})).await.is_ok());
}

#[tokio::test]
async fn a_write_that_cannot_be_read_back_is_not_a_success() {
    let site = ScriptedSite::early(|request| match request.line.split(' ').next() {
        Some("POST") => Some(ok(json!({"id": 7, "title": "A"}))),
        Some("PUT") => Some(ok(json!({"id": 8, "title": "B"}))),
        Some("DELETE") => Some(ok(json!({"deleted": true}))),
        Some("GET") if request.line.contains("/posts/8") => {
            Some(ok(json!({"id": 8, "title": {"raw": "A"}, "status": "draft"})))
        }
        Some("GET") => Some(error_response(404, "rest_post_invalid_id", "Invalid post ID.")),
        _ => None,
    });
    let (posts, post) = ("wp/v2/posts", "wp/v2/posts/:id");
    let created = call(&site, RouteAction::Create, posts, json!({"title": "A"})).await.unwrap_err();
    assert_eq!(created, "the site reported success, but nothing was created");
    let changed =
        call(&site, RouteAction::Update, post, json!({"id": 8, "title": "B"})).await.unwrap_err();
    assert_eq!(
        changed,
        "the site reported success, but the site stored none of these values: `title`"
    );
    let half = json!({"id": 8, "title": "A", "status": "publish"});
    let half = call(&site, RouteAction::Update, post, half).await.unwrap();
    assert_eq!(half[1], "The site stored different values for: `status`.");
    let stored = call(&site, RouteAction::Delete, post, json!({"id": 8})).await.unwrap_err();
    assert_eq!(stored, "the site reported success, but it is still there");
    assert!(call(&site, RouteAction::Delete, post, json!({"id": 9})).await.is_ok());
}

#[tokio::test]
async fn a_write_that_cannot_be_checked_says_so() {
    let site = ScriptedSite::early(|request| match request.line.split(' ').next() {
        Some("POST") => Some(ok(json!({"done": true}))),
        Some("PUT") => Some(ok(json!({"id": 8}))),
        _ => Some(html(500, "a page")),
    });
    let messages =
        call(&site, RouteAction::Create, "wp/v2/posts", json!({"title": "A"})).await.unwrap();
    assert_eq!(messages[1], "The result was not verified: the response has no item.");
    let messages =
        call(&site, RouteAction::Update, "wp/v2/posts/:id", json!({"id": 8})).await.unwrap();
    assert!(messages[1].contains("HTTP 500 and text/html"), "{messages:?}");
}

#[tokio::test]
async fn a_route_never_deletes_the_callers_own_account() {
    let site = ScriptedSite::early(|_| Some(ok(json!({"deleted": true}))));
    for (route, arguments) in [("wp/v2/users/:id", json!({"id": 1})), ("wp/v2/users/me", json!({}))]
    {
        let message = call(&site, RouteAction::Delete, route, arguments).await.unwrap_err();
        assert!(message.starts_with("this is your own account"), "{message}");
    }
    assert_eq!(site.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn the_author_of_a_post_stays_its_author_by_a_route() {
    let site = ScriptedSite::early(|request| match request.line.split(' ').next() {
        Some("GET") => Some(ok(json!({"id": 51, "user_id": 4, "content": {"raw": "x"}}))),
        Some("PUT") => Some(ok(json!({"id": 51, "user_id": request.json()["user_id"]}))),
        _ => None,
    });
    let route = "buddyboss/v1/activity/:id";
    call(&site, RouteAction::Update, route, json!({"id": 51, "content": "x"})).await.unwrap();
    assert_eq!(site.requests()[1].json(), json!({"content": "x", "user_id": 4}));
}
