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
    let written = path.as_ref().map(|it| ("token_file", it.span.clone()));
    let written = written.or_else(|| command.as_ref().map(|it| ("token_command", it.span.clone())));
    let token = resolve_source(("token_file", path), ("token_command", command))?;
    if let Some((key, span)) = written
        && has_authorization(headers)
    {
        let what = format!("`{key}` conflicts with the header `Authorization`");
        return Err(ConfigProblem::new(what).help("remove one of them").at(span));
    }
    Ok(token)
}

/// Whether a header has credentials.
pub(crate) fn has_authorization(headers: &[(Spanned<String>, Spanned<String>)]) -> bool {
    headers.iter().any(|(name, _)| name.value.eq_ignore_ascii_case("authorization"))
}

/// The source that two keys of a table name. There must be only one.
pub(crate) fn resolve_source(
    (file_key, path): (&str, Option<Spanned<String>>),
    (command_key, command): (&str, Option<Spanned<Vec<Spanned<String>>>>),
) -> Result<Option<TokenSource>, ConfigProblem> {
    match (path, command) {
        (None, None) => Ok(None),
        (Some(_), Some(command)) => {
            let what = format!("the upstream has both `{file_key}` and `{command_key}`");
            Err(ConfigProblem::new(what).help("remove one of them").at(command.span))
        }
        (Some(path), None) => Ok(Some(TokenSource::File(file(file_key, path)?))),
        (None, Some(command)) => Ok(Some(TokenSource::Command(program(command_key, command)?))),
    }
}
