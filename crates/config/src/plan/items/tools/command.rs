//! Resolves a tool that runs a program.

use std::ops::Range;
use std::path::Path;

use creole_tools::recipe::argument::ArgumentType;
use creole_tools::recipe::command::{CommandRecipe, WordGroup};
use creole_tools::recipe::secret::SecretSource;
use creole_tools::recipe::template::Template;
use creole_tools::recipe::tool_result::ResultFormat;

use crate::plan::count;
use crate::plan::items::tools::argument_uses::{ArgumentUses, ValueContext};
use crate::plan::items::tools::{interpreter, resolve_file};
use crate::plan::upstream::{inherited_variables, variable, variable_name};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::ResultKind;
use crate::tables::tools::{CommandWord, ToolTable};

/// The command of a tool and its related keys.
pub(crate) fn resolve(
    command: Spanned<Vec<Spanned<CommandWord>>>,
    table: ToolTable,
    uses: &mut ArgumentUses<'_>,
    folder: &Path,
) -> Result<CommandRecipe, ConfigProblem> {
    let Spanned { value: mut values, span } = command;
    let help = "write the program and its arguments, such as `[\"git\", \"log\"]`";
    let nothing = || ConfigProblem::new("`command` has no program").help(help).at(span.clone());
    if values.is_empty() {
        return Err(nothing());
    }
    let program = match values.remove(0) {
        Spanned { value: CommandWord::Word(word), span } => program(&word, folder, span)?,
        _ => return Err(nothing()),
    };
    let stdin = table.stdin.map(|stdin| uses.template_at(&stdin, ValueContext::Any)).transpose()?;
    let words = words(values, uses)?;
    if !table.dangerously_let_callers_write_scripts.is_some_and(|value| value.value) {
        interpreter::check(&program, &words).map_err(|problem| problem.at(span))?;
    }
    Ok(CommandRecipe {
        program,
        words,
        stdin,
        env: environment(table.env, table.env_files, folder)?,
        env_pass: inherited_variables(table.env_pass.map(|value| value.value).unwrap_or_default())?,
        directory: table.cwd.map(|cwd| resolve_file(folder, "cwd", cwd)).transpose()?,
        success_codes: success_codes(table.exit_codes)?,
        result: result(table.result, table.mime_type)?,
        progress: table.progress.is_some_and(|value| value.value),
        max_concurrent: table.concurrency.map_or(16, |value| count(value.value.get())),
    })
}

/// Checks that a tool without a command has none of the keys of commands.
pub(crate) fn check_absent(table: &ToolTable) -> Result<(), ConfigProblem> {
    let spans = [
        (
            "dangerously_let_callers_write_scripts",
            table.dangerously_let_callers_write_scripts.as_ref().map(|value| &value.span),
        ),
        ("stdin", table.stdin.as_ref().map(|value| &value.span)),
        ("env", table.env.as_ref().map(|value| &value.span)),
        ("env_files", table.env_files.as_ref().map(|value| &value.span)),
        ("env_pass", table.env_pass.as_ref().map(|value| &value.span)),
        ("cwd", table.cwd.as_ref().map(|value| &value.span)),
        ("exit_codes", table.exit_codes.as_ref().map(|value| &value.span)),
        ("result", table.result.as_ref().map(|value| &value.span)),
        ("mime_type", table.mime_type.as_ref().map(|value| &value.span)),
        ("progress", table.progress.as_ref().map(|value| &value.span)),
        ("concurrency", table.concurrency.as_ref().map(|value| &value.span)),
    ];
    match spans.into_iter().find_map(|(key, span)| Some((key, span?))) {
        Some((key, span)) => {
            Err(ConfigProblem::new(format!("`{key}` is only valid for tools with a `command`"))
                .help("remove it, or use a key of the table `http`")
                .at(span.clone()))
        }
        None => Ok(()),
    }
}

fn program(
    word: &str,
    folder: &Path,
    span: Range<usize>,
) -> Result<std::path::PathBuf, ConfigProblem> {
    let problem = if word.trim().is_empty() || word.contains('\0') {
        "`command` has no program".to_owned()
    } else if Template::parse(word).is_ok_and(|template| template.literal().is_none()) {
        "the program cannot contain a placeholder: callers would choose the program".to_owned()
    } else if word.contains('/') {
        return Ok(folder.join(word));
    } else {
        return Ok(word.into());
    };
    Err(ConfigProblem::new(problem)
        .help("write the program without placeholders; its arguments may have them")
        .at(span))
}

