//! What was refused, grouped.

use std::sync::Arc;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::problem::Problem;
use crate::live::denials::DenialGroup;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};

pub(super) fn routes() -> Vec<Route> {
    let summary = "Refused calls and requests since the recording began, grouped";
    vec![Route::get("/denials", Role::Read, summary, list).query(&["since", "limit"])]
}

/// Refused calls.
#[derive(Serialize, JsonSchema)]
pub(super) struct DenialList {
    /// Since when calls are recorded.
    pub(super) since: String,
    /// The number of refusals.
    pub(super) total: u64,
    /// The groups, the newest first.
    pub(super) items: Vec<DenialGroup>,
}

async fn list(admin: Arc<Admin>, request: ApiRequest) -> Result<DenialList, Problem> {
    let since = request.query.time("since")?;
    Ok(denials(&admin, since, request.query.limit()?))
}

/// The denials since then, at most this many groups.
pub(super) fn denials(admin: &Admin, since: Option<SystemTime>, limit: usize) -> DenialList {
    let mut items = admin.live.denials().since(since);
    let total = items.iter().map(|group| group.count).sum();
    items.truncate(limit);
    for group in &mut items {
        group.line = admin.host.rule_line(&group.layer, group.rule.as_deref());
    }
    let recording = admin.live.recording_since().unwrap_or_else(SystemTime::now);
    DenialList { since: clock::text(since.map_or(recording, |it| it.max(recording))), total, items }
}
