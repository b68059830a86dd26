//! `creole import`: converts the server configuration of another client.

mod entry;
mod secrets;

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use creole_tools::ordered_value::OrderedValue;
use jsonc_parser::parse_to_serde_value;

use crate::args::ImportArgs;
use crate::commands::setup::files;
use crate::commands::setup::import::entry::table;
use crate::commands::setup::import::secrets::ExtractedSecrets;
use crate::commands::setup::{MAX_JSON_DEPTH, is_too_deep, json_options};
use crate::failure::Failure;
use crate::output;

/// The maximum size of the file.
const MAX_FILE: u64 = 1024 * 1024;

/// The paths to the servers: in Claude Desktop and Cursor, in VS Code, and in its settings.
const SERVER_PATHS: [&[&str]; 4] =
    [&["mcpServers"], &["servers"], &["mcp", "servers"], &["mcp", "mcpServers"]];

/// Runs the verb.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let document = parse(&args.file, &read(&args.file)?)?;
    let servers = servers(&args.file, &document)?;
    let mut secrets = ExtractedSecrets::default();
    let text = configuration(&args.file, servers, &mut secrets);
    match &args.output {
        None => output::write_data(&text)?,
        Some(file) => files::create(file, &text)?,
    }
    for note in secrets.notes() {
        output::write_message(&format!("creole: {note}"));
    }
    if let Some(file) = &args.output {
        let shown = file.display();
        output::write_message(&format!(
            "creole: wrote {shown}; `creole config check {shown}` checks it"
        ));
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Failure> {
    let refused = |reason: &str| Failure::Usage(format!("`{}` {reason}", file.display()));
    let opened = fs::File::open(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused("does not exist"),
        _ => refused(&format!("cannot be read: {error}")),
    })?;
    let mut bytes = Vec::new();
    opened
        .take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(&format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(refused("is larger than 1 MB, the limit for client configurations"));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("is not UTF-8 text"))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Reads JSON with comments and trailing commas.
fn parse(file: &Path, text: &str) -> Result<OrderedValue, Failure> {
    let shown = file.display();
    if is_too_deep(text) {
        return Err(Failure::Usage(format!(
            "`{shown}` is nested deeper than {MAX_JSON_DEPTH} levels"
        )));
    }
    parse_to_serde_value::<OrderedValue>(text, &json_options())
        .map_err(|error| Failure::Usage(format!("`{shown}` is not JSON: {error}")))
}

fn servers<'a>(
    file: &Path,
    document: &'a OrderedValue,
) -> Result<&'a [(String, OrderedValue)], Failure> {
    let found = SERVER_PATHS.iter().find_map(|place| {
        match place.iter().fold(document, |part, name| &part[*name]) {
            OrderedValue::Object(servers) => Some(servers.as_slice()),
            _ => None,
        }
    });
    let shown = file.display();
    match found {
        None => Err(Failure::Usage(format!(
            "`{shown}` has neither `mcpServers` nor `servers`, so it is not a known \
                configuration of MCP servers"
        ))),
        Some([]) => Err(Failure::Usage(format!("`{shown}` has no servers to import"))),
        Some(servers) => Ok(servers),
    }
}

/// The configuration as TOML.
fn configuration(
    file: &Path,
    servers: &[(String, OrderedValue)],
    secrets: &mut ExtractedSecrets,
) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|character| !character.is_control()).collect();
    let mut text =
        format!("# Imported from {name} by `creole import`.\n\n[server]\nname = \"creole\"\n");
    let mut used = Vec::new();
    for (output, server) in servers {
        let name = table_name(output, &used);
        if name != *output {
            secrets.note(format!("`{output}` was renamed to `{name}`"));
        }
        if let Some(table) = table(&name, server, secrets) {
            text.push('\n');
            text.push_str(&table);
            used.push(name);
        }
    }
    text
}

