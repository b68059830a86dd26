//! Guards against writes that the site would report as done without performing them, or that are never intended.

/// The error for a write that the platform would falsely report as done.
pub(super) const LATE_AUTH_ERROR: &str = "this site checks Application Passwords too late for \
    BuddyBoss to see the user, so this call would have no effect; `creole check --wordpress` \
    shows what to add to the site";

/// The note on a list that the platform fills for a logged-out visitor.
pub(super) const LATE_AUTH_NOTE: &str = "This is the result for a visitor who is not logged in: \
    the site checks Application Passwords too late for BuddyBoss to see the user. `creole check \
    --wordpress` shows what to add to the site.";

/// The error for callers that would delete their own account.
pub(super) const OWN_ACCOUNT_ERROR: &str = "this is your own account: the site could lose its only administrator, and you \
                                     your access; ask another administrator to delete it. Nothing was changed";

/// Whether deleting this route deletes the account of the user with this id.
pub(super) fn deletes_user(route: &str, user: u64) -> bool {
    let parts: Vec<&str> = route.trim_matches('/').split('/').collect();
    match &parts[..] {
        [_, _, "users" | "members", who] => *who == "me" || who.parse() == Ok(user),
        _ => false,
    }
}

/// Whether a route belongs to the platform, which determines the logged-in user before WordPress checks passwords.
pub(super) fn is_platform_route(route: &str) -> bool {
    let rest = route.trim_start_matches('/').strip_prefix(crate::site::platform::NAMESPACE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a route is a single post of the feed.
pub(super) fn is_activity_route(route: &str) -> bool {
    let rest = route.trim_start_matches('/').strip_prefix(crate::site::platform::NAMESPACE);
    let id = rest.and_then(|rest| rest.strip_prefix("/activity/"));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_the_caller_is_recognized_in_a_route() {
        for own in ["/wp/v2/users/7", "/wp/v2/users/me", "/buddyboss/v1/members/007"] {
            assert!(deletes_user(own, 7), "{own}");
        }
        for other in ["/wp/v2/users/8", "/wp/v2/posts/7", "/buddyboss/v1/groups/3/members/7"] {
            assert!(!deletes_user(other, 7), "{other}");
        }
        assert!(is_platform_route("/buddyboss/v1/activity/3/comment"));
        assert!(is_activity_route("/buddyboss/v1/activity/3"));
        assert!(
            !is_activity_route("/buddyboss/v1/activity/3/pin")
                && !is_activity_route("/wp/v2/activity/3")
        );
        assert!(!is_platform_route("/buddyboss/v10/x") && !is_platform_route("/wp/v2/posts"));
    }
}
