//! A browser without a person: it follows redirects and sends back the cookies that it got.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::http::{Request, Response};

/// The maximum number of redirects that it follows.
const MAX_REDIRECTS: usize = 10;

/// A browser with its cookies.
#[derive(Debug, Default)]
pub struct Browser {
    cookies: Vec<(String, String)>,
    /// The person who fills in forms of logins, and consents.
    person: Option<String>,
}

impl Browser {
    /// The browser of a person who fills in the forms that `oidc-provider` has for development.
    #[must_use]
    pub fn of(person: &str) -> Self {
        Self { cookies: Vec::new(), person: Some(person.to_owned()) }
    }

    /// Opens an address and follows redirects. Returns the first address at another origin, or the address of the page
    /// that the browser ends at.
    pub fn open(&mut self, url: &str) -> Result<String, String> {
        let (origin, _) = parts(url)?;
        let mut current = url.to_owned();
        for _ in 0..MAX_REDIRECTS {
            let mut response = self.get(&current)?;
            if let Some((action, form)) = self.filled_in(&response) {
                let request = Request::to("POST", parts(&action)?.1, form)
                    .with("Content-Type", "application/x-www-form-urlencoded");
                response = self.send(request, origin)?;
            }
            match redirect(&response, origin) {
                Some(next) if next.starts_with(&format!("{origin}/")) => current = next,
                Some(elsewhere) => return Ok(elsewhere),
                None => return Ok(current),
            }
        }
        Err(format!("{origin} redirects without end"))
    }

    /// Opens an address and follows redirects to any origin of this machine, as a person's browser does.
    pub fn follow(&mut self, url: &str) -> Result<(), String> {
        let elsewhere = self.open(url)?;
        self.get(&elsewhere).map(drop)
    }

    /// Types the code of a device into the page at this address, confirms it, and lets the page log the person in.
    pub fn confirm_device(&mut self, url: &str, user_code: &str) -> Result<(), String> {
        let (origin, target) = parts(url)?;
        let page = self.get(url)?.text();
        let secret = page.split("name=\"xsrf\" value=\"").nth(1);
        let secret = secret.and_then(|rest| rest.split('"').next());
        let secret = secret.ok_or_else(|| format!("the page has no form: {page}"))?;
        let path = target.split('?').next().unwrap_or_default();
        let form = format!("xsrf={secret}&user_code={user_code}&confirm=yes");
        let request = Request::to("POST", path, form)
            .with("Content-Type", "application/x-www-form-urlencoded");
        let response = self.send(request, origin)?;
        let next = redirect(&response, origin).ok_or_else(|| response.text())?;
        self.open(&next).map(drop)
    }

    /// The address of the form in a page, and what the person enters.
    fn filled_in(&self, page: &Response) -> Option<(String, String)> {
        let (person, text) = (self.person.as_ref()?, page.text());
        let action = text.split("action=\"").nth(1)?.split('"').next()?.to_owned();
        let prompt = text.split("name=\"prompt\" value=\"").nth(1)?.split('"').next()?;
        Some((action, format!("prompt={prompt}&login={person}&password=any")))
    }

    fn get(&mut self, url: &str) -> Result<Response, String> {
        let (origin, target) = parts(url)?;
        self.send(Request::new("GET", target), origin)
    }

    fn send(&mut self, request: Request, origin: &str) -> Result<Response, String> {
        let pairs: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.with("Cookie", &pairs.join("; ")).with("Connection", "close");
        let response = request.send(address(origin)?)?;
        for cookie in response.head.all("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.retain(|(known, _)| known != name);
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(response)
    }
}

/// The origin of an address of this machine, and the rest.
fn parts(url: &str) -> Result<(&str, &str), String> {
    let start = "http://".len();
    let is_plain = url.get(..start) == Some("http://");
    let path = url.get(start..).and_then(|rest| rest.find('/'));
    match path.filter(|_| is_plain) {
        Some(path) => Ok(url.split_at(start + path)),
        None => Err(format!("{url} is not an address that this browser opens")),
    }
}

fn address(origin: &str) -> Result<SocketAddr, String> {
    let host = origin.trim_start_matches("http://");
    let addresses = host.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let is_local = |address: &SocketAddr| address.is_ipv4() && address.ip().is_loopback();
    addresses.into_iter().find(is_local).ok_or_else(|| format!("{host} is not this machine"))
}

fn redirect(response: &Response, origin: &str) -> Option<String> {
    let is_redirect = (300..400).contains(&response.head.status);
    let location = response.head.field("location").filter(|_| is_redirect)?;
    Some(if location.starts_with('/') { format!("{origin}{location}") } else { location.into() })
}
