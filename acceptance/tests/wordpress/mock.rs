//! A mock site: the WordPress routes that authentication uses, a few members, and every fault that a site can have.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) use creole_acceptance::http::ServiceRequest;
use serde_json::{Value, json};

/// `admin:pass`, who can manage options; `ed:pass` cannot.
pub(crate) const ADMIN: &str = "Basic YWRtaW46cGFzcw==";
pub(crate) const ED: &str = "Basic ZWQ6cGFzcw==";

/// The id of the calling user at the site.
fn user(request: &ServiceRequest) -> u64 {
    match request.header("authorization") {
        Some(ADMIN) => 1,
        Some(ED) => 2,
        _ => 0,
    }
}

type Fault = dyn Fn(&ServiceRequest) -> Option<String> + Send + Sync;

/// A running site; it ends with the test.
pub(crate) struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    asked: Mutex<Vec<ServiceRequest>>,
    has_platform: AtomicBool,
    fault: Box<Fault>,
}

impl Mock {
    /// A site without faults.
    pub(crate) fn start() -> Self {
        Self::with(|_| None)
    }

    /// A site that sends this response instead of its own, unless it is `None`.
    pub(crate) fn with(
        fault: impl Fn(&ServiceRequest) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let has_platform = AtomicBool::new(true);
        let shared = Shared { asked: Mutex::default(), has_platform, fault: Box::new(fault) };
        let shared = Arc::new(shared);
        let site = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, site) = (stream.unwrap(), Arc::clone(&site));
                thread::spawn(move || site.serve(stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Switches the platform on or off.
    pub(crate) fn set_platform(&self, is_active: bool) {
        self.shared.has_platform.store(is_active, Ordering::SeqCst);
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<ServiceRequest> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The number of requests whose line begins with this text.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.requests().iter().filter(|request| request.line.starts_with(line)).count()
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some(request) = ServiceRequest::read(&mut stream) else { return };
        self.asked.lock().unwrap().push(request.clone());
        let response = (self.fault)(&request).unwrap_or_else(|| self.answer(&request));
        // The client may have disconnected.
        let _ = stream.get_mut().write_all(response.as_bytes());
    }

    fn answer(&self, request: &ServiceRequest) -> String {
        let has_platform = self.has_platform.load(Ordering::SeqCst);
        let target = request.line.split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let route = path.strip_prefix("/wp-json").unwrap_or_default();
        match (route, user(request)) {
            ("/", _) if has_platform => ok(&json!({"namespaces": ["wp/v2", "buddyboss/v1"]})),
            ("/", _) => ok(&json!({"namespaces": ["wp/v2"]})),
            ("/wp/v2/users/me", 0) => error_response(401, "rest_not_logged_in"),
            ("/wp/v2/users/me", user) => ok(
                &json!({"id": user, "capabilities": {"read": true, "manage_options": user == 1}}),
            ),
            ("/wp/v2/settings", 1) => ok(&json!({"title": "A site"})),
            ("/wp/v2/settings", _) => error_response(403, "rest_forbidden"),
            (route, _) if route.starts_with("/buddyboss/v1") && !has_platform => {
                error_response(404, "rest_no_route")
            }
            ("/buddyboss/v1/members", _) => list(target),
            ("/buddyboss/v1/members/1", _) => ok(&member(1)),
            ("/wp/v2/users/1", _) => ok(&json!({"email": "admin@example.org"})),
            (route, _) if route.starts_with("/buddyboss/v1/members/") => {
                error_response(404, "bp_rest_member_invalid_id")
            }
            _ => error_response(404, "rest_no_route"),
        }
    }
}

fn member(id: u64) -> Value {
    json!({"id": id, "name": format!("Member {id}"), "_links": {}, "avatar_urls": {}})
}

/// A page of 25 members.
fn list(target: &str) -> String {
    let number = |name: &str| {
        let value = target.split(['?', '&']).find_map(|pair| pair.strip_prefix(name));
        value.and_then(|value| value.parse::<u64>().ok())
    };
    let (page, per_page) = (number("page=").unwrap_or(1), number("per_page=").unwrap_or(10));
    let members: Vec<Value> = (1..=25)
        .skip(((page - 1) * per_page) as usize)
        .take(per_page as usize)
        .map(member)
        .collect();
    let pages = 25_u64.div_ceil(per_page);
    let head = format!("X-WP-Total: 25\r\nX-WP-TotalPages: {pages}\r\n");
    answer("200 OK", &head, &json!(members).to_string())
}

/// A successful response.
pub(crate) fn ok(body: &Value) -> String {
    answer("200 OK", "", &body.to_string())
}

/// An error in WordPress's form.
pub(crate) fn error_response(status: u16, code: &str) -> String {
    let body = json!({"code": code, "message": "Invalid ID.", "data": {"status": status}});
    answer(&format!("{status} Refused"), "", &body.to_string())
}

/// A response with this status, with JSON unless its head says otherwise.
pub(crate) fn answer(status: &str, head: &str, body: &str) -> String {
    let media = match head.contains("Content-Type") {
        true => "",
        false => "Content-Type: application/json; charset=UTF-8\r\n",
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{head}{media}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
