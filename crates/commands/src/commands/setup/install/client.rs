//! The supported clients: where each stores its configuration, and how it names a server there.

use std::env;
use std::path::PathBuf;

use crate::args::ClientName;
use crate::commands::setup::install::ClientEntry;
use crate::commands::setup::install::edit::MemberValue;

/// A client.
#[derive(Debug)]
pub(crate) struct ClientApp {
    name: ClientName,
    /// The name for users.
    pub(crate) title: &'static str,
    /// The keys that lead to its servers.
    pub(crate) keys: &'static [&'static str],
    /// Whether an entry names its transport.
    has_type: bool,
    /// What the user does after the change.
    pub(crate) hint: &'static str,
}

/// The folders of the user that contain configuration files.
#[derive(Debug)]
pub(crate) struct HomeFolders {
    pub(crate) system: OperatingSystem,
    pub(crate) home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub(crate) config: Option<PathBuf>,
    /// `APPDATA`.
    pub(crate) data: Option<PathBuf>,
}

/// The operating systems, which store files at different paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatingSystem {
    MacOs,
    Windows,
    Other,
}

impl HomeFolders {
    pub(crate) fn of_environment() -> Self {
        let folder =
            |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let system = match env::consts::OS {
            "macos" => OperatingSystem::MacOs,
            "windows" => OperatingSystem::Windows,
            _ => OperatingSystem::Other,
        };
        let home = if system == OperatingSystem::Windows { "USERPROFILE" } else { "HOME" };
        Self {
            system,
            home: folder(home),
            config: folder("XDG_CONFIG_HOME"),
            data: folder("APPDATA"),
        }
    }

    /// The folder in which programs store their settings.
    fn settings(&self) -> Option<PathBuf> {
        match self.system {
            OperatingSystem::MacOs => Some(self.home.as_ref()?.join("Library/Application Support")),
            OperatingSystem::Windows => self.data.clone(),
            OperatingSystem::Other => self.dot_config(),
        }
    }

    fn dot_config(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| Some(self.home.as_ref()?.join(".config")))
    }
}

impl ClientApp {
    pub(crate) fn by_name(name: ClientName) -> Self {
        let of = |title, keys, has_type, hint| Self { name, title, keys, has_type, hint };
        match name {
            ClientName::ClaudeDesktop => of(
                "Claude Desktop",
                &["mcpServers"],
                false,
                "quit Claude Desktop and start it again",
            ),
            ClientName::ClaudeCode => {
                of("Claude Code", &["mcpServers"], true, "`/mcp` in Claude Code shows it")
            }
            ClientName::Cursor => {
                of("Cursor", &["mcpServers"], false, "Cursor's settings show it under MCP")
            }
            ClientName::Vscode => of(
                "Visual Studio Code",
                &["servers"],
                true,
                "`MCP: List Servers` in VS Code shows it",
            ),
            ClientName::Zed => {
                of("Zed", &["context_servers"], false, "Zed's agent settings show it")
            }
        }
    }

    /// The file of the user.
    pub(crate) fn user_file(&self, homes: &HomeFolders) -> Option<PathBuf> {
        Some(match self.name {
            ClientName::ClaudeDesktop => {
                homes.settings()?.join("Claude/claude_desktop_config.json")
            }
            ClientName::ClaudeCode => homes.home.as_ref()?.join(".claude.json"),
            ClientName::Cursor => homes.home.as_ref()?.join(".cursor/mcp.json"),
            ClientName::Vscode => homes.settings()?.join("Code/User/mcp.json"),
            ClientName::Zed => match homes.system {
                OperatingSystem::Windows => homes.data.as_ref()?.join("Zed/settings.json"),
                OperatingSystem::MacOs => homes.home.as_ref()?.join(".config/zed/settings.json"),
                OperatingSystem::Other => homes.dot_config()?.join("zed/settings.json"),
            },
        })
    }

    /// The file of a project, relative to its folder.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        let path = match self.name {
            ClientName::ClaudeDesktop => return None,
            ClientName::ClaudeCode => ".mcp.json",
            ClientName::Cursor => ".cursor/mcp.json",
            ClientName::Vscode => ".vscode/mcp.json",
            ClientName::Zed => ".zed/settings.json",
        };
        Some(path.into())
    }

    /// The members of an entry.
    pub(crate) fn members(&self, entry: &ClientEntry) -> Vec<(&'static str, MemberValue)> {
        let mut members = Vec::new();
        if self.has_type {
            members.push(("type", MemberValue::Text("stdio".to_owned())));
        }
        members.push(("command", MemberValue::Text(entry.command.clone())));
        members.push(("args", MemberValue::List(entry.args.clone())));
        members
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn files(homes: &HomeFolders) -> Vec<String> {
        let file = |name: &ClientName| ClientApp::by_name(*name).user_file(homes).unwrap();
        ClientName::value_variants().iter().map(|name| file(name).display().to_string()).collect()
    }

    #[test]
    fn each_operating_system_has_its_paths() {
        let home = Some(PathBuf::from("/h"));
        let linux = HomeFolders {
            system: OperatingSystem::Other,
            home: home.clone(),
            config: None,
            data: None,
        };
        assert_eq!(
            files(&linux),
            [
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/.claude.json",
                "/h/.cursor/mcp.json",
                "/h/.config/Code/User/mcp.json",
                "/h/.config/zed/settings.json",
            ]
        );
        let config = Some(PathBuf::from("/c"));
        let moved = HomeFolders { config, ..linux };
        assert_eq!(files(&moved)[3..], ["/c/Code/User/mcp.json", "/c/zed/settings.json"]);
        let mac = HomeFolders {
            system: OperatingSystem::MacOs,
            home: home.clone(),
            config: None,
            data: None,
        };
        assert_eq!(
            files(&mac)[0],
            "/h/Library/Application Support/Claude/claude_desktop_config.json"
        );
        assert_eq!(
            files(&mac)[3..],
            ["/h/Library/Application Support/Code/User/mcp.json", "/h/.config/zed/settings.json"]
        );
        let data = Some(PathBuf::from("/d"));
        let windows = HomeFolders { system: OperatingSystem::Windows, home, config: None, data };
        assert_eq!(files(&windows)[0], "/d/Claude/claude_desktop_config.json");
        assert_eq!(files(&windows)[3..], ["/d/Code/User/mcp.json", "/d/Zed/settings.json"]);
        let nowhere =
            HomeFolders { system: OperatingSystem::Other, home: None, config: None, data: None };
        assert_eq!(ClientApp::by_name(ClientName::Cursor).user_file(&nowhere), None);
    }
}
