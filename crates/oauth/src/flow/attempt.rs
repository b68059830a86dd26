//! What the logins of persons and programs share: finds the server, chooses the scopes, requests the tokens.

use std::sync::Arc;

use serde_json::Map;

use crate::crypto::dpop::DpopKey;
use crate::crypto::jose::SigningKey;
use crate::discovery::challenge::Challenge;
use crate::discovery::{Discovered, DiscoveryTarget, discover};
use crate::error::OAuthError;
use crate::http::exchange::{Exchange, Reach};
use crate::scopes::Scopes;
use crate::secret::SecretText;
use crate::settings::{DpopMode, LoginSettings};
use crate::tokens::client::{
    AssertionKey, ClientAuthMethod, OAuthClient, RegistrationRequest, register,
};
use crate::tokens::endpoint::{DpopUse, Grant, TokenEndpoint, TokenType, Tokens};
use crate::tokens::login::{LOGIN_VERSION, Login};
use crate::web_url::WebUrl;

/// The server that refused a request, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub struct LoginTarget<'a> {
    /// The address of the MCP server.
    pub server: &'a WebUrl,
    /// The challenges of its refusal.
    pub challenges: &'a [Challenge],
    /// The login that was refused or lacks a scope.
    pub previous: Option<&'a Login>,
    /// Registrations at issuers.
    pub registrations: &'a [(String, OAuthClient)],
}

/// Finds the authorization server of the target.
///
/// # Errors
/// When a document is wrong or missing.
pub async fn find_server(
    exchange: &impl Exchange,
    settings: &LoginSettings,
    target: LoginTarget<'_>,
) -> Result<Discovered, OAuthError> {
    let mut known: Vec<String> =
        target.previous.map(|login| login.issuer.clone()).into_iter().collect();
    known.extend(target.registrations.iter().map(|(issuer, _)| issuer.clone()));
    let target = DiscoveryTarget {
        server: target.server,
        challenges: target.challenges,
        pinned_issuer: settings.issuer.as_deref(),
        known_issuers: &known,
        allows_private: settings.allows_private,
        requires_resource_metadata: settings.requires_resource_metadata,
    };
    discover(exchange, target).await
}

/// The scopes to request: those of the challenge, or else those of the resource; in a step-up also those that were
/// requested and granted before (2026-07-28 basic/authorization, scope selection strategy). Of the scopes that no
/// challenge demands, those beyond the configured maximum are left out.
fn choose_scopes(
    settings: &LoginSettings,
    target: LoginTarget<'_>,
    found: &Discovered,
) -> Result<Scopes, OAuthError> {
    let parameter = |name| Challenge::oauth_parameter(target.challenges, name);
    let challenged = parameter("scope").map(Scopes::parse);
    let is_step_up = parameter("error") == Some("insufficient_scope");
    let previous =
        target.previous.filter(|login| login.issuer == found.server.issuer && is_step_up);
    let held = previous.map(|login| login.requested_scopes.union(&login.scopes));
    let offered = match (&challenged, &held) {
        (None, None) => found.resource_scopes.iter().cloned().collect(),
        _ => Scopes::default(),
    };
    let has_offline = found.server.scopes.iter().any(|scope| scope == "offline_access");
    let offline = if has_offline { Scopes::parse("offline_access") } else { Scopes::default() };
    let max = settings.max_scopes.as_ref();
    let demanded =
        held.unwrap_or_default().union(&challenged.unwrap_or_default()).union(&settings.scopes);
    demanded.check_within(max)?;
    Ok(demanded.union(&offered.within(max)).union(&offline.within(max)))
}

/// What stays the same when a login begins anew.
pub(crate) struct LoginAttempt<'a> {
    pub(crate) settings: &'a LoginSettings,
    pub(crate) target: LoginTarget<'a>,
    pub(crate) found: &'a Discovered,
    pub(crate) scopes: Scopes,
    dpop: Option<DpopUse>,
}

impl<'a> LoginAttempt<'a> {
    pub(crate) fn new(
        settings: &'a LoginSettings,
        target: LoginTarget<'a>,
        found: &'a Discovered,
    ) -> Result<Self, OAuthError> {
        let scopes = choose_scopes(settings, target, found)?;
        let dpop = dpop_use(settings, target.challenges, found)?;
        Ok(Self { settings, target, found, scopes, dpop })
    }

    /// The client that needs no registration (2025-11-25 basic/authorization, client registration approaches).
    pub(crate) fn known_client(&self) -> Option<OAuthClient> {
        if let Some(id) = &self.settings.client_id {
            return Some(configured_client(self.settings, id, self.found));
        }
        let document = self.settings.client_metadata_url.as_deref();
        let document = document.filter(|_| self.found.server.takes_client_metadata_documents);
        document.map(OAuthClient::with_metadata_document)
    }

