//! Captures of payloads.

use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Admin;
use crate::http::problem::{Problem, ProblemCode};
use crate::live::captures::{Capture, CaptureFilter, CaptureRefusal};
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;

const MAX_MINUTES: u64 = 30;
const MAX_CALLS: usize = 200;

pub(in crate::api) fn routes() -> Vec<Route> {
    vec![
        Route::get("/captures", Role::Read, "The running captures", list),
        Route::post::<NewCapture, _, _, _>(
            "/captures",
            Role::Operate,
            StatusCode::CREATED,
            "Keeps the payloads of matching calls for a while",
            start,
        ),
        Route::act(
            Method::DELETE,
            "/captures/{capture}",
            Role::Operate,
            "Ends a capture and forgets its payloads",
            end,
        ),
    ]
}

/// A capture to start.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewCapture {
    /// Which calls it takes.
    #[serde(default)]
    filter: CaptureFilter,
    /// After how many minutes it ends: 1 to 30.
    #[serde(default = "default_minutes")]
    minutes: u64,
    /// How many calls it takes: 1 to 200.
    #[serde(default = "default_calls")]
    max: usize,
}

fn default_minutes() -> u64 {
    10
}

fn default_calls() -> usize {
    50
}

/// The running captures.
#[derive(Serialize, JsonSchema)]
struct CaptureList {
    items: Vec<Capture>,
}

async fn list(admin: Arc<Admin>, _: ApiRequest) -> Result<CaptureList, Problem> {
    Ok(CaptureList { items: admin.live.captures.list() })
}

async fn start(admin: Arc<Admin>, request: ApiRequest) -> Result<Capture, Problem> {
    let wanted: NewCapture = request.json()?;
    let invalid = |detail: String| {
        Problem::new(ProblemCode::InvalidBody, "This capture cannot start").detail(detail)
    };
    if !(1..=MAX_MINUTES).contains(&wanted.minutes) {
        return Err(invalid(format!("`minutes` must be from 1 to {MAX_MINUTES}")));
    }
    if !(1..=MAX_CALLS).contains(&wanted.max) {
        return Err(invalid(format!("`max` must be from 1 to {MAX_CALLS}")));
    }
    let caller = request.caller()?.name();
    let lifetime = Duration::from_secs(wanted.minutes * 60);
    let started = admin.live.captures.start(wanted.filter, caller, lifetime, wanted.max);
    let capture = started.map_err(|refusal| match refusal {
        CaptureRefusal::Never => {
            Problem::new(ProblemCode::Forbidden, "Payloads may not be looked at")
                .detail("`capture` of `[admin]` is `never`")
        }
        CaptureRefusal::TooMany => {
            Problem::new(ProblemCode::Conflict, "Too many captures run").detail("end one first")
        }
    })?;
    tracing::info!(target: "creole::admin", by = caller, capture = %capture.id, minutes = wanted.minutes, "a capture of payloads was started");
    Ok(capture)
}

async fn end(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    let id = request.name(0);
    match admin.live.captures.end(id) {
        true => Ok(()),
        false => Err(Problem::not_found("capture", id)),
    }
}
