//! A file of a call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use creole::ToolError;

use super::errand::Errand;
use super::spec::{Argument, Kind, must};
use crate::wordpress::site::File;

/// The largest file, in bytes.
const LARGEST: usize = 8 * 1024 * 1024;
/// The longest name of a file, in bytes.
const LONGEST: usize = 200;

pub(super) const FILE_NAME: Argument =
    must("file_name", Kind::Text, "Name of the file with its ending, such as photo.jpg").kept();
pub(super) const DATA: Argument =
    must("data", Kind::Text, "Content of the file in Base64, at most 8 MiB").kept();

/// Media types by the ending of a file's name. The site looks at the content as well.
const TYPES: &[(&str, &str)] = &[
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

/// The file of a call.
pub(super) fn file(errand: &Errand<'_>) -> Result<File, ToolError> {
    let name = errand.text("file_name").unwrap_or_default();
    let data = errand.text("data").unwrap_or_default();
    read(name, data).map_err(ToolError::failed)
}

fn read(name: &str, data: &str) -> Result<File, String> {
    let is_plain = |letter: char| !letter.is_control() && !"/\\\"".contains(letter);
    let ending =
        name.rsplit_once('.').filter(|(stem, ending)| !stem.is_empty() && !ending.is_empty());
    let Some((_, ending)) = ending.filter(|_| name.len() <= LONGEST && name.chars().all(is_plain))
    else {
        return Err("`file_name` must be a plain name with an ending, such as photo.jpg".to_owned());
    };
    if data.len() / 4 * 3 > LARGEST {
        return Err("`data` is too large: a file has 8 MiB at most".to_owned());
    }
    // Encoders may break lines.
    let compact: String = data.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(compact).map_err(|_| "`data` is not Base64".to_owned())?;
    if bytes.is_empty() {
        return Err("`data` is empty".to_owned());
    }
    let ending = ending.to_ascii_lowercase();
    let known = TYPES.iter().find_map(|(name, media)| (*name == ending).then_some(*media));
    let media_type = known.unwrap_or("application/octet-stream");
    Ok(File { name: name.to_owned(), media_type, bytes, fields: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_plain_name_and_a_content() {
        let file = read("a photo.JPG", "aGVs\nbG8=").unwrap();
        assert_eq!((file.media_type, file.bytes.as_slice()), ("image/jpeg", &b"hello"[..]));
        for name in ["photo", "", ".jpg", "a/b.jpg", "a\"b.jpg", "a\r\nb.jpg", "x."] {
            assert!(read(name, "aGVsbG8=").is_err(), "{name:?}");
        }
        for data in ["", "###", "aGVsbG8"] {
            assert!(read("a.png", data).is_err(), "{data:?}");
        }
        let large = "A".repeat(LARGEST / 3 * 4 + 8);
        assert!(read("a.png", &large).unwrap_err().contains("8 MiB"));
    }
}
