//! JSON with comments and trailing commas, as clients write it into their configurations.

use jsonc_parser::ParseOptions;

/// The deepest nesting: the parser calls itself for each level.
pub(crate) const MAX_DEPTH: usize = 64;

/// What is read: comments and trailing commas, but no missing ones.
pub(crate) fn options() -> ParseOptions {
    ParseOptions { allow_missing_commas: false, ..ParseOptions::default() }
}

/// Whether a text is nested too deep to be read. Brackets within texts count as well.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest > MAX_DEPTH
}
