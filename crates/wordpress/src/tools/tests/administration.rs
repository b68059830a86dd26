//! Tests of the tools for media, invitations, the feed, forums and administration: their requests and their
//! verification.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::scripted_site::{ScriptedRequest, ScriptedSite, error_response, ok};

fn starts(request: &ScriptedRequest, line: &str) -> bool {
    request.line.replace("/wp-json/buddyboss/v1", "").starts_with(line)
}

#[tokio::test]
async fn a_file_is_uploaded_added_and_read() {
    let site = ScriptedSite::early(|request| match request {
        it if starts(it, "POST /media/upload") => {
            let is_form =
                it.body.contains("name=\"file\"; filename=\"a.png\"") && it.body.contains("hello");
            Some(if is_form {
                ok(json!({"upload_id": 70}))
            } else {
                error_response(400, "no_file", "No file.")
            })
        }
        it if starts(it, "POST /media") => {
            Some(ok(json!([{"id": 7, "upload": it.json()["upload_ids"]}])))
        }
        it if starts(it, "GET /media/7") => Some(ok(json!({"id": 7, "title": "a.png"}))),
        it if starts(it, "POST /document/upload") => Some(ok(json!({"id": 80}))),
        it if starts(it, "POST /document") => {
            Some(error_response(403, "bp_rest_authorization_required", "No."))
        }
        _ => None,
    });
    let file = json!({"file_name": "a.png", "data": "aGVsbG8=", "privacy": "onlyme"});
    assert_eq!(site.call_ok("upload_media", file).await["title"], "a.png");
    let sent = site.requests()[1].json();
    assert_eq!(sent, json!({"upload_ids": [70], "privacy": "onlyme"}));
    let told =
        site.call_err("upload_document", json!({"file_name": "a.txt", "data": "aGVsbG8="})).await;
    assert!(told.starts_with("the file was uploaded (attachment 80), but not added: No"), "{told}");
    assert_eq!(site.requests().last().unwrap().json(), json!({"document_ids": [80]}));
}

#[tokio::test]
async fn an_item_that_still_exists_was_not_deleted() {
    let site = ScriptedSite::early(|request| match request {
        it if starts(it, "DELETE /media/8") => Some(ok(json!({"deleted": []}))),
        it if it.line.starts_with("DELETE") => Some(ok(json!({"deleted": true}))),
        it if starts(it, "GET /video/7") => Some(ok(json!({"id": 7}))),
        it if starts(it, "GET /topics/7") => Some(ok(json!({"id": 7, "status": "trash"}))),
        it if starts(it, "GET") => {
            Some(error_response(404, "bp_rest_media_invalid_id", "Invalid ID."))
        }
        _ => None,
    });
    let told = site.call_err("delete_video", json!({"id": 7})).await;
    assert_eq!(told, "the site reported success, but it is still there");
    let told = site.call_err("delete_media", json!({"id": 8})).await;
    assert_eq!(told, "the site responded that nothing was deleted");
    for tool in [
        "delete_document",
        "delete_reply",
        "delete_topic",
        "reject_membership_request",
        "withdraw_group_invite",
    ] {
        site.call_ok(tool, json!({"id": 7})).await;
    }
    site.call_ok("delete_activity_comment", json!({"id": 7, "comment_id": 9})).await;
}

#[tokio::test]
async fn an_accepted_member_is_found_in_the_group() {
    let accepted = |is_member: bool| {
        ScriptedSite::early(move |request| match request {
            it if starts(it, "GET /groups/membership-requests/5")
                || starts(it, "GET /groups/invites/5") =>
            {
                Some(ok(json!({"id": 5, "group_id": 3, "user_id": 4})))
            }
            it if it.line.starts_with("PUT") => Some(ok(json!({"id": 4}))),
            it if starts(it, "GET /groups?user_id=4&include=3") => {
                Some(ok(if is_member { json!([{"id": 3}]) } else { json!([]) }))
            }
            _ => None,
        })
    };
    for tool in ["accept_membership_request", "accept_group_invite"] {
        assert_eq!(accepted(true).call_ok(tool, json!({"id": 5})).await["id"], 4);
        let told = accepted(false).call_err(tool, json!({"id": 5})).await;
        assert_eq!(told, "the site reported success, but member 4 is not in group 3");
    }
}

#[tokio::test]
async fn an_invitation_is_sent_by_the_caller() {
    let site = ScriptedSite::early(|request| match request {
        it if starts(it, "POST /groups/invites") => Some(ok(json!({"id": 5}))),
        it if starts(it, "GET /groups/3") || starts(it, "GET /members/4") => {
            Some(ok(json!({"id": 3})))
        }
        _ => None,
    });
    site.call_ok("send_group_invite", json!({"group_id": 3, "user_id": 4, "message": "Hi"})).await;
    let expected =
        json!({"group_id": 3, "user_id": 4, "message": "Hi", "inviter_id": 1, "send_invite": true});
    assert_eq!(site.requests().last().unwrap().json(), expected);
}

