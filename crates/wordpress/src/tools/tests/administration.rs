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
        received if starts(received, "POST /media/upload") => {
            let is_form = received.body.contains("name=\"file\"; filename=\"a.png\"")
                && received.body.contains("hello");
            Some(if is_form {
                ok(json!({"upload_id": 70}))
            } else {
                error_response(400, "no_file", "No file.")
            })
        }
        received if starts(received, "POST /media") => {
            Some(ok(json!([{"id": 7, "upload": received.json()["upload_ids"]}])))
        }
        received if starts(received, "GET /media/7") => {
            Some(ok(json!({"id": 7, "title": "a.png"})))
        }
        received if starts(received, "POST /document/upload") => Some(ok(json!({"id": 80}))),
        received if starts(received, "POST /document") => {
            Some(error_response(403, "bp_rest_authorization_required", "No."))
        }
        _ => None,
    });
    let file = json!({"file_name": "a.png", "data": "aGVsbG8=", "privacy": "onlyme"});
    assert_eq!(site.call_ok("upload_media", file).await["title"], "a.png");
    let sent = site.requests()[1].json();
    assert_eq!(sent, json!({"upload_ids": [70], "privacy": "onlyme"}));
    let message =
        site.call_err("upload_document", json!({"file_name": "a.txt", "data": "aGVsbG8="})).await;
    assert!(
        message.starts_with("the file was uploaded (attachment 80), but not added: No"),
        "{message}"
    );
    assert_eq!(site.requests().last().unwrap().json(), json!({"document_ids": [80]}));
}

#[tokio::test]
async fn an_item_that_still_exists_was_not_deleted() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "DELETE /media/8") => Some(ok(json!({"deleted": []}))),
        received if received.line.starts_with("DELETE") => Some(ok(json!({"deleted": true}))),
        received if starts(received, "GET /video/7") => Some(ok(json!({"id": 7}))),
        received if starts(received, "GET /topics/7") => {
            Some(ok(json!({"id": 7, "status": "trash"})))
        }
        received if starts(received, "GET") => {
            Some(error_response(404, "bp_rest_media_invalid_id", "Invalid ID."))
        }
        _ => None,
    });
    let message = site.call_err("delete_video", json!({"id": 7})).await;
    assert_eq!(message, "the site reported success, but it is still there");
    let message = site.call_err("delete_media", json!({"id": 8})).await;
    assert_eq!(message, "the site responded that nothing was deleted");
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
            received
                if starts(received, "GET /groups/membership-requests/5")
                    || starts(received, "GET /groups/invites/5") =>
            {
                Some(ok(json!({"id": 5, "group_id": 3, "user_id": 4})))
            }
            received if received.line.starts_with("PUT") => Some(ok(json!({"id": 4}))),
            received if starts(received, "GET /groups?user_id=4&include=3") => {
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
        received if starts(received, "POST /groups/invites") => Some(ok(json!({"id": 5}))),
        received if starts(received, "GET /groups/3") || starts(received, "GET /members/4") => {
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
        received if received.line.starts_with("PUT") => {
            Some(ok(json!({"feedback": "You are not permitted with the requested operation"})))
        }
        received if starts(received, "GET /activity/7") => {
            Some(ok(json!({"id": 7, "is_pinned": true, "is_comment_closed": false})))
        }
        _ => None,
    });
    site.call_ok("pin_activity", json!({"id": 7})).await;
    assert_eq!(site.requests()[0].json(), json!({"remove_pin": false}));
    let message = site.call_err("close_activity_comments", json!({"id": 7})).await;
    assert!(message.contains("still false: You are not permitted"), "{message}");
    site.call_ok("close_activity_comments", json!({"id": 7, "closed": false})).await;
    assert_eq!(site.requests()[4].json(), json!({"turn_on_comments": true}));
}

#[tokio::test]
async fn a_topic_keeps_its_unchanged_members() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /topics/7") => {
            Some(ok(json!({"id": 7, "parent": 5, "author": 4, "status": "closed",
            "title": {"raw": "Rules"}, "content": {"raw": "Be kind."}, "action_states": {"subscribed": true}})))
        }
        received if starts(received, "PUT /topics/7") => Some(ok(json!({"id": 7, "author": 4}))),
        received if starts(received, "GET /reply/8") => {
            Some(ok(json!({"id": 8, "parent": 7, "author": 4, "reply_to": 6})))
        }
        received if starts(received, "PUT /reply/8") => Some(ok(json!({"id": 8, "author": 4}))),
        _ => None,
    });
    site.call_ok("update_topic", json!({"id": 7, "title": "New rules"})).await;
    let expected = json!({"parent": 5, "title": "New rules", "content": "Be kind.", "status": "closed", "subscribe": true});
    assert_eq!(site.requests()[1].json(), expected);
    site.call_ok("update_reply", json!({"id": 8, "content": "Yes"})).await;
    assert_eq!(site.requests()[3].json(), json!({"content": "Yes", "topic_id": 7, "reply_to": 6}));
    let message = site.call_err("update_topic", json!({"id": 7})).await;
    assert!(message.starts_with("nothing to change"), "{message}");
}

