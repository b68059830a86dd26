//! Tests of rarely used writing tools and of tools of the second phase: their requests to the site, and their success.

use creole_acceptance::peers::wordpress::RunningSite;
use serde_json::{Value, json};

use crate::real::{SiteCaller, early_auth, site};

/// The site, the server in front of it, and the number of requests to the site that were already checked.
struct ToolCalls {
    site: RunningSite,
    office: SiteCaller,
    seen: usize,
}

impl ToolCalls {
    /// Calls a tool, which must succeed and send this request to the platform. Returns the data of its result.
    #[track_caller]
    fn run(&mut self, tool: &str, arguments: Value, request: &str, sent: Value) -> Value {
        let message = self.office.call_successfully(tool, arguments);
        let requests = self.site.platform_requests();
        let line = |value: &Value| {
            format!("{} {}", value["method"].as_str().unwrap(), value["route"].as_str().unwrap())
        };
        let found = requests[self.seen..].iter().rfind(|value| line(value) == request);
        let item = found.unwrap_or_else(|| {
            panic!("{tool} did not ask {request}: {:?}", &requests[self.seen..])
        });
        let reads = request.starts_with("GET") || request.starts_with("DELETE");
        let location = if reads { "query" } else { "body" };
        assert_eq!(item[location], sent, "{tool}: {item}");
        self.seen = requests.len();
        message
    }
}

#[test]
fn each_tool_calls_its_route_and_returns_the_response() {
    let Some(site) = site(&[]) else { return };
    site.plugin("early-auth.php", Some(&early_auth()));
    let service = SiteCaller::with_every_tool(&site, "admin");
    let mut requests = ToolCalls { site, office: service, seen: 0 };
    friendship(&mut requests);
    activity(&mut requests);
    notifications(&mut requests);
    forums(&mut requests);
    moderation(&mut requests);
    files(&mut requests);
    a_longer_file(&mut requests);
    invitations(&mut requests);
    feed(&mut requests);
    topics(&mut requests);
    administration(&mut requests);
}

fn friendship(requests: &mut ToolCalls) {
    let received = json!({"friend_id": 1, "initiator_id": 2});
    let request = requests.run("add_friend", received.clone(), "POST /friends", received);
    let id = request["id"].as_u64().unwrap();
    let accepted =
        requests.run("accept_friend", json!({"id": id}), &format!("PUT /friends/{id}"), json!({}));
    assert_eq!(accepted["is_confirmed"], 1);
    let query = json!({"user_id": "1", "is_confirmed": "1", "per_page": "20"});
    let friends = requests.run("list_friends", json!({}), "GET /friends", query);
    assert_eq!(friends[0]["id"], id);
    // A confirmed friendship is ended by the friend's id, and verified afterwards.
    let before = requests.seen;
    requests.run("remove_friend", json!({"id": id}), &format!("GET /friends/{id}"), json!({}));
    let ended = requests.site.platform_requests().split_off(before);
    let ended = ended.iter().find(|received| received["method"] == "DELETE").unwrap();
    assert_eq!(
        (&ended["route"], &ended["query"]),
        (&json!("/friends"), &json!({"friend_id": "2"}))
    );
}

fn activity(requests: &mut ToolCalls) {
    let post = requests.run(
        "create_activity",
        json!({"content": "Hello"}),
        "POST /activity",
        json!({"content": "Hello"}),
    );
    let id = post["id"].as_u64().unwrap();
    let route = format!("PUT /activity/{id}");
    let changed = json!({"id": id, "content": "Hello all"});
    let sent = json!({"content": "Hello all", "user_id": 1});
    let changed = requests.run("update_activity", changed, &route, sent);
    assert_eq!(changed["content"], "Hello all");
    author_stays(requests);
}

