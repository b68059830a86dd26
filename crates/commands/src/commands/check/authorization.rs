//! The login that a server requires, as `creole check` reports it.

use creole::client::oauth::{
    Discovered, LoginRequirement, LoginSettings, OAuthError, Pkce, login_requirement,
};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::lint::LintFinding;
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::http_target::HttpTarget;
use crate::instance::runtime;

/// What a finding is about.
const ITEM: &str = "authorization";

/// The authorization server of a server that requires a login.
#[derive(Debug)]
pub(super) struct AuthorizationReport(Result<Box<Discovered>, OAuthError>);

/// Asks the server at a URL which login it requires; `None` if it requires none, or the user gave other credentials.
pub(super) fn discover(
    url: &str,
    peer: &SessionArgs,
) -> Result<Option<AuthorizationReport>, Failure> {
    let target = HttpTarget::new(url, &peer.target.headers, peer.target.cacert.as_deref())?;
    if target.has_authorization {
        return Ok(None);
    }
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let settings = LoginSettings::default();
    let requirement = login_requirement(&target.address, &settings, target.certificates);
    Ok(match runtime.block_on(requirement) {
        Ok(LoginRequirement::Required(found)) => Some(AuthorizationReport(Ok(found))),
        Ok(LoginRequirement::Unusable(error)) => Some(AuthorizationReport(Err(error))),
        // A server that cannot be reached is reported by the check itself.
        _ => None,
    })
}

impl AuthorizationReport {
    pub(super) fn text(&self) -> String {
        let found = match &self.0 {
            Ok(found) => found,
            Err(error) => return format!("requires a login, but none is possible: {error}"),
        };
        let server = &found.server;
        let pkce = if server.pkce == Pkce::S256 { "PKCE S256" } else { "no PKCE S256" };
        let registration = match registrations(found).as_slice() {
            [] => "none, so each client needs a configured id".to_owned(),
            ways => ways.join(", "),
        };
        let scopes = match found.resource_scopes.as_slice() {
            [] => "not listed".to_owned(),
            scopes => scopes.join(" "),
        };
        let (issuer, device) = (&server.issuer, server.device_endpoint.as_ref());
        let device = device.map_or("", |_| "; logins at another device");
        format!("OAuth at {issuer}; {pkce}; registration: {registration}; scopes: {scopes}{device}")
    }

    pub(super) fn json(&self) -> Value {
        let found = match &self.0 {
            Ok(found) => found,
            Err(error) => return json!({ "error": error.to_string() }),
        };
        let server = &found.server;
        json!({
            "issuer": server.issuer,
            "resource": found.resource,
            "resourceMetadata": found.has_resource_metadata,
            "pkce": server.pkce == Pkce::S256,
            "registration": registrations(found),
            "scopes": found.resource_scopes,
            "device": server.device_endpoint.is_some(),
            "dpop": found.requires_dpop,
        })
    }

    /// The problems of the documents.
    pub(super) fn findings(&self) -> Vec<LintFinding> {
        let problems = match &self.0 {
            Ok(found) => problems(found),
            Err(error) => vec![error.to_string()],
        };
        let finding = |problem| LintFinding { item: ITEM.to_owned(), problem };
        problems.into_iter().map(finding).collect()
    }
}

/// How a client gets an id.
fn registrations(found: &Discovered) -> Vec<&'static str> {
    let server = &found.server;
    let ways = [
        (server.takes_client_metadata_documents, "metadata document"),
        (server.registration_endpoint.is_some(), "dynamic"),
    ];
    ways.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
}

fn problems(found: &Discovered) -> Vec<String> {
    let issuer = &found.server.issuer;
    let mut problems = Vec::new();
    if !found.has_resource_metadata {
        problems.push(
            "there is no protected resource metadata (RFC 9728), which clients need since 2025-06-18"
                .to_owned(),
        );
    }
    if found.server.pkce != Pkce::S256 {
        problems.push(format!("{issuer} does not advertise PKCE S256; clients refuse to log in"));
    }
    if registrations(found).is_empty() {
        problems.push(format!(
            "{issuer} supports neither client metadata documents nor dynamic registration"
        ));
    }
    problems
}
