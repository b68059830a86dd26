//! JSON with comments and trailing commas, as in the configurations of clients.

use jsonc_parser::ParseOptions;

/// The maximum nesting depth, since the parser is recursive.
pub(crate) const MAX_DEPTH: usize = 64;

/// The accepted syntax: comments and trailing commas, but no missing commas.
pub(crate) fn options() -> ParseOptions {
    ParseOptions { allow_missing_commas: false, ..ParseOptions::default() }
}

/// Whether a text is nested too deep. Brackets within strings count as well.
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
