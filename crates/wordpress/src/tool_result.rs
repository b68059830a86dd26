//! Converts a site's response to a tool result: without members that only themes need, and with a limited size.

use creole::{Content, ToolResult};

use super::site::SiteResponse;
use creole_tools::ordered_value::OrderedValue;

/// Members that a site should not send and a model should not read.
const SECRET_FIELDS: &[&str] = &["user_pass", "user_activation_key"];
/// Maximum size of a result's text, in bytes.
const MAX_RESULT_BYTES: usize = 100 * 1024;

/// The result for a response, on this page of a list.
pub(super) fn to_tool_result(mut response: SiteResponse, page: u64) -> ToolResult {
    remove_decoration(&mut response.display);
    let mut notes: Vec<String> =
        page_position(&response, page).into_iter().chain(response.notes).collect();
    let text = match &response.display {
        OrderedValue::Array(items) => {
            let (text, shown) = take_fitting(items);
            if shown < items.len() {
                let all = items.len();
                notes.push(format!(
                    "Only the first {shown} of {all} are shown: ask for fewer with per_page."
                ));
            }
            text
        }
        body => {
            let mut text = body.to_string();
            if text.len() > MAX_RESULT_BYTES {
                text.truncate(text.floor_char_boundary(MAX_RESULT_BYTES));
                notes.push("Truncated: the result is longer than the limit.".to_owned());
            }
            text
        }
    };
    let content = std::iter::once(text).chain(notes).map(Content::text).collect();
    ToolResult { content, ..ToolResult::default() }
}

/// The position of a page in its list. For a page beyond the end, the platform sends neither the total nor the number
/// of pages.
fn page_position(response: &SiteResponse, page: u64) -> Option<String> {
    let OrderedValue::Array(items) = &response.display else { return None };
    match response.totals {
        Some((total, pages)) if page > pages.max(1) => {
            Some(format!("Page {page} is past the end: there are {pages} pages, {total} in total."))
        }
        None if page > 1 && items.is_empty() => Some(format!("Page {page} is past the end.")),
        Some((total, pages @ 2..)) => Some(format!("Page {page} of {pages}, {total} in total.")),
        _ => None,
    }
}

/// As many items as fit, and their number.
fn take_fitting(items: &[OrderedValue]) -> (String, usize) {
    let mut text = "[".to_owned();
    for (index, item) in items.iter().enumerate() {
        let item = item.to_string();
        if text.len() + item.len() + 2 > MAX_RESULT_BYTES {
            text.push(']');
            return (text, index);
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text.push(']');
    (text, items.len())
}

/// Removes members that only themes need: links between routes, images, rendered markup.
fn remove_decoration(value: &mut OrderedValue) {
    match value {
        OrderedValue::Array(items) => items.iter_mut().for_each(remove_decoration),
        OrderedValue::Object(members) => {
            members
                .retain(|(key, _)| !is_decoration(key) && !SECRET_FIELDS.contains(&key.as_str()));
            members.iter_mut().for_each(|(_, value)| remove_decoration(value));
        }
        OrderedValue::Leaf(_) => {}
    }
}

fn is_decoration(key: &str) -> bool {
    ["_links", "avatar", "avatar_urls", "cover_url", "cover_is_default", "can_see_hidden"]
        .contains(&key)
        || key.ends_with("_html")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn texts(shown: OrderedValue, extent: Option<(u64, u64)>) -> Vec<String> {
        let text = |content: &Content| match content {
            Content::Text { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        to_tool_result(SiteResponse { totals: extent, ..SiteResponse::from_display(shown) }, 1)
            .content
            .iter()
            .map(text)
            .collect()
    }

    #[test]
    fn a_list_has_its_items_and_the_next_page() {
        let items = r#"[{"id": 1, "_links": {}, "avatar_urls": {}, "a": {"b_html": "", "c": 1}}]"#;
        let items: OrderedValue = serde_json::from_str(items).unwrap();
        let expected = r#"[{"id":1,"a":{"c":1}}]"#;
        assert_eq!(texts(items.clone(), Some((1, 1))), [expected]);
        assert_eq!(texts(items, Some((25, 9))), [expected, "Page 1 of 9, 25 in total."]);
        assert_eq!(texts(json!([]).into(), None), ["[]"]);
    }

    #[test]
    fn a_page_after_the_end_is_not_reported_as_existing() {
        let told = |extent| {
            let list =
                SiteResponse { totals: extent, ..SiteResponse::from_display(json!([]).into()) };
            page_position(&list, 5)
        };
        let known = "Page 5 is past the end: there are 3 pages, 25 in total.";
        assert_eq!(told(Some((25, 3))).as_deref(), Some(known));
        assert_eq!(told(None).as_deref(), Some("Page 5 is past the end."));
        assert_eq!(told(Some((50, 5))).as_deref(), Some("Page 5 of 5, 50 in total."));
    }

    #[test]
    fn a_long_list_is_cut_between_items_and_says_so() {
        let items: Vec<Value> =
            (0..9).map(|id| json!({"id": id, "x": "x".repeat(30_000)})).collect();
        let messages = texts(Value::from(items).into(), None);
        let shown: Vec<Value> = serde_json::from_str(&messages[0]).unwrap();
        assert_eq!(shown.len(), 3);
        assert_eq!(messages[1], "Only the first 3 of 9 are shown: ask for fewer with per_page.");
        assert_eq!(texts(json!("ä".repeat(MAX_RESULT_BYTES)).into(), None).len(), 2);
    }
}
