//! Tests of the requests to the site, and of the messages for callers.

use serde_json::json;

use crate::scripted_site::{ScriptedRequest, ScriptedSite, error_response, html, ok, page};

fn starts(request: &ScriptedRequest, line: &str) -> bool {
    request.line.replace("/wp-json/buddyboss/v1", "").starts_with(line)
}

#[tokio::test]
async fn a_site_that_serves_its_front_page_for_routes_is_called_with_a_parameter() {
    let site = ScriptedSite::early(|request| {
        if request.line.contains("/wp-json/") {
            return Some(html(200, "<h1>Welcome</h1>"));
        }
        match request.line.contains("?rest_route=/buddyboss/v1/members/7") {
            true => Some(ok(json!({"id": 7, "name": "Kim"}))),
            false => None,
        }
    });
    assert_eq!(site.call_ok("get_member", json!({"id": 7})).await["name"], "Kim");
}

#[tokio::test]
async fn a_write_that_is_answered_by_a_page_may_have_been_done() {
    for (status, is_doubted) in [(500, true), (503, true), (200, true), (403, false)] {
        let site = ScriptedSite::early(move |request| {
            request.line.starts_with("DELETE").then(|| html(status, "<h1>A page</h1>"))
        });
        let told = site.call_err("delete_notification", json!({"id": 7})).await;
        let doubt = "it may or may not have been done";
        assert_eq!(told.ends_with(doubt), is_doubted, "{status}: {told}");
        assert_eq!(site.lines().len(), 1, "a write is sent once");
    }
}

#[tokio::test]
async fn a_write_to_an_unreachable_site_was_not_done() {
    let message = ScriptedSite::gone().call_err("delete_notification", json!({"id": 7})).await;
    assert!(message.starts_with("could not reach WordPress"), "{message}");
    assert!(!message.contains("may or may not"), "nothing was sent: {message}");
}

#[tokio::test]
async fn a_missing_item_is_not_written_to() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /groups/9") => {
            Some(error_response(404, "bp_rest_group_invalid_id", "Invalid group ID."))
        }
        received if starts(received, "GET /messages/9") => {
            Some(ok(json!({"id": 0, "message_id": 0})))
        }
        received if starts(received, "GET /members?include=2%2C99") => Some(ok(json!([{"id": 2}]))),
        received if starts(received, "GET /members/99") => {
            Some(error_response(404, "bp_rest_member_invalid_id", "Invalid member ID."))
        }
        _ => None,
    });
    let rows = [
        ("create_activity", json!({"content": "x", "group_id": 9}), "Group with ID 9"),
        ("list_activities", json!({"group_id": 9}), "Group with ID 9"),
        ("create_group", json!({"name": "x", "parent_id": 9}), "Group with ID 9"),
        ("update_group", json!({"id": 3, "parent_id": 9}), "Group with ID 9"),
        ("send_message", json!({"recipients": [2, 99], "message": "x"}), "Member with ID 99"),
        ("send_message", json!({"recipients": "2,99", "message": "x"}), "Member with ID 99"),
        ("delete_message_thread", json!({"id": 9}), "Thread with ID 9"),
        ("mark_message_read", json!({"id": 9}), "Thread with ID 9"),
    ];
    for (tool, arguments, expected) in rows {
        let message = site.call_err(tool, arguments).await;
        assert_eq!(message, format!("{expected} not found; nothing was sent"), "{tool}");
    }
    assert!(site.lines().iter().all(|line| line.starts_with("GET")), "{:?}", site.lines());
}

