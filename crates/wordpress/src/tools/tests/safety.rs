//! Tests of writes that must not affect another user, nor be reported as done if they are not.

use serde_json::{Value, json};

use crate::scripted_site::{ScriptedRequest, ScriptedResponse, ScriptedSite, error_response, ok};

fn starts(request: &ScriptedRequest, line: &str) -> bool {
    request.line.replace("/wp-json/buddyboss/v1", "").starts_with(line)
}

#[tokio::test]
async fn the_author_of_an_activity_stays_its_author() {
    // Like the platform: without `user_id`, the updating user becomes the author.
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /activity/51") => {
            Some(ok(json!({"id": 51, "user_id": 4})))
        }
        received if starts(received, "PUT /activity/51") => {
            let author = received.json().get("user_id").cloned().unwrap_or(json!(1));
            Some(ok(
                json!({"id": 51, "user_id": author, "content": {"raw": received.json()["content"]}}),
            ))
        }
        _ => None,
    });
    let message = site.call_ok("update_activity", json!({"id": 51, "content": "x"})).await;
    assert_eq!(message["user_id"], 4);
    assert_eq!(site.requests().last().unwrap().json(), json!({"content": "x", "user_id": 4}));
}

#[tokio::test]
async fn the_title_of_an_activity_stays_with_it() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /activity/51") => {
            Some(ok(json!({"id": 51, "user_id": 4, "post_title": "News"})))
        }
        received if starts(received, "PUT /activity/51") => {
            Some(ok(json!({"id": 51, "user_id": 4})))
        }
        received if starts(received, "POST /activity") => Some(ok(json!({"id": 52}))),
        _ => None,
    });
    site.call_ok("update_activity", json!({"id": 51, "content": "x"})).await;
    let sent = site.requests().last().unwrap().json();
    assert_eq!(sent, json!({"content": "x", "user_id": 4, "post_title": "News"}));
    site.call_ok("create_activity", json!({"content": "x", "title": "More"})).await;
    let sent = site.requests().last().unwrap().json();
    assert_eq!(sent, json!({"content": "x", "post_title": "More"}));
}

#[tokio::test]
async fn an_activity_without_an_author_is_not_changed() {
    let site = ScriptedSite::early(|request| {
        starts(request, "GET /activity/51").then(|| ok(json!({"id": 51})))
    });
    let message = site.call_err("update_activity", json!({"id": 51, "content": "x"})).await;
    assert!(message.ends_with("nothing was changed"), "{message}");
    assert_eq!(site.lines().len(), 1);
}

fn friendship(
    is_confirmed: bool,
) -> impl Fn(&ScriptedRequest) -> Option<ScriptedResponse> + Send + Sync {
    move |request: &ScriptedRequest| {
        let shown =
            json!([{"id": 5, "initiator_id": 2, "friend_id": 3, "is_confirmed": is_confirmed}]);
        if starts(request, "GET /friends/5") {
            return Some(ok(shown));
        }
        request.line.starts_with("DELETE").then(|| ok(json!({"deleted": true})))
    }
}

#[tokio::test]
async fn a_friendship_of_two_others_is_not_ended() {
    for is_confirmed in [true, false] {
        let site = ScriptedSite::early(friendship(is_confirmed));
        let told = site.call_err("remove_friend", json!({"id": 5})).await;
        assert!(told.contains("between members 2 and 3"), "{told}");
        assert_eq!(site.lines(), ["GET /buddyboss/v1/friends/5"], "nothing is deleted");
    }
}

/// A site with one profile field of this type, which treats a value like the platform.
fn field(kind: &'static str) -> ScriptedSite {
    ScriptedSite::early(move |request| {
        if starts(request, "GET /xprofile/fields/9") {
            return Some(ok(json!({"id": 9, "type": kind})));
        }
        if !starts(request, "PUT /xprofile/9/data/4") {
            return None;
        }
        let value = request.json()["value"].clone();
        if kind == "checkbox" {
            let Some(text) = value.as_str() else {
                return Some(crate::scripted_site::html(500, "Fatal error"));
            };
            let chosen: Vec<String> = serde_json::from_str(text).unwrap_or_default();
            return Some(ok(json!({"value": {"raw": "a:…", "unserialized": chosen}})));
        }
        if kind == "datebox" && value != "1990-05-17 00:00:00" {
            return Some(error_response(
                500,
                "rest_user_cannot_save_xprofile_data",
                "Cannot save XProfile data.",
            ));
        }
        Some(ok(json!({"value": {"raw": value, "unserialized": [value]}})))
    })
}

