//! Names that appear in headers, logs and the ids of callers.

use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The maximum length of the name of a key, a role or an issuer.
const MAX_NAME: usize = 64;

/// A name of plain characters, because it appears in headers and logs.
pub(crate) fn name(key: &str, item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
    let problem = if value.is_empty() {
        ConfigProblem::new(format!("`{key}` is empty"))
    } else if value.len() > MAX_NAME {
        ConfigProblem::new(format!("`{key}` is longer than {MAX_NAME} characters"))
    } else if !value.bytes().all(is_plain) {
        let help = "use letters A to Z, digits and . _ - + @";
        ConfigProblem::new(format!("`{key}` contains a character that is not allowed")).help(help)
    } else {
        return Ok(value);
    };
    Err(problem.at(span))
}
