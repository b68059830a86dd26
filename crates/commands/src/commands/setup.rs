//! The verbs that write configurations: Creole's own and those of clients. The latter are JSON with comments and
//! trailing commas.

pub(crate) mod add;
mod files;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod install;
mod terminal_prompt;

use jsonc_parser::ParseOptions;

/// The maximum nesting depth of JSON, since the parser is recursive.
const MAX_JSON_DEPTH: usize = 64;

/// The accepted syntax: comments and trailing commas, but no missing commas.
fn json_options() -> ParseOptions {
    ParseOptions { allow_missing_commas: false, ..ParseOptions::default() }
}

/// Whether a JSON text is nested too deep. Brackets within strings count as well.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest > MAX_JSON_DEPTH
}
