//! Published servers of other authors, pinned in `acceptance/peers/zoo/`.

use std::ffi::OsString;

use super::install::{Missing, folder, node, npm_packages, source, virtual_environment};

/// The virtual environments of Python, each with its requirements file.
pub(super) const ENVIRONMENTS: [&str; 5] =
    ["python-2", "python-1", "python-old", "fastmcp-2", "fastmcp-4"];

/// The command that starts a script of the npm packages, which resolves no name except `localhost`.
pub fn npm(script: &str) -> Result<Vec<OsString>, Missing> {
    let packages = npm_packages("zoo", "zoo", &[])?;
    node_script(packages.join("node_modules").join(script).into())
}

/// The command that starts a script of the packages in `acceptance/peers/reference/`.
pub fn reference(script: &str) -> Result<Vec<OsString>, Missing> {
    let packages = npm_packages("reference", "reference", &[])?;
    node_script(packages.join("node_modules").join(script).into())
}

/// The command that starts a program of one of the virtual environments.
pub fn python(environment: &str, program: &str) -> Result<Vec<OsString>, Missing> {
    let python = installed(environment)?;
    let program = folder(&folder_of(environment)).join("venv/bin").join(program);
    Ok(vec![python, program.into()])
}

/// The interpreter of a virtual environment.
pub(super) fn installed(environment: &str) -> Result<OsString, Missing> {
    let list = format!("zoo/{environment}.txt");
    virtual_environment(&folder_of(environment), &list).map(Into::into)
}

fn folder_of(environment: &str) -> String {
    format!("zoo-{environment}")
}

fn node_script(script: OsString) -> Result<Vec<OsString>, Missing> {
    Ok(vec![node()?.into(), "--require".into(), source("zoo/loopback.cjs").into(), script])
}
