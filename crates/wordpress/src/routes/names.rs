//! The names of route tools, which are deterministic.

use std::collections::BTreeSet;

use super::index::{RouteAction, RouteEndpoint, RoutePart};

/// Maximum length of a name, in bytes. Clients add prefixes.
const MAX_NAME_BYTES: usize = 56;

/// The unique names of these endpoints, in order.
pub(super) fn tool_names(endpoints: &[RouteEndpoint]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut names = Vec::with_capacity(endpoints.len());
    for endpoint in endpoints {
        let plain = tool_name(endpoint);
        let mut chosen = plain.clone();
        let mut number = 2;
        while !seen.insert(chosen.clone()) {
            chosen = format!("{plain}_{number}");
            number += 1;
        }
        names.push(chosen);
    }
    names
}

/// `wp_list_posts`, `wp_get_post`, `wp_create_post`, `wp_update_post`, `wp_delete_post`.
fn tool_name(endpoint: &RouteEndpoint) -> String {
    let ends_in_argument = matches!(endpoint.parts.last(), Some(RoutePart::Argument { .. }));
    let texts = endpoint.parts.iter().filter_map(|part| match part {
        RoutePart::Text(text) => Some(text.as_str()),
        RoutePart::Argument { .. } => None,
    });
    let texts: Vec<&str> = texts.collect();
    let (namespace, route) = match &texts[..] {
        [namespace, version, route @ ..] if is_version(version) => (*namespace, route),
        [namespace, route @ ..] => (*namespace, route),
        [] => ("wp", &[][..]),
    };
    let verb = match endpoint.verb {
        RouteAction::Read if ends_in_argument => "get",
        RouteAction::Read => "list",
        RouteAction::Create => "create",
        RouteAction::Update => "update",
        RouteAction::Delete => "delete",
    };
    let mut words = vec![namespace.to_owned(), verb.to_owned()];
    for (index, word) in route.iter().enumerate() {
        let is_last = index + 1 == route.len();
        words.push(if is_last && verb != "list" { singular(word) } else { (*word).to_owned() });
    }
    let letter = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let mut name: String = words.join("_").chars().map(letter).collect();
    name.truncate(MAX_NAME_BYTES);
    name
}

fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    match word.strip_suffix("ses").map(|stem| format!("{stem}s")) {
        Some(word) => word,
        None if word.ends_with("ss") => word.to_owned(),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn endpoint(verb: RouteAction, route: &str) -> RouteEndpoint {
        let part = |part: &str| match part.strip_prefix(':') {
            Some(name) => RoutePart::Argument { name: name.to_owned(), is_number: true },
            None => RoutePart::Text(part.to_owned()),
        };
        RouteEndpoint { verb, parts: route.split('/').map(part).collect(), schema: Value::Null }
    }

    #[test]
    fn a_route_is_named_after_its_operation() {
        let all = [
            (RouteAction::Read, "wp/v2/posts", "wp_list_posts"),
            (RouteAction::Read, "wp/v2/posts/:id", "wp_get_post"),
            (RouteAction::Create, "wp/v2/categories", "wp_create_category"),
            (RouteAction::Update, "wp/v2/statuses/:id", "wp_update_status"),
            (RouteAction::Delete, "wp/v2/posts/:parent/revisions/:id", "wp_delete_posts_revision"),
            (RouteAction::Read, "wp-site-health/v1/tests/x", "wp_site_health_list_tests_x"),
            (RouteAction::Read, "wp/v2/posts/:slug", "wp_get_post_2"),
        ];
        let endpoints: Vec<RouteEndpoint> =
            all.iter().map(|(verb, route, _)| endpoint(*verb, route)).collect();
        let expected: Vec<&str> = all.iter().map(|(_, _, name)| *name).collect();
        assert_eq!(tool_names(&endpoints), expected);
    }
}
