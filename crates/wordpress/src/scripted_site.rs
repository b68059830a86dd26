//! A scripted site for tests, with the tools in front of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use creole::{Content, ToolError};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{AllowedRoutes, Site, SiteAddress, SiteSettings, tools};
use crate::login::basic_credentials::BasicCredentials;
use crate::login::users::SiteUser;
use creole_tools::recipe::secret::Secret;

/// A request that the site received.
#[derive(Clone, Debug)]
pub(super) struct ScriptedRequest {
    /// The method and the target, such as `GET /wp-json/wp/v2/posts`.
    pub(super) line: String,
    pub(super) body: String,
}

impl ScriptedRequest {
    /// The body, if it is JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// A response of the site: a status, a media type, further headers, and a body.
pub(super) struct ScriptedResponse(u16, &'static str, String, String);

/// JSON data.
pub(super) fn ok(body: Value) -> ScriptedResponse {
    ScriptedResponse(200, "application/json", String::new(), body.to_string())
}

/// A page of a list, with the total number of items and pages.
pub(super) fn page(items: Value, total: u64, pages: u64) -> ScriptedResponse {
    let head = format!("X-WP-Total: {total}\r\nX-WP-TotalPages: {pages}\r\n");
    ScriptedResponse(200, "application/json", head, items.to_string())
}

/// An error in the format of WordPress.
pub(super) fn error_response(status: u16, code: &str, message: &str) -> ScriptedResponse {
    let body = json!({"code": code, "message": message, "data": {"status": status}});
    ScriptedResponse(status, "application/json", String::new(), body.to_string())
}

/// An HTML page.
pub(super) fn html(status: u16, text: &str) -> ScriptedResponse {
    ScriptedResponse(status, "text/html", String::new(), text.to_owned())
}

type ResponseScript = dyn Fn(&ScriptedRequest) -> Option<ScriptedResponse> + Send + Sync;

/// A running site. A request that its script does not handle is an unknown route.
pub(super) struct ScriptedSite {
    pub(super) site: Site,
    pub(super) user: SiteUser,
    requests: Arc<Mutex<Vec<ScriptedRequest>>>,
}

impl ScriptedSite {
    /// A site whose platform sees the caller's login: user 1.
    pub(super) fn early(
        script: impl Fn(&ScriptedRequest) -> Option<ScriptedResponse> + Send + Sync + 'static,
    ) -> Self {
        Self::new(true, script)
    }

    /// A site whose platform does not.
    pub(super) fn late(
        script: impl Fn(&ScriptedRequest) -> Option<ScriptedResponse> + Send + Sync + 'static,
    ) -> Self {
        Self::new(false, script)
    }

    /// A site that does not respond.
    pub(super) fn gone() -> Self {
        let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        Self { site: site(address), ..Self::early(|_| None) }
    }

    fn new(
        is_early: bool,
        script: impl Fn(&ScriptedRequest) -> Option<ScriptedResponse> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::default();
        let (recorded, script): (Arc<Mutex<Vec<ScriptedRequest>>>, Arc<ResponseScript>) =
            (Arc::clone(&requests), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (recorded, script) = (Arc::clone(&recorded), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &recorded, &*script));
            }
        });
        let proof = BasicCredentials::new("admin", &Secret("abcd".to_owned())).unwrap();
        let user = SiteUser {
            id: 1,
            principal: "wordpress:1".into(),
            credentials: proof,
            is_login_visible: OnceCell::new_with(Some(is_early)),
        };
        Self { site: site(address), user, requests }
    }

    /// The requests so far, except for the detection of the platform.
    pub(super) fn requests(&self) -> Vec<ScriptedRequest> {
        let received = self.requests.lock().unwrap().clone();
        received
            .into_iter()
            .filter(|request| !request.line.contains("_fields=namespaces"))
            .collect()
    }

    /// The methods and targets of the requests.
    pub(super) fn lines(&self) -> Vec<String> {
        let short = |request: ScriptedRequest| request.line.replace("/wp-json", "");
        self.requests().into_iter().map(short).collect()
    }

    /// Calls a curated tool: the texts of its result, or its error.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Vec<String>, String> {
        let name = format!("buddyboss_{tool}");
        let outcome = tools::call(&name, &self.site, &self.user, arguments).await;
        let result = outcome.map_err(|error| match error {
            ToolError::Failed(reason) => reason.to_string(),
            other => format!("{other:?}"),
        })?;
        let text = |content: &Content| match content {
            Content::Text { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        Ok(result.content.iter().map(text).collect())
    }

    /// Calls a curated tool that succeeds, and returns its data.
    pub(super) async fn call_ok(&self, tool: &str, arguments: Value) -> Value {
        let texts = self.call(tool, arguments).await.unwrap();
        serde_json::from_str(&texts[0]).unwrap()
    }

    /// Calls a curated tool that fails, and returns its error.
    pub(super) async fn call_err(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap_err()
    }
}

fn site(address: SocketAddr) -> Site {
    Site::new(SiteSettings {
        address: SiteAddress::parse(&format!("http://{address}")).unwrap(),
        capability: String::new(),
        account: None,
        sets: Vec::new(),
        routes: AllowedRoutes::default(),
        timeout: Duration::from_secs(10),
    })
}

fn serve(stream: TcpStream, recorded: &Mutex<Vec<ScriptedRequest>>, script: &ResponseScript) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    if stream.read_line(&mut line).is_err() || line.is_empty() {
        return;
    }
    let mut length = 0;
    loop {
        let mut field = String::new();
        if stream.read_line(&mut field).is_err() || field.trim().is_empty() {
            break;
        }
        if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
    let request = ScriptedRequest { line, body: String::from_utf8_lossy(&body).into_owned() };
    recorded.lock().unwrap().push(request.clone());
    let namespaces = || ok(json!({"namespaces": ["wp/v2", "buddyboss/v1"]}));
    let unknown = || error_response(404, "rest_no_route", "No route was found.");
    let answer = match (request.line.contains("_fields=namespaces"), script(&request)) {
        // A script that responds to everything with data does not mean the index.
        (true, Some(ScriptedResponse(_, "application/json", ..)) | None) => namespaces(),
        (_, answer) => answer.unwrap_or_else(unknown),
    };
    let ScriptedResponse(status, media, head, body) = answer;
    let text = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {media}\r\n{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // The client may have disconnected.
    let _ = stream.get_mut().write_all(text.as_bytes());
}