/// A post of another user keeps its author when an administrator changes it.
fn author_stays(requests: &mut ToolCalls) {
    requests.site.plugin(
        "post.php",
        Some(
            "<?php add_action( 'rest_api_init', fn() => count( test_all( 'activity' ) ) > 1 || \
             test_add( 'activity', array( 'user_id' => 3, 'content' => 'Mine' ) ), 99 );",
        ),
    );
    let all = requests.office.call_successfully("list_activities", json!({"search": "Mine"}));
    requests.site.plugin("post.php", None);
    let id = all[0]["id"].as_u64().unwrap();
    requests.office.call_successfully("update_activity", json!({"id": id, "content": "Changed"}));
    let after = requests.office.call_successfully("get_activity", json!({"id": id}));
    assert_eq!((&after["user_id"], &after["content"]), (&json!(3), &json!("Changed")));
    requests.seen = requests.site.platform_requests().len();
}

fn notifications(requests: &mut ToolCalls) {
    requests.site.plugin(
        "notify.php",
        Some(
            "<?php add_action( 'rest_api_init', fn() => test_all( 'notifications' ) || \
             test_add( 'notifications', array( 'user_id' => 1, 'is_new' => 1, 'component' => 'friends' ) ), 99 );",
        ),
    );
    let query = json!({"user_id": "1", "sort_order": "ASC", "per_page": "20"});
    let all =
        requests.run("list_notifications", json!({"sort": "ASC"}), "GET /notifications", query);
    let id = all[0]["id"].as_u64().unwrap();
    let route = |method: &str| format!("{method} /notifications/{id}");
    let one = requests.run("get_notification", json!({"id": id}), &route("GET"), json!({}));
    assert_eq!(one["component"], "friends");
    let read = requests.run(
        "mark_notification_read",
        json!({"id": id}),
        &route("PUT"),
        json!({"is_new": 0}),
    );
    assert_eq!(read["is_new"], 0);
    let repeated = json!({"id": id, "is_new": true});
    requests.run("mark_notification_read", repeated, &route("PUT"), json!({"is_new": 1}));
    requests.site.plugin("notify.php", None);
    let gone = requests.run("delete_notification", json!({"id": id}), &route("DELETE"), json!({}));
    assert_eq!(gone["deleted"], true);
}

fn forums(received: &mut ToolCalls) {
    let page = json!({"per_page": "20"});
    received.run("list_forums", json!({}), "GET /forums", page);
    let topic = json!({"forum_id": 5, "title": "Rules", "content": "Be kind."});
    let sent = json!({"parent": 5, "title": "Rules", "content": "Be kind."});
    let topic = received.run("create_topic", topic, "POST /topics", sent);
    let id = topic["id"].as_u64().unwrap();
    let query = json!({"parent": "5", "per_page": "20"});
    let topics = received.run("list_topics", json!({"forum_id": 5}), "GET /topics", query);
    assert_eq!(topics[0]["title"], "Rules");
    received.run("get_topic", json!({"id": id}), &format!("GET /topics/{id}"), json!({}));
    let reply = json!({"topic_id": id, "content": "Yes."});
    received.run("create_reply", reply.clone(), "POST /reply", reply);
    let query = json!({"parent": id.to_string(), "per_page": "20"});
    let replies = received.run("list_replies", json!({"topic_id": id}), "GET /reply", query);
    assert_eq!(replies[0]["content"], "Yes.");
    received.run("delete_topic", json!({"id": id}), &format!("DELETE /topics/{id}"), json!({}));
    let query = json!({"user_id": "1", "per_page": "20"});
    received.run("list_group_invites", json!({}), "GET /groups/invites", query);
    let query = json!({"group_id": "4", "per_page": "20"});
    let requests = json!({"group_id": 4});
    received.run("list_membership_requests", requests, "GET /groups/membership-requests", query);
}

