//! Builds the HTTP request for one call of an operation.

pub(crate) mod body;
pub mod upload;

use bytes::Bytes;
use creole::ToolError;
use creole::internal::fetch::FetchRequest;
use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::security::Credential;
use crate::openapi::request::upload::{MultipartField, decode_base64, multipart};
use crate::openapi::style::ParameterSlot;
use crate::recipe::argument::{invalid_argument, text};
use crate::recipe::http::request::{
    ACCEPT_VALUE, USER_AGENT_VALUE, authorize, invalid_secret, to_http_method,
};
use crate::recipe::http::{Auth, RequestMethod, encode};
use crate::recipe::secret::{Secret, SecretSource};

/// The request template of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOperation {
    /// The method.
    pub verb: RequestMethod,
    /// The path after the base URL of the service.
    pub path: Vec<Piece>,
    /// Query parameters.
    pub query: Vec<ParameterSlot>,
    /// Headers.
    pub headers: Vec<ParameterSlot>,
    /// Cookies.
    pub cookies: Vec<ParameterSlot>,
    /// The body.
    pub body: Option<RequestPayload>,
    /// The credentials.
    pub credentials: Vec<Credential>,
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// The value of an argument.
    Value(ParameterSlot),
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPayload {
    /// JSON: one argument is the whole body.
    Whole {
        /// The media type.
        media: String,
        /// The argument.
        argument: String,
    },
    /// JSON: each argument is a member.
    Members {
        /// The media type.
        media: String,
        /// Pairs of argument and member.
        members: Vec<(String, String)>,
        /// Whether the body is sent even without members.
        required: bool,
    },
    /// A URL-encoded form.
    Form(Vec<ParameterSlot>),
    /// A multipart form.
    Multipart(Vec<MultipartField>),
    /// Bytes, given in Base64.
    Bytes {
        /// The media type.
        media: String,
        /// The argument.
        argument: String,
    },
    /// A text.
    Text {
        /// The media type.
        media: String,
        /// The argument.
        argument: String,
    },
}

/// The arguments of one call.
pub(super) type ArgumentMap = Map<String, Value>;

/// The settings that all operations of a service share.
pub(super) struct ServiceContext<'a> {
    /// The base URL of the service.
    pub(super) base: &'a str,
    /// Headers of every request.
    pub(super) headers: &'a [(String, Secret)],
    /// The credentials of every request.
    pub(super) auth: Option<&'a Auth>,
}

