//! Servers for tests as upstreams of a gateway: small ones, each made with another SDK and all with the same tools.
//!
//! `acceptance/peers/README.md` describes the tools. With `--http` or `--sse` such a server reports its address on
//! stderr. Otherwise it serves on its standard streams.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Release;
use super::install::{Missing, node, npm_packages, rmcp_program, source, virtual_environment};

/// A transport over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Web {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, the transport of 2024-11-05.
    Sse,
}

impl Web {
    /// The path of its endpoint, in Creole and in these servers.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Streamable => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// A server that serves as an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamServer {
    /// Version 1 of the TypeScript SDK, which supports no revision after 2025-11-25.
    TypeScriptV1,
    /// Version 2 of the TypeScript SDK, configured to support no revision before 2026-07-28.
    TypeScriptV2,
    /// Version 1 of the Python SDK, which supports no revision after 2025-11-25.
    PythonV1,
    /// Version 2 of the Python SDK.
    PythonV2,
    /// FastMCP, which is built on version 2 of the Python SDK.
    FastMcp,
    /// The Rust SDK, on its standard streams only.
    Rmcp,
    /// `@modelcontextprotocol/server-everything`, which is published for tests and has its own tools.
    Everything,
    /// `@modelcontextprotocol/server-filesystem`, which is in wide use and requests roots immediately after the
    /// handshake.
    Filesystem,
    /// An older release of version 1 of the TypeScript SDK.
    OldTypeScript(Release),
}

impl UpstreamServer {
    /// The servers of the newest SDK releases.
    pub const ALL: [Self; 5] =
        [Self::TypeScriptV1, Self::TypeScriptV2, Self::PythonV1, Self::PythonV2, Self::FastMcp];

    /// The servers that support HTTP+SSE too.
    pub const SSE: [Self; 4] = [
        Self::TypeScriptV1,
        Self::PythonV1,
        Self::OldTypeScript(Release::November2024),
        Self::Everything,
    ];

    /// Further servers, of which only [`UpstreamServer::Everything`] supports more than its standard streams.
    pub const FURTHER: [Self; 3] = [Self::Rmcp, Self::Everything, Self::Filesystem];

    /// The server's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScriptV1 => "typescript-v1",
            Self::TypeScriptV2 => "typescript-v2",
            Self::PythonV1 => "python-v1",
            Self::PythonV2 => "python-v2",
            Self::FastMcp => "fastmcp",
            Self::Rmcp => "rmcp",
            Self::Everything => "server-everything",
            Self::Filesystem => "server-filesystem",
            Self::OldTypeScript(release) => release.name(),
        }
    }

    /// The newest revision that it supports.
    #[must_use]
    pub fn revision(self) -> &'static str {
        match self {
            Self::TypeScriptV1 | Self::PythonV1 | Self::Everything | Self::Filesystem => {
                "2025-11-25"
            }
            Self::TypeScriptV2 | Self::PythonV2 | Self::FastMcp | Self::Rmcp => "2026-07-28",
            Self::OldTypeScript(release) => release.revision(),
        }
    }

    /// The command that starts it on its standard streams. Installs it if needed.
    pub fn command(self) -> Result<Vec<OsString>, Missing> {
        match self {
            Self::TypeScriptV1 => {
                typescript("typescript-v1", "typescript/v1", "typescript/v1/server.mjs")
            }
            Self::TypeScriptV2 => {
                let own = "typescript/v2-server";
                typescript("typescript-v2-server", own, "typescript/v2-server/server.mjs")
            }
            Self::PythonV1 => python("python-v1", "python/v1.txt", "python/v1_server.py"),
            Self::PythonV2 => python("python-v2", "python/v2.txt", "python/v2_server.py"),
            Self::FastMcp => python("fastmcp", "python/fastmcp.txt", "python/fastmcp_server.py"),
            Self::Rmcp => Ok(vec![rmcp_program("rmcp-server", &["main.rs"])?.into()]),
            Self::Everything => {
                Ok(vec![node()?.into(), reference("server-everything")?, "stdio".into()])
            }
            // It may read its own manifest.
            Self::Filesystem => {
                let words = [node()?.into(), reference("server-filesystem")?];
                Ok(words.into_iter().chain([Self::files().into()]).collect())
            }
            Self::OldTypeScript(release) => {
                typescript(release.name(), release.folder(), "typescript/v1/server.mjs")
            }
        }
    }

    /// The command that starts it on its own port. It reports its address.
    pub fn listening(self, web: Web) -> Result<Vec<OsString>, Missing> {
        if self == Self::Everything {
            let preload = format!("--import={}", source("reference/listens.mjs").display());
            let mode = if web == Web::Sse { "sse" } else { "streamableHttp" };
            let words = [node()?.into(), preload.into(), reference("server-everything")?];
            return Ok(words.into_iter().chain([mode.into()]).collect());
        }
        let flag = if web == Web::Sse { "--sse" } else { "--http" };
        Ok(self.command()?.into_iter().chain([flag.into()]).collect())
    }
}

impl UpstreamServer {
    /// The folder that [`UpstreamServer::Filesystem`] may read; `package.json` is in it.
    #[must_use]
    pub fn files() -> PathBuf {
        source("reference")
    }
}

/// The script of a published server.
fn reference(package: &str) -> Result<OsString, Missing> {
    let folder = npm_packages("reference", "reference", &[])?;
    let package = folder.join("node_modules/@modelcontextprotocol").join(package);
    Ok(package.join("dist/index.js").into())
}

fn typescript(name: &str, own: &str, script: &str) -> Result<Vec<OsString>, Missing> {
    let folder = npm_packages(name, own, &["typescript/tools.mjs", script])?;
    Ok(vec![node()?.into(), folder.join("server.mjs").into()])
}

fn python(name: &str, list: &str, script: &str) -> Result<Vec<OsString>, Missing> {
    let python = virtual_environment(name, list)?;
    // `-B` keeps compiled files out of the work tree.
    Ok(vec![python.into(), "-B".into(), source(script).into()])
}
