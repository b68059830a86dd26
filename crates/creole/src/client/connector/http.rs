//! Opens connections over HTTP: probes the server for its era, and falls back to the other forms that it supports.

use std::time::Duration;

use creole_proto::client::era_probe::suggests_legacy_sse;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::revision::Era;
use creole_proto::wire::meta::PROTOCOL_VERSION;

use super::super::connection::Connection;
use super::super::era;
use super::super::era::DetectedEra;
use super::super::transport::Transport;
use super::{Address, ClientOffer, Connector};
use crate::client::negotiation::probe;
use crate::client::transport::http::{HttpAddress, HttpServer, LegacySseServer};

/// Error codes about the form of a request and not about its contents, also in revisions that give them no meaning.
const INVALID_REQUEST: i64 = -32600;
const UNSUPPORTED_VERSION: i64 = -32022;

impl Connector {
    /// Whether the server is known to have only the HTTP+SSE transport of 2024-11-05.
    pub fn is_legacy_sse(&self) -> bool {
        let detected = self.detected_in(DetectedEra::LEGACY_SSE.era());
        detected.is_some_and(DetectedEra::is_legacy_sse)
    }

    /// Detects again whether the server supports this era, after it [refused](may_be_wrong_era) a call in it; returns
    /// whether it does.
    ///
    /// # Errors
    /// When the server cannot be reached or its response is inconclusive.
    pub async fn recheck_era(&self, era: Era, fault: &Fault) -> Result<bool, Fault> {
        let Address::Http(target) = &self.address else { return Ok(true) };
        if self.only_era().is_some() {
            return Ok(true);
        }
        let detected = probe::probe_http(target, &self.profile).await?;
        // A server that supports both eras responds to the probe. Its response is no evidence against the other era.
        let spoke_both = self.supported_eras().supports(detected.era()) == Some(true);
        if detected.is_of(era) || (spoke_both && !is_unsupported_version(fault)) {
            return Ok(true);
        }
        let now = self.started.elapsed();
        self.era_cache().mark_missing(era, era::MIN_AGE, now);
        self.era_cache().learn(detected, Duration::ZERO, now);
        Ok(false)
    }

    /// The era in which a caller of this era is served, if no probe is needed.
    fn known_era_for(&self, caller: Era) -> Option<Era> {
        match self.only_era() {
            // Only a handshake negotiates the revision.
            Some(only) if only.rules().has_handshake() => Some(only),
            Some(only) => self.detected_in(only).map(DetectedEra::era),
            None => self.supported_eras().era_for(caller),
        }
    }

    /// Opens a connection over HTTP.
    pub(super) async fn connect_http(
        &self,
        target: &HttpAddress,
        caller: Era,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        if target.may_ask_person().await? {
            probe::log_in(target, &self.profile).await?;
        }
        let era = self.known_era_for(caller);
        let has_handshake = |era: Era| era.rules().has_handshake();
        // A dialect decides the era, not the revision: that is negotiated with the server.
        let may_ask = self.pinned_rules.is_none() && !self.only_era().is_some_and(has_handshake);
        if let Some(era) = era {
            let known = self.detected_in(era).unwrap_or_else(|| DetectedEra::of(era.rules()));
            match self.open_http(target, known, offer).await {
                Err(fault) if may_ask && contradicts_era(&fault) => self.era_cache().forget(era),
                opened => return opened,
            }
        }
        let may_shake_hands = self.only_era().is_none_or(has_handshake);
        if may_shake_hands && has_handshake(caller) && era != Some(caller) {
            match self.open_http(target, DetectedEra::of(caller.rules()), offer).await {
                Err(fault) if contradicts_era(&fault) => {
                    // If that fails too, the server's first fault is more informative.
                    let detected = probe::probe_http(target, &self.profile)
                        .await
                        .map_err(|_| fault.clone())?;
                    if detected.is_of(caller) {
                        return Err(fault);
                    }
                    let opened =
                        self.open_http(target, detected, offer).await.map_err(|_| fault)?;
                    let now = self.started.elapsed();
                    self.era_cache().mark_missing(caller, era::MAX_AGE, now);
                    return Ok(opened);
                }
                opened => return opened,
            }
        }
        let detected = probe::probe_http(target, &self.profile).await?;
        let opened = self.open_http(target, detected, offer).await?;
        let rules = opened.greeting().rules;
        if rules.has_handshake() {
            let (lacks, now) = (rules.era.other(), self.started.elapsed());
            self.era_cache().mark_missing(lacks, era::MAX_AGE, now);
        }
        Ok(opened)
    }

    /// Opens a connection over HTTP in this form, or in the one that the server leads to.
    async fn open_http(
        &self,
        target: &HttpAddress,
        detected: DetectedEra,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let (detected, opened) = match self.open_http_once(target, detected, offer).await {
            Err(fault) if detected.may_be_legacy_sse() && suggests_older(&fault) => {
                // If that fails too, the server's first fault is more informative.
                let older = DetectedEra::LEGACY_SSE;
                (older, self.open_http_once(target, older, offer).await.map_err(|_| fault)?)
            }
            opened => (detected, opened?),
        };
        self.learn(detected, &opened);
        Ok(opened)
    }

    async fn open_http_once(
        &self,
        target: &HttpAddress,
        detected: DetectedEra,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let transport: Box<dyn Transport> = match detected.is_legacy_sse() {
            true => Box::new(LegacySseServer::new(target.clone())),
            false => Box::new(HttpServer::new(target.clone())),
        };
        Connection::open(transport, self.negotiation_terms(offer).setup(detected.era())).await
    }
}

/// Whether a server may have refused a call because of its era or revision, before it processed the request.
pub fn may_be_wrong_era(fault: &Fault) -> bool {
    match fault.kind {
        FaultKind::UnsupportedVersion | FaultKind::NotInitialized | FaultKind::InvalidRequest => {
            true
        }
        // Not a JSON-RPC response: the server does not accept the request as such, for example without a session.
        FaultKind::BackendUnavailable => {
            status(fault).is_some_and(|status| matches!(status, 400 | 422))
        }
        FaultKind::Foreign => {
            matches!(fault.foreign_code, Some(INVALID_REQUEST | UNSUPPORTED_VERSION))
        }
        // The server names a member that a request of a session lacks (2026-07-28 basic, `_meta`).
        FaultKind::InvalidParams | FaultKind::InvalidArguments => {
            fault.detail.contains(PROTOCOL_VERSION)
        }
        _ => false,
    }
}

/// Whether a server reports that it does not support this version.
fn is_unsupported_version(fault: &Fault) -> bool {
    fault.kind == FaultKind::UnsupportedVersion || fault.foreign_code == Some(UNSUPPORTED_VERSION)
}

/// Whether a reachable server refuses this era.
fn contradicts_era(fault: &Fault) -> bool {
    let is_absence =
        matches!(fault.kind, FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy);
    !is_absence || suggests_older(fault)
}

fn suggests_older(fault: &Fault) -> bool {
    status(fault).is_some_and(suggests_legacy_sse)
}

/// The HTTP status behind a fault.
fn status(fault: &Fault) -> Option<u16> {
    fault.data.as_ref()?.as_object()?.get("status")?.parse().ok()
}
