//! Binary data in requests: calls provide it in Base64, services receive the bytes.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use creole::ToolError;
use creole::proto::wire::hex;
use serde_json::Value;

use crate::openapi::request::{ArgumentMap, argument_value};
use crate::recipe::argument::{invalid_argument, text};

/// Decodes Base64 with and without padding.
const BASE64: GeneralPurpose = {
    let padding = DecodePaddingMode::Indifferent;
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(padding))
};

/// A field of a multipart form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartField {
    /// Its argument.
    pub argument: String,
    /// Its name in the form.
    pub name: String,
    /// The media type, if it is a file.
    pub media: Option<String>,
}

/// Decodes the Base64 value of an argument. The maximum size of a message limits its size.
pub(crate) fn decode_base64(argument: &str, value: &Value) -> Result<Vec<u8>, ToolError> {
    let written = value.as_str().map(|text| BASE64.decode(text.trim_ascii()));
    match written {
        Some(Ok(bytes)) => Ok(bytes),
        _ => Err(invalid_argument(argument, "is not Base64")),
    }
}

/// A multipart form with an unpredictable boundary.
pub(crate) fn multipart(
    fields: &[MultipartField],
    values: &ArgumentMap,
) -> Result<(String, Bytes), ToolError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|_| ToolError::failed("the system provides no random bytes"))?;
    let boundary = String::from("creole-") + &hex(&random);
    let mut body = Vec::new();
    for field in fields {
        let Some(value) = argument_value(values, &field.argument) else { continue };
        let items = match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        for item in items {
            field.write(&boundary, item, &mut body)?;
        }
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), Bytes::from(body)))
}

impl MultipartField {
    fn write(&self, boundary: &str, item: &Value, body: &mut Vec<u8>) -> Result<(), ToolError> {
        let name = self.name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        body.extend_from_slice(head.as_bytes());
        match &self.media {
            // Services recognise a file by its file name.
            Some(media) => {
                let head = format!("; filename=\"{name}\"\r\nContent-Type: {media}\r\n\r\n");
                body.extend_from_slice(head.as_bytes());
                body.extend(decode_base64(&self.argument, item)?);
            }
            None => {
                body.extend_from_slice(b"\r\n\r\n");
                body.extend_from_slice(text(item).as_bytes());
            }
        }
        body.extend_from_slice(b"\r\n");
        Ok(())
    }
}
