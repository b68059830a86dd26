//! The content of a new configuration, from the command line or from answers at the terminal.

use std::net::SocketAddr;
use std::path::Path;

use creole_config::plan::http::address;

use crate::args::InitArgs;
use crate::commands::setup::init::shell_words::split_words;
use crate::commands::setup::terminal_prompt;
use crate::failure::Failure;
use crate::output;

/// The maximum length of an upstream's name.
const MAX_NAME: usize = 64;

/// The content of a new configuration.
#[derive(Debug, Default)]
pub(crate) struct InitAnswers {
    pub(crate) name: Option<String>,
    pub(crate) upstreams: Vec<(String, UpstreamTarget)>,
    /// OpenAPI documents, each a file or a URL.
    pub(crate) documents: Vec<(String, String)>,
    pub(crate) folders: Vec<(String, String)>,
    pub(crate) databases: Vec<(String, String)>,
    pub(crate) wordpress: Option<String>,
    pub(crate) http: Option<SocketAddr>,
}

/// The target of an upstream.
#[derive(Debug, PartialEq)]
pub(crate) enum UpstreamTarget {
    Url(String),
    Command(Vec<String>),
}

impl InitAnswers {
    /// The content from the command line.
    pub(crate) fn from_args(args: &InitArgs) -> Result<Self, Failure> {
        if args.wordpress.is_some() && !cfg!(feature = "wordpress") {
            return Err(Failure::without_wordpress());
        }
        let usage = |problem: String| Failure::Usage(problem);
        let pairs =
            |given: &[String]| given.iter().map(|entry| pair(entry)).collect::<Result<Vec<_>, _>>();
        let upstreams = args.upstreams.iter().map(|entry| {
            let (name, location) = pair(entry)?;
            Ok((name, parse_target(&location)?))
        });
        let databases = pairs(&args.databases).map_err(usage)?;
        for (_, location) in &databases {
            database(location).map_err(usage)?;
        }
        Ok(Self {
            name: args.name.clone(),
            upstreams: upstreams.collect::<Result<_, String>>().map_err(usage)?,
            documents: pairs(&args.openapi).map_err(usage)?,
            folders: pairs(&args.folders).map_err(usage)?,
            databases,
            wordpress: args.wordpress.as_deref().map(url).transpose().map_err(usage)?,
            http: args.http,
        })
    }

    /// Whether there is no content.
    pub(crate) fn is_empty(&self) -> bool {
        self.upstreams.is_empty()
            && self.documents.is_empty()
            && self.folders.is_empty()
            && self.databases.is_empty()
            && self.wordpress.is_none()
    }

    /// Asks the user at the terminal.
    pub(crate) fn ask(&mut self, file: &Path) -> Result<(), Failure> {
        output::write_message(&format!("This writes {}. What should it contain?", file.display()));
        for (number, description) in (1..).zip(offered_kinds()) {
            output::write_message(&format!("  {number}  {description}"));
        }
        let chosen = terminal_prompt::ask_until_valid(
            "Numbers, separated by commas; Enter for none: ",
            numbers,
        )?;
        for number in chosen {
            self.ask_for(number)?;
        }
        if self.http.is_none() {
            let question = "Enter if clients start Creole themselves (stdio), or an address to listen on for HTTP, such as 127.0.0.1:8080: ";
            self.http = terminal_prompt::ask_until_valid(question, |answer| match answer {
                "" => Ok(None),
                answer => address(answer).map(Some).ok_or_else(|| {
                    format!("invalid address `{answer}`; write an address and a port")
                }),
            })?;
        }
        Ok(())
    }

    /// Asks for one kind of content.
    fn ask_for(&mut self, number: usize) -> Result<(), Failure> {
        output::write_message(&format!("{}:", KINDS[number - 1]));
        if number == KINDS.len() {
            self.wordpress =
                Some(terminal_prompt::ask_until_valid("  The URL of its front page: ", url)?);
            return Ok(());
        }
        let name = terminal_prompt::ask_until_valid("  A name for it, such as files: ", name)?;
        match number {
            1 => {
                let command = terminal_prompt::ask_until_valid(
                    "  The command that starts it, such as npx -y some-server: ",
                    command,
                )?;
                self.upstreams.push((name, UpstreamTarget::Command(command)));
            }
            2 => {
                let url = terminal_prompt::ask_until_valid(
                    "  Its URL, such as https://example.com/mcp: ",
                    url,
                )?;
                self.upstreams.push((name, UpstreamTarget::Url(url)));
            }
            3 => self.documents.push((
                name,
                terminal_prompt::ask_until_valid(
                    "  The file or the URL of its document: ",
                    non_empty,
                )?,
            )),
            4 => self.folders.push((
                name,
                terminal_prompt::ask_until_valid("  The path of the folder: ", non_empty)?,
            )),
            _ => {
                let question = "  Its address, sqlite:FILE or postgres://USER@HOST/DATABASE: ";
                self.databases.push((name, terminal_prompt::ask_until_valid(question, database)?));
            }
        }
        Ok(())
    }
}

