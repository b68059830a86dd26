//! Tools that change things rarely changed, or that belong to the second phase: what each asks of the site, and that it succeeds.

use creole_acceptance::peers::wordpress::RunningSite;
use serde_json::{Value, json};

use crate::real::{Office, early_auth, site};

/// The site, the server in front of it, and how much of what the site was asked has been looked at.
struct Errands {
    site: RunningSite,
    office: Office,
    seen: usize,
}

impl Errands {
    /// Calls a tool, which succeeds and asks the platform this last; the data that it answers with.
    #[track_caller]
    fn run(&mut self, tool: &str, arguments: Value, request: &str, sent: Value) -> Value {
        let told = self.office.does(tool, arguments);
        let asked = self.site.asked();
        let last = asked.last().filter(|_| asked.len() > self.seen);
        let last = last.unwrap_or_else(|| panic!("{tool} asked nothing"));
        let line =
            format!("{} {}", last["method"].as_str().unwrap(), last["route"].as_str().unwrap());
        assert_eq!(line, request, "{tool}: {last}");
        let place =
            if line.starts_with("GET") || line.starts_with("DELETE") { "query" } else { "body" };
        assert_eq!(last[place], sent, "{tool}: {last}");
        self.seen = asked.len();
        told
    }
}

#[test]
fn each_tool_asks_its_route_and_tells_what_it_answers() {
    let Some(site) = site(&[]) else { return };
    site.plugin("early-auth.php", Some(&early_auth()));
    let office = Office::with_every_tool(&site, "admin");
    let mut errands = Errands { site, office, seen: 0 };
    friendship(&mut errands);
    activity(&mut errands);
    notifications(&mut errands);
    forums(&mut errands);
    moderation(&mut errands);
}

fn friendship(errands: &mut Errands) {
    let asked = json!({"friend_id": 1, "initiator_id": 2});
    let request = errands.run("add_friend", asked.clone(), "POST /friends", asked);
    let id = request["id"].as_u64().unwrap();
    let accepted =
        errands.run("accept_friend", json!({"id": id}), &format!("PUT /friends/{id}"), json!({}));
    assert_eq!(accepted["is_confirmed"], 1);
    let query = json!({"user_id": "1", "is_confirmed": "1", "per_page": "20"});
    let friends = errands.run("list_friends", json!({}), "GET /friends", query);
    assert_eq!(friends[0]["id"], id);
    // A confirmed friendship is ended by naming the friend, and looked for afterwards.
    let before = errands.seen;
    errands.run("remove_friend", json!({"id": id}), &format!("GET /friends/{id}"), json!({}));
    let ended = errands.site.asked().split_off(before);
    let ended = ended.iter().find(|asked| asked["method"] == "DELETE").unwrap();
    assert_eq!(
        (&ended["route"], &ended["query"]),
        (&json!("/friends"), &json!({"friend_id": "2"}))
    );
}

fn activity(errands: &mut Errands) {
    let post = errands.run(
        "create_activity",
        json!({"content": "Hello"}),
        "POST /activity",
        json!({"content": "Hello"}),
    );
    let id = post["id"].as_u64().unwrap();
    let route = format!("PUT /activity/{id}");
    let changed = json!({"id": id, "content": "Hello all"});
    let sent = json!({"content": "Hello all", "user_id": 1});
    let changed = errands.run("update_activity", changed, &route, sent);
    assert_eq!(changed["content"], "Hello all");
    author_stays(errands);
}

/// A post of somebody else keeps its author when an administrator changes it.
fn author_stays(errands: &mut Errands) {
    errands.site.plugin(
        "post.php",
        Some(
            "<?php add_action( 'rest_api_init', fn() => count( test_all( 'activity' ) ) > 1 || \
             test_add( 'activity', array( 'user_id' => 3, 'content' => 'Mine' ) ), 99 );",
        ),
    );
    let all = errands.office.does("list_activities", json!({"search": "Mine"}));
    errands.site.plugin("post.php", None);
    let id = all[0]["id"].as_u64().unwrap();
    errands.office.does("update_activity", json!({"id": id, "content": "Changed"}));
    let after = errands.office.does("get_activity", json!({"id": id}));
    assert_eq!((&after["user_id"], &after["content"]), (&json!(3), &json!("Changed")));
    errands.seen = errands.site.asked().len();
}

