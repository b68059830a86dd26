//! The server that a verb about logins names: a URL, or an upstream of a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use creole::client::Address;
use creole::client::oauth::{Login, LoginKey, LoginSettings, LoginStore};
use creole_config::plan::upstream::{GrantPlan, UpstreamAddress, UpstreamPlan};
use creole_config::{ConfigSource, Plan};

use crate::failure::{Failure, suggestion};
use crate::http_target::{DEFAULT_FILE, HttpTarget, meant_url};
use crate::login;

/// The server of a login.
pub(crate) struct LoginServer {
    pub(crate) target: HttpTarget,
    /// The settings of its configuration.
    pub(crate) settings: LoginSettings,
    /// The name of the upstream and the file of the configuration, if it is one.
    pub(crate) upstream: Option<(String, PathBuf)>,
}

impl LoginServer {
    /// The server that the command line names.
    pub(crate) fn find(
        word: &str,
        config: Option<&Path>,
        headers: &[String],
        cacert: Option<&Path>,
    ) -> Result<Self, Failure> {
        if word.contains("://") {
            let target = HttpTarget::new(word, headers, cacert)?;
            return Ok(Self { target, settings: LoginSettings::default(), upstream: None });
        }
        if !headers.is_empty() || cacert.is_some() {
            let what = "--header and --cacert are only valid with a URL; set `headers` and `ca_file` of the upstream";
            return Err(Failure::Usage(what.to_owned()));
        }
        let file = config.unwrap_or(Path::new(DEFAULT_FILE));
        if config.is_none() && !file.exists() {
            return Err(Failure::Usage(not_found(word)));
        }
        let plan = Plan::load(ConfigSource::File(file), &creole_config::packs())?;
        let Some(upstream) = plan.upstreams.iter().find(|upstream| upstream.name == word) else {
            let names: Vec<&str> = plan.upstreams.iter().map(|it| it.name.as_str()).collect();
            let hint = match names.as_slice() {
                [] => "it has none".to_owned(),
                names => suggestion(word, names),
            };
            let file = file.display();
            return Err(Failure::Usage(format!("`{file}` has no upstream `{word}`: {hint}")));
        };
        Self::of_upstream(upstream, file)
    }

    /// An upstream at which a person logs in.
    fn of_upstream(upstream: &UpstreamPlan, file: &Path) -> Result<Self, Failure> {
        let name = &upstream.name;
        let refused = |why: &str| Failure::Usage(format!("the upstream `{name}` {why}"));
        let UpstreamAddress::Url { url, .. } = &upstream.address else {
            return Err(refused("is a program; only an upstream with a `url` has a login"));
        };
        let Some(oauth) = upstream.oauth() else {
            return Err(refused(
                "has a token or the header `Authorization`; remove them to use a login",
            ));
        };
        if oauth.grant != GrantPlan::Login {
            return Err(refused("logs in by itself; a person logs in with `grant = \"login\"`"));
        }
        let failed = |error: creole_config::LayerError| Failure::Refused(error.to_string());
        let Address::Http(address) = creole_config::upstream_address(upstream).map_err(failed)?
        else {
            return Err(refused("has no URL"));
        };
        let certificates = upstream.ca_certificates().map(|found| Arc::from(found.pem()));
        let target = HttpTarget {
            url: url.clone(),
            name: name.clone(),
            address,
            certificates,
            has_authorization: false,
        };
        let settings = oauth.settings.clone();
        Ok(Self { target, settings, upstream: Some((name.clone(), file.to_owned())) })
    }

    /// The stored logins of the server. An upstream uses those of its own client only.
    pub(crate) fn stored_logins(&self, store: &LoginStore) -> Result<Vec<Login>, Failure> {
        let mut logins = login::stored_logins(store, &self.target.url)?;
        if self.upstream.is_some() {
            let client_id = self.settings.client_id.as_deref();
            logins.retain(|login| LoginKey::of(login).client_id() == client_id);
        }
        Ok(logins)
    }

    /// The words that name the server on a command line.
    pub(crate) fn command_words(&self) -> String {
        match &self.upstream {
            Some((name, file)) => format!("{name} --config {}", file.display()),
            None => login::shown_url(&self.target.url),
        }
    }
}

/// The message for a word that is neither a URL nor a known name.
fn not_found(word: &str) -> String {
    match meant_url(word) {
        Some(url) => format!("invalid URL `{word}`; did you mean `{url}`?"),
        None => format!(
            "invalid URL `{word}`, and there is no `{DEFAULT_FILE}` with an upstream of this name: write a URL such as \
            `https://example.com/mcp`, or name the configuration with --config FILE"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[server]
[upstreams.wiki]
url = \"https://wiki.example.com/mcp\"
oauth = { client_id = \"creole\", scopes = [\"read\"] }
[upstreams.token]
url = \"https://token.example.com/mcp\"
headers = { Authorization = \"Bearer x\" }
[upstreams.robot]
url = \"https://robot.example.com/mcp\"
oauth = { grant = \"client-credentials\", client_id = \"c\", client_secret = \"s\" }
[upstreams.program]
command = [\"true\"]
";

    fn find(word: &str) -> Result<LoginServer, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("creole.toml");
        std::fs::write(&file, CONFIG).unwrap();
        LoginServer::find(word, Some(&file), &[], None).map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_upstream_brings_its_settings() {
        let wiki = find("wiki").unwrap();
        assert_eq!(wiki.target.url, "https://wiki.example.com/mcp");
        assert_eq!(wiki.settings.client_id.as_deref(), Some("creole"));
        assert_eq!(wiki.settings.scopes.to_parameter().as_deref(), Some("read"));
        assert!(wiki.command_words().starts_with("wiki --config /"));
    }

    #[test]
    fn an_upstream_without_a_login_of_a_person_is_refused() {
        let cases = [
            ("wikki", "has no upstream `wikki`: did you mean `wiki`?"),
            ("token", "remove them to use a login"),
            ("robot", "`robot` logs in by itself"),
            ("program", "`program` is a program"),
        ];
        for (word, expected) in cases {
            let said = find(word).err().unwrap();
            assert!(said.contains(expected), "{word}: {said}");
        }
        assert_eq!(
            not_found("example.com/mcp"),
            "invalid URL `example.com/mcp`; did you mean `https://example.com/mcp`?"
        );
        assert!(not_found("wiki").contains("--config FILE"));
    }
}
