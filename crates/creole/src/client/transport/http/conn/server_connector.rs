//! The connector for HTTP servers, and how long connections may be idle or silent.

use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;

use crate::client::transport::http::conn::proxy::Proxies;
use crate::client::transport::http::conn::proxy_connector::ProxyConnector;
use crate::tls::{TrustedRoots, client_config};

/// Timeout for connecting.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may be silent before it is probed.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The interval of further probes, and how many may fail before the connection counts as dead.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TRIES: u32 = 4;

/// How long sent data, probes included, may stay unacknowledged before the connection counts as dead.
pub(crate) const DEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an unused connection is kept.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to a server, directly or through a proxy.
pub(crate) type ServerConnector = HttpsConnector<ProxyConnector<HttpConnector>>;

/// Creates the connector.
pub(crate) fn connector(
    trust: TrustedRoots<'_>,
    proxies: Proxies,
) -> Result<ServerConnector, String> {
    let mut connector = tcp_connector(GaiResolver::new());
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_TRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(DEAD_TIMEOUT));
    let connector = ProxyConnector::new(connector.clone(), connector, proxies);
    let tls = client_config(trust)?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    let builder = match trust {
        TrustedRoots::Plain => builder.https_or_http(),
        _ => builder.https_only(),
    };
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

/// A connector without TLS, to the addresses that the resolver returns.
pub(crate) fn tcp_connector<R>(resolver: R) -> HttpConnector<R> {
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_connection_is_detected_equally_fast_with_and_without_bytes_in_flight() {
        assert_eq!(KEEP_ALIVE + KEEP_ALIVE_INTERVAL * KEEP_ALIVE_TRIES, DEAD_TIMEOUT);
        // HTTP/2 connections are pinged, and have as long to respond.
        assert!(KEEP_ALIVE * 2 <= DEAD_TIMEOUT);
    }
}
