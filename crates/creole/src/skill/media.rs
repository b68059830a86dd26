//! Media types of files, by the ends of their names.

const TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("sh", "application/x-sh"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The media type of a file; what no name tells is text if it can be read as text.
pub(super) fn type_of(file: &str, bytes: &[u8]) -> &'static str {
    let known = file.rsplit_once('.').and_then(|(_, end)| {
        TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(end)).map(|(_, kind)| *kind)
    });
    known.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => "text/plain",
        Err(_) => "application/octet-stream",
    })
}
