//! The credentials of each operation: the secrets of the configuration for the security schemes of the document.

pub mod client_credentials;

use super::document_set::{DocumentSet, Node};
use super::{ApiError, SettingsPart};
use crate::openapi::security::client_credentials::ClientCredentials;
use crate::recipe::http::Auth;
use crate::recipe::secret::SecretSource;

/// The secret for a security scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeSecret {
    /// A token.
    Bearer(SecretSource),
    /// A user name and a password.
    Basic {
        /// The user name.
        user: String,
        /// The password.
        password: SecretSource,
    },
    /// The value of a key.
    Value(SecretSource),
    /// The client credentials for fetching tokens.
    Client(ClientCredentials),
}

/// A credential of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A header.
    Header(Auth),
    /// A token that is fetched first.
    Client(ClientCredentials),
    /// A query parameter.
    Query {
        /// Its name.
        name: String,
        /// Its value.
        value: SecretSource,
    },
    /// A cookie.
    Cookie {
        /// Its name.
        name: String,
        /// Its value.
        value: SecretSource,
    },
}

/// The schemes with configured secrets.
pub(super) struct SecuritySchemes {
    credentials: Vec<(String, Credential)>,
}

impl SecuritySchemes {
    /// Combines the secrets with the schemes of the document.
    pub(super) fn new(
        library: &DocumentSet,
        given: &[(String, SchemeSecret)],
    ) -> Result<Self, ApiError> {
        let schemes =
            library.document().get("components").and_then(|node| node.get("securitySchemes"));
        let mut known = Vec::new();
        for (index, (name, secret)) in given.iter().enumerate() {
            let part = SettingsPart::Security(index);
            let scheme = schemes.and_then(|schemes| schemes.get(name));
            let Some(scheme) = scheme.and_then(|scheme| library.resolve(scheme).ok()) else {
                let names = schemes.into_iter().flat_map(Node::members).map(|(name, _)| name);
                let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                let help = match names.is_empty() {
                    true => "the document has none; use `auth` instead".to_owned(),
                    false => format!("the document has {}", names.join(", ")),
                };
                let message = format!("the document has no security scheme `{name}`");
                return Err(ApiError::new(part, message).help(help));
            };
            let credential = read_credential(name, scheme, secret)
                .map_err(|(message, help)| ApiError::new(part, message).help(help))?;
            known.push((name.clone(), credential));
        }
        Ok(Self { credentials: known })
    }

    /// The credentials of an operation: the first alternative for which all secrets are configured. The error lists the
    /// schemes of the first alternative.
    pub(super) fn credentials_for(
        &self,
        security: Option<Node<'_>>,
    ) -> Result<Vec<Credential>, Vec<String>> {
        let mut first = None;
        for way in security.into_iter().flat_map(Node::items) {
            let names: Vec<&str> = way.members().map(|(name, _)| name).collect();
            let found: Option<Vec<Credential>> = names.iter().map(|name| self.get(name)).collect();
            match found {
                // The alternative without credentials has the lowest priority.
                Some(found) if !found.is_empty() => return Ok(found),
                Some(_) => first = Some(Vec::new()),
                None if first.is_none() => {
                    first = Some(names.into_iter().map(str::to_owned).collect());
                }
                None => {}
            }
        }
        match first {
            Some(names) if !names.is_empty() => Err(names),
            _ => Ok(Vec::new()),
        }
    }

    fn get(&self, name: &str) -> Option<Credential> {
        self.credentials
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, credential)| credential.clone())
    }

    /// Whether a parameter is a configured key, which callers need not provide.
    pub(super) fn has(&self, location: &str, name: &str) -> bool {
        self.credentials.iter().any(|(_, credential)| match credential {
            Credential::Header(Auth::Header { name: own, .. }) => {
                location == "header" && own.eq_ignore_ascii_case(name)
            }
            Credential::Header(_) | Credential::Client(_) => false,
            Credential::Query { name: own, .. } => location == "query" && own == name,
            Credential::Cookie { name: own, .. } => location == "cookie" && own == name,
        })
    }
}