fn moderation(requests: &mut ToolCalls) {
    let report =
        json!({"item_id": 7, "item_type": "activity", "report_category": "3", "note": "Spam"});
    requests.run("report_content", report.clone(), "POST /moderation/report", report);
    let blocked = json!({"user_id": 2});
    requests.run("block_member", blocked, "POST /moderation", json!({"item_id": 2}));
    let query = json!({"per_page": "20"});
    let all = requests.run("list_moderation_reports", json!({}), "GET /moderation", query);
    assert_eq!(all[0]["item_id"], 2);
    let id = all[0]["id"].as_u64().unwrap();
    let route = format!("DELETE /moderation/{id}");
    requests.run("unblock_member", json!({"user_id": 2}), &route, json!({}));
    let message = requests.office.fails("unblock_member", json!({"user_id": 2}));
    assert_eq!(message, "Error: you do not block the member with ID 2");
    requests.seen = requests.site.platform_requests().len();
}

/// A PNG of one pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn files(requests: &mut ToolCalls) {
    for (one, all, ids) in [
        ("media", "media", "upload_ids"),
        ("video", "videos", "upload_ids"),
        ("document", "documents", "document_ids"),
    ] {
        let file = json!({"file_name": format!("{one}.png"), "data": DOT, "privacy": "onlyme"});
        let made = requests.office.call_successfully(&format!("upload_{one}"), file);
        assert_eq!((&made["title"], &made["size"]), (&json!(format!("{one}.png")), &json!(70)));
        let received = requests.site.platform_requests().split_off(requests.seen);
        let added = received.iter().rfind(|value| value["method"] == "POST").unwrap();
        assert_eq!(added["body"][ids].as_array().unwrap().len(), 1, "{added}");
        requests.seen = requests.site.platform_requests().len();
        let id = made["id"].as_u64().unwrap();
        let query = json!({"per_page": "20"});
        requests.run(&format!("list_{all}"), json!({}), &format!("GET /{one}"), query);
        requests.run(
            &format!("get_{one}"),
            json!({"id": id}),
            &format!("GET /{one}/{id}"),
            json!({}),
        );
        let route = format!("DELETE /{one}/{id}");
        requests.run(&format!("delete_{one}"), json!({"id": id}), &route, json!({}));
        let message = requests.office.fails(&format!("get_{one}"), json!({"id": id}));
        assert!(message.ends_with(&format!("with ID {id} not found")), "{message}");
        requests.seen = requests.site.platform_requests().len();
    }
}

/// A file that exceeds the default message limit.
fn a_longer_file(requests: &mut ToolCalls) {
    let data = "A".repeat(2 * 1024 * 1024);
    let made = requests
        .office
        .call_successfully("upload_document", json!({"file_name": "long.txt", "data": data}));
    assert_eq!(made["size"], 3 * 512 * 1024);
    requests.seen = requests.site.platform_requests().len();
}

fn invitations(requests: &mut ToolCalls) {
    let group =
        requests.office.call_successfully("create_group", json!({"name": "Readers"}))["id"].clone();
    for accepts in [true, false] {
        let invite = json!({"group_id": group, "user_id": 3, "message": "Come"});
        let sent = json!({"group_id": group, "user_id": 3, "message": "Come", "inviter_id": 1, "send_invite": true});
        let invite = requests.run("send_group_invite", invite, "POST /groups/invites", sent);
        let id = invite["id"].as_u64().unwrap();
        let (tool, method) = if accepts { ("accept", "PUT") } else { ("withdraw", "DELETE") };
        let route = format!("{method} /groups/invites/{id}");
        requests.run(&format!("{tool}_group_invite"), json!({"id": id}), &route, json!({}));
    }
    requests.site.plugin(
        "ask.php",
        Some(&format!(
            "<?php add_action( 'rest_api_init', fn() => test_all( 'membership-requests' ) || test_keep( \
             'membership-requests', array( 8 => array( 'id' => 8, 'group_id' => {group}, 'user_id' => 2 ), \
             9 => array( 'id' => 9, 'group_id' => {group}, 'user_id' => 4 ) ) ), 99 );"
        )),
    );
    let query = json!({"group_id": group.to_string(), "per_page": "20"});
    let list = json!({"group_id": group});
    requests.run("list_membership_requests", list, "GET /groups/membership-requests", query);
    requests.site.plugin("ask.php", None);
    let route = |method: &str, id: u64| format!("{method} /groups/membership-requests/{id}");
    requests.run("accept_membership_request", json!({"id": 8}), &route("PUT", 8), json!({}));
    requests.run("reject_membership_request", json!({"id": 9}), &route("DELETE", 9), json!({}));
    let members =
        requests.office.call_successfully("list_group_members", json!({"group_id": group}));
    let ids: Vec<u64> =
        members.as_array().unwrap().iter().filter_map(|value| value["id"].as_u64()).collect();
    assert_eq!(ids, [3, 2]);
    requests.seen = requests.site.platform_requests().len();
}

