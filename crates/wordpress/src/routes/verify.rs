//! Verifies writes: the written item is read again.

use creole::ToolError;
use serde_json::{Map, Value};

use super::index::{RouteAction, RouteEndpoint, RoutePart};
use crate::login::users::SiteUser;
use crate::site::site_error::{SiteError, strip_markup};
use crate::site::{Site, SiteRequest, SiteResponse};

/// The note on a write that cannot be verified.
const NOT_VERIFIED: &str = "The result was not verified";

/// The response to a write, after its values were found at the site. `sent` contains the arguments outside of the
/// route.
pub(super) async fn verify_write(
    site: &Site,
    user: &SiteUser,
    endpoint: &RouteEndpoint,
    request: &SiteRequest,
    sent: &Map<String, Value>,
    response: SiteResponse,
) -> Result<SiteResponse, ToolError> {
    let names_an_item = matches!(endpoint.parts.last(), Some(RoutePart::Argument { .. }));
    let route = match endpoint.verb {
        RouteAction::Read => return Ok(response),
        RouteAction::Create => item_id(&response.body).map(|id| format!("{}/{id}", request.route)),
        RouteAction::Update => Some(request.route.clone()),
        RouteAction::Delete => names_an_item.then(|| request.route.clone()),
    };
    let Some(route) = route else {
        return Ok(response.with_note(format!("{NOT_VERIFIED}: the response has no item.")));
    };
    let found = read_item(site, user, &route).await;
    match (endpoint.verb, found) {
        (RouteAction::Delete, Err(SiteError::Refused(refusal))) if is_gone(refusal.status) => {
            Ok(response)
        }
        (RouteAction::Delete, Ok(item)) if item["status"] == "trash" => Ok(response),
        (RouteAction::Delete, Ok(_)) => Err(verification_error("it is still there")),
        (RouteAction::Create, Err(SiteError::Refused(refusal)))
            if is_gone(refusal.status) && !refusal.is_missing_route() =>
        {
            Err(verification_error("nothing was created"))
        }
        (verb, Ok(item)) => match differences(sent, &item) {
            (names, 0) if verb == RouteAction::Update && !names.is_empty() => {
                Err(verification_error(&format!(
                    "the site stored none of these values: {}",
                    names.join(", ")
                )))
            }
            (names, _) if !names.is_empty() => {
                let names = names.join(", ");
                Ok(response.with_note(format!("The site stored different values for: {names}.")))
            }
            _ => Ok(response),
        },
        (_, Err(error)) => {
            let reason = error.to_message(false);
            Ok(response.with_note(format!("{NOT_VERIFIED}: {reason}.")))
        }
    }
}

fn verification_error(description: &str) -> ToolError {
    ToolError::failed(format!("the site reported success, but {description}"))
}

fn is_gone(status: u16) -> bool {
    [404, 410].contains(&status)
}

/// Reads the item in the edit context, or else in the view context.
async fn read_item(site: &Site, user: &SiteUser, route: &str) -> Result<Value, SiteError> {
    let edited = SiteRequest::get(route).with_query("context", "edit");
    match site.request(Some(&user.credentials), &edited).await {
        Err(SiteError::Refused(refusal)) if [400, 401, 403].contains(&refusal.status) => {
            site.request(Some(&user.credentials), &SiteRequest::get(route)).await
        }
        answer => answer,
    }
    .map(|response| response.body)
}

fn item_id(body: &Value) -> Option<u64> {
    body["id"].as_u64().or_else(|| body["id"].as_str()?.parse().ok()).filter(|id| *id > 0)
}

/// The sent values that differ at the site, and the number of values that match. Values that the site does not show,
/// such as a password, count as neither.
fn differences(sent: &Map<String, Value>, item: &Value) -> (Vec<String>, usize) {
    let (mut names, mut same) = (Vec::new(), 0);
    for (name, value) in sent {
        let Some(stored) = item.get(name) else { continue };
        match is_same(value, stored) {
            None => {}
            Some(true) => same += 1,
            Some(false) => names.push(format!("`{name}`")),
        }
    }
    (names, same)
}

/// Whether two values are equal, if that can be decided: the site may add markup to a text.
fn is_same(sent: &Value, stored: &Value) -> Option<bool> {
    let text = |value: &Value| match value {
        Value::String(text) => {
            Some(strip_markup(text).split_whitespace().collect::<Vec<_>>().join(" "))
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    match (sent, stored) {
        (Value::Array(sent), Value::Array(stored)) => {
            let set = |items: &[Value]| -> Option<Vec<String>> {
                let mut texts = items.iter().map(text).collect::<Option<Vec<_>>>()?;
                texts.sort();
                Some(texts)
            };
            Some(set(sent)? == set(stored)?)
        }
        (sent, Value::Object(_)) => {
            let forms = [&stored["raw"], &stored["rendered"]].map(text);
            let known: Vec<String> = forms.into_iter().flatten().collect();
            let sent = text(sent)?;
            (!known.is_empty()).then(|| known.contains(&sent))
        }
        (sent, stored) => Some(text(sent)? == text(stored)?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sent_values_are_compared_with_stored_ones() {
        let sent = json!({"title": "A & b", "status": "publish", "tags": [2, 1], "password": "x", "meta": {}});
        let sent = sent.as_object().unwrap();
        let stored =
            json!({"title": {"raw": "A & b"}, "status": "pending", "tags": [1, 2], "meta": []});
        assert_eq!(differences(sent, &stored), (vec!["`status`".to_owned()], 2));
        let rendered = json!({"title": {"rendered": "<p>A &amp; b</p>\n"}});
        assert_eq!(differences(sent, &rendered), (Vec::new(), 1));
    }
}
