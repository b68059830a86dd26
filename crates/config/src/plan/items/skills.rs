//! Resolves the folder of skills.

use std::path::{Path, PathBuf};

use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;
use crate::tables::SkillsTable;

/// The pack that uses the table.
const PACK: &str = "skills";
/// The default folder.
const FOLDER: &str = "skills";

/// The folder of skills, relative to the folder of the configuration, if skills are offered.
pub(crate) fn folder(
    table: Option<Spanned<SkillsTable>>,
    packs: &[String],
    seen_from: &Path,
) -> Result<Option<PathBuf>, ConfigProblem> {
    let is_offered = packs.iter().any(|pack| pack == PACK);
    if let (Some(table), false) = (&table, is_offered) {
        let description = "`[skills]` has no effect: the pack `skills` is not enabled";
        let help = format!("add \"{PACK}\" to `packs`");
        return Err(ConfigProblem::new(description).help(help).at(table.span.clone()));
    }
    if !is_offered {
        return Ok(None);
    }
    let item = table.and_then(|table| table.value.folder);
    let (name, span) = match item {
        Some(Spanned { value, span }) => (value, Some(span)),
        None => (FOLDER.to_owned(), None),
    };
    let folder = seen_from.join(&name);
    let message = if name.is_empty() {
        "`folder` is empty".to_owned()
    } else if !folder.is_dir() {
        format!("the folder `{}` does not exist", folder.display())
    } else {
        return Ok(Some(folder));
    };
    let help = "`folder` in `[skills]` is a folder that contains one folder per skill, relative \
        to the folder of this configuration file";
    let problem = ConfigProblem::new(message).help(help);
    Err(match span {
        Some(span) => problem.at(span),
        None => problem,
    })
}