/// A valid and unused table name: letters, digits, `-` and single `_`.
fn table_name(text: &str, used: &[String]) -> String {
    let mut name = String::new();
    for character in text.chars().take(48) {
        let character =
            if character.is_ascii_alphanumeric() || character == '_' { character } else { '-' };
        let repeats = !character.is_ascii_alphanumeric() && name.ends_with(character);
        if !repeats {
            name.push(character);
        }
    }
    let name = name.trim_matches(|character| character == '-' || character == '_');
    let name = if name.is_empty() { "server" } else { name };
    let mut names = (2..).map(|number| format!("{name}-{number}"));
    let is_free = |name: &String| !used.contains(name);
    let first = Some(name.to_owned()).filter(is_free);
    first.or_else(|| names.find(is_free)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_such_as_tables_may_have() {
        assert_eq!(table_name("github", &[]), "github");
        assert_eq!(table_name("My Server (2)", &[]), "My-Server-2");
        assert_eq!(table_name("a__b", &[]), "a_b");
        assert_eq!(table_name("日本", &[]), "server");
        assert_eq!(table_name("a b", &["a-b".to_owned()]), "a-b-2");
    }

    #[test]
    fn comments_and_trailing_commas_are_read() {
        let text = "{ // servers\n \"servers\": { \"a\": { \"command\": \"x\", }, }, /* end */ }";
        let document = parse(Path::new("mcp.json"), text).unwrap();
        assert_eq!(servers(Path::new("mcp.json"), &document).unwrap().len(), 1);
    }

    /// The result of importing a client's file.
    fn imported(text: &str) -> (String, Vec<String>) {
        let file = Path::new("mcp.json");
        let document = parse(file, text).unwrap();
        let mut secrets = ExtractedSecrets::default();
        let text = configuration(file, servers(file, &document).unwrap(), &mut secrets);
        let (_, tables) = text.split_once("name = \"creole\"\n\n").unwrap();
        (tables.to_owned(), secrets.notes())
    }

    const IN_VS_CODE: &str = r#"{
        "inputs": [{"type": "promptString", "id": "github-token", "password": true}],
        "servers": {
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "files", "${workspaceFolder}"]},
            "github": {
                "type": "http", "url": "https://example.com/mcp",
                "headers": {"Authorization": "Bearer ${input:github-token}"}
            }
        }
    }"#;

    const OF_VS_CODE: &str = r#"[upstreams.files]
command = ["npx", "-y", "files", "${WORKSPACE_FOLDER}"]

[upstreams.github]
url = "https://example.com/mcp"
headers = { "Authorization" = "Bearer ${GITHUB_TOKEN}" }
"#;

    #[test]
    fn servers_of_vs_code_are_read_from_its_own_file_and_from_its_settings() {
        let needed =
            "creole also needs these environment variables: GITHUB_TOKEN, WORKSPACE_FOLDER";
        let expected = (OF_VS_CODE.to_owned(), vec![needed.to_owned()]);
        assert_eq!(imported(IN_VS_CODE), expected);
        let settings = format!("{{ \"editor.tabSize\": 2, \"mcp\": {IN_VS_CODE}, }}");
        assert_eq!(imported(&settings), expected);
    }

    #[test]
    fn servers_of_cursor_are_programs_and_addresses() {
        let (tables, notes) = imported(
            r#"{"mcpServers": {
                "db": {
                    "command": "npx", "args": ["-y", "db", "postgresql://ann:hunter2@host/db"],
                    "env": {"API_KEY": "hunter3", "MODE": "${env:MODE}"}
                },
                "far": {"url": "https://ann:hunter4@example.com/mcp", "headers": {"X-Api-Key": "hunter5"}}
            }}"#,
        );
        let expected = r#"[upstreams.db]
command = ["npx", "-y", "db", "postgresql://ann:${DB_PASSWORD}@host/db"]
env = { "API_KEY" = "${API_KEY}", "MODE" = "${MODE}" }

[upstreams.far]
url = "https://ann:${FAR_PASSWORD}@example.com/mcp"
headers = { "X-Api-Key" = "${FAR_X_API_KEY}" }
"#;
        assert_eq!(tables, expected);
        assert!(!notes.concat().contains("hunter"), "{notes:?}");
    }

    #[test]
    fn servers_and_their_settings_keep_the_order_of_the_file() {
        let (tables, notes) = imported(
            r#"{"mcpServers": {
                "zebra": {"command": "z", "env": {"ZOO": "1", "APE": "2"}, "zap": 1, "ant": 2},
                "ape": {"url": "https://example.com/mcp", "headers": {"X-Zoo": "1", "X-Ape": "2"}}
            }}"#,
        );
        let expected = r#"[upstreams.zebra]
command = ["z"]
env = { "ZOO" = "1", "APE" = "2" }

[upstreams.ape]
url = "https://example.com/mcp"
headers = { "X-Zoo" = "1", "X-Ape" = "2" }
"#;
        assert_eq!(tables, expected);
        assert!(notes[0].ends_with("`zap`, `ant`"), "{notes:?}");
    }

    #[test]
    fn a_file_without_a_configuration_is_refused() {
        let file = Path::new("x.json");
        assert!(parse(file, "{").is_err());
        assert!(parse(file, &"[".repeat(100_000)).unwrap_err().to_string().contains("deeper"));
        let message =
            servers(file, &serde_json::json!({"other": {}}).into()).unwrap_err().to_string();
        assert!(message.contains("neither `mcpServers` nor `servers`"), "{message}");
    }
}