/// The kinds of content.
const KINDS: [&str; 6] = [
    "an MCP server that is a program",
    "an MCP server at a URL",
    "a service with an OpenAPI document",
    "a folder of files",
    "a database, SQLite or PostgreSQL",
    "a WordPress site with BuddyBoss",
];

/// The kinds of content that this program supports. The last one needs WordPress.
fn offered_kinds() -> &'static [&'static str] {
    let left_out = usize::from(!cfg!(feature = "wordpress"));
    &KINDS[..KINDS.len() - left_out]
}

fn numbers(answer: &str) -> Result<Vec<usize>, String> {
    let number = |word: &str| {
        let offered = 1..=offered_kinds().len();
        let number = word.trim().parse().ok().filter(|number| offered.contains(number));
        number.ok_or_else(|| format!("invalid number `{}`; choose from the list", word.trim()))
    };
    match answer {
        "" => Ok(Vec::new()),
        answer => answer.split(',').map(number).collect(),
    }
}

/// A name and a value, written as `NAME=VALUE`.
fn pair(entry: &str) -> Result<(String, String), String> {
    let (text, value) = entry
        .split_once('=')
        .ok_or_else(|| format!("`{entry}` has no name; write `NAME=VALUE`"))?;
    Ok((name(text)?, non_empty(value)?))
}

/// A valid table name.
fn name(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_name = !text.is_empty()
        && text.len() <= MAX_NAME
        && text.bytes().all(is_allowed)
        && !text.contains("__")
        && !text.ends_with('_');
    match is_name {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "invalid name `{text}`; use at most {MAX_NAME} letters, digits, `-` or single `_`"
        )),
    }
}

fn non_empty(text: &str) -> Result<String, String> {
    match text.is_empty() || text.chars().any(char::is_control) {
        true => Err("the value must not be empty or contain control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn url(text: &str) -> Result<String, String> {
    let is_url = text.starts_with("http://") || text.starts_with("https://");
    match is_url {
        true => non_empty(text),
        false => Err(format!("invalid URL `{text}`; begin it with https:// or http://")),
    }
}

fn database(text: &str) -> Result<String, String> {
    let known = ["sqlite:", "postgres://", "postgresql://"];
    match known.iter().any(|scheme| text.starts_with(scheme)) {
        true => non_empty(text),
        false => Err(format!(
            "invalid database address `{text}`; write sqlite:FILE or postgres://USER@HOST/DATABASE"
        )),
    }
}

fn command(text: &str) -> Result<Vec<String>, String> {
    let words = split_words(&non_empty(text)?)?;
    if words.is_empty() { Err("the command line has no program".to_owned()) } else { Ok(words) }
}

fn parse_target(text: &str) -> Result<UpstreamTarget, String> {
    match text.contains("://") && !text.contains(' ') {
        true => url(text).map(UpstreamTarget::Url),
        false => command(text).map(UpstreamTarget::Command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_url_or_a_command_line() {
        assert_eq!(
            parse_target("https://a/mcp"),
            Ok(UpstreamTarget::Url("https://a/mcp".to_owned()))
        );
        let words = ["npx", "-y", "a b"].map(str::to_owned).to_vec();
        assert_eq!(parse_target("npx -y 'a b'"), Ok(UpstreamTarget::Command(words)));
        assert!(
            parse_target("ftp://a").is_err()
                && parse_target("").is_err()
                && parse_target("a 'b").is_err()
        );
    }

    #[test]
    fn names_are_such_as_tables_may_have() {
        assert!(pair("files=x").is_ok() && pair("a-b_c=x=y").is_ok());
        for invalid in ["x", "=x", "a__b=x", "a_=x", "a b=x", "a="] {
            assert!(pair(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn several_items_are_chosen_by_their_numbers() {
        assert_eq!(numbers("1, 5"), Ok(vec![1, 5]));
        assert_eq!(numbers("6").is_ok(), cfg!(feature = "wordpress"));
        assert_eq!(numbers(""), Ok(vec![]));
        assert!(numbers("7").is_err() && numbers("0").is_err() && numbers("x").is_err());
    }
}
