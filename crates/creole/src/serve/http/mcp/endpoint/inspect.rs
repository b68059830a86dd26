//! The sessions of an endpoint as operators see them. The name of a session is a secret, so only its digest is shown.

use std::time::Duration;

use creole_proto::model::Implementation;
use creole_proto::wire::hex;

use super::McpEndpoint;
use crate::secrets::digest;
use crate::serve::http::mcp::session::Session;

/// How many bytes of the digest identify a session.
const DIGEST_BYTES: usize = 8;

/// An open session.
#[derive(Clone, Debug)]
pub struct InspectedSession {
    /// The start of the SHA-256 of its id, in hexadecimal digits.
    pub digest: String,
    /// Who opened it.
    pub principal: String,
    /// The revision, once it is agreed on.
    pub revision: &'static str,
    /// What the client says about itself.
    pub client: Option<Implementation>,
    /// How long it is open.
    pub age: Duration,
    /// How long it was not used.
    pub idle: Duration,
    /// How many streams are read.
    pub streams: usize,
    /// How many calls run.
    pub calls: usize,
}

impl McpEndpoint {
    /// The open sessions.
    #[doc(hidden)]
    pub fn inspect_sessions(&self) -> Vec<InspectedSession> {
        self.shared.sessions.all().iter().map(|session| session.inspect()).collect()
    }

    /// Ends the session with this digest; whether there was one.
    #[doc(hidden)]
    pub async fn end_session(&self, wanted: &str) -> bool {
        let sessions = self.shared.sessions.all();
        let Some(session) = sessions.iter().find(|it| id_digest(it.id()) == wanted) else {
            return false;
        };
        if let Err(error) = self.shared.sessions.end(session).await {
            tracing::warn!(%error, "cannot remove a session from the state");
        }
        true
    }
}

fn id_digest(id: &str) -> String {
    hex(&digest(id.as_bytes())[..DIGEST_BYTES])
}

impl Session {
    fn inspect(&self) -> InspectedSession {
        let (rules, client, calls) = self.host().inspect();
        InspectedSession {
            digest: id_digest(self.id()),
            principal: self.host().origin().principal.id().to_owned(),
            revision: rules.name,
            client,
            age: self.age(),
            idle: self.unused_since().elapsed(),
            streams: self.reader_count(),
            calls,
        }
    }
}