#[tokio::test]
async fn a_pin_and_closed_comments_are_verified() {
    let site = ScriptedSite::early(|request| match request {
        it if it.line.starts_with("PUT") => {
            Some(ok(json!({"feedback": "You are not permitted with the requested operation"})))
        }
        it if starts(it, "GET /activity/7") => {
            Some(ok(json!({"id": 7, "is_pinned": true, "is_comment_closed": false})))
        }
        _ => None,
    });
    site.call_ok("pin_activity", json!({"id": 7})).await;
    assert_eq!(site.requests()[0].json(), json!({"remove_pin": false}));
    let told = site.call_err("close_activity_comments", json!({"id": 7})).await;
    assert!(told.contains("still false: You are not permitted"), "{told}");
    site.call_ok("close_activity_comments", json!({"id": 7, "closed": false})).await;
    assert_eq!(site.requests()[4].json(), json!({"turn_on_comments": true}));
}

#[tokio::test]
async fn a_topic_keeps_its_unchanged_members() {
    let site = ScriptedSite::early(|request| match request {
        it if starts(it, "GET /topics/7") => {
            Some(ok(json!({"id": 7, "parent": 5, "author": 4, "status": "closed",
            "title": {"raw": "Rules"}, "content": {"raw": "Be kind."}, "action_states": {"subscribed": true}})))
        }
        it if starts(it, "PUT /topics/7") => Some(ok(json!({"id": 7, "author": 4}))),
        it if starts(it, "GET /reply/8") => {
            Some(ok(json!({"id": 8, "parent": 7, "author": 4, "reply_to": 6})))
        }
        it if starts(it, "PUT /reply/8") => Some(ok(json!({"id": 8, "author": 4}))),
        _ => None,
    });
    site.call_ok("update_topic", json!({"id": 7, "title": "New rules"})).await;
    let expected = json!({"parent": 5, "title": "New rules", "content": "Be kind.", "status": "closed", "subscribe": true});
    assert_eq!(site.requests()[1].json(), expected);
    site.call_ok("update_reply", json!({"id": 8, "content": "Yes"})).await;
    assert_eq!(site.requests()[3].json(), json!({"content": "Yes", "topic_id": 7, "reply_to": 6}));
    let told = site.call_err("update_topic", json!({"id": 7})).await;
    assert!(told.starts_with("nothing to change"), "{told}");
}

#[tokio::test]
async fn topics_are_closed_stuck_merged_and_split() {
    let site = ScriptedSite::early(|request| match request {
        it if starts(it, "GET /topics/7") => Some(ok(json!({"id": 7, "sticky": true}))),
        it if starts(it, "POST /topics/action/7") => {
            let sent = it.json();
            let is_on = sent["value"] == true;
            let is_sticky = sent["action"] != "close" && is_on;
            Some(ok(
                json!({"id": 7, "is_closed": sent["action"] == "close" && is_on, "sticky": is_sticky}),
            ))
        }
        it if starts(it, "POST /topics/merge/7") => {
            Some(ok(json!({"id": it.json()["destination_id"]})))
        }
        it if starts(it, "POST /topics/split/7") => Some(ok(json!({"id": 20}))),
        _ => None,
    });
    site.call_ok("close_topic", json!({"id": 7})).await;
    assert_eq!(site.requests()[0].json(), json!({"action": "close", "value": true}));
    site.call_ok("stick_topic", json!({"id": 7, "where": "everywhere"})).await;
    let asked = site.requests();
    assert_eq!(asked[2].json(), json!({"action": "sticky", "value": false}), "from where it is");
    assert_eq!(asked[3].json(), json!({"action": "super_sticky", "value": true}));
    site.call_ok("merge_topics", json!({"id": 7, "destination_id": 9})).await;
    site.call_ok("split_topic", json!({"id": 7, "reply_id": 8, "title": "Apart"})).await;
    let expected =
        json!({"reply_id": 8, "split_option": "reply", "new_destination_title": "Apart"});
    assert_eq!(site.requests().last().unwrap().json(), expected);
    for wrong in [
        json!({"id": 7, "reply_id": 8}),
        json!({"id": 7, "reply_id": 8, "title": "a", "destination_id": 9}),
    ] {
        assert!(site.call_err("split_topic", wrong).await.contains("give either"));
    }
    assert!(
        site.call_err("merge_topics", json!({"id": 7, "destination_id": 7}))
            .await
            .contains("itself")
    );
}

