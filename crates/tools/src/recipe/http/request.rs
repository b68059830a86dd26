//! Builds the request of one call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use creole::ToolError;
use creole::internal::fetch::FetchRequest;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

use super::{Auth, EMPTY_BODY, HttpRecipe, RequestMethod, encode};
use crate::recipe::argument::{ArgumentValues, invalid_argument, text};
use crate::recipe::secret::Secret;

/// The `User-Agent` header.
pub(crate) const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("creole/", env!("CARGO_PKG_VERSION")));
/// The `Accept` header.
pub(crate) const ACCEPT_VALUE: HeaderValue =
    HeaderValue::from_static("application/json, text/*;q=0.9, image/*;q=0.8, */*;q=0.1");
pub(crate) const JSON_TYPE: HeaderValue = HeaderValue::from_static("application/json");

/// The request with its values, and the secrets to redact.
pub(super) fn build_request(
    recipe: &HttpRecipe,
    values: &ArgumentValues<'_>,
) -> Result<(FetchRequest, Vec<Secret>), ToolError> {
    let address = address(recipe, values)?;
    let url = address
        .parse()
        .map_err(|_| ToolError::failed("the URL cannot be built from the arguments"))?;
    let mut headers = headers(recipe, values)?;
    let mut secrets = Vec::new();
    if let Some(auth) = &recipe.auth {
        authorize(auth, &mut headers, &mut secrets)?;
    }
    let body = match recipe.body.as_ref().and_then(|body| body.fill(values)) {
        Some(body) => {
            headers.entry(CONTENT_TYPE).or_insert(JSON_TYPE);
            Bytes::from(body.to_string())
        }
        None => EMPTY_BODY,
    };
    Ok((FetchRequest { method: to_http_method(recipe.method), url, headers, body }, secrets))
}

/// The HTTP method.
pub(crate) fn to_http_method(verb: RequestMethod) -> Method {
    match verb {
        RequestMethod::Get => Method::GET,
        RequestMethod::Post => Method::POST,
        RequestMethod::Put => Method::PUT,
        RequestMethod::Patch => Method::PATCH,
        RequestMethod::Delete => Method::DELETE,
    }
}

fn address(recipe: &HttpRecipe, values: &ArgumentValues<'_>) -> Result<String, ToolError> {
    let mut address = encode::build_url(&recipe.url, values)?;
    let mut query = String::new();
    for (name, template) in &recipe.query {
        if let Some(argument) = template.single_argument()
            && let Some(Value::Array(items)) = values.get(argument)
        {
            items.iter().for_each(|item| encode::push_parameter(name, &text(item), &mut query));
        } else if let Some(value) = template.fill(|argument| values.to_text(argument)) {
            encode::push_parameter(name, &value, &mut query);
        }
    }
    if !query.is_empty() {
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(&query);
    }
    Ok(address)
}

fn headers(recipe: &HttpRecipe, values: &ArgumentValues<'_>) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, USER_AGENT_VALUE);
    headers.insert(ACCEPT, ACCEPT_VALUE);
    for (name, template) in &recipe.headers {
        let Some(value) = template.fill(|argument| values.to_text(argument)) else { continue };
        let argument = template.names().next().unwrap_or_default();
        let value = Some(&value).filter(|value| value.is_ascii());
        let value = value.and_then(|value| HeaderValue::from_str(value).ok());
        let value = value.ok_or_else(|| {
            invalid_argument(argument, "contains a character that is not allowed in a header")
        })?;
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ToolError::failed("a header of the request is invalid"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Adds the credentials to the headers and to the secrets to redact.
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
            (name.map_err(|_| invalid_secret())?, value.0)
        }
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| invalid_secret())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

pub(crate) fn invalid_secret() -> ToolError {
    ToolError::failed("the credentials contain a character that is not allowed in a header")
}
