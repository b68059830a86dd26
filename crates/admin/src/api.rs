//! The handlers of the API, and the table of its routes.

mod audit;
mod calls;
mod captures;
mod config;
mod denials;
mod document;
mod items;
mod log;
pub(crate) mod metrics;
mod overview;
mod pins;
mod process;
pub(crate) mod readiness;
pub(crate) mod run;
mod session;
mod sessions;
mod tasks;
mod upstream_detail;
mod upstreams;

use crate::routes::Route;

/// All routes.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [
        session::routes(),
        overview::routes(),
        upstreams::routes(),
        upstream_detail::routes(),
        calls::routes(),
        run::routes(),
        captures::routes(),
        items::routes(),
        sessions::routes(),
        tasks::routes(),
        pins::routes(),
        config::routes(),
        process::routes(),
        log::routes(),
        audit::routes(),
        denials::routes(),
        document::routes(),
    ];
    parts.into_iter().flatten().collect()
}
