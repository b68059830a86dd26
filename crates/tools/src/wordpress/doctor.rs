//! What state a site is in: whether its routes are found, passwords are taken, and the platform sees who calls.

use serde_json::Value;

use super::platform::NAMESPACE;
use super::proof::Proof;
use super::site::{Asked, Site};
use super::trouble::Trouble;
use super::visitors::{Verdict, Visitor};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub topic: &'static str,
    /// Whether it is as it should be, if that was tried.
    pub is_fine: Option<bool>,
    /// How it is, and what to do about it.
    pub told: String,
    /// A file that the site needs.
    pub file: Option<&'static str>,
}

impl Finding {
    fn fine(topic: &'static str, told: impl Into<String>) -> Self {
        Self { topic, is_fine: Some(true), told: told.into(), file: None }
    }

    fn wrong(topic: &'static str, told: impl Into<String>) -> Self {
        Self { is_fine: Some(false), ..Self::fine(topic, told) }
    }
}

impl Site {
    /// Looks at the site, with the account of its settings if there is one. Nothing is changed.
    ///
    /// # Errors
    /// Why nothing can be said, when the site does not answer as WordPress does.
    pub async fn examine(&self) -> Result<Vec<Finding>, String> {
        let fields = "name,namespaces,authentication";
        let index = self.ask(None, &Asked::get("/").with("_fields", fields)).await;
        let index = match index {
            Ok(answered) => answered.body,
            Err(trouble) => return Err(no_index(&trouble)),
        };
        let mut findings = vec![self.permalinks(), self.passwords(&index)];
        let has_platform = has_platform(&index);
        findings.push(platform(has_platform));
        let Some((user, held)) = &self.shared.settings.account else {
            let told = "not tried: set CREOLE_WORDPRESS_USER and CREOLE_WORDPRESS_PASSWORD";
            findings.push(Finding { is_fine: None, ..Finding::fine("account", told) });
            return Ok(findings);
        };
        let Some(proof) = held.get().ok().and_then(|password| Proof::new(user, &password)) else {
            findings.push(Finding::wrong("account", "the name and the password cannot be sent"));
            return Ok(findings);
        };
        match self.identify(&proof).await {
            Err(trouble) => findings.push(Finding::wrong("account", trouble.told(false))),
            Ok(Verdict::Unknown) => findings.push(Finding::wrong("account", UNKNOWN)),
            Ok(Verdict::Forbidden) => {
                let capability = &self.shared.settings.capability;
                let told =
                    format!("`{user}` is known, but may not `{capability}`: callers need that");
                findings.push(Finding::wrong("account", told));
            }
            Ok(Verdict::Welcome(visitor)) => {
                let told = format!("`{user}` is let in, with the id {}", visitor.id);
                findings.push(Finding::fine("account", told));
                if has_platform {
                    findings.push(self.early(&visitor).await);
                }
            }
        }
        Ok(findings)
    }

    fn permalinks(&self) -> Finding {
        match self.is_plain() {
            false => Finding::fine("permalinks", "routes are found below /wp-json/"),
            true => Finding::wrong(
                "permalinks",
                "routes are found by ?rest_route= alone, which works; other clients expect /wp-json/: choose another \
                 structure than \"Plain\" in Settings > Permalinks",
            ),
        }
    }

    fn passwords(&self, index: &Value) -> Finding {
        let topic = "passwords";
        if index["authentication"].get("application-passwords").is_some() {
            return Finding::fine(topic, "Application Passwords are taken");
        }
        Finding::wrong(
            topic,
            match self.address().is_encrypted() {
                true => {
                    "Application Passwords are switched off: a plugin or a filter of the site does that"
                }
                false => {
                    "this site does not take Application Passwords over http: name it by https, or set \
                 WP_ENVIRONMENT_TYPE to `local` on a machine of your own"
                }
            },
        )
    }

    async fn early(&self, visitor: &Visitor) -> Finding {
        match self.is_early(visitor).await {
            true => Finding::fine("early auth", "BuddyBoss sees who calls"),
            false => Finding { file: Some(EARLY), ..Finding::wrong("early auth", LATE) },
        }
    }
}

/// What has a site check Application Passwords early; the guide shows the same.
const EARLY: &str = include_str!("early-auth.php");

const LATE: &str = "BuddyBoss looks who is logged in before WordPress checks Application Passwords, so comments, \
                    friendships and read marks would be lost: those tools refuse. Save these lines of PHP on the site \
                    as wp-content/mu-plugins/early-auth.php";

const UNKNOWN: &str = "the site does not know this name and password. An Application Password is needed (Users > Profile \
                       > Application Passwords), not the one to log in with. If it is right, the web server drops the \
                       header Authorization: with Apache and CGI, add `SetEnvIf Authorization \"(.*)\" \
                       HTTP_AUTHORIZATION=$1`";

fn has_platform(index: &Value) -> bool {
    let names = index["namespaces"].as_array();
    names.is_some_and(|names| names.iter().any(|name| name == NAMESPACE))
}

fn platform(is_there: bool) -> Finding {
    match is_there {
        true => Finding::fine("platform", "BuddyBoss is active"),
        false => Finding::wrong(
            "platform",
            "BuddyBoss is not active: the pack `buddyboss-platform` answers -32002, the pack `wordpress` works",
        ),
    }
}

fn no_index(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotJson { status, .. } if !(300..400).contains(status) => {
            let told = trouble.told(false);
            format!(
                "{told}: either this is no WordPress, or something in front of it, such as a firewall, answers"
            )
        }
        trouble => trouble.told(false),
    }
}