fn words(
    values: Vec<Spanned<CommandWord>>,
    uses: &mut ArgumentUses<'_>,
) -> Result<Vec<WordGroup>, ConfigProblem> {
    let mut groups: Vec<WordGroup> = Vec::new();
    for Spanned { value, span } in values {
        let group = group(value, uses).map_err(|problem| problem.at(span.clone()))?;
        if let ([word], Some(option)) = (group.words.as_slice(), groups.last().and_then(option))
            && !uses.is_always_filled(word)
        {
            let message = format!("without its value, `{option}` would be passed alone");
            let help = "write both as a nested list, which is omitted as a whole: [\"--option\", \
                \"{value}\"]";
            return Err(ConfigProblem::new(message).help(help).at(span));
        }
        groups.push(group);
    }
    Ok(groups)
}

/// The option without a value that could take the next word as its value.
fn option(group: &WordGroup) -> Option<String> {
    match group.words.as_slice() {
        [word] => word.literal(),
        _ => None,
    }
    .filter(|word| word.starts_with('-') && *word != "--" && !word.contains('='))
    .map(str::to_owned)
}

fn group(written: CommandWord, uses: &mut ArgumentUses<'_>) -> Result<WordGroup, ConfigProblem> {
    let (when, words) = match written {
        CommandWord::Word(word) => (None, vec![word]),
        CommandWord::Words(words) => (None, words),
        CommandWord::When(table) => {
            if uses.argument(&table.when)?.kind != ArgumentType::Boolean {
                let message = format!("the argument `{}` is not a boolean", table.when);
                return Err(ConfigProblem::new(message)
                    .help("set its `type = \"boolean\"`")
                    .about_part(&table.when));
            }
            (Some(table.when), table.words)
        }
    };
    let words = words.iter().map(|text| word(text, uses)).collect::<Result<_, _>>()?;
    Ok(WordGroup { when, words })
}

fn word(text: &str, uses: &mut ArgumentUses<'_>) -> Result<Template, ConfigProblem> {
    if text.contains('\0') {
        return Err(ConfigProblem::new("an argument contains a NUL character"));
    }
    let template = uses.template(text, ValueContext::ListAlone)?;
    let beginning = template.literal_prefix();
    if !beginning.is_empty()
        && beginning.bytes().all(|byte| byte == b'-')
        && let Some(name) = template.names().next()
        && !uses.argument(name)?.is_choice
    {
        let message = format!(
            "`{{{name}}}` follows the dashes of an option: callers would choose the option"
        );
        let help = format!("list the allowed options with `enum = […]` for `{name}`");
        return Err(ConfigProblem::new(message).help(help).about_part(text));
    }
    Ok(template)
}

fn environment(
    env: Option<Spanned<Entries<Spanned<String>>>>,
    files: Option<Spanned<Entries<Spanned<String>>>>,
    folder: &Path,
) -> Result<Vec<(String, SecretSource)>, ConfigProblem> {
    let mut variables = Vec::new();
    for entry in env.map(|env| env.value.0).unwrap_or_default() {
        let (name, secret) = variable(entry)?;
        variables.push((name, SecretSource::Inline(secret)));
    }
    for (name, path) in files.map(|files| files.value.0).unwrap_or_default() {
        let name = variable_name(name)?;
        let path = resolve_file(folder, &name, path)?;
        variables.push((name, SecretSource::File(path)));
    }
    Ok(variables)
}

fn success_codes(item: Option<Spanned<Vec<Ranged<0, 255>>>>) -> Result<Vec<i32>, ConfigProblem> {
    let Some(Spanned { value, span }) = item else { return Ok(vec![0]) };
    if value.is_empty() {
        return Err(ConfigProblem::new("`exit_codes` is empty, so no call could succeed").at(span));
    }
    Ok(value.into_iter().map(|code| code.get() as i32).collect())
}

fn result(
    kind: Option<Spanned<ResultKind>>,
    mime_type: Option<Spanned<String>>,
) -> Result<ResultFormat, ConfigProblem> {
    let word = kind.as_ref().map_or(ResultKind::Text, |kind| kind.value);
    match (word, mime_type) {
        (ResultKind::Text, None) => Ok(ResultFormat::Text),
        (ResultKind::Json, None) => Ok(ResultFormat::Json),
        (ResultKind::Image, Some(item)) => {
            let Spanned { value, span } = item;
            let is_picture = value.strip_prefix("image/").is_some_and(|rest| !rest.is_empty());
            match is_picture && value.bytes().all(|byte| byte.is_ascii_graphic()) {
                true => Ok(ResultFormat::Image(value)),
                false => Err(ConfigProblem::new(format!("invalid image media type `{value}`"))
                    .help("write one such as `image/png`")
                    .at(span)),
            }
        }
        (ResultKind::Image, None) => {
            let problem = ConfigProblem::new("an image result needs a media type")
                .help("add `mime_type`, such as `mime_type = \"image/png\"`");
            Err(kind.into_iter().fold(problem, |problem, kind| problem.at(kind.span)))
        }
        (_, Some(item)) => Err(ConfigProblem::new("`mime_type` is only valid for image results")
            .help("add `result = \"image\"`, or remove `mime_type`")
            .at(item.span)),
    }
}
