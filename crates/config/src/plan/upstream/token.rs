//! The source of the token for an upstream over HTTP.

use std::path::PathBuf;

use crate::plan::upstream::{file, program};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The source of a token that may change while this process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// The first line of this file.
    File(PathBuf),
    /// The first line that this program writes. There is at least the program.
    Command(Vec<String>),
}

/// The token source of a table. There must be only one, and no other token among the headers.
pub(crate) fn resolve(
    path: Option<Spanned<String>>,
    command: Option<Spanned<Vec<Spanned<String>>>>,
    headers: &[(Spanned<String>, Spanned<String>)],
) -> Result<Option<TokenSource>, ConfigProblem> {
    let (key, span, token) = match (path, command) {
        (None, None) => return Ok(None),
        (Some(_), Some(command)) => {
            return Err(ConfigProblem::new(
                "the upstream has both `token_file` and `token_command`",
            )
            .help("remove one of them")
            .at(command.span));
        }
        (Some(path), None) => {
            let span = path.span.clone();
            ("token_file", span, TokenSource::File(file("token_file", path)?))
        }
        (None, Some(command)) => {
            let span = command.span.clone();
            ("token_command", span, TokenSource::Command(program("token_command", command)?))
        }
    };
    if headers.iter().any(|(name, _)| name.value.eq_ignore_ascii_case("authorization")) {
        let message = format!("`{key}` conflicts with the header `Authorization`");
        return Err(ConfigProblem::new(message).help("remove one of them").at(span));
    }
    Ok(Some(token))
}
