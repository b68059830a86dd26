//! Resolves the tables of files.

use std::path::{Path, PathBuf};

use creole_tools::files::Pattern;
use creole_tools::recipe::resource::ResourceBody;
use creole_tools::recipe::{FolderRecipe, PromptsRecipe, Recipe, ResourceRecipe};

use crate::plan::{count, file, label};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::Config;
use crate::tables::files::{FolderTable, PromptsTable, ResourceTable};

/// The maximum number of patterns of each kind in a folder.
const MAX_PATTERNS: usize = 100;
/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 64;

/// The items from files, in the order of the configuration. Disabled ones are checked and omitted.
pub(crate) fn resolve(config: &mut Config, seen_from: &Path) -> Result<Vec<Recipe>, ConfigProblem> {
    let mut recipes = Vec::new();
    for (name, table) in entries(config.folders.take()) {
        let enabled = table.enabled.unwrap_or(true);
        let recipe = folder(&name, table, seen_from).map_err(|problem| problem.or_at(name.span))?;
        recipes.extend(enabled.then(|| Recipe::Folder(Box::new(recipe))));
    }
    for (name, table) in entries(config.prompts.take()) {
        let enabled = table.enabled.unwrap_or(true);
        let recipe =
            prompts(&name, table, seen_from).map_err(|problem| problem.or_at(name.span))?;
        recipes.extend(enabled.then(|| Recipe::Prompts(Box::new(recipe))));
    }
    let mut uris = Vec::new();
    for (name, table) in entries(config.resources.take()) {
        let (enabled, uri) = (table.enabled.unwrap_or(true), table.uri.clone());
        let recipe =
            resource(&name, table, seen_from).map_err(|problem| problem.or_at(name.span))?;
        if enabled && uris.contains(&uri.value) {
            let message = format!("two resources have the URI `{}`", uri.value);
            return Err(ConfigProblem::new(message)
                .help("choose a different `uri` for each")
                .at(uri.span));
        }
        uris.extend(enabled.then_some(uri.value));
        recipes.extend(enabled.then(|| Recipe::Resource(Box::new(recipe))));
    }
    Ok(recipes)
}

fn entries<T>(tables: Option<Entries<T>>) -> Vec<(Spanned<String>, T)> {
    tables.map(|tables| tables.0).unwrap_or_default()
}

fn folder(
    name: &Spanned<String>,
    table: FolderTable,
    seen_from: &Path,
) -> Result<FolderRecipe, ConfigProblem> {
    let defaults = FolderRecipe::new(&checked_name(name)?, directory(table.path, seen_from)?);
    Ok(FolderRecipe {
        title: label("title", table.title)?,
        about: table.description,
        include: patterns("include", table.include)?,
        exclude: patterns("exclude", table.exclude)?,
        hidden: table.hidden.unwrap_or(defaults.hidden),
        hard_links: table.hard_links.unwrap_or(defaults.hard_links),
        max_depth: table.max_depth.map_or(defaults.max_depth, |depth| count(depth.get())),
        max_files: table.max_files.map_or(defaults.max_files, |files| count(files.get())),
        max_file_bytes: table
            .max_file_bytes
            .map_or(defaults.max_file_bytes, |bytes| bytes.get().unsigned_abs()),
        watch: table.watch.unwrap_or(defaults.watch),
        ..defaults
    })
}

fn prompts(
    name: &Spanned<String>,
    table: PromptsTable,
    seen_from: &Path,
) -> Result<PromptsRecipe, ConfigProblem> {
    let defaults = PromptsRecipe::new(&checked_name(name)?, directory(table.path, seen_from)?);
    let prefix = match table.prefix {
        Some(prefix) if prefix.value.is_empty() => None,
        prefix => label("prefix", prefix)?,
    };
    Ok(PromptsRecipe {
        prefix: prefix.unwrap_or_default(),
        watch: table.watch.unwrap_or(defaults.watch),
        ..defaults
    })
}

