//! Detects the platform plugin: whether it is active, and whether it sees the caller's login.

use creole::internal::sync::Mutex;
use std::time::Duration;

use http::Method;
use tokio::time::Instant;

use crate::login::users::SiteUser;
use crate::site::site_error::SiteError;
use crate::site::{Site, SiteRequest};

/// The namespace of the platform's routes.
pub(crate) const NAMESPACE: &str = "buddyboss/v1";
/// The time for which the detection result is cached.
const CACHE_TTL: Duration = Duration::from_secs(30);

/// Whether the platform is active, and the time of the detection.
#[derive(Debug, Default)]
pub(crate) struct PlatformCache(Mutex<Option<(Instant, bool)>>);

impl Site {
    /// Whether the platform is active. An unreadable index counts as active.
    pub(crate) async fn has_platform(&self) -> bool {
        let known = *self.inner.platform.0.lock();
        match known {
            Some((since, has)) if since.elapsed() < CACHE_TTL => has,
            _ => self.refresh_platform().await,
        }
    }

    /// The same, without the cache.
    pub(crate) async fn refresh_platform(&self) -> bool {
        let Ok(namespaces) = self.namespaces().await else { return true };
        let has = namespaces.iter().any(|name| name == NAMESPACE);
        let known = Some((Instant::now(), has));
        *self.inner.platform.0.lock() = known;
        has
    }

    /// The namespaces of the site's routes, as an anonymous visitor sees them.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, SiteError> {
        let request = SiteRequest::get("/").with_query("_fields", "namespaces");
        let response = self.request(None, &request).await?;
        let names = response.body["namespaces"].as_array().cloned().unwrap_or_default();
        Ok(names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    /// Whether the platform sees this user as logged in. It determines the logged-in user before WordPress checks
    /// Application Passwords, unless the site checks them early. The default of one argument shows which user it saw.
    pub(crate) async fn is_login_visible(&self, user: &SiteUser) -> bool {
        let look = || async {
            let request = SiteRequest::new(Method::OPTIONS, "/buddyboss/v1/xprofile/fields");
            let response = self.request(Some(&user.credentials), &request).await.ok()?;
            let endpoints = response.body["endpoints"].as_array()?;
            let seen = endpoints.iter().find_map(|endpoint| {
                let default = &endpoint["args"]["user_id"]["default"];
                default.as_u64().or_else(|| default.as_str()?.parse().ok())
            });
            seen.map(|seen| seen == user.id)
        };
        let decide = || async {
            match look().await {
                Some(is_early) => Ok(is_early),
                None => self.can_see_own_invites(user).await.ok_or(()),
            }
        };
        // If this is unknown, writes that might be lost are refused.
        user.is_login_visible.get_or_try_init(decide).await.copied().unwrap_or(false)
    }

    /// The second indicator: only a logged-in user may see their own group invitations.
    async fn can_see_own_invites(&self, user: &SiteUser) -> Option<bool> {
        let request =
            SiteRequest::get("/buddyboss/v1/groups/invites").with_query("user_id", user.id);
        match self.request(Some(&user.credentials), &request).await {
            Ok(_) => Some(true),
            Err(SiteError::Refused(refusal)) if matches!(refusal.status, 401 | 403) => Some(false),
            Err(_) => None,
        }
    }
}