fn notifications(errands: &mut Errands) {
    errands.site.plugin(
        "notify.php",
        Some(
            "<?php add_action( 'rest_api_init', fn() => test_all( 'notifications' ) || \
             test_add( 'notifications', array( 'user_id' => 1, 'is_new' => 1, 'component' => 'friends' ) ), 99 );",
        ),
    );
    let query = json!({"user_id": "1", "sort_order": "ASC", "per_page": "20"});
    let all =
        errands.run("list_notifications", json!({"sort": "ASC"}), "GET /notifications", query);
    let id = all[0]["id"].as_u64().unwrap();
    let route = |method: &str| format!("{method} /notifications/{id}");
    let one = errands.run("get_notification", json!({"id": id}), &route("GET"), json!({}));
    assert_eq!(one["component"], "friends");
    let read = errands.run(
        "mark_notification_read",
        json!({"id": id}),
        &route("PUT"),
        json!({"is_new": 0}),
    );
    assert_eq!(read["is_new"], 0);
    let again = json!({"id": id, "is_new": true});
    errands.run("mark_notification_read", again, &route("PUT"), json!({"is_new": 1}));
    errands.site.plugin("notify.php", None);
    let gone = errands.run("delete_notification", json!({"id": id}), &route("DELETE"), json!({}));
    assert_eq!(gone["deleted"], true);
}

fn forums(errands: &mut Errands) {
    let page = json!({"per_page": "20"});
    errands.run("list_forums", json!({}), "GET /forums", page);
    let topic = json!({"forum_id": 5, "title": "Rules", "content": "Be kind."});
    let sent = json!({"parent": 5, "title": "Rules", "content": "Be kind."});
    let topic = errands.run("create_topic", topic, "POST /topics", sent);
    let id = topic["id"].as_u64().unwrap();
    let query = json!({"parent": "5", "per_page": "20"});
    let topics = errands.run("list_topics", json!({"forum_id": 5}), "GET /topics", query);
    assert_eq!(topics[0]["title"], "Rules");
    errands.run("get_topic", json!({"id": id}), &format!("GET /topics/{id}"), json!({}));
    let reply = json!({"topic_id": id, "content": "Yes."});
    errands.run("create_reply", reply.clone(), "POST /reply", reply);
    let query = json!({"parent": id.to_string(), "per_page": "20"});
    let replies = errands.run("list_replies", json!({"topic_id": id}), "GET /reply", query);
    assert_eq!(replies[0]["content"], "Yes.");
    errands.run("delete_topic", json!({"id": id}), &format!("DELETE /topics/{id}"), json!({}));
    let query = json!({"user_id": "1", "per_page": "20"});
    errands.run("list_group_invites", json!({}), "GET /groups/invites", query);
    let query = json!({"group_id": "4", "per_page": "20"});
    let requests = json!({"group_id": 4});
    errands.run("list_membership_requests", requests, "GET /groups/membership-requests", query);
}

fn moderation(errands: &mut Errands) {
    let report =
        json!({"item_id": 7, "item_type": "activity", "report_category": "3", "note": "Spam"});
    errands.run("report_content", report.clone(), "POST /moderation/report", report);
    let blocked = json!({"user_id": 2});
    errands.run("block_member", blocked, "POST /moderation", json!({"item_id": 2}));
    let query = json!({"per_page": "20"});
    let all = errands.run("list_moderation_reports", json!({}), "GET /moderation", query);
    assert_eq!(all[0]["item_id"], 2);
}