#[tokio::test]
async fn topics_are_closed_stuck_merged_and_split() {
    let site = ScriptedSite::early(|request| match request {
        received if starts(received, "GET /topics/7") => Some(ok(json!({"id": 7, "sticky": true}))),
        received if starts(received, "POST /topics/action/7") => {
            let sent = received.json();
            let is_on = sent["value"] == true;
            let is_sticky = sent["action"] != "close" && is_on;
            Some(ok(
                json!({"id": 7, "is_closed": sent["action"] == "close" && is_on, "sticky": is_sticky}),
            ))
        }
        received if starts(received, "POST /topics/merge/7") => {
            Some(ok(json!({"id": received.json()["destination_id"]})))
        }
        received if starts(received, "POST /topics/split/7") => Some(ok(json!({"id": 20}))),
        _ => None,
    });
    site.call_ok("close_topic", json!({"id": 7})).await;
    assert_eq!(site.requests()[0].json(), json!({"action": "close", "value": true}));
    site.call_ok("stick_topic", json!({"id": 7, "where": "everywhere"})).await;
    let requests = site.requests();
    assert_eq!(requests[2].json(), json!({"action": "sticky", "value": false}), "from where it is");
    assert_eq!(requests[3].json(), json!({"action": "super_sticky", "value": true}));
    site.call_ok("merge_topics", json!({"id": 7, "destination_id": 9})).await;
    site.call_ok("split_topic", json!({"id": 7, "reply_id": 8, "title": "Apart"})).await;
    let expected =
        json!({"reply_id": 8, "split_option": "reply", "new_destination_title": "Apart"});
    assert_eq!(site.requests().last().unwrap().json(), expected);
    for invalid in [
        json!({"id": 7, "reply_id": 8}),
        json!({"id": 7, "reply_id": 8, "title": "a", "destination_id": 9}),
    ] {
        assert!(site.call_err("split_topic", invalid).await.contains("give either"));
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
        received if starts(received, "GET /moderation?item_id=4") => {
            let blocks = if *is_blocked.lock().unwrap() {
                json!([{"id": 30, "item_id": 4}])
            } else {
                json!([])
            };
            Some(ok(blocks))
        }
        received if starts(received, "DELETE /moderation/30") => {
            *is_blocked.lock().unwrap() = false;
            Some(ok(json!({"deleted": true})))
        }
        received if starts(received, "GET /moderation") => Some(ok(json!([]))),
        _ => None,
    });
    site.call_ok("unblock_member", json!({"user_id": 4})).await;
    let message = site.call_err("unblock_member", json!({"user_id": 9})).await;
    assert_eq!(message, "you do not block the member with ID 9");
    let message =
        ScriptedSite::early(|_| None).call_err("block_member", json!({"user_id": 1})).await;
    assert_eq!(message, "you cannot block yourself");
}

#[tokio::test]
async fn settings_of_a_group_are_sent_completely_and_read_back() {
    let fields = |invites: &str| {
        json!([{"name": "", "value": "", "type": "heading"}, {"name": "group-status", "value": "private"},
            {"name": "group-invite-status", "value": invites}])
    };
    let stored = Mutex::new("members".to_owned());
    let site = ScriptedSite::early(move |request| match request {
        received if starts(received, "GET /groups/3/settings?nav=group-settings") => {
            Some(ok(fields(&stored.lock().unwrap())))
        }
        received if starts(received, "PUT /groups/3/settings") => {
            let asked =
                received.json()["fields"]["group-invite-status"].as_str().unwrap().to_owned();
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
    let message =
        site.call_err("update_group_settings", json!({"id": 3, "invite_status": "mods"})).await;
    assert_eq!(message, "the site responded, but did not store: invite_status");
}

#[tokio::test]
async fn administrators_message_groups_mark_notifications_and_give_roles() {
    let rounds = Mutex::new(3);
    let site = ScriptedSite::early(move |request| match request {
        received if starts(received, "GET /groups/3") => Some(ok(json!({"id": 3}))),
        received if starts(received, "POST /messages/group") => {
            Some(ok(json!({"message": "sent", "errors": []})))
        }
        received if starts(received, "PUT /notifications/bulk/read") => {
            let mut left = rounds.lock().unwrap();
            *left -= 1;
            Some(ok(if *left > 0 { json!([{"id": 1}]) } else { json!([]) }))
        }
        received if received.line.contains("/wp/v2/users/4") => {
            Some(ok(json!({"id": 4, "roles": ["editor"]})))
        }
        received if starts(received, "POST /groups/3/avatar") => {
            let has_action = received.body.contains("name=\"action\"\r\n\r\nbp_avatar_upload");
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
    let message = site.call_err("set_member_role", json!({"id": 4, "roles": ["author"]})).await;
    assert!(message.contains("has these roles: editor"), "{message}");
    let message = site.call_err("set_member_role", json!({"id": 1, "roles": ["subscriber"]})).await;
    assert!(message.starts_with("these are your own roles"), "{message}");
    site.call_ok(
        "set_group_avatar",
        json!({"group_id": 3, "file_name": "a.png", "data": "aGVsbG8="}),
    )
    .await;
}
