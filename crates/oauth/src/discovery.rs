//! Finds the authorization server of an MCP server.
//!
//! The protected resource names its authorization servers (RFC 9728), and each of these publishes its metadata
//! (RFC 8414, OpenID Connect Discovery). Servers of 2025-03-26 have neither: they are their own authorization server.

pub mod challenge;
pub mod metadata;

use creole_proto::revision::Revision;

use crate::discovery::challenge::Challenge;
use crate::discovery::metadata::{Pkce, ResourceMetadata, ServerMetadata};
use crate::error::OAuthError;
use crate::http::document::Document;
use crate::http::exchange::{Exchange, Reach, Request};
use crate::web_url::WebUrl;

/// The maximum number of requests of one discovery.
const MAX_REQUESTS: usize = 8;

/// The header that names the revision of a request.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// What discovery needs to know about the server.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryTarget<'a> {
    /// The address of the MCP server.
    pub server: &'a WebUrl,
    /// The challenges of its refusal.
    pub challenges: &'a [Challenge],
    /// The issuer that the configuration demands.
    pub pinned_issuer: Option<&'a str>,
    /// Issuers with a stored login or registration, which are preferred.
    pub known_issuers: &'a [String],
    /// Whether hosts of private networks may be asked.
    pub allows_private: bool,
    /// Whether a server without resource metadata is refused.
    pub requires_resource_metadata: bool,
}

/// The authorization server that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovered {
    /// Whether the resource publishes metadata. One that does not is its own authorization server, as in 2025-03-26.
    pub has_resource_metadata: bool,
    /// The resource that tokens are requested for.
    pub resource: String,
    /// The scopes that the resource lists.
    pub resource_scopes: Vec<String>,
    /// Whether the resource demands tokens that are bound to a key.
    pub requires_dpop: bool,
    /// The authorization server.
    pub server: ServerMetadata,
}

/// Finds the authorization server.
///
/// # Errors
/// When a document is wrong or missing. A document that a challenge names is not replaced by a guess.
pub async fn discover(
    exchange: &impl Exchange,
    target: DiscoveryTarget<'_>,
) -> Result<Discovered, OAuthError> {
    let mut documents = Documents { exchange, target, requests: 0 };
    let Some(resource) = documents.resource_metadata().await? else {
        let resource = target.server.without_query().to_owned();
        if target.requires_resource_metadata {
            return Err(OAuthError::NoResourceMetadata { server: resource });
        }
        let server = documents.legacy_server().await?;
        return Ok(Discovered {
            has_resource_metadata: false,
            resource,
            resource_scopes: Vec::new(),
            requires_dpop: false,
            server,
        });
    };
    let issuer = target.choose_issuer(&resource.issuers)?;
    let server = documents.server_metadata(issuer).await?;
    Ok(Discovered {
        has_resource_metadata: true,
        resource: resource.resource,
        resource_scopes: resource.scopes,
        requires_dpop: resource.requires_dpop,
        server,
    })
}

impl DiscoveryTarget<'_> {
    fn choose_issuer<'a>(&self, issuers: &'a [String]) -> Result<&'a str, OAuthError> {
        let is_listed = |issuer: &&String| issuers.contains(issuer);
        let chosen = match self.pinned_issuer {
            Some(pinned) => issuers.iter().find(|issuer| *issuer == pinned),
            None => {
                let known = self.known_issuers.iter().find(is_listed);
                let known = known.and_then(|known| issuers.iter().find(|issuer| *issuer == known));
                known.or(issuers.first())
            }
        };
        chosen.map(String::as_str).ok_or_else(|| OAuthError::OtherIssuer {
            expected: self.pinned_issuer.unwrap_or_default().to_owned(),
            found: issuers.join(", "),
        })
    }
}

/// The result of a request for a document.
enum Lookup {
    Document(Document),
    /// The server has no such document, or answers every request with a page.
    Missing,
}

struct Documents<'a, E> {
    exchange: &'a E,
    target: DiscoveryTarget<'a>,
    requests: usize,
}

