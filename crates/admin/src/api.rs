//! The handlers of the API, and the table of its routes.

mod audit;
pub(crate) mod calls;
mod config;
mod denials;
mod document;
mod items;
mod log;
mod overview;
pub(crate) mod process;
mod session;
mod sessions;
mod tasks;
mod upstreams;

use crate::routes::Route;

/// All routes.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [
        session::routes(),
        overview::routes(),
        upstreams::routes(),
        upstreams::detail::routes(),
        calls::routes(),
        calls::run::routes(),
        calls::captures::routes(),
        items::routes(),
        sessions::routes(),
        tasks::routes(),
        upstreams::pins::routes(),
        config::routes(),
        process::routes(),
        log::routes(),
        audit::routes(),
        denials::routes(),
        document::routes(),
    ];
    parts.into_iter().flatten().collect()
}