fn feed(requests: &mut ToolCalls) {
    let post = requests.office.call_successfully("create_activity", json!({"content": "Pin me"}));
    let id = post["id"].as_u64().unwrap();
    let comment = requests
        .office
        .call_successfully("comment_activity", json!({"id": id, "content": "First"}));
    let comment = comment["comments"][0]["id"].as_u64().unwrap();
    let route = |method: &str| format!("{method} /activity/{id}/comment/{comment}");
    let change = json!({"id": id, "comment_id": comment, "content": "Changed"});
    let sent = json!({"content": "Changed"});
    let changed = requests.run("update_activity_comment", change, &route("PUT"), sent);
    assert_eq!(changed["content"], "Changed");
    let gone = json!({"id": id, "comment_id": comment});
    requests.run("delete_activity_comment", gone, &route("DELETE"), json!({}));
    let pin = format!("PUT /activity/{id}/pin");
    let pinned =
        requests.run("pin_activity", json!({"id": id}), &pin, json!({"remove_pin": false}));
    assert_eq!(pinned["is_pinned"], true);
    let close = format!("PUT /activity/{id}/close-comments");
    let closed = requests.run(
        "close_activity_comments",
        json!({"id": id}),
        &close,
        json!({"turn_on_comments": false}),
    );
    assert_eq!(closed["is_comment_closed"], true);
    requests.run("list_reactions", json!({}), "GET /reactions", json!({}));
    let like = json!({"reaction_id": 1, "item_type": "activity", "item_id": id});
    let mut sent = like.clone();
    sent["user_id"] = json!(1);
    let reaction = requests.run("add_reaction", like, "POST /user-reactions", sent);
    let query = json!({"item_id": id.to_string(), "per_page": "20"});
    requests.run("list_user_reactions", json!({"item_id": id}), "GET /user-reactions", query);
    let reaction = reaction["id"].as_u64().unwrap();
    let route = format!("DELETE /user-reactions/{reaction}");
    requests.run("remove_reaction", json!({"id": reaction}), &route, json!({}));
}

