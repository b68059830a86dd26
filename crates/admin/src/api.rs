//! The handlers of the API, and the table of its routes.

mod calls;
mod captures;
mod denials;
mod document;
pub(crate) mod metrics;
mod overview;
pub(crate) mod readiness;
mod session;
mod upstreams;

use crate::routes::Route;

/// All routes.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [
        session::routes(),
        overview::routes(),
        upstreams::routes(),
        calls::routes(),
        captures::routes(),
        denials::routes(),
        document::routes(),
    ];
    parts.into_iter().flatten().collect()
}
