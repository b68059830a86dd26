//! `creole add`: adds an upstream to a configuration and keeps its order and comments.

use std::path::{Path, PathBuf, absolute};

use creole_config::Plan;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::args::AddArgs;
use crate::commands::setup::files;
use crate::failure::Failure;
use crate::output;

/// The beginning of a new configuration file.
const NEW_FILE: &str =
    "# `creole config reference` lists every key.\n\n[server]\nname = \"creole\"\n";

/// The name of the table of upstreams.
const UPSTREAMS: &str = "upstreams";

/// Runs the verb.
pub(crate) fn run(args: &AddArgs) -> Result<(), Failure> {
    let (file, name) = (&args.config, &args.name);
    let table = table(args)?;
    check(name, &table, folder(file))?;
    let text = files::read(file)?;
    let changed = with_upstream(file, text.as_deref().unwrap_or(NEW_FILE), name, table)?;
    match text {
        None => files::create(file, &changed)?,
        Some(_) => files::replace(file, &changed)?,
    }
    let shown = file.display();
    output::write_message(&format!(
        "creole: added `{name}` to {shown}; `creole config check {shown}` checks it"
    ));
    Ok(())
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// The table of the upstream.
fn table(args: &AddArgs) -> Result<Table, Failure> {
    let mut table = Table::new();
    match &args.url {
        Some(url) => table["url"] = value(url.as_str()),
        None => {
            let words = args.command.iter().map(|word| {
                let text = word.to_str().map(str::to_owned);
                text.ok_or_else(|| Failure::Usage(format!("{word:?} is not UTF-8 text")))
            });
            table["command"] = value(words.collect::<Result<Array, _>>()?);
        }
    }
    if let Some(headers) = headers(&args.headers)? {
        table["headers"] = headers;
    }
    if let Some(certificates) = &args.cacert {
        table["ca_file"] = value(relative_to(folder(&args.config), certificates)?);
    }
    let (given, passed): (Vec<&String>, Vec<&String>) =
        args.entries.iter().partition(|entry| entry.contains('='));
    if !given.is_empty() {
        let pair = |entry: &&String| {
            entry.split_once('=').map(|(name, text)| (name.to_owned(), text.to_owned()))
        };
        table["env"] = value(given.iter().filter_map(pair).collect::<InlineTable>());
    }
    if !passed.is_empty() {
        table["env_pass"] = value(passed.into_iter().map(String::as_str).collect::<Array>());
    }
    Ok(table)
}

fn headers(given: &[String]) -> Result<Option<Item>, Failure> {
    let mut headers = InlineTable::new();
    for header in given {
        let (name, text) = header.split_once(':').ok_or_else(|| {
            Failure::Usage(format!("invalid header `{header}`; write `Name: value`"))
        })?;
        headers.insert(name.trim(), Value::from(text.trim()));
    }
    Ok((!headers.is_empty()).then(|| value(headers)))
}

/// Converts a path relative to the current folder to one relative to the configuration's folder.
fn relative_to(folder: &Path, path: &str) -> Result<String, Failure> {
    if folder.as_os_str().is_empty() {
        return Ok(path.to_owned());
    }
    let whole: PathBuf =
        absolute(path).map_err(|error| Failure::Usage(format!("cannot find `{path}`: {error}")))?;
    Ok(whole.to_string_lossy().into_owned())
}

/// Checks the table alone: other parts of the file may need variables that are not set here.
fn check(name: &str, table: &Table, folder: &Path) -> Result<(), Failure> {
    let mut document = DocumentMut::new();
    document[UPSTREAMS] = Item::Table(implicit_table());
    document[UPSTREAMS][name] = Item::Table(table.clone());
    let text = format!("[server]\nname = \"creole\"\n\n{document}");
    let any = |_: &str| Ok("x".to_owned());
    let packs = creole_config::packs();
    Plan::load_text("the new table", &text, folder, &packs, &any)?;
    Ok(())
}

/// A table without its own heading.
fn implicit_table() -> Table {
    let mut parent = Table::new();
    parent.set_implicit(true);
    parent
}

/// The text of the configuration with the table added.
fn with_upstream(file: &Path, text: &str, name: &str, mut table: Table) -> Result<String, Failure> {
    let shown = file.display();
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| Failure::Usage(format!("`{shown}` is not valid TOML: {error}")))?;
    let upstreams = document.entry(UPSTREAMS).or_insert_with(|| Item::Table(implicit_table()));
    let Some(upstreams) = upstreams.as_table_like_mut() else {
        return Err(Failure::Usage(format!("`{UPSTREAMS}` in `{shown}` is not a table")));
    };
    if upstreams.contains_key(name) {
        return Err(Failure::Usage(format!(
            "`{shown}` already has an upstream `{name}`; choose another name, or edit the file"
        )));
    }
    let changed = match appended(text, name, &table) {
        Some(changed) => changed,
        None => {
            table.decor_mut().set_prefix("\n");
            upstreams.insert(name, Item::Table(table));
            document.to_string()
        }
    };
    Ok(if text.contains("\r\n") {
        changed.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        changed
    })
}

