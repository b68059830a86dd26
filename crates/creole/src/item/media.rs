//! Media types of files by their extensions, and files as the contents of resources.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use creole_proto::model::Contents;

/// Sorted extensions and their media types.
const TYPES: &[(&str, &str)] = &[
    ("c", "text/x-c"),
    ("cpp", "text/x-c++"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("go", "text/x-go"),
    ("gz", "application/gzip"),
    ("h", "text/x-c"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("java", "text/x-java"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain"),
    ("markdown", "text/markdown"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("php", "text/x-php"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("rb", "text/x-ruby"),
    ("rs", "text/x-rust"),
    ("rst", "text/x-rst"),
    ("sh", "application/x-sh"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsv", "text/tab-separated-values"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The media type for the name of a file, if its extension is known.
pub fn from_file_name(file: &str) -> Option<&'static str> {
    let (_, end) = file.rsplit_once('.')?;
    TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(end)).map(|(_, kind)| *kind)
}

/// The media type of a file; a file of unknown extension is text if it is valid UTF-8.
pub fn detect(file: &str, bytes: &[u8]) -> &'static str {
    from_file_name(file).unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => "text/plain",
        Err(_) => "application/octet-stream",
    })
}

/// The bytes of a file as the contents of a resource: text if they are text, so that no byte is lost either way.
pub fn resource_contents(uri: impl Into<String>, mime_type: &str, bytes: Vec<u8>) -> Contents {
    match String::from_utf8(bytes) {
        Ok(text) => Contents::text(uri, mime_type, text),
        Err(error) => Contents::blob(uri, mime_type, STANDARD.encode(error.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_the_end_of_a_name_decides_before_the_bytes_do() {
        assert!(TYPES.is_sorted() && TYPES.iter().all(|(end, _)| end.len() < 9));
        assert_eq!(from_file_name("a/b.MD"), Some("text/markdown"));
        assert_eq!((from_file_name("README"), from_file_name("a.unknown")), (None, None));
        assert_eq!(detect("logo.png", b"text"), "image/png");
        assert_eq!(detect("README", b"text"), "text/plain");
        assert_eq!(detect("README", b"\xff"), "application/octet-stream");
    }

    #[test]
    fn text_is_sent_as_text_and_other_data_in_base64() {
        assert_eq!(resource_contents("u", "m", b"t".to_vec()), Contents::text("u", "m", "t"));
        assert_eq!(resource_contents("u", "m", vec![0xff]), Contents::blob("u", "m", "/w=="));
    }
}
