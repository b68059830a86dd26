//! The OpenAPI document of the API.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::http::problem::Problem;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, openapi};

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/openapi.json", Role::Read, "This document", show)]
}

async fn show(_: Arc<Admin>, _: ApiRequest) -> Result<Map<String, Value>, Problem> {
    Ok(openapi::document(&super::routes()))
}
