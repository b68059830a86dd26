//! The logins of upstreams, and the folder of the stored logins, which all commands share.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use creole::BoxFuture;
use creole::client::Program;
use creole::client::credentials::{Credentials, TokenCommand, TokenFile};
use creole::client::oauth::{
    ClientAuthMethod, ClientSource, EnterpriseGrant, GrantSource, LoginMethod, LoginStore,
    OAuthClient, OAuthCredentials, OAuthError, OAuthOptions, ProgramGrant, SecretText, WebUrl,
};
use creole::internal::credentials::token_text;
use creole::proto::model::{CLIENT_CREDENTIALS_EXTENSION, ENTERPRISE_AUTHORIZATION_EXTENSION};
use creole_tools::PackOptions;

use crate::plan::upstream::{GrantPlan, OAuthPlan, TokenSource};

/// Credentials that are read from a file or a program.
pub(crate) fn token_credentials(name: &str, token: &TokenSource) -> Arc<dyn Credentials> {
    match token {
        TokenSource::File(path) => Arc::new(TokenFile::new(name, path)),
        TokenSource::Command(command) => {
            let (first, args) =
                command.split_first().map_or(("", &[][..]), |(text, args)| (text, args));
            Arc::new(TokenCommand::new(Program::new(name, first).args(args)))
        }
    }
}

/// Where logins are stored: in the folder that `CREOLE_LOGINS` names, or else in `logins` of the data directory. `None` if
/// the platform has no data directory.
pub fn login_store() -> Option<LoginStore> {
    let named = env::var_os("CREOLE_LOGINS").filter(|name| !name.is_empty()).map(PathBuf::from);
    let default = || PackOptions::default().data_directory().map(|folder| folder.join("logins"));
    named.or_else(default).map(LoginStore::new)
}

/// The credentials of an upstream. No person is asked: a person logs in with `creole login`.
pub(crate) fn upstream_credentials(
    name: &str,
    url: &str,
    plan: &OAuthPlan,
    certificates: Option<Arc<[u8]>>,
) -> Result<OAuthCredentials, OAuthError> {
    let method = match &plan.grant {
        GrantPlan::Login => LoginMethod::Stored,
        grant => {
            let (name, grant) = (name.to_owned(), grant.clone());
            LoginMethod::Program(Arc::new(PlannedGrant { name, grant }))
        }
    };
    let mut options = OAuthOptions::new(method);
    options.settings.clone_from(&plan.settings);
    options.store = login_store();
    options.certificates = certificates;
    // Callers of the gateway learn no addresses.
    options.hides_reasons = true;
    // A server that wants no login but a key sends the same status.
    let key_hint = "a key is set with `headers`, `token_file` or `token_command`";
    options.login_command =
        plan.login_command.as_ref().map(|command| format!("{command}; {key_hint}"));
    OAuthCredentials::new(name, url, options)
}

/// The grant of a program. Its assertion is read for each login.
struct PlannedGrant {
    /// The name of the upstream.
    name: String,
    grant: GrantPlan,
}

impl GrantSource for PlannedGrant {
    fn extension(&self) -> Option<&'static str> {
        match &self.grant {
            GrantPlan::ClientCredentials => Some(CLIENT_CREDENTIALS_EXTENSION),
            GrantPlan::Enterprise { .. } => Some(ENTERPRISE_AUTHORIZATION_EXTENSION),
            GrantPlan::Login | GrantPlan::JwtBearer(_) => None,
        }
    }

    fn grant(&self) -> BoxFuture<'static, Result<ProgramGrant, OAuthError>> {
        let (name, grant) = (self.name.clone(), self.grant.clone());
        Box::pin(async move {
            Ok(match &grant {
                GrantPlan::Login | GrantPlan::ClientCredentials => ProgramGrant::ClientCredentials,
                GrantPlan::JwtBearer(source) => ProgramGrant::JwtBearer(read(&name, source).await?),
                GrantPlan::Enterprise { id_token, token_url, client_id, client_secret } => {
                    let member = "idp_token_url";
                    let token_endpoint = WebUrl::parse(token_url)
                        .map_err(|error| OAuthError::Address { member, error })?;
                    let issuer = token_endpoint.origin().to_owned();
                    let client = idp_client(client_id, client_secret.clone());
                    let id_token = read(&name, id_token).await?;
                    let grant = EnterpriseGrant { id_token, token_endpoint, issuer, client };
                    ProgramGrant::Enterprise(grant)
                }
            })
        })
    }
}

/// The client at the identity provider.
fn idp_client(id: &str, secret: Option<SecretText>) -> OAuthClient {
    let method = match secret.is_some() {
        true => ClientAuthMethod::Basic,
        false => ClientAuthMethod::None,
    };
    let (id, source) = (id.to_owned(), ClientSource::Configured);
    OAuthClient { id, secret, method, source, redirect_uri: None, expires_at: None }
}

/// The first line of a file, or of what a program writes.
async fn read(name: &str, source: &TokenSource) -> Result<SecretText, OAuthError> {
    let fetched = token_credentials(name, source).fetch(None).await;
    let fetched = fetched.map_err(|fault| OAuthError::Key { reason: fault.detail })?;
    Ok(SecretText::new(fetched.as_ref().map_or("", token_text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_assertion_is_read_again_for_each_login() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("assertion");
        let grant = GrantPlan::JwtBearer(TokenSource::File(file.clone()));
        let source = PlannedGrant { name: "wiki".to_owned(), grant };
        for text in ["first", "second"] {
            std::fs::write(&file, format!("{text}\n")).unwrap();
            match source.grant().await.unwrap() {
                ProgramGrant::JwtBearer(assertion) => assert_eq!(assertion.expose(), text),
                other => panic!("{other:?}"),
            }
        }
        std::fs::remove_file(&file).unwrap();
        let said = source.grant().await.unwrap_err().to_string();
        assert_eq!(said, "cannot get a token for `wiki`: the token file does not exist");
    }

    #[test]
    fn a_client_without_a_secret_only_names_itself() {
        assert_eq!(idp_client("c", None).method, ClientAuthMethod::None);
        assert_eq!(idp_client("c", Some(SecretText::new("s"))).method, ClientAuthMethod::Basic);
    }
}
