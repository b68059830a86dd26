//! The request of one call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use creole::ToolError;
use creole::client::http::fetch::Sent;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

use super::{Auth, HttpRecipe, NOTHING, Verb, encode};
use crate::recipe::argument::{Values, refused, text};
use crate::recipe::secret::Secret;

/// What we call ourselves.
pub(crate) const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("creole/", env!("CARGO_PKG_VERSION")));
/// What we like to have.
pub(crate) const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/json, text/*;q=0.9, image/*;q=0.8, */*;q=0.1");
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The request with its values, and what must not be shown.
pub(super) fn build(
    recipe: &HttpRecipe,
    values: &Values<'_>,
) -> Result<(Sent, Vec<Secret>), ToolError> {
    let address = address(recipe, values)?;
    let url = address.parse().map_err(|_| ToolError::failed("its address cannot be written"))?;
    let mut headers = headers(recipe, values)?;
    let mut secrets = Vec::new();
    if let Some(auth) = &recipe.auth {
        authorize(auth, &mut headers, &mut secrets)?;
    }
    let body = match recipe.body.as_ref().and_then(|body| body.fill(values)) {
        Some(body) => {
            headers.entry(CONTENT_TYPE).or_insert(JSON);
            Bytes::from(body.to_string())
        }
        None => NOTHING,
    };
    Ok((Sent { method: method(recipe.method), url, headers, body }, secrets))
}

/// The method as HTTP has it.
pub(crate) fn method(verb: Verb) -> Method {
    match verb {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Put => Method::PUT,
        Verb::Patch => Method::PATCH,
        Verb::Delete => Method::DELETE,
    }
}

fn address(recipe: &HttpRecipe, values: &Values<'_>) -> Result<String, ToolError> {
    let mut address = encode::url(&recipe.url, values)?;
    let mut query = String::new();
    for (name, template) in &recipe.query {
        if let Some(argument) = template.only()
            && let Some(Value::Array(items)) = values.get(argument)
        {
            items.iter().for_each(|item| encode::parameter(name, &text(item), &mut query));
        } else if let Some(value) = template.fill(|argument| values.text(argument)) {
            encode::parameter(name, &value, &mut query);
        }
    }
    if !query.is_empty() {
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(&query);
    }
    Ok(address)
}

fn headers(recipe: &HttpRecipe, values: &Values<'_>) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, AGENT);
    headers.insert(ACCEPT, ACCEPTED);
    for (name, template) in &recipe.headers {
        let Some(value) = template.fill(|argument| values.text(argument)) else { continue };
        let argument = template.names().next().unwrap_or_default();
        let value = Some(&value).filter(|value| value.is_ascii());
        let value = value.and_then(|value| HeaderValue::from_str(value).ok());
        let value =
            value.ok_or_else(|| refused(argument, "has a character that headers cannot carry"))?;
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ToolError::failed("one of its headers cannot be sent"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Adds what is shown at the door to the headers, and to what must not be shown.
pub(crate) fn authorize(
    auth: &Auth,
    headers: &mut HeaderMap,
    secrets: &mut Vec<Secret>,
) -> Result<(), ToolError> {
    let (name, value) = match auth {
        Auth::Bearer(token) => {
            let token = token.get()?;
            let value = format!("Bearer {}", token.0);
            secrets.push(token);
            (AUTHORIZATION, value)
        }
        Auth::Basic { user, password } => {
            let password = password.get()?;
            let both = STANDARD.encode(format!("{user}:{}", password.0));
            secrets.extend([password, Secret(both.clone())]);
            (AUTHORIZATION, format!("Basic {both}"))
        }
        Auth::Header { name, value } => {
            let value = value.get()?;
            secrets.push(value.clone());
            let name = HeaderName::from_bytes(name.as_bytes());
            (name.map_err(|_| unusable())?, value.0)
        }
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| unusable())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

pub(crate) fn unusable() -> ToolError {
    ToolError::failed("its credentials cannot be sent in a header")
}