    /// The registration of an earlier login at this issuer.
    pub(crate) fn registered_client(&self, now: u64) -> Option<&'a OAuthClient> {
        let issuer = &self.found.server.issuer;
        let own = self.target.registrations.iter();
        own.filter(|(known, _)| known == issuer)
            .map(|(_, client)| client)
            .find(|it| it.is_valid(now))
    }

    /// Registers a client with a redirect address, or one of the device flow.
    pub(crate) async fn register(
        &self,
        exchange: &impl Exchange,
        redirect_uri: Option<&str>,
    ) -> Result<OAuthClient, OAuthError> {
        let server = &self.found.server;
        let reach =
            server.registration_endpoint.as_ref().map_or(Reach::Public, |url| self.reach(url));
        let wanted = RegistrationRequest {
            redirect_uri,
            has_dpop: self.dpop.is_some(),
            access_token: self.settings.initial_access_token.as_ref(),
            reach,
        };
        register(exchange, server, wanted).await
    }

    /// An endpoint of the server that the client authenticates at.
    pub(crate) fn endpoint(&self, url: &WebUrl, client: OAuthClient) -> TokenEndpoint {
        let server = &self.found.server;
        TokenEndpoint {
            url: url.clone(),
            reach: self.reach(url),
            issuer: server.issuer.clone(),
            client,
            assertion: AssertionKey::configured(
                self.settings,
                &server.issuer,
                server.token_endpoint.as_str(),
            ),
            dpop: self.dpop.clone(),
        }
    }

    /// Requests the tokens of a grant.
    pub(crate) async fn redeem(
        &self,
        exchange: &impl Exchange,
        client: OAuthClient,
        grant: Grant,
    ) -> Result<Login, OAuthError> {
        let endpoint = self.endpoint(&self.found.server.token_endpoint, client);
        let tokens = endpoint.request(exchange, grant).await?;
        Ok(self.login(endpoint.client, tokens, exchange.now()))
    }

    fn login(&self, client: OAuthClient, tokens: Tokens, now: u64) -> Login {
        let server = &self.found.server;
        let key = self.dpop.as_ref().and_then(|dpop| dpop.key.key().export());
        Login {
            version: LOGIN_VERSION,
            generation: self.target.previous.map_or(0, |login| login.generation) + 1,
            server: self.target.server.as_str().to_owned(),
            resource: self.found.resource.clone(),
            omits_resource: self.settings.omits_resource,
            issuer: server.issuer.clone(),
            token_endpoint: server.token_endpoint.as_str().to_owned(),
            revocation_endpoint: server
                .revocation_endpoint
                .as_ref()
                .map(|url| url.as_str().to_owned()),
            client,
            requested_scopes: self.scopes.clone(),
            scopes: tokens.scopes,
            access_token: tokens.access_token,
            token_type: tokens.token_type,
            expires_at: tokens.expires_at,
            refresh_token: tokens.refresh_token,
            dpop_key: key.filter(|_| tokens.token_type == TokenType::Dpop).map(SecretText::new),
            created_at: now,
            extra: Map::new(),
        }
    }

    pub(crate) fn resource(&self) -> Option<&str> {
        (!self.settings.omits_resource).then_some(self.found.resource.as_str())
    }

    fn reach(&self, url: &WebUrl) -> Reach {
        Reach::of(url, self.target.server, self.settings.allows_private)
    }
}

pub(crate) fn configured_client(
    settings: &LoginSettings,
    id: &str,
    found: &Discovered,
) -> OAuthClient {
    let mut client = OAuthClient::configured(id, settings.client_secret.clone(), &found.server);
    if settings.private_key.is_some() {
        client.method = ClientAuthMethod::PrivateKeyJwt;
    }
    client
}

/// How tokens are bound to a key, if they are. A server that takes tokens of both kinds gets the simpler one if the
/// authorization server has no other.
fn dpop_use(
    settings: &LoginSettings,
    challenges: &[Challenge],
    found: &Discovered,
) -> Result<Option<DpopUse>, OAuthError> {
    let is_offered = challenges.iter().any(|it| it.has_scheme("DPoP"));
    let takes_bearer = challenges.iter().any(|it| it.has_scheme("Bearer"));
    let (is_wanted, is_required) = match settings.dpop {
        DpopMode::Off => (false, false),
        DpopMode::Require => (true, true),
        DpopMode::Auto => (found.requires_dpop || is_offered, found.requires_dpop || !takes_bearer),
    };
    let is_supported = found.server.dpop_algorithms.iter().any(|algorithm| algorithm == "ES256");
    match (is_wanted, is_supported) {
        (false, _) => Ok(None),
        (true, false) if is_required => Err(OAuthError::Unsupported {
            issuer: found.server.issuer.clone(),
            feature: "DPoP with ES256, which the login requires",
        }),
        (true, false) => Ok(None),
        (true, true) => {
            let key = Arc::new(DpopKey::new(SigningKey::generate()?));
            Ok(Some(DpopUse { key, is_required }))
        }
    }
}
