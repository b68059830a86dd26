//! Resolves the table of a script: reads the script and checks that it runs.

use std::path::Path;
use std::time::Duration;

use creole_tools::script::{Function, Script, ScriptLimits};

use crate::plan::{count, file};
use crate::syntax::error::ConfigProblem;
use crate::tables::tools::ScriptTable;

/// The script of a table, which must define one of these functions.
pub(crate) fn resolve(
    table: ScriptTable,
    wanted: &[Function],
    folder: &Path,
) -> Result<Script, ConfigProblem> {
    let span = table.file.span.clone();
    let defaults = ScriptLimits::default();
    let limits = ScriptLimits {
        cpu_time: table
            .compute_ms
            .map_or(defaults.cpu_time, |time| Duration::from_millis(time.get().unsigned_abs())),
        memory: table.memory_mb.map_or(defaults.memory, |memory| count(memory.get()) << 20),
        max_concurrent: table
            .concurrency
            .map_or(defaults.max_concurrent, |calls| count(calls.get())),
    };
    let path = folder.join(file("file", table.file)?);
    let script = Script::load(&path, limits)
        .map_err(|problem| ConfigProblem::new(problem.to_string()).at(span.clone()))?;
    if !wanted.iter().any(|function| script.has(*function)) {
        let names: Vec<String> = wanted.iter().map(|it| format!("`{}`", it.name())).collect();
        let message = format!("`{}` has no function {}", path.display(), names.join(" or "));
        return Err(ConfigProblem::new(message)
            .help("define it at the top level of the file")
            .at(span));
    }
    Ok(script)
}