impl<E: Exchange> Documents<'_, E> {
    /// The metadata of the resource; `None` if the server publishes none.
    async fn resource_metadata(&mut self) -> Result<Option<ResourceMetadata>, OAuthError> {
        let server = self.target.server;
        if let Some(named) = self.target.named_metadata()? {
            let Lookup::Document(document) = self.get(&named, &[]).await? else {
                let reason = "the server names it, but it is not a JSON document".to_owned();
                return Err(OAuthError::Document { url: named.as_str().into(), reason });
            };
            return ResourceMetadata::read(&document, &named, server).map(Some);
        }
        for url in resource_metadata_urls(server)? {
            if let Lookup::Document(document) = self.get(&url, &[]).await? {
                return ResourceMetadata::read(&document, &url, server).map(Some);
            }
        }
        Ok(None)
    }

    async fn server_metadata(&mut self, issuer: &str) -> Result<ServerMetadata, OAuthError> {
        for url in server_metadata_urls(issuer, self.target.server)? {
            if let Lookup::Document(document) = self.get(&url, &[]).await? {
                return ServerMetadata::read(&document, issuer, self.target.server);
            }
        }
        Err(OAuthError::NoMetadata { issuer: issuer.to_owned() })
    }

    /// The authorization server of 2025-03-26: the MCP server's own origin, with a document or with fixed paths
    /// (2025-03-26 basic/authorization, server metadata discovery).
    async fn legacy_server(&mut self) -> Result<ServerMetadata, OAuthError> {
        let server = self.target.server;
        let url = at(server.origin(), "/.well-known/oauth-authorization-server")?;
        let is_own = |revision: &Revision| revision.rules().own_authorization_server;
        let revision = Revision::ALL.into_iter().find(is_own);
        let version = revision.map(|it| (VERSION_HEADER, it.rules().name.to_owned()));
        let mut metadata = match self.get(&url, version.as_slice()).await? {
            Lookup::Document(document) => {
                ServerMetadata::read(&document, legacy_issuer(&document, server), server)?
            }
            Lookup::Missing => ServerMetadata::fixed_paths(server)?,
        };
        // PKCE is required of every server of this revision, and it need not announce it.
        if metadata.pkce == Pkce::NotSaid {
            metadata.pkce = Pkce::S256;
        }
        self.target.choose_issuer(std::slice::from_ref(&metadata.issuer))?;
        Ok(metadata)
    }

    async fn get(
        &mut self,
        url: &WebUrl,
        headers: &[(&'static str, String)],
    ) -> Result<Lookup, OAuthError> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            let reason = "too many documents were requested".to_owned();
            return Err(OAuthError::Document { url: url.as_str().into(), reason });
        }
        let reach = Reach::of(url, self.target.server, self.target.allows_private);
        let request = Request { url: url.clone(), reach, headers: headers.to_vec(), body: None };
        let response = self.exchange.send(request).await?;
        match response.status {
            200 => Ok(Document::parse(&response.body).map_or(Lookup::Missing, Lookup::Document)),
            400..500 => Ok(Lookup::Missing),
            status => {
                let reason = format!("the server responded with status {status}");
                Err(OAuthError::Unreachable { url: url.as_str().into(), reason })
            }
        }
    }
}

impl DiscoveryTarget<'_> {
    /// The address of the metadata that the challenge names (RFC 9728, section 5.1).
    fn named_metadata(&self) -> Result<Option<WebUrl>, OAuthError> {
        let member = "resource_metadata";
        let Some(text) = Challenge::oauth_parameter(self.challenges, member) else {
            return Ok(None);
        };
        let url = WebUrl::parse(text).map_err(|error| OAuthError::Address { member, error })?;
        match url.is_https()
            || url.is_same_origin(self.server)
            || (url.is_loopback() && self.server.is_loopback())
        {
            true => Ok(Some(url)),
            false => Err(OAuthError::NotEncrypted { member }),
        }
    }
}

/// The issuer that the metadata of a server of 2025-03-26 must have. No other document names it, and many of these
/// servers write a path or a slash after their origin. Any issuer of this origin is the server itself.
fn legacy_issuer<'a>(document: &'a Document, server: &'a WebUrl) -> &'a str {
    let is_own = |issuer: &&str| WebUrl::parse(issuer).is_ok_and(|it| it.is_same_origin(server));
    document.text("issuer").filter(is_own).unwrap_or(server.origin())
}

/// Where the metadata of a resource is looked for (2025-11-25 basic/authorization, protected resource metadata
/// discovery requirements).
fn resource_metadata_urls(server: &WebUrl) -> Result<Vec<WebUrl>, OAuthError> {
    const PATH: &str = "/.well-known/oauth-protected-resource";
    let path = server.path().trim_end_matches('/');
    let mut urls = Vec::new();
    if !path.is_empty() {
        urls.push(at(server.origin(), &format!("{PATH}{}", server.path()))?);
    }
    urls.push(at(server.origin(), PATH)?);
    Ok(urls)
}

/// Where the metadata of an issuer is looked for (2025-11-25 basic/authorization, authorization server metadata
/// discovery).
pub(crate) fn server_metadata_urls(
    issuer: &str,
    server: &WebUrl,
) -> Result<Vec<WebUrl>, OAuthError> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let member = "authorization_servers";
    let url = WebUrl::parse(issuer).map_err(|error| OAuthError::Address { member, error })?;
    let is_local = url.is_loopback() && server.is_loopback();
    if !url.is_https() && !is_local {
        return Err(OAuthError::NotEncrypted { member });
    }
    let path = url.path().trim_end_matches('/');
    let mut texts = vec![format!("{OAUTH}{path}")];
    if !path.is_empty() {
        texts.push(format!("{OPENID}{path}"));
    }
    texts.push(format!("{path}{OPENID}"));
    texts.iter().map(|text| at(url.origin(), text)).collect()
}

fn at(origin: &str, path: &str) -> Result<WebUrl, OAuthError> {
    let url = WebUrl::parse(&format!("{origin}{path}"));
    url.map_err(|error| OAuthError::Address { member: "the server's address", error })
}

#[cfg(test)]
mod tests;