#[tokio::test]
async fn a_block_is_ended_by_its_own_id() {
    let is_blocked = Mutex::new(true);
    let site = ScriptedSite::early(move |request| match request {
        it if starts(it, "GET /moderation?item_id=4") => {
            let blocks = if *is_blocked.lock().unwrap() {
                json!([{"id": 30, "item_id": 4}])
            } else {
                json!([])
            };
            Some(ok(blocks))
        }
        it if starts(it, "DELETE /moderation/30") => {
            *is_blocked.lock().unwrap() = false;
            Some(ok(json!({"deleted": true})))
        }
        it if starts(it, "GET /moderation") => Some(ok(json!([]))),
        _ => None,
    });
    site.call_ok("unblock_member", json!({"user_id": 4})).await;
    let told = site.call_err("unblock_member", json!({"user_id": 9})).await;
    assert_eq!(told, "you do not block the member with ID 9");
    let told = ScriptedSite::early(|_| None).call_err("block_member", json!({"user_id": 1})).await;
    assert_eq!(told, "you cannot block yourself");
}

#[tokio::test]
async fn settings_of_a_group_are_sent_completely_and_read_back() {
    let fields = |invites: &str| {
        json!([{"name": "", "value": "", "type": "heading"}, {"name": "group-status", "value": "private"},
            {"name": "group-invite-status", "value": invites}])
    };
    let stored = Mutex::new("members".to_owned());
    let site = ScriptedSite::early(move |request| match request {
        it if starts(it, "GET /groups/3/settings?nav=group-settings") => {
            Some(ok(fields(&stored.lock().unwrap())))
        }
        it if starts(it, "PUT /groups/3/settings") => {
            let asked = it.json()["fields"]["group-invite-status"].as_str().unwrap().to_owned();
            // Only this one is stored.
            if asked == "admins" {
                *stored.lock().unwrap() = asked;
            }
            Some(ok(json!({"error": "", "notices": "", "data": []})))
        }
        _ => None,
    });
    site.call_ok("update_group_settings", json!({"id": 3, "invite_status": "admins"})).await;
    let sent: Value = site.requests()[1].json();
    assert_eq!(sent["fields"], json!({"group-status": "private", "group-invite-status": "admins"}));
    let told =
        site.call_err("update_group_settings", json!({"id": 3, "invite_status": "mods"})).await;
    assert_eq!(told, "the site responded, but did not store: invite_status");
}

#[tokio::test]
async fn administrators_message_groups_mark_notifications_and_give_roles() {
    let rounds = Mutex::new(3);
    let site = ScriptedSite::early(move |request| match request {
        it if starts(it, "GET /groups/3") => Some(ok(json!({"id": 3}))),
        it if starts(it, "POST /messages/group") => {
            Some(ok(json!({"message": "sent", "errors": []})))
        }
        it if starts(it, "PUT /notifications/bulk/read") => {
            let mut left = rounds.lock().unwrap();
            *left -= 1;
            Some(ok(if *left > 0 { json!([{"id": 1}]) } else { json!([]) }))
        }
        it if it.line.contains("/wp/v2/users/4") => Some(ok(json!({"id": 4, "roles": ["editor"]}))),
        it if starts(it, "POST /groups/3/avatar") => {
            let has_action = it.body.contains("name=\"action\"\r\n\r\nbp_avatar_upload");
            has_action.then(|| ok(json!([{"full": "https://example.org/a.png"}])))
        }
        _ => None,
    });
    site.call_ok("message_group", json!({"group_id": 3, "message": "Hi"})).await;
    let expected = json!({"group_id": 3, "message": "Hi", "type": "open", "users": "all"});
    assert_eq!(site.requests()[1].json(), expected);
    assert_eq!(site.call_ok("mark_all_notifications_read", json!({})).await["unread"], 0);
    let rounds = site.lines().iter().filter(|line| line.contains("bulk/read")).count();
    assert_eq!(rounds, 3);
    site.call_ok("set_member_role", json!({"id": 4, "roles": ["editor"]})).await;
    let told = site.call_err("set_member_role", json!({"id": 4, "roles": ["author"]})).await;
    assert!(told.contains("has these roles: editor"), "{told}");
    let told = site.call_err("set_member_role", json!({"id": 1, "roles": ["subscriber"]})).await;
    assert!(told.starts_with("these are your own roles"), "{told}");
    site.call_ok(
        "set_group_avatar",
        json!({"group_id": 3, "file_name": "a.png", "data": "aGVsbG8="}),
    )
    .await;
}
