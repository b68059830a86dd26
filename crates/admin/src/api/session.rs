//! Signing in and out, and the identity of the caller.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::IDLE;
use crate::host::Stage;
use crate::http::problem::{Problem, ProblemCode};
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::{CapturePolicy, Role};
use crate::{Admin, clock};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post::<Login, _, _, _>(
            "/login",
            None,
            StatusCode::OK,
            "Signs in with a one-time token, or with a name and a password",
            login,
        ),
        Route::act(Method::POST, "/logout", Role::Read, "Ends the session", logout)
            .body::<EmptyBody>(),
        Route::get("/self", Role::Read, "Who the caller is, and what runs here", show),
    ]
}

/// An empty object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

/// Either a one-time token, or a name and a password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The token of a one-time link.
    token: Option<String>,
    /// The name of a user.
    user: Option<String>,
    /// The password of the user.
    password: Option<String>,
}

/// A new session.
#[derive(Serialize, JsonSchema)]
struct NewSession {
    /// The secret for `Authorization: Bearer`.
    bearer: String,
    /// When the session ends at the latest.
    expires: String,
    /// After how many seconds without a request it ends.
    idle_seconds: u64,
    /// Who signed in.
    name: String,
    /// What the caller may do.
    roles: Vec<Role>,
}

async fn login(admin: Arc<Admin>, request: ApiRequest) -> Result<NewSession, Problem> {
    let signed_in = match request.json()? {
        Login { token: Some(token), user: None, password: None } => {
            admin.access.sign_in_by_link(&token)?
        }
        Login { token: None, user: Some(user), password: Some(password) } => {
            admin.access.sign_in_by_password(&user, &password, request.peer).await?
        }
        _ => {
            return Err(Problem::new(ProblemCode::InvalidBody, "The body is no credential")
                .detail("send `token`, or `user` and `password`"));
        }
    };
    admin.live.visit();
    Ok(NewSession {
        bearer: signed_in.bearer,
        expires: clock::text(signed_in.expires),
        idle_seconds: IDLE.as_secs(),
        name: signed_in.caller.name().to_owned(),
        roles: signed_in.caller.roles,
    })
}

async fn logout(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    request.json::<EmptyBody>()?;
    if let Some(session) = &request.caller()?.session {
        admin.access.sign_out(session);
    }
    Ok(())
}

/// The caller and the process.
#[derive(Serialize, JsonSchema)]
struct Identity {
    /// Who the caller is.
    name: String,
    /// What the caller may do.
    roles: Vec<Role>,
    /// When the session of the caller ends at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_expires: Option<String>,
    product: Product,
    /// The name of the first server.
    server: String,
    /// The name of the process among those that share a state.
    replica: String,
    /// The id of the process.
    pid: u32,
    /// When the process started.
    started: String,
    /// The time now.
    now: String,
    /// Whether the process serves or shuts down.
    stage: Stage,
    config: ConfigFacts,
    /// Whether payloads may be looked at.
    capture: CapturePolicy,
    /// Whether the console is served.
    console: bool,
    /// The page of a trace, with `{trace}` for its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_url: Option<String>,
}

/// The program.
#[derive(Serialize, JsonSchema)]
struct Product {
    /// `creole`.
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// What it was built with.
    features: Vec<&'static str>,
}

/// The configuration in short.
#[derive(Serialize, JsonSchema)]
struct ConfigFacts {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The SHA-256 of the file.
    digest: String,
    /// When it was put into force.
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded: Option<String>,
    /// Whether a later configuration was refused.
    refused: bool,
}

async fn show(admin: Arc<Admin>, request: ApiRequest) -> Result<Identity, Problem> {
    let caller = request.caller()?;
    let config = admin.host.config();
    let servers = admin.host.servers();
    Ok(Identity {
        name: caller.name().to_owned(),
        roles: caller.roles.clone(),
        session_expires: caller.session.as_ref().map(|it| clock::text(it.expires())),
        product: Product {
            name: "creole",
            version: env!("CARGO_PKG_VERSION"),
            features: vec!["admin"],
        },
        server: servers.first().map(|server| server.name.clone()).unwrap_or_default(),
        replica: admin.replica.clone(),
        pid: std::process::id(),
        started: clock::text(admin.started.0),
        now: clock::now(),
        stage: admin.host.stage(),
        config: ConfigFacts {
            file: config.file.map(|file| file.display().to_string()),
            digest: config.digest,
            loaded: config.loaded.map(clock::text),
            refused: config.refused.is_some(),
        },
        capture: admin.settings.capture,
        console: admin.settings.console,
        trace_url: admin.settings.trace_url.clone(),
    })
}