impl ApiOperation {
    /// Builds the request from its values and the fetched tokens, in order. Also returns the secrets to redact.
    pub(super) fn build(
        &self,
        common: &ServiceContext<'_>,
        values: &ArgumentMap,
        tokens: &[Secret],
    ) -> Result<(FetchRequest, Vec<Secret>), ToolError> {
        let mut address = self.address(common.base, values)?;
        let mut query = String::new();
        for slot in &self.query {
            if let Some(value) = argument_value(values, &slot.argument) {
                slot.write_query(value, &mut query)?;
            }
        }
        let mut headers = self.headers(values)?;
        let mut secrets = Vec::new();
        for (name, value) in common.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid_secret())?;
            headers.insert(name, HeaderValue::from_str(&value.0).map_err(|_| invalid_secret())?);
        }
        let mut cookies = self.cookies(values)?;
        let mut tokens = tokens.iter();
        for credential in &self.credentials {
            match credential {
                Credential::Client(_) => {
                    let token = tokens.next().cloned().ok_or_else(invalid_secret)?;
                    authorize(
                        &Auth::Bearer(SecretSource::Inline(token)),
                        &mut headers,
                        &mut secrets,
                    )?;
                }
                Credential::Header(auth) => authorize(auth, &mut headers, &mut secrets)?,
                Credential::Query { name, value } => {
                    let value = value.get()?;
                    encode::push_parameter(name, &value.0, &mut query);
                    secrets.push(value);
                }
                Credential::Cookie { name, value } => {
                    let value = value.get()?;
                    cookies.push(format!("{name}={}", value.0));
                    secrets.push(value);
                }
            }
        }
        if let Some(auth) = common.auth {
            authorize(auth, &mut headers, &mut secrets)?;
        }
        if !cookies.is_empty() {
            let mut value =
                HeaderValue::from_str(&cookies.join("; ")).map_err(|_| invalid_secret())?;
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        if !query.is_empty() {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(&query);
        }
        let url = address
            .parse()
            .map_err(|_| ToolError::failed("the URL cannot be built from the arguments"))?;
        let body = match self.body.as_ref().map(|body| body.write(values)).transpose()?.flatten() {
            Some((media, body)) => {
                let media = HeaderValue::from_str(&media).map_err(|_| invalid_secret())?;
                headers.insert(CONTENT_TYPE, media);
                body
            }
            None => Bytes::new(),
        };
        Ok((FetchRequest { method: to_http_method(self.verb), url, headers, body }, secrets))
    }

    fn address(&self, base: &str, values: &ArgumentMap) -> Result<String, ToolError> {
        let mut path = String::new();
        let mut places = Vec::new();
        for piece in &self.path {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Value(slot) => {
                    places.push((path.len(), slot.argument.as_str()));
                    let value = argument_value(values, &slot.argument);
                    let value =
                        value.ok_or_else(|| invalid_argument(&slot.argument, "is missing"))?;
                    slot.write_path(value, &mut path)?;
                }
            }
        }
        encode::check_path(&path, &places)?;
        Ok(format!("{base}{path}"))
    }

    fn headers(&self, values: &ArgumentMap) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, USER_AGENT_VALUE);
        headers.insert(ACCEPT, ACCEPT_VALUE);
        for slot in &self.headers {
            let Some(value) = argument_value(values, &slot.argument) else { continue };
            let value = slot.format_header(value)?;
            let value = Some(&value).filter(|value| value.is_ascii());
            let value = value.and_then(|value| HeaderValue::from_str(value).ok());
            let value = value.ok_or_else(|| {
                invalid_argument(
                    &slot.argument,
                    "contains a character that is not allowed in a header",
                )
            })?;
            let name = HeaderName::from_bytes(slot.name.as_bytes())
                .map_err(|_| ToolError::failed("a header of the request is invalid"))?;
            headers.insert(name, value);
        }
        Ok(headers)
    }

    fn cookies(&self, values: &ArgumentMap) -> Result<Vec<String>, ToolError> {
        let mut cookies = Vec::new();
        for slot in &self.cookies {
            if let Some(value) = argument_value(values, &slot.argument) {
                let mut pairs = String::new();
                slot.write_query(value, &mut pairs)?;
                cookies.extend(pairs.split('&').filter(|text| !text.is_empty()).map(str::to_owned));
            }
        }
        Ok(cookies)
    }
}

/// The value of an argument; null counts as absent.
pub(super) fn argument_value<'a>(values: &'a ArgumentMap, argument: &str) -> Option<&'a Value> {
    values.get(argument).filter(|value| !value.is_null())
}

impl RequestPayload {
    /// The media type and the bytes; `None` if the call has no body.
    fn write(&self, values: &ArgumentMap) -> Result<Option<(String, Bytes)>, ToolError> {
        Ok(match self {
            Self::Whole { media, argument } => {
                values.get(argument).map(|value| (media.clone(), Bytes::from(value.to_string())))
            }
            Self::Members { media, members, required } => {
                // Null has a meaning in a body: it may remove a value.
                let member = |(argument, name): &(String, String)| {
                    values.get(argument).map(|value| (name.clone(), value.clone()))
                };
                let object: Map<String, Value> = members.iter().filter_map(member).collect();
                let is_sent = *required || !object.is_empty();
                is_sent.then(|| (media.clone(), Bytes::from(Value::Object(object).to_string())))
            }
            Self::Form(slots) => {
                let mut form = String::new();
                for slot in slots {
                    if let Some(value) = argument_value(values, &slot.argument) {
                        slot.write_query(value, &mut form)?;
                    }
                }
                let media = "application/x-www-form-urlencoded".to_owned();
                (!form.is_empty()).then(|| (media, Bytes::from(form)))
            }
            Self::Multipart(fields) => Some(multipart(fields, values)?),
            Self::Bytes { media, argument } => match argument_value(values, argument) {
                Some(value) => Some((media.clone(), decode_base64(argument, value)?.into())),
                None => None,
            },
            Self::Text { media, argument } => argument_value(values, argument)
                .map(|value| (media.clone(), Bytes::from(text(value)))),
        })
    }
}
