//! Small samples of media, in base64.

use creole::Content;

/// A PNG of one red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A WAV of one sample of silence.
pub(super) const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

/// The picture as a block of content.
pub(super) fn image() -> Content {
    Content::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() }
}
