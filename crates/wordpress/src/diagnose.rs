//! Diagnoses a site: whether its routes are reachable, passwords are accepted, and the platform sees the caller's
//! login.

use serde_json::Value;

use super::site::{Site, SiteRequest};
use crate::login::basic_credentials::BasicCredentials;
use crate::login::users::{SiteUser, UserLookup};
use crate::site::platform::NAMESPACE;
use crate::site::site_error::SiteError;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteCheck {
    /// The subject of the check.
    pub topic: &'static str,
    /// Whether it passed, if it was run.
    pub is_ok: Option<bool>,
    /// The finding and the remedy.
    pub message: String,
    /// A file that the site needs.
    pub file: Option<&'static str>,
}

impl SiteCheck {
    fn passed(topic: &'static str, message: impl Into<String>) -> Self {
        Self { topic, is_ok: Some(true), message: message.into(), file: None }
    }

    fn failed(topic: &'static str, message: impl Into<String>) -> Self {
        Self { is_ok: Some(false), ..Self::passed(topic, message) }
    }
}

impl Site {
    /// Runs the checks, with the configured account if there is one. Nothing is changed.
    ///
    /// # Errors
    /// When the site does not respond like WordPress, so that nothing can be checked.
    pub async fn diagnose(&self) -> Result<Vec<SiteCheck>, String> {
        let fields = "name,namespaces,authentication";
        let index = self.request(None, &SiteRequest::get("/").with_query("_fields", fields)).await;
        let index = match index {
            Ok(response) => response.body,
            Err(error) => return Err(index_error(&error)),
        };
        let mut findings = vec![self.check_permalinks(), self.check_passwords(&index)];
        let has_platform = has_platform(&index);
        findings.push(check_platform(has_platform));
        let Some((user, secret)) = &self.inner.settings.account else {
            let message = "not checked: set CREOLE_WORDPRESS_USER and CREOLE_WORDPRESS_PASSWORD";
            findings.push(SiteCheck { is_ok: None, ..SiteCheck::passed("account", message) });
            return Ok(findings);
        };
        let Some(proof) =
            secret.get().ok().and_then(|password| BasicCredentials::new(user, &password))
        else {
            findings.push(SiteCheck::failed(
                "account",
                "the user name and the password contain characters that cannot be sent",
            ));
            return Ok(findings);
        };
        match self.identify(&proof).await {
            Err(error) => findings.push(SiteCheck::failed("account", error.to_message(false))),
            Ok(UserLookup::Unknown) => {
                findings.push(SiteCheck::failed("account", UNKNOWN_USER_ADVICE))
            }
            Ok(UserLookup::Forbidden) => {
                let capability = &self.inner.settings.capability;
                let message = format!(
                    "`{user}` is authenticated, but lacks the capability `{capability}`, which callers need"
                );
                findings.push(SiteCheck::failed("account", message));
            }
            Ok(UserLookup::Admitted(site_user)) => {
                let message = format!("`{user}` is authenticated, with the id {}", site_user.id);
                findings.push(SiteCheck::passed("account", message));
                if has_platform {
                    findings.push(self.check_early_auth(&site_user).await);
                }
            }
        }
        Ok(findings)
    }

    fn check_permalinks(&self) -> SiteCheck {
        match self.uses_plain_links() {
            false => SiteCheck::passed("permalinks", "routes are found below /wp-json/"),
            true => SiteCheck::failed(
                "permalinks",
                "routes are found only with ?rest_route=, which works; other clients expect \
                    /wp-json/: choose another structure than \"Plain\" in Settings > Permalinks",
            ),
        }
    }

    fn check_passwords(&self, index: &Value) -> SiteCheck {
        let topic = "passwords";
        if index["authentication"].get("application-passwords").is_some() {
            return SiteCheck::passed(topic, "Application Passwords are accepted");
        }
        SiteCheck::failed(
            topic,
            match self.address().is_encrypted() {
                true => "Application Passwords are disabled by a plugin or a filter of the site",
                false => {
                    "this site does not accept Application Passwords over http: use https, or \
                        set WP_ENVIRONMENT_TYPE to `local` on your own machine"
                }
            },
        )
    }

    async fn check_early_auth(&self, user: &SiteUser) -> SiteCheck {
        match self.is_login_visible(user).await {
            true => SiteCheck::passed("early auth", "BuddyBoss sees the authenticated user"),
            false => SiteCheck {
                file: Some(EARLY_AUTH_PLUGIN),
                ..SiteCheck::failed("early auth", LATE_AUTH_ADVICE)
            },
        }
    }
}

/// The plugin that makes a site check Application Passwords early; the guide shows the same.
const EARLY_AUTH_PLUGIN: &str = include_str!("early-auth.php");

const LATE_AUTH_ADVICE: &str = "BuddyBoss determines the user before WordPress checks Application Passwords, so comments, friendships and read marks would be lost; tools for them refuse calls. Save these lines of PHP on the site \
                    as wp-content/mu-plugins/early-auth.php";

const UNKNOWN_USER_ADVICE: &str = "the site rejects this user name and password. An Application Password is needed (Users > Profile \
                       > Application Passwords), not the login password. If it is correct, the web server drops the \
                       header Authorization: with Apache and CGI, add `SetEnvIf Authorization \"(.*)\" \
                       HTTP_AUTHORIZATION=$1`";

fn has_platform(index: &Value) -> bool {
    let names = index["namespaces"].as_array();
    names.is_some_and(|names| names.iter().any(|name| name == NAMESPACE))
}

fn check_platform(exists: bool) -> SiteCheck {
    match exists {
        true => SiteCheck::passed("platform", "BuddyBoss is active"),
        false => SiteCheck::failed(
            "platform",
            "BuddyBoss is not active: the pack `buddyboss-platform` responds with error -32002; \
                the pack `wordpress` works",
        ),
    }
}

fn index_error(error: &SiteError) -> String {
    match error {
        SiteError::NotJson { status, .. } if !(300..400).contains(status) => {
            let message = error.to_message(false);
            format!(
                "{message}: the site is not WordPress, or a firewall or proxy in front of it responds"
            )
        }
        error => error.to_message(false),
    }
}