/// The text with the table appended: otherwise a comment below another table would become one of this table. `None` if
/// it cannot be appended, because the other upstreams are in an inline table.
fn appended(text: &str, name: &str, table: &Table) -> Option<String> {
    let mut document = DocumentMut::new();
    document[UPSTREAMS] = Item::Table(implicit_table());
    document[UPSTREAMS][name] = Item::Table(table.clone());
    let separator = if text.ends_with('\n') { "\n" } else { "\n\n" };
    let changed = format!("{text}{separator}{document}");
    changed.parse::<DocumentMut>().ok().map(|_| changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
# Mine.
[server] # the server
name = \"team\"

# The files.
[upstreams.files]
command = [\"files\"]   # with spaces

[http]
listen = \"127.0.0.1:1\"
";

    fn with(text: &str, name: &str) -> Result<String, String> {
        let mut table = Table::new();
        table["url"] = value("https://example.com/mcp");
        with_upstream(Path::new("c.toml"), text, name, table).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_table_is_added_and_the_rest_stays_as_it_is() {
        let after = with(BEFORE, "far").unwrap();
        let added = "\n[upstreams.far]\nurl = \"https://example.com/mcp\"\n";
        assert!(after.contains(added), "{after}");
        assert_eq!(after.replacen(added, "", 1), BEFORE);
    }

    #[test]
    fn comments_below_another_table_stay_with_it() {
        let before = "[upstreams.a]\ncommand = [\"a\"]\n# env = { KEY = \"${KEY}\" }\n\n# [http]\n# listen = \"x\"\n";
        let added = "\n[upstreams.far]\nurl = \"https://example.com/mcp\"\n";
        assert_eq!(with(before, "far").unwrap(), format!("{before}{added}"));
        assert_eq!(with(before.trim_end(), "far").unwrap(), format!("{before}{added}"));
    }

    #[test]
    fn a_file_with_other_line_ends_keeps_them() {
        let after = with(&BEFORE.replace('\n', "\r\n"), "far").unwrap();
        assert!(after.contains("\r\n[upstreams.far]\r\nurl = "), "{after:?}");
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        let message = with(BEFORE, "files").unwrap_err();
        assert!(message.contains("already has an upstream `files`"), "{message}");
        assert!(with("upstreams = 5\n", "a").unwrap_err().contains("is not a table"));
        assert!(with("[", "a").unwrap_err().contains("is not valid TOML"));
    }

    #[test]
    fn a_table_within_a_line_takes_another_one() {
        let after = with("upstreams = { a = { url = \"http://a\" } }\n", "far").unwrap();
        assert_eq!(after.lines().count(), 1, "{after}");
        assert!(after.contains("far = { url = \"https://example.com/mcp\" }"), "{after}");
    }

    #[test]
    fn a_table_that_would_be_refused_is_not_written() {
        let mut table = Table::new();
        table["url"] = value("ftp://a");
        assert!(check("far", &table, Path::new("")).is_err());
        table["url"] = value("https://a/mcp");
        assert!(check("far", &table, Path::new("")).is_ok());
        assert!(check("a__b", &table, Path::new("")).is_err());
    }
}
