//! The index of a site's routes, and the routes that may become tools.

use serde_json::Value;

use super::schema;
pub(super) use super::schema::RoutePart;
use crate::AllowedRoutes;

/// Routes that never become tools: they fetch URLs of the caller's choice, create passwords, run code, or bundle
/// requests so that the inner ones are not checked.
const DENIED_ROUTES: &[&str] = &[
    "batch/v1",
    "oembed",
    "proxy",
    "application-passwords",
    "settings",
    "plugins",
    "themes",
    "block-renderer",
    "url-details",
    "link-preview",
    "edit",
    "upload",
    "import",
    "export",
];

/// The action on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RouteAction {
    Read,
    Create,
    Update,
    Delete,
}

/// One action on one route.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RouteEndpoint {
    pub(super) verb: RouteAction,
    pub(super) parts: Vec<RoutePart>,
    /// The schema of its arguments, including those in the route.
    pub(super) schema: Value,
}

impl RouteEndpoint {
    /// The route with the names of its arguments, without a leading slash.
    pub(super) fn template(&self) -> String {
        let part = |part: &RoutePart| match part {
            RoutePart::Text(text) => text.clone(),
            RoutePart::Argument { name, .. } => format!("{{{name}}}"),
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join("/")
    }
}

/// The endpoints that the index offers and the configuration allows, ordered by route.
pub(super) fn allowed_endpoints(index: &Value, allowed: &AllowedRoutes) -> Vec<RouteEndpoint> {
    let routes = index["routes"].as_object().into_iter().flatten();
    routes.flat_map(|(route, about)| endpoints_of_route(route, about, allowed)).collect()
}

fn endpoints_of_route(route: &str, about: &Value, allowed: &AllowedRoutes) -> Vec<RouteEndpoint> {
    let Some(parts) = parse_route(route) else { return Vec::new() };
    let text = |part: &RoutePart| match part {
        RoutePart::Text(text) => text.clone(),
        RoutePart::Argument { .. } => "*".to_owned(),
    };
    let path: Vec<String> = parts.iter().map(text).collect();
    // The namespace alone is an index, not data.
    if path.len() < 3 || is_denied(&path) {
        return Vec::new();
    }
    let mut endpoints: Vec<RouteEndpoint> = Vec::new();
    for endpoint in about["endpoints"].as_array().into_iter().flatten() {
        for verb in read_actions(&endpoint["methods"]) {
            let patterns = if verb == RouteAction::Read { &allowed.read } else { &allowed.write };
            let is_allowed = patterns.iter().any(|pattern| matches_pattern(pattern, &path));
            if is_allowed && endpoints.iter().all(|other| other.verb != verb) {
                let schema = schema::arguments_schema(&endpoint["args"], &parts);
                endpoints.push(RouteEndpoint { verb, parts: parts.clone(), schema });
            }
        }
    }
    endpoints
}

fn is_denied(path: &[String]) -> bool {
    let whole = path.join("/");
    DENIED_ROUTES.iter().any(|word| match word.contains('/') {
        true => whole.starts_with(word),
        false => path.iter().any(|part| part == word),
    })
}

/// The actions of methods; several changing methods are one action.
fn read_actions(methods: &Value) -> Vec<RouteAction> {
    let has = |name: &str| match methods {
        Value::Array(all) => all.iter().any(|method| method == name),
        Value::Object(all) => all.get(name).is_some_and(|is| *is == true),
        Value::String(all) => all.split(',').any(|method| method.trim() == name),
        _ => false,
    };
    let rows = [
        (has("GET"), RouteAction::Read),
        (has("POST") && !has("PUT"), RouteAction::Create),
        (has("PUT") || has("PATCH"), RouteAction::Update),
        (has("DELETE"), RouteAction::Delete),
    ];
    rows.into_iter().filter(|(has, _)| *has).map(|(_, verb)| verb).collect()
}

/// Whether a route matches a pattern: `*` matches any segment, and at the end the rest of the route.
fn matches_pattern(pattern: &str, path: &[String]) -> bool {
    let words: Vec<&str> = pattern.split('/').collect();
    let (words, is_open) = match words.split_last() {
        Some((&"*", rest)) => (rest, true),
        _ => (&words[..], false),
    };
    let is_long_enough =
        if is_open { path.len() >= words.len() } else { path.len() == words.len() };
    is_long_enough && words.iter().zip(path).all(|(word, part)| *word == "*" || word == part)
}

/// The segments of a route; `None` if one of its arguments may contain a slash, or is only a part of a segment.
fn parse_route(route: &str) -> Option<Vec<RoutePart>> {
    let mut parts = Vec::new();
    let mut rest = route.strip_prefix('/')?;
    while !rest.is_empty() {
        if let Some(group) = rest.strip_prefix("(?P<") {
            let (name, after) = group.split_once('>')?;
            let end = find_closing(after)?;
            let pattern = &after[..end];
            if pattern.contains('/') {
                return None;
            }
            let is_number = ["\\d+", "[\\d]+", "[0-9]+"].contains(&pattern);
            parts.push(RoutePart::Argument { name: name.to_owned(), is_number });
            rest = &after[end + 1..];
        } else {
            let end = rest.find('/').unwrap_or(rest.len());
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if end == 0 || !rest[..end].bytes().all(plain) {
                return None;
            }
            parts.push(RoutePart::Text(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = match rest.strip_prefix('/') {
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(parts)
}

/// The end of the group whose content begins the text: classes and escapes may contain parentheses.
fn find_closing(text: &str) -> Option<usize> {
    let (mut depth, mut in_class, mut is_escaped) = (0_usize, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => depth += 1,
            b')' if !in_class && depth == 0 => return Some(index),
            b')' if !in_class => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(route: &str) -> Option<String> {
        let parts = parse_route(route)?;
        Some(RouteEndpoint { verb: RouteAction::Read, parts, schema: Value::Null }.template())
    }

    #[test]
    fn routes_are_read_part_by_part() {
        let rows = [
            ("/wp/v2/posts", Some("wp/v2/posts")),
            ("/wp/v2/posts/(?P<id>[\\d]+)", Some("wp/v2/posts/{id}")),
            (
                "/wp/v2/posts/(?P<parent>[\\d]+)/revisions/(?P<id>[\\d]+)",
                Some("wp/v2/posts/{parent}/revisions/{id}"),
            ),
            ("/wp/v2/types/(?P<type>[\\w-]+)", Some("wp/v2/types/{type}")),
            ("/x/v1/a/(?P<b>(?:c|[)])+)/d", Some("x/v1/a/{b}/d")),
            ("/wp/v2/templates/(?P<id>([^\\/:<>\\*\\?\"\\|]+(?:\\/[^\\/]+)?)[\\/\\w%-]+)", None),
            ("/wp/v2/a(?P<id>[\\d]+)", None),
            ("/wp/v2/(?P<id>[\\d]+", None),
        ];
        for (route, expected) in rows {
            assert_eq!(template(route).as_deref(), expected, "{route}");
        }
    }

    #[test]
    fn only_allowed_and_no_denied_routes_are_used() {
        let endpoint = json!([{"methods": ["GET"], "args": {}}, {"methods": ["POST"], "args": []}]);
        let index = json!({"routes": {
            "/wp/v2": {"endpoints": endpoint}, "/wp/v2/posts": {"endpoints": endpoint},
            "/wp/v2/posts/(?P<id>[\\d]+)": {"endpoints": [
                {"methods": ["GET"]}, {"methods": ["POST", "PUT", "PATCH"]}, {"methods": ["DELETE"]}]},
            "/wp/v2/settings": {"endpoints": endpoint}, "/oembed/1.0/proxy": {"endpoints": endpoint},
            "/wp/v2/users/(?P<id>[\\d]+)/application-passwords": {"endpoints": endpoint},
        }});
        let told = |read: &[&str], write: &[&str]| {
            let owned = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
            let allowed = AllowedRoutes { read: owned(read), write: owned(write) };
            let told = |route_endpoint: &RouteEndpoint| {
                format!("{:?} {}", route_endpoint.verb, route_endpoint.template())
            };
            allowed_endpoints(&index, &allowed).iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&["wp/v2/*", "oembed/*"], &[]),
            ["Read wp/v2/posts", "Read wp/v2/posts/{id}"]
        );
        assert_eq!(told(&["wp/v2/posts"], &[]), ["Read wp/v2/posts"]);
        let written = ["Create wp/v2/posts", "Update wp/v2/posts/{id}", "Delete wp/v2/posts/{id}"];
        assert_eq!(told(&[], &["wp/v2/posts/*", "*/*/settings"]), written);
        assert_eq!(told(&[], &[]), Vec::<String>::new());
    }
}
