//! Where a claim is: a name, or names with dots between them.

use serde_json::{Map, Value};

/// The path of a claim, such as `realm_access.roles`.
///
/// A member whose name has dots itself, such as `https://example.com/roles`, is found too: longer names are tried first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPath(String);

impl ClaimPath {
    /// A path. `None` if it is empty, longer than 256 bytes, or has an empty name.
    pub fn new(text: &str) -> Option<Self> {
        let is_right = text.len() <= 256 && text.split('.').all(|name| !name.is_empty());
        is_right.then(|| Self(text.to_owned()))
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first name, which is that of the claim itself unless it has dots.
    pub fn find<'a>(&self, claims: &'a Map<String, Value>) -> Option<&'a Value> {
        find(claims, &self.0)
    }
}

fn find<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    let splits = path.char_indices().rev().filter(|(_, it)| *it == '.');
    for (at, _) in splits {
        if let Some(Value::Object(inner)) = object.get(&path[..at]) {
            return find(inner, &path[at + 1..]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ClaimPath;

    #[test]
    fn a_path_leads_to_nested_claims_and_to_names_with_dots() {
        let claims = json!({
            "roles": ["a"],
            "realm_access": { "roles": ["b"], "x.y": { "z": 1 } },
            "https://example.com/roles": ["c"],
            "https://example.com/claims": { "roles": ["d"] },
        });
        let find =
            |text: &str| ClaimPath::new(text).unwrap().find(claims.as_object().unwrap()).cloned();
        assert_eq!(find("roles"), Some(json!(["a"])));
        assert_eq!(find("realm_access.roles"), Some(json!(["b"])));
        assert_eq!(find("realm_access.x.y.z"), Some(json!(1)));
        assert_eq!(find("https://example.com/roles"), Some(json!(["c"])));
        assert_eq!(find("https://example.com/claims.roles"), Some(json!(["d"])));
        for path in ["x", "roles.a", "realm_access.none", "realm_access.roles.0"] {
            assert_eq!(find(path), None, "{path}");
        }
        for text in ["", ".", "a.", ".a", "a..b", &"a".repeat(257)] {
            assert_eq!(ClaimPath::new(text), None, "{text}");
        }
    }
}