fn topics(requests: &mut ToolCalls) {
    let new = |title: &str| json!({"forum_id": 5, "title": title, "content": "Words"});
    let id = requests.office.call_successfully("create_topic", new("One"))["id"].as_u64().unwrap();
    let other =
        requests.office.call_successfully("create_topic", new("Other"))["id"].as_u64().unwrap();
    let action = format!("POST /topics/action/{id}");
    let sent = json!({"action": "close", "value": true});
    let closed = requests.run("close_topic", json!({"id": id}), &action, sent);
    assert_eq!(closed["is_closed"], true);
    // Without these members the route would open the topic and empty its content.
    let change = json!({"id": id, "title": "Two"});
    let sent = json!({"parent": 5, "title": "Two", "content": "Words", "status": "closed"});
    let changed = requests.run("update_topic", change, &format!("PUT /topics/{id}"), sent);
    assert_eq!((&changed["is_closed"], &changed["content"]), (&json!(true), &json!("Words")));
    let sent = json!({"action": "sticky", "value": true});
    requests.run("stick_topic", json!({"id": id, "where": "forum"}), &action, sent);
    let sent = json!({"action": "super_sticky", "value": true});
    let stuck =
        requests.run("stick_topic", json!({"id": id, "where": "everywhere"}), &action, sent);
    assert_eq!(stuck["super_sticky"], true);
    let reply = requests
        .office
        .call_successfully("create_reply", json!({"topic_id": id, "content": "Yes"}));
    let reply = reply["id"].as_u64().unwrap();
    let sent = json!({"content": "No", "topic_id": id});
    requests.run(
        "update_reply",
        json!({"id": reply, "content": "No"}),
        &format!("PUT /reply/{reply}"),
        sent,
    );
    let split = json!({"id": id, "reply_id": reply, "title": "Apart"});
    let sent =
        json!({"reply_id": reply, "split_option": "reply", "new_destination_title": "Apart"});
    requests.run("split_topic", split, &format!("POST /topics/split/{id}"), sent);
    requests.run(
        "delete_reply",
        json!({"id": reply}),
        &format!("DELETE /reply/{reply}"),
        json!({}),
    );
    let merge = json!({"id": id, "destination_id": other});
    let sent = json!({"destination_id": other});
    requests.run("merge_topics", merge, &format!("POST /topics/merge/{id}"), sent);
    let message = requests.office.fails("get_topic", json!({"id": id}));
    assert_eq!(message, format!("Error: Topic with ID {id} not found"));
    requests.seen = requests.site.platform_requests().len();
}

fn administration(requests: &mut ToolCalls) {
    let group = json!({"name": "With a forum", "status": "private", "enable_forum": true});
    let group = requests.office.call_successfully("create_group", group);
    assert!(group["forum"].as_u64().is_some_and(|id| id > 0), "{group}");
    let id = group["id"].as_u64().unwrap();
    let forum = group["forum"].as_u64().unwrap();
    requests.run("get_forum", json!({"id": forum}), &format!("GET /forums/{forum}"), json!({}));
    let route = |method: &str| format!("{method} /groups/{id}/settings");
    let query = json!({"nav": "group-settings"});
    requests.run("get_group_settings", json!({"id": id}), &route("GET"), query);
    let change = |name: &str, value: &str| json!({"id": id, name: value});
    requests.office.call_successfully("update_group_settings", change("status", "hidden"));
    requests.seen = requests.site.platform_requests().len();
    // Earlier values are sent again, because the site would reset them.
    let sent = json!({"nav": "group-settings", "fields": {"group-status": "hidden", "group-invite-status": "admins",
        "group-activity-feed-status": "members"}});
    requests.run("update_group_settings", change("invite_status", "admins"), &route("PUT"), sent);
    let picture = json!({"group_id": id, "file_name": "a.png", "data": DOT});
    let picture = requests.office.call_successfully("set_group_avatar", picture);
    assert_eq!(picture[0]["full"], "https://example.org/a.png");
    let message = json!({"group_id": id, "message": "Hi", "user_ids": "2,3"});
    let sent = json!({"group_id": id, "message": "Hi", "type": "open", "users": "individual", "users_list": [2, 3]});
    requests.run("message_group", message, "POST /messages/group", sent);
    let read = json!({"per_page": 100});
    requests.run("mark_all_notifications_read", json!({}), "PUT /notifications/bulk/read", read);
    let role =
        requests.office.call_successfully("set_member_role", json!({"id": 3, "roles": "author"}));
    assert_eq!(role["roles"], json!(["author"]));
    let own = requests.office.fails("set_member_role", json!({"id": 1, "roles": ["subscriber"]}));
    assert!(own.starts_with("Error: these are your own roles"), "{own}");
}
