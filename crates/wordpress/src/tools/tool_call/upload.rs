//! The file argument of a call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use creole::ToolError;

use crate::site::FormFile;
use crate::tools::spec::{ArgumentSpec, SiteArgumentType, required};
use crate::tools::tool_call::ToolCall;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum length of a file name, in bytes.
const MAX_NAME_BYTES: usize = 200;

pub(crate) const FILE_NAME: ArgumentSpec = required(
    "file_name",
    SiteArgumentType::Text,
    "Name of the file with its ending, such as photo.jpg",
)
.not_sent();
pub(crate) const DATA: ArgumentSpec =
    required("data", SiteArgumentType::Text, "Content of the file in Base64, at most 8 MiB")
        .not_sent();

/// Media types by file name extension. The site checks the content as well.
const MEDIA_TYPES: &[(&str, &str)] = &[
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("zip", "application/zip"),
];

/// Reads the file argument of a call.
pub(crate) fn read_file_argument(call: &ToolCall<'_>) -> Result<FormFile, ToolError> {
    let name = call.text("file_name").unwrap_or_default();
    let data = call.text("data").unwrap_or_default();
    decode_file(name, data).map_err(ToolError::failed)
}

fn decode_file(name: &str, data: &str) -> Result<FormFile, String> {
    let is_plain = |character: char| !character.is_control() && !"/\\\"".contains(character);
    let ending =
        name.rsplit_once('.').filter(|(stem, ending)| !stem.is_empty() && !ending.is_empty());
    let Some((_, ending)) =
        ending.filter(|_| name.len() <= MAX_NAME_BYTES && name.chars().all(is_plain))
    else {
        return Err("`file_name` must be a plain name with an ending, such as photo.jpg".to_owned());
    };
    if data.len() / 4 * 3 > MAX_FILE_BYTES {
        return Err("`data` is too large: a file has 8 MiB at most".to_owned());
    }
    // Encoders may insert line breaks.
    let compact: String =
        data.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(compact).map_err(|_| "`data` is not Base64".to_owned())?;
    if bytes.is_empty() {
        return Err("`data` is empty".to_owned());
    }
    let ending = ending.to_ascii_lowercase();
    let known = MEDIA_TYPES.iter().find_map(|(name, media)| (*name == ending).then_some(*media));
    let media_type = known.unwrap_or("application/octet-stream");
    Ok(FormFile { name: name.to_owned(), media_type, bytes, fields: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_plain_name_and_a_content() {
        let file = decode_file("a photo.JPG", "aGVs\nbG8=").unwrap();
        assert_eq!((file.media_type, file.bytes.as_slice()), ("image/jpeg", &b"hello"[..]));
        for name in ["photo", "", ".jpg", "a/b.jpg", "a\"b.jpg", "a\r\nb.jpg", "x."] {
            assert!(decode_file(name, "aGVsbG8=").is_err(), "{name:?}");
        }
        for data in ["", "###", "aGVsbG8"] {
            assert!(decode_file("a.png", data).is_err(), "{data:?}");
        }
        let large = "A".repeat(MAX_FILE_BYTES / 3 * 4 + 8);
        assert!(decode_file("a.png", &large).unwrap_err().contains("8 MiB"));
    }
}
