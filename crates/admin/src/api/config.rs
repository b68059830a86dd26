//! The configuration in force, and why a later one was refused.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::host::{Diagnostic, EffectiveValue};
use crate::http::problem::Problem;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};

pub(super) fn routes() -> Vec<Route> {
    let summary = "The configuration in force, without secrets, and the last refused one";
    vec![Route::get("/config", Role::Read, summary, show)]
}

/// The configuration.
#[derive(Serialize, JsonSchema)]
struct ConfigDetail {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Its text, with secrets replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The SHA-256 of the file.
    digest: String,
    /// When it was put into force.
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded: Option<String>,
    /// The values in force.
    effective: Vec<EffectiveValue>,
    /// The last configuration that was refused, unless a later one was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refused>,
    /// What is wrong with the refused configuration.
    diagnostics: Vec<Diagnostic>,
    /// What in the refused configuration needs a restart of the process.
    restart_needed: Vec<String>,
    reloads: Reloads,
}

/// A configuration that was refused.
#[derive(Serialize, JsonSchema)]
struct Refused {
    /// When.
    at: String,
    /// Its text, with secrets replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The SHA-256 of the file.
    digest: String,
}

/// The reloads since the start.
#[derive(Serialize, JsonSchema)]
struct Reloads {
    accepted: u64,
    refused: u64,
}

async fn show(admin: Arc<Admin>, _: ApiRequest) -> Result<ConfigDetail, Problem> {
    let view = admin.host.config();
    let (mut diagnostics, mut restart_needed) = (Vec::new(), Vec::new());
    let refused = view.refused.map(|refused| {
        (diagnostics, restart_needed) = (refused.diagnostics, refused.restart_needed);
        Refused { at: clock::text(refused.at), text: refused.text, digest: refused.digest }
    });
    Ok(ConfigDetail {
        file: view.file.map(|file| file.display().to_string()),
        text: view.text,
        digest: view.digest,
        loaded: view.loaded.map(clock::text),
        effective: view.effective,
        refused,
        diagnostics,
        restart_needed,
        reloads: Reloads { accepted: view.accepted_reloads, refused: view.refused_reloads },
    })
}