type SchemeError = (String, &'static str);

fn read_credential(
    name: &str,
    scheme: Node<'_>,
    secret: &SchemeSecret,
) -> Result<Credential, SchemeError> {
    let key = scheme.text("name").unwrap_or_default().to_owned();
    let kind = scheme.text("type").unwrap_or_default();
    let way = scheme.text("scheme").unwrap_or_default().to_ascii_lowercase();
    let wrong = |description: &str, help| {
        Err((format!("the security scheme `{name}` {description}"), help))
    };
    match (kind, secret) {
        ("apiKey", SchemeSecret::Value(value)) => match scheme.text("in") {
            Some("header") => {
                Ok(Credential::Header(Auth::Header { name: key, value: value.clone() }))
            }
            Some("query") => Ok(Credential::Query { name: key, value: value.clone() }),
            Some("cookie") => Ok(Credential::Cookie { name: key, value: value.clone() }),
            _ => wrong("does not specify the location of its key", "use `auth` instead"),
        },
        ("apiKey", _) => wrong("needs an API key", "write `value` or `value_file`"),
        ("http", SchemeSecret::Basic { user, password }) if way == "basic" => {
            let (user, password) = (user.clone(), password.clone());
            Ok(Credential::Header(Auth::Basic { user, password }))
        }
        ("http", _) if way == "basic" => wrong(
            "needs a user name and a password",
            "write `user`, and `password` or `password_file`",
        ),
        ("http" | "oauth2" | "openIdConnect", SchemeSecret::Bearer(token))
            if kind != "http" || way == "bearer" =>
        {
            Ok(Credential::Header(Auth::Bearer(token.clone())))
        }
        ("oauth2" | "openIdConnect", SchemeSecret::Client(grant)) => {
            Ok(Credential::Client(grant.clone()))
        }
        ("oauth2" | "openIdConnect", _) => wrong(
            "needs a token",
            "write `bearer` or `bearer_file`, or `client_id`, `client_secret` and `token_url`",
        ),
        ("http", _) if way == "bearer" => wrong("needs a token", "write `bearer` or `bearer_file`"),
        _ => wrong("has an unsupported type", "use `auth` instead"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::recipe::secret::Secret;

    fn stored_secret() -> SecretSource {
        SecretSource::Inline(Secret("hunter2000".into()))
    }

    fn doors(given: Vec<(&str, SchemeSecret)>) -> Result<SecuritySchemes, ApiError> {
        let library = DocumentSet::from_value(
            "x.json",
            json!({ "components": { "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
                "query": { "type": "apiKey", "in": "query", "name": "k" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "c" },
                "basic": { "type": "http", "scheme": "Basic" },
                "token": { "type": "http", "scheme": "bearer" },
                "oauth": { "type": "oauth2", "flows": {} },
                "tls": { "type": "mutualTLS" },
                "same": { "$ref": "#/components/securitySchemes/key" },
            } } }),
        );
        let given: Vec<_> = given
            .into_iter()
            .map(|(name, scheme_secret)| (name.to_owned(), scheme_secret))
            .collect();
        SecuritySchemes::new(&library, &given)
    }

    fn of(schemes: &SecuritySchemes, security: Value) -> Result<Vec<Credential>, Vec<String>> {
        schemes.credentials_for(Some(Node { value: &security, file: 0 }))
    }

    #[test]
    fn the_first_security_requirement_with_secrets_is_used() {
        let basic = SchemeSecret::Basic { user: "ann".into(), password: stored_secret() };
        let schemes = doors(vec![
            ("key", SchemeSecret::Value(stored_secret())),
            ("cookie", SchemeSecret::Value(stored_secret())),
            ("basic", basic),
            ("oauth", SchemeSecret::Bearer(stored_secret())),
            ("same", SchemeSecret::Value(stored_secret())),
        ])
        .unwrap();
        let both =
            of(&schemes, json!([{ "token": [] }, { "key": [], "cookie": [] }, { "basic": [] }]));
        assert_eq!(both.unwrap().len(), 2);
        assert_eq!(of(&schemes, json!([{}, { "oauth": ["read"] }])).unwrap().len(), 1);
        assert_eq!(of(&schemes, json!([{ "token": [] }, {}])), Ok(vec![]));
        assert_eq!(of(&schemes, json!([])), Ok(vec![]));
        assert_eq!(of(&schemes, json!([{ "token": [] }])), Err(vec!["token".to_owned()]));
        assert!(
            schemes.has("header", "x-key")
                && schemes.has("cookie", "c")
                && !schemes.has("query", "k")
        );
    }

    #[test]
    fn a_secret_of_the_wrong_kind_is_refused() {
        let rows = [
            (
                "no",
                SchemeSecret::Value(stored_secret()),
                "the document has no security scheme `no`",
            ),
            (
                "key",
                SchemeSecret::Bearer(stored_secret()),
                "the security scheme `key` needs an API key",
            ),
            (
                "basic",
                SchemeSecret::Bearer(stored_secret()),
                "the security scheme `basic` needs a user name and a password",
            ),
            (
                "token",
                SchemeSecret::Value(stored_secret()),
                "the security scheme `token` needs a token",
            ),
            (
                "oauth",
                SchemeSecret::Value(stored_secret()),
                "the security scheme `oauth` needs a token",
            ),
            (
                "tls",
                SchemeSecret::Value(stored_secret()),
                "the security scheme `tls` has an unsupported type",
            ),
        ];
        for (name, secret, description) in rows {
            assert_eq!(doors(vec![(name, secret)]).err().unwrap().message, description);
        }
    }
}
