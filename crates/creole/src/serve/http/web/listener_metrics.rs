//! The metrics of one listener.

use std::sync::Arc;

use http::{Response, StatusCode};

use crate::serve::http::web::handler::RefusedRequest;
use crate::serve::http::web::request::RequestHead;
use crate::telemetry::Telemetry;
use crate::telemetry::metrics::{Gauge, GaugeGuard, OTHER, OwnedSeries, UpDownGauge, table};
use crate::telemetry::record::RefusedClientRequest;

/// The statuses that have a series of their own.
const CODES: [(u16, &str); 15] = [
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (408, "408"),
    (413, "413"),
    (414, "414"),
    (415, "415"),
    (421, "421"),
    (429, "429"),
    (431, "431"),
    (500, "500"),
    (503, "503"),
];

/// Counts the connections and the refused requests of one listener, and reports refused callers.
pub struct ListenerMetrics {
    name: &'static str,
    telemetry: Telemetry,
    series: OwnedSeries,
    /// Connections whose version is not known yet, and those of HTTP/1 and HTTP/2.
    connections: [UpDownGauge; 3],
    limit: Gauge,
}

impl ListenerMetrics {
    /// The metrics of the listener with this name.
    pub fn new(telemetry: &Telemetry, name: &'static str) -> Arc<Self> {
        let metrics = telemetry.metrics();
        let of_version = |version| metrics.up_down(&table::CONNECTIONS, &[name, version]);
        Arc::new(Self {
            name,
            telemetry: telemetry.clone(),
            series: metrics.owned_series(),
            connections: ["unknown", "1.1", "2"].map(of_version),
            limit: metrics.gauge(&table::CONNECTIONS_LIMIT, &[name]),
        })
    }

    /// Sets the maximum number of connections.
    pub(crate) fn set_limit(&self, connections: usize) {
        self.limit.set(i64::try_from(connections).unwrap_or(i64::MAX));
    }

    /// Counts a connection whose version is not known yet.
    pub(crate) fn connection(&self) -> GaugeGuard {
        self.connections[0].hold()
    }

    /// Counts a connection of this version.
    pub(crate) fn connection_of(&self, is_http2: bool) -> GaugeGuard {
        self.connections[1 + usize::from(is_http2)].hold()
    }

    /// Counts a response, if its request was refused before a message was read from it. Refused callers are reported.
    pub(crate) fn count_response<B>(&self, head: &RequestHead, response: &Response<B>) {
        let status = response.status();
        if status.is_success() || status.is_informational() {
            return;
        }
        let Some(refused) = response.extensions().get::<RefusedRequest>() else { return };
        self.series.count(&table::HTTP_RESPONSES, &[self.name, code(status)]);
        let is_caller = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_caller && !refused.is_call {
            self.telemetry.report_refused_request(&RefusedClientRequest {
                status: status.as_u16(),
                method: head.method.as_str(),
                path: head.uri.path(),
                reason: &refused.reason,
                principal: refused.principal.as_deref(),
                remote: head.client,
            });
        }
    }
}

fn code(status: StatusCode) -> &'static str {
    let known = CODES.iter().find(|(code, _)| *code == status.as_u16());
    known.map_or(OTHER, |(_, text)| text)
}