#[tokio::test]
async fn profile_data_is_stored_as_requested() {
    let chosen = |message: &Value| message["value"]["unserialized"].clone();
    let arguments = |value: Value| json!({"field_id": 9, "user_id": 4, "value": value});
    let message =
        field("checkbox").call_ok("update_xprofile_data", arguments(json!(["Red", "Blue"]))).await;
    assert_eq!(chosen(&message), json!(["Red", "Blue"]));
    let message = field("checkbox").call_ok("update_xprofile_data", arguments(json!("Red"))).await;
    assert_eq!(chosen(&message), json!(["Red"]));
    let message =
        field("datebox").call_ok("update_xprofile_data", arguments(json!("1990-05-17"))).await;
    assert_eq!(message["value"]["raw"], "1990-05-17 00:00:00");
    let message =
        field("textbox").call_err("update_xprofile_data", arguments(json!(["a", "b"]))).await;
    assert!(message.contains("takes one value"), "{message}");
}

#[tokio::test]
async fn profile_data_that_is_not_stored_is_no_success() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /xprofile/fields/9") => {
            Some(ok(json!({"id": 9, "type": "textbox"})))
        }
        received if starts(received, "PUT /xprofile") => {
            Some(ok(json!({"value": {"raw": "", "unserialized": []}})))
        }
        _ => None,
    });
    let message = site
        .call_err("update_xprofile_data", json!({"field_id": 9, "user_id": 4, "value": "Ghent"}))
        .await;
    assert!(message.contains("not what was sent"), "{message}");
}

#[tokio::test]
async fn a_caller_cannot_delete_its_own_account() {
    let site = ScriptedSite::early(|request| {
        request.line.starts_with("DELETE").then(|| ok(json!({"deleted": true})))
    });
    let message = site.call_err("delete_member", json!({"id": 1})).await;
    assert!(message.starts_with("this is your own account"), "{message}");
    let message = site.call_err("delete_member", json!({"id": 7, "reassign": 7})).await;
    assert!(message.contains("choose another one"), "{message}");
    assert_eq!(site.lines(), Vec::<String>::new());
    site.call_ok("delete_member", json!({"id": 7})).await;
    assert_eq!(site.lines(), ["DELETE /wp/v2/users/7?force=true&reassign=false"]);
}

#[tokio::test]
async fn marks_and_confirmations_that_the_site_ignores_are_reported() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "PUT /notifications/7") => {
            Some(ok(json!([{"id": 7, "is_new": 1}])))
        }
        received if starts(received, "POST /friends") => {
            Some(ok(json!([{"id": 5, "is_confirmed": false}])))
        }
        _ => None,
    });
    let message = site.call_err("mark_notification_read", json!({"id": 7})).await;
    assert_eq!(message, "the site responded, but `is_new` is still 1");
    site.call_ok("mark_notification_read", json!({"id": 7, "is_new": true})).await;
    let messages = site.call("add_friend", json!({"friend_id": 4, "force": true})).await.unwrap();
    assert!(messages[1].contains("ignored `force`"), "{messages:?}");
    assert_eq!(site.call("add_friend", json!({"friend_id": 4})).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_rank_that_stays_as_it_was_is_no_success() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /groups?user_id=4&include=3") => {
            Some(ok(json!([{"id": 3}])))
        }
        received if starts(received, "PUT /groups/3/members/4") => {
            let sent = received.json();
            // Like the platform: a promotion to moderator keeps the organizer rank.
            let is_admin = sent["action"] != "demote" && sent["role"] != "mod";
            let is_mod = sent["role"] == "mod";
            Some(ok(json!({"id": 4, "is_admin": is_admin, "is_mod": is_mod, "is_banned": false})))
        }
        _ => None,
    });
    let change = |action: &str, role: Option<&str>| {
        let mut change = json!({"group_id": 3, "user_id": 4, "action": action});
        if let Some(role) = role {
            change["role"] = json!(role);
        }
        change
    };
    let message = site.call_err("update_group_member", change("promote", None)).await;
    assert!(message.starts_with("`promote` needs a `role`"), "{message}");
    assert_eq!(site.lines(), Vec::<String>::new());
    let message = site.call_err("update_group_member", change("ban", None)).await;
    assert_eq!(message, "the site reported success, but the member is not banned");
    site.call_ok("update_group_member", change("demote", Some("mod"))).await;
    let requests = site.requests();
    let sent: Vec<Value> = requests.iter().rev().take(2).map(ScriptedRequest::json).collect();
    let expected = [
        json!({"action": "promote", "role": "mod"}),
        json!({"action": "demote", "role": "member"}),
    ];
    assert_eq!(sent, expected, "down to a member first");
}