#[tokio::test]
async fn a_forum_that_is_not_made_is_no_success() {
    let makes = |forum: u64| {
        ScriptedSite::early(move |request| match request {
            received if starts(received, "POST /groups") => {
                Some(ok(json!({"id": 3, "enable_forum": true})))
            }
            received if starts(received, "PUT /groups/3/settings") => {
                Some(ok(json!({"error": "", "data": []})))
            }
            received if starts(received, "GET /groups/3") => {
                Some(ok(json!({"id": 3, "forum": forum})))
            }
            _ => None,
        })
    };
    let group = json!({"name": "Readers", "enable_forum": true});
    let site = makes(0);
    let message = site.call_err("create_group", group.clone()).await;
    assert!(message.starts_with("the group was created, but its forum was not"), "{message}");
    let site = makes(12);
    assert_eq!(site.call_ok("create_group", group).await["forum"], 12);
    let settings = &site.requests()[1];
    assert_eq!(settings.json(), json!({"nav": "forum", "fields": {"bbp-edit-group-forum": true}}));
    let late = ScriptedSite::late(|_| None);
    let message = late.call_err("create_group", json!({"name": "x", "enable_forum": true})).await;
    assert!(message.contains("too late"), "{message}");
    assert_eq!(late.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn numbers_that_are_no_ids_never_reach_the_site() {
    let site = ScriptedSite::early(|_| None);
    for number in ["4.0", "1e300", "99999999999999999999"] {
        let arguments = serde_json::from_str(&format!("{{\"id\": {number}}}")).unwrap();
        let message = site.call_err("get_member", arguments).await;
        assert!(message.contains("`id`"), "{number}: {message}");
    }
    assert_eq!(site.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn lists_with_commas_are_accepted() {
    let site = ScriptedSite::early(|_| Some(ok(json!([]))));
    site.call_ok("list_groups", json!({"status": "public"})).await;
    site.call_ok("list_members", json!({"exclude": "3, 4"})).await;
    let lines = site.lines();
    assert!(lines[0].contains("status=public") && !lines[0].contains("show_hidden"), "{lines:?}");
    assert!(lines[1].contains("exclude=3%2C4"), "{lines:?}");
}

#[tokio::test]
async fn arguments_without_effect_are_not_offered() {
    let site = ScriptedSite::early(|_| Some(ok(json!([]))));
    for (tool, argument) in [
        ("list_message_threads", "box"),
        ("list_message_threads", "type"),
        ("list_groups", "orderby"),
        ("list_groups", "order"),
    ] {
        let message = site.call_err(tool, json!({argument: "asc"})).await;
        assert!(message.contains(argument), "{tool}: {message}");
    }
    site.call_ok("list_activities", json!({"scope": "just-me"})).await;
    assert!(site.lines()[0].contains("scope=just-me") && site.lines()[0].contains("user_id=1"));
    site.call_ok("list_activities", json!({"scope": "just-me", "user_id": 4})).await;
    assert!(!site.lines()[1].contains("user_id=1"), "{:?}", site.lines());
}

#[tokio::test]
async fn a_list_for_anonymous_visitors_is_marked() {
    let script = |request: &ScriptedRequest| {
        starts(request, "GET /activity").then(|| page(json!([{"id": 1}]), 27, 3))
    };
    let late = ScriptedSite::late(script).call("list_activities", json!({})).await.unwrap();
    assert_eq!(late[1], "Page 1 of 3, 27 in total.");
    assert!(
        late[2].starts_with("This is the result for a visitor who is not logged in"),
        "{late:?}"
    );
    let early = ScriptedSite::early(script).call("list_activities", json!({})).await.unwrap();
    assert_eq!(early.len(), 2, "{early:?}");
}

#[tokio::test]
async fn a_missing_item_is_named_by_its_own_noun() {
    let site = ScriptedSite::early(|request| {
        let about = |description: &str| {
            Some(error_response(404, "bp_rest_invalid_id", &format!("Invalid {description} ID.")))
        };
        match request {
            received if starts(received, "GET /xprofile/9/data/4") => about("field"),
            received if starts(received, "GET /xprofile/1/data/99") => about("member"),
            received if starts(received, "GET /xprofile/2/data/4") => {
                Some(error_response(404, "bp_rest_invalid_id", "Ungültig."))
            }
            received if starts(received, "DELETE /groups/9/members/4") => about("group"),
            received if starts(received, "DELETE /groups/3/members/99") => about("group member"),
            received if starts(received, "GET /topics/9") => {
                Some(error_response(404, "bp_rest_topic_invalid_id", "Invalid topic ID."))
            }
            _ => None,
        }
    });
    let rows = [
        (
            "get_xprofile_data",
            json!({"field_id": 9, "user_id": 4}),
            "Profile field with ID 9 not found",
        ),
        ("get_xprofile_data", json!({"field_id": 1, "user_id": 99}), "Member with ID 99 not found"),
        (
            "get_xprofile_data",
            json!({"field_id": 2, "user_id": 4}),
            "Ungültig (bp_rest_invalid_id, HTTP 404)",
        ),
        ("remove_group_member", json!({"group_id": 9, "user_id": 4}), "Group with ID 9 not found"),
        (
            "remove_group_member",
            json!({"group_id": 3, "user_id": 99}),
            "Invalid group member ID (bp_rest_invalid_id, HTTP 404)",
        ),
        ("get_topic", json!({"id": 9}), "Topic with ID 9 not found"),
    ];
    for (tool, arguments, expected) in rows {
        assert_eq!(site.call_err(tool, arguments).await, expected, "{tool}");
    }
}

#[tokio::test]
async fn an_activity_that_may_not_be_seen_may_not_be_there() {
    let site = ScriptedSite::early(|request| {
        let text = "Sorry, you cannot view the activities.";
        starts(request, "GET /activity/9")
            .then(|| error_response(403, "bp_rest_authorization_required", text))
    });
    let message = site.call_err("get_activity", json!({"id": 9})).await;
    assert!(message.ends_with("; there may be no activity with ID 9"), "{message}");
}

#[tokio::test]
async fn a_caller_with_view_permission_sees_a_member() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /members/7?context=edit") => {
            Some(error_response(403, "rest_forbidden_context", "No."))
        }
        received if starts(received, "GET /members/7") => Some(ok(json!({"id": 7}))),
        _ => None,
    });
    assert_eq!(site.call_ok("get_member", json!({"id": 7})).await["id"], 7);
}

#[tokio::test]
async fn components_are_one_list_whatever_the_headers_contain() {
    let site = ScriptedSite::early(|_| Some(page(json!([{"name": "members"}]), 16, 2)));
    assert_eq!(site.call("list_components", json!({})).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_half_done_update_says_which_half() {
    let site = ScriptedSite::early(|request| match request.line.contains("/wp/v2/users/7") {
        true => Some(ok(json!({"id": 7}))),
        false => {
            starts(request, "PUT /members/7").then(|| ok(json!({"id": 7, "member_types": []})))
        }
    });
    let both = json!({"id": 7, "name": "Kim", "member_type": "moon"});
    let message = site.call_err("update_member", both).await;
    let expected =
        "`name` changed as asked, but `member_type` did not: the site has no member type `moon`";
    assert_eq!(message, expected);
    let message = site.call_err("update_member", json!({"id": 7, "member_type": "moon"})).await;
    assert_eq!(message, "the site has no member type `moon`");
}
