//! Logins without a browser on the machine: by a copied address, and at another device.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use creole_acceptance::canaries;
use creole_acceptance::http::{Request, Response};
use creole_acceptance::oauth::browser::Browser;
use creole_acceptance::process_under_test::{ChildGuard, PATIENCE};

use sha2::{Digest, Sha256};

use crate::{Home, provider};

/// A login that waits for its user.
struct Waiting {
    process: ChildGuard,
    input: ChildStdin,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Waiting {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = ChildGuard::start(&mut command);
        let input = process.child().stdin.take().unwrap();
        let stderr = process.child().stderr.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, input, lines, said: Vec::new() }
    }

    /// The next line of stderr for which the function has a value.
    #[track_caller]
    fn until<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("it only said: {:#?}", self.said);
            };
            self.said.push(line);
            if let Some(found) = find(self.said.last().unwrap()) {
                return found;
            }
        }
    }

    /// The address that the user opens.
    fn address(&mut self) -> String {
        self.until(|line| line.trim().starts_with("http://").then(|| line.trim().to_owned()))
    }

    fn write(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    #[track_caller]
    fn succeeds(mut self) {
        self.until(|line| line.starts_with("creole: logged in to ").then_some(()));
        assert_eq!(self.process.wait(), Some(0), "{:#?}", self.said);
    }
}

/// Opens an address that the browser was sent to, and returns the status of the page.
fn visit(url: &str) -> u16 {
    let (host, target) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let address: SocketAddr = host.parse().unwrap();
    let page = Request::new("GET", &format!("/{target}")).send(address).unwrap();
    shows_its_style(&page);
    page.head.status
}

/// Checks that a browser applies the style of a page and nothing else, and that the page names no part of the login.
#[track_caller]
fn shows_its_style(page: &Response) {
    let text = page.text();
    let style = text.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
    let hash = canaries::base64(&Sha256::digest(style.unwrap()));
    let policy = page.head.field("content-security-policy").unwrap();
    let expected = format!("default-src 'none'; style-src 'sha256-{hash}'; frame-ancestors 'none'");
    assert_eq!(policy, expected);
    for part in ["<h1>", "name=\"viewport\"", "prefers-color-scheme:dark"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("code=") && !text.contains("<script"), "{text}");
}

#[test]
fn the_address_that_the_browser_ended_at_is_copied() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let mut login = Waiting::start(home.command(&["login", &url, "--no-browser"]));
    let address = login.address();
    let returned = Browser::default().open(&address).unwrap();
    // The code alone could be that of another login.
    let code = returned.split("code=").nth(1).and_then(|rest| rest.split('&').next()).unwrap();
    login.write(code);
    login.until(|line| line.contains("paste the complete redirect URL").then_some(()));
    login.write(&returned);
    login.succeeds();
    assert_eq!(home.browser_log(), "");
    assert_eq!(provider.token_requests("authorization_code", 200), 1);
    home.run(&["list", &url]).succeeded();
}

#[test]
fn a_page_of_another_login_does_not_end_this_one() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let mut login = Waiting::start(home.command(&["login", &url, "--no-browser"]));
    let address = login.address();
    let returned = Browser::default().open(&address).unwrap();
    let (page, query) = returned.split_once('?').unwrap();
    for wrong in ["code=x&state=another", "code=x", "", "error=access_denied&state=another"] {
        assert!(visit(&format!("{page}?{wrong}")) >= 400, "{wrong}");
    }
    assert!(visit(&format!("{}/elsewhere?{query}", page.trim_end_matches("/callback"))) >= 400);
    assert_eq!(provider.visits("/token"), 0);
    assert_eq!(visit(&returned), 200);
    login.succeeds();
    assert_eq!(provider.token_requests("authorization_code", 200), 1);
}

#[test]
fn a_code_is_typed_at_another_device() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let mut login = Waiting::start(home.command(&["login", &url, "--device"]));
    let (address, code) = login.until(|line| {
        let address = line.split(' ').find(|word| word.starts_with("http://127.0.0.1"))?;
        let (address, code) = address.split_once("?user_code=")?;
        Some((address.to_owned(), code.to_owned()))
    });
    let code = code.trim_end_matches(|it: char| !it.is_ascii_alphanumeric());
    Browser::default().confirm_device(&address, code).unwrap();
    login.succeeds();
    home.run(&["list", &url]).succeeded();
}