fn resource(
    name: &Spanned<String>,
    table: ResourceTable,
    seen_from: &Path,
) -> Result<ResourceRecipe, ConfigProblem> {
    let one = "add `text`, or `file` with a file name";
    let body = match (table.text, table.file) {
        (Some(text), None) => ResourceBody::Text(text),
        (None, Some(value)) => ResourceBody::File(existing_file(value, seen_from)?),
        (None, None) => {
            return Err(ConfigProblem::new("the resource has neither `text` nor `file`").help(one));
        }
        (Some(_), Some(value)) => {
            return Err(ConfigProblem::new("the resource has both `text` and `file`")
                .help(one)
                .at(value.span));
        }
    };
    check_uri(&table.uri)?;
    let recipe = ResourceRecipe {
        name: checked_name(name)?,
        uri: table.uri.value,
        title: label("title", table.title)?,
        about: table.description,
        mime_type: label("mime_type", table.mime_type)?,
        body,
        values: table.values.unwrap_or_default(),
    };
    let variables = recipe.variables();
    if let Some(unknown) = recipe.values.keys().find(|name| !variables.contains(&name.as_str())) {
        let message = format!("`values` contains `{unknown}`, but `uri` has no `{{{unknown}}}`");
        return Err(ConfigProblem::new(message).help("use the names in braces in `uri`"));
    }
    Ok(recipe)
}

/// A name that is valid in a uri without escaping.
pub(crate) fn checked_name(name: &Spanned<String>) -> Result<String, ConfigProblem> {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let text = &name.value;
    if !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_allowed) {
        return Ok(text.clone());
    }
    let help = format!("use at most {MAX_NAME} letters, digits, `-` and `_`");
    Err(ConfigProblem::new(format!("invalid name `{text}`")).help(help).at(name.span.clone()))
}

fn directory(value: Spanned<String>, seen_from: &Path) -> Result<PathBuf, ConfigProblem> {
    let span = value.span.clone();
    let path = seen_from.join(file("path", value)?);
    match path.is_dir() {
        true => Ok(path),
        false => Err(ConfigProblem::new(format!("the folder `{}` does not exist", path.display()))
            .help("`path` is a folder, relative to the folder of this configuration file")
            .at(span)),
    }
}

fn existing_file(value: Spanned<String>, seen_from: &Path) -> Result<PathBuf, ConfigProblem> {
    let span = value.span.clone();
    let path = seen_from.join(file("file", value)?);
    match path.is_file() {
        true => Ok(path),
        false => Err(ConfigProblem::new(format!("the file `{}` does not exist", path.display()))
            .help("`file` is a file name, relative to the folder of this configuration file")
            .at(span)),
    }
}

fn patterns(
    key: &str,
    values: Option<Vec<Spanned<String>>>,
) -> Result<Vec<Pattern>, ConfigProblem> {
    let values = values.unwrap_or_default();
    if let Some(beyond) = values.get(MAX_PATTERNS) {
        let message = format!("`{key}` has more than {MAX_PATTERNS} patterns");
        return Err(ConfigProblem::new(message)
            .help("combine patterns with `*`")
            .at(beyond.span.clone()));
    }
    let pattern = |Spanned { value, span }: Spanned<String>| {
        Pattern::new(&value).map_err(|bad| {
            ConfigProblem::new(format!("invalid pattern `{value}`")).help(bad.to_string()).at(span)
        })
    };
    values.into_iter().map(pattern).collect()
}

/// Checks that a uri has a scheme, no white space, and only variables of the two kinds that can be matched.
fn check_uri(uri: &Spanned<String>) -> Result<(), ConfigProblem> {
    let error = |message: String, help: &str| {
        Err(ConfigProblem::new(message).help(help).at(uri.span.clone()))
    };
    let text = &uri.value;
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.')
        });
    if !is_scheme || text.len() > 2048 {
        return error(
            format!("invalid URI `{text}`"),
            "write a scheme and a path, such as `acme://rules`",
        );
    }
    if text.contains(|symbol: char| symbol.is_whitespace() || symbol.is_control()) {
        return error("the URI contains white space".to_owned(), "write `%20` for a space");
    }
    let mut rest = text.as_str();
    while let Some(offset) = rest.find(['{', '}']) {
        let gap = rest[offset..].strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let name = gap.map(|(name, _)| name.strip_prefix('+').unwrap_or(name)).unwrap_or_default();
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|symbol| symbol.is_ascii_alphanumeric() || symbol == '_');
        let Some((_, tail)) = gap.filter(|_| is_name) else {
            let help = "write `{name}` for one path segment or `{+name}` for the rest of the path";
            return error("`uri` has braces without a name".to_owned(), help);
        };
        rest = tail;
    }
    Ok(())
}
