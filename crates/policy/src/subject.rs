//! What rules see of a caller.

use std::sync::Arc;

use creole::Principal;
use serde_json::{Map, Value};

/// What rules see of a caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The readable id: `local`, `user:ada`, `key:ci`, `oauth:LABEL:SUB`, `oauth-client:LABEL:CLIENT`.
    pub id: Arc<str>,
    /// The name without the kind: that of the user or the key, or the subject of the token.
    pub name: Arc<str>,
    /// The label of the issuer of the caller's token.
    pub issuer: Option<Arc<str>>,
    /// The client that the token was issued to.
    pub client: Option<Arc<str>>,
    /// The roles.
    pub roles: Vec<Arc<str>>,
    /// The scopes of the token. `None` for callers without a token, which no scope limits.
    pub scopes: Option<Vec<Arc<str>>>,
    /// The claims of the token that rules name.
    pub claims: Map<String, Value>,
}

impl Subject {
    /// A caller with this id, without roles and without a token.
    pub fn new(id: &str) -> Self {
        let name = match id.split_once(':') {
            Some(("oauth" | "oauth-client", rest)) => rest.split_once(':').map_or(rest, |it| it.1),
            Some((_, name)) => name,
            None => id,
        };
        let issuer = match id.split_once(':') {
            Some(("oauth" | "oauth-client", rest)) => rest.split_once(':').map(|it| it.0.into()),
            _ => None,
        };
        Self {
            id: id.into(),
            name: name.into(),
            issuer,
            client: None,
            roles: Vec::new(),
            scopes: None,
            claims: Map::new(),
        }
    }

    /// The kind of caller: `local`, `user`, `key`, `oauth` or `oauth-client`.
    pub fn kind(&self) -> &str {
        self.id.split_once(':').map_or(&*self.id, |(kind, _)| kind)
    }

    /// A member as JSON, by its name in expressions. Claims are not among them.
    pub(crate) fn member(&self, name: &str) -> Value {
        match name {
            "id" => Value::from(&*self.id),
            "kind" => Value::from(self.kind()),
            "name" => Value::from(&*self.name),
            "issuer" => self.issuer.as_deref().into(),
            "client" => self.client.as_deref().into(),
            "roles" => texts(&self.roles),
            "scopes" => self.scopes.as_deref().map_or(Value::Null, texts),
            _ => Value::Null,
        }
    }

    /// Whether no scope is missing for this one.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.as_ref().is_none_or(|all| all.iter().any(|own| &**own == scope))
    }
}

fn texts(all: &[Arc<str>]) -> Value {
    all.iter().map(|text| Value::from(&**text)).collect()
}

impl From<&Principal> for Subject {
    fn from(principal: &Principal) -> Self {
        let own = Self { roles: principal.roles().to_vec(), ..Self::new(principal.id()) };
        let Some(token) = principal.token() else { return own };
        let name = if token.is_program { &token.client } else { &token.subject };
        let name = name.as_ref().or(token.subject.as_ref()).or(token.client.as_ref());
        Self {
            // The id has the name in an escaped form.
            name: name.map_or(own.name, Arc::clone),
            issuer: Some(Arc::clone(&token.label)),
            client: token.client.clone(),
            scopes: Some(principal.scopes().to_vec()),
            claims: token.claims.clone(),
            ..own
        }
    }
}
