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
    fn passed(topic: &'static str, told: impl Into<String>) -> Self {
        Self { topic, is_ok: Some(true), message: told.into(), file: None }
    }

    fn failed(topic: &'static str, told: impl Into<String>) -> Self {
        Self { is_ok: Some(false), ..Self::passed(topic, told) }
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
            Ok(answered) => answered.body,
            Err(trouble) => return Err(index_error(&trouble)),
        };
        let mut findings = vec![self.check_permalinks(), self.check_passwords(&index)];
        let has_platform = has_platform(&index);
        findings.push(check_platform(has_platform));
        let Some((user, held)) = &self.inner.settings.account else {
            let told = "not checked: set CREOLE_WORDPRESS_USER and CREOLE_WORDPRESS_PASSWORD";
            findings.push(SiteCheck { is_ok: None, ..SiteCheck::passed("account", told) });
            return Ok(findings);
        };
        let Some(proof) =
            held.get().ok().and_then(|password| BasicCredentials::new(user, &password))
        else {
            findings.push(SiteCheck::failed(
                "account",
                "the user name and the password contain characters that cannot be sent",
            ));
            return Ok(findings);
        };
        match self.identify(&proof).await {
            Err(trouble) => findings.push(SiteCheck::failed("account", trouble.to_message(false))),
            Ok(UserLookup::Unknown) => {
                findings.push(SiteCheck::failed("account", UNKNOWN_USER_ADVICE))
            }
            Ok(UserLookup::Forbidden) => {
                let capability = &self.inner.settings.capability;
                let told = format!(
                    "`{user}` is authenticated, but lacks the capability `{capability}`, which callers need"
                );
                findings.push(SiteCheck::failed("account", told));
            }
            Ok(UserLookup::Admitted(visitor)) => {
                let told = format!("`{user}` is authenticated, with the id {}", visitor.id);
                findings.push(SiteCheck::passed("account", told));
                if has_platform {
                    findings.push(self.check_early_auth(&visitor).await);
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

    async fn check_early_auth(&self, visitor: &SiteUser) -> SiteCheck {
        match self.is_login_visible(visitor).await {
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

fn check_platform(is_there: bool) -> SiteCheck {
    match is_there {
        true => SiteCheck::passed("platform", "BuddyBoss is active"),
        false => SiteCheck::failed(
            "platform",
            "BuddyBoss is not active: the pack `buddyboss-platform` responds with error -32002; \
                the pack `wordpress` works",
        ),
    }
}

fn index_error(trouble: &SiteError) -> String {
    match trouble {
        SiteError::NotJson { status, .. } if !(300..400).contains(status) => {
            let told = trouble.to_message(false);
            format!(
                "{told}: the site is not WordPress, or a firewall or proxy in front of it responds"
            )
        }
        trouble => trouble.to_message(false),
    }
}
