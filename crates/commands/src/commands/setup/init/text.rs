//! The text of a new configuration: its content, and further options as comments.

use toml_edit::Value;

use crate::commands::setup::init::SCHEMA;
use crate::commands::setup::init::answers::{InitAnswers, UpstreamTarget};

/// The packs of a configuration without other content.
const PACKS: [&str; 3] = ["hello", "echo", "calculate"];

/// The configuration as TOML.
pub(crate) fn configuration(answers: &InitAnswers) -> String {
    let mut parts = vec![head(answers)];
    parts.extend(answers.upstreams.iter().map(|(name, target)| upstream(name, target)));
    parts.extend(answers.documents.iter().map(|(name, location)| document(name, location)));
    parts.extend(answers.folders.iter().map(|(name, path)| folder(name, path)));
    parts.extend(answers.databases.iter().map(|(name, url)| database(name, url)));
    parts.extend(answers.wordpress.as_deref().map(wordpress));
    parts.push(http(answers));
    parts.join("\n")
}

/// A text as a TOML string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn head(answers: &InitAnswers) -> String {
    let name = quoted(answers.name.as_deref().unwrap_or("creole"));
    let packs = match (answers.wordpress.is_some(), answers.is_empty()) {
        (true, _) => {
            "# The tools of the site below.\npacks = [\"buddyboss-platform\"]\n".to_owned()
        }
        (false, true) => {
            let names = PACKS.map(quoted).join(", ");
            format!("# Built-in tools. Remove them when you have your own.\npacks = [{names}]\n")
        }
        (false, false) => String::new(),
    };
    format!(
        "#:schema ./{SCHEMA}\n\
         # The configuration of Creole. `creole config reference` lists every key.\n\
         # In every string, ${{NAME}} is replaced by an environment variable. Put secrets there.\n\n\
         [server]\n\
         # The name that clients see.\n\
         name = {name}\n\
         {packs}"
    )
}

fn upstream(name: &str, target: &UpstreamTarget) -> String {
    let message = match target {
        UpstreamTarget::Url(url) => format!(
            "url = {}\n# headers = {{ Authorization = \"Bearer ${{TOKEN}}\" }}\n",
            quoted(url)
        ),
        UpstreamTarget::Command(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!(
                "command = [{}]\n# Environment variables of the program, besides the basic ones:\n\
                 # env = {{ API_KEY = \"${{API_KEY}}\" }}\n",
                words.join(", ")
            )
        }
    };
    format!(
        "# An upstream MCP server. Its tools have the prefix {name}__.\n[upstreams.{name}]\n{message}"
    )
}

fn document(name: &str, location: &str) -> String {
    let key = if location.contains("://") { "url" } else { "file" };
    format!(
        "# A service with an OpenAPI document. Its operations become tools.\n\
         [openapi.{name}]\n\
         {key} = {}\n\
         # Default: only GET operations.\n\
         # methods = [\"GET\", \"POST\"]\n\
         # Use the server's URL in the document. Or set `base_url`.\n\
         trust_servers = true\n\
         # auth = {{ bearer = \"${{TOKEN}}\" }}\n",
        quoted(location)
    )
}

fn folder(name: &str, path: &str) -> String {
    format!(
        "# A folder. Its files are resources at folder://{name}/path.\n\
         [folders.{name}]\n\
         path = {}\n\
         # include = [\"*.md\"]\n",
        quoted(path)
    )
}

fn database(name: &str, url: &str) -> String {
    let password = match url.starts_with("sqlite:") {
        true => "",
        false => "# password = \"${DATABASE_PASSWORD}\"\n",
    };
    format!(
        "# A database that tools and resources read. It is never changed.\n\
         [databases.{name}]\n\
         url = {}\n\
         {password}\
         # Tables that become resources:\n\
         # tables = [\"products\"]\n\
         # A tool with a query:\n\
         # [tools.find_product]\n\
         # description = \"Finds products by their name\"\n\
         # database = \"{name}\"\n\
         # query = \"SELECT id, name FROM products WHERE name LIKE {{name}}\"\n\
         # [tools.find_product.arguments.name]\n\
         # type = \"string\"\n\
         # description = \"A part of the name, with % for anything\"\n",
        quoted(url)
    )
}

fn wordpress(url: &str) -> String {
    format!(
        "# The site. HTTP clients authenticate with an Application Password of the site.\n\
         [wordpress]\n\
         url = {}\n\
         # Or all calls use one account:\n\
         # user = \"admin\"\n\
         # password = \"${{WORDPRESS_PASSWORD}}\"\n",
        quoted(url)
    )
}

fn http(answers: &InitAnswers) -> String {
    let (mark, listen) = match answers.http {
        Some(address) => ("", address.to_string()),
        None => ("# ", "127.0.0.1:8080".to_owned()),
    };
    format!(
        "# With this table, Creole listens for HTTP at /mcp. Without it, clients start Creole \
            and use stdin and stdout.\n\
         {mark}[http]\n\
         {mark}listen = \"{listen}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use creole_config::Plan;

    use super::*;

    fn valid_configuration(answers: &InitAnswers) -> String {
        let text = configuration(answers);
        let any = |_: &str| Ok("x".to_owned());
        let loaded =
            Plan::load_text("creole.toml", &text, Path::new(""), &creole_config::packs(), &any);
        if let Err(problem) = loaded {
            panic!("{problem}\n{text}");
        }
        text
    }

    #[test]
    fn every_configuration_is_valid() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let command = vec!["npx".to_owned(), "a \"b\"".to_owned()];
        let text = valid_configuration(&InitAnswers {
            name: Some("te\"am".to_owned()),
            upstreams: vec![
                ("files".to_owned(), UpstreamTarget::Command(command)),
                ("far".to_owned(), UpstreamTarget::Url("https://example.com/mcp".to_owned())),
            ],
            folders: vec![pair("docs", "src")],
            databases: vec![pair("shop", "sqlite:shop.db"), pair("big", "postgres://ann@db/shop")],
            wordpress: cfg!(feature = "wordpress").then(|| "https://example.org".to_owned()),
            http: Some(([127, 0, 0, 1], 8080).into()),
            ..InitAnswers::default()
        });
        assert!(text.starts_with("#:schema ./creole.schema.json\n"), "{text}");
        assert!(text.contains("\n[http]\nlisten = \"127.0.0.1:8080\"\n"), "{text}");
        let empty = valid_configuration(&InitAnswers::default());
        assert!(empty.contains("packs = [\"hello\", \"echo\", \"calculate\"]\n"), "{empty}");
        assert!(empty.contains("# [http]\n"), "{empty}");
    }

    #[test]
    fn the_commented_keys_are_valid_too() {
        let answers = InitAnswers {
            databases: vec![("shop".to_owned(), "postgres://ann@db/shop".to_owned())],
            upstreams: vec![(
                "far".to_owned(),
                UpstreamTarget::Url("https://example.com/mcp".to_owned()),
            )],
            folders: vec![("docs".to_owned(), "src".to_owned())],
            ..InitAnswers::default()
        };
        let is_key = |line: &str| {
            line.starts_with("# ") && (line.contains(" = ") || line.starts_with("# ["))
        };
        let text: Vec<String> = configuration(&answers)
            .lines()
            .map(|line| if is_key(line) { line[2..].to_owned() } else { line.to_owned() })
            .collect();
        let any = |_: &str| Ok("x".to_owned());
        let text = text.join("\n");
        let loaded =
            Plan::load_text("creole.toml", &text, Path::new(""), &creole_config::packs(), &any);
        assert!(loaded.is_ok(), "{:?}\n{text}", loaded.map(drop));
    }
}
