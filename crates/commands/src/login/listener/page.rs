//! The pages that a browser shows after a login.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// The style of all pages. It fits phones, and dark screens.
const STYLE: &str = "\
:root{color-scheme:light dark;--back:#f6f6f4;--card:#fff;--text:#1c1c1c;--faint:#666;--plain:#8a8a86;--good:#1a7f45;\
--bad:#b3261e}\
@media(prefers-color-scheme:dark){:root{--back:#161616;--card:#232323;--text:#ececec;--faint:#a0a0a0;--plain:#77776f;\
--good:#3fb873;--bad:#f2827b}}\
body{margin:0;min-height:100vh;display:flex;align-items:center;justify-content:center;\
font:17px/1.5 system-ui,sans-serif;background:var(--back);color:var(--text)}\
main{box-sizing:border-box;width:30rem;max-width:100%;margin:1rem;padding:1.75rem 2rem;border-radius:.5rem;\
background:var(--card);border-top:4px solid var(--plain)}\
main.good{border-color:var(--good)}main.bad{border-color:var(--bad)}\
h1{margin:0 0 .5rem;font-size:1.3rem;line-height:1.3}p{margin:.5rem 0 0}\
footer{margin-top:1.5rem;font-size:.85rem;color:var(--faint)}";

/// The hash by which the policy of the pages allows [`STYLE`].
const STYLE_HASH: &str = "sha256-VrR/+91fw9fmWgTsMPhdzwa3x/vMKYNniPzcwEwqdIk=";

/// What the browser shows. Nothing of the request is part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Page {
    Received,
    Failed,
    OtherLogin,
    OtherHost,
    NotFound,
    OtherMethod,
    TooLong,
}

/// The parts of a page.
struct Content {
    status: &'static str,
    /// The class of the page: `good`, `bad` or none.
    class: &'static str,
    heading: &'static str,
    text: &'static str,
}

impl Page {
    /// The page for the response to the login.
    pub(super) fn of_response(query: &str) -> Self {
        let is_error = query.split('&').any(|pair| pair.starts_with("error="));
        if is_error { Self::Failed } else { Self::Received }
    }

    fn content(self) -> Content {
        let (status, class, heading, text) = match self {
            Self::Received => (
                "200 OK",
                "good",
                "Login received",
                "Creole finishes the login where you started it. You may close this page.",
            ),
            Self::Failed => (
                "200 OK",
                "bad",
                "Login not completed",
                "The login was declined or failed. Creole says why where you started it. You may close this page.",
            ),
            Self::OtherLogin => (
                "400 Bad Request",
                "bad",
                "Another login",
                "This page belongs to another login. Creole is still waiting for yours: finish it in the page that \
                Creole opened last.",
            ),
            Self::OtherHost => (
                "403 Forbidden",
                "bad",
                "Address not used",
                "Creole does not answer under this name. Nothing was done.",
            ),
            Self::NotFound => {
                ("404 Not Found", "", "Nothing here", "There is nothing at this address.")
            }
            Self::OtherMethod => {
                ("405 Method Not Allowed", "", "Nothing here", "This page is opened with GET.")
            }
            Self::TooLong => (
                "431 Request Header Fields Too Large",
                "bad",
                "Request too long",
                "The response of the login is longer than Creole accepts.",
            ),
        };
        Content { status, class, heading, text }
    }

    /// The whole HTTP response.
    fn response(self) -> String {
        let Content { status, class, heading, text } = self.content();
        let body = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
            <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
            <title>{heading} – Creole</title><style>{STYLE}</style></head>\
            <body><main class=\"{class}\"><h1>{heading}</h1><p>{text}</p><footer>Creole</footer></main></body></html>\n"
        );
        let allow = if self == Self::OtherMethod { "Allow: GET\r\n" } else { "" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n{allow}\
            Cache-Control: no-store\r\n\
            Content-Security-Policy: default-src 'none'; style-src '{STYLE_HASH}'; frame-ancestors 'none'\r\n\
            Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// Sends the page, and ends the connection.
    pub(super) async fn send(self, stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(self.response().as_bytes()).await?;
        stream.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn a_declined_login_is_not_reported_as_received() {
        assert_eq!(Page::of_response("state=s&error=access_denied"), Page::Failed);
        assert_eq!(Page::of_response("state=s&code=error="), Page::Received);
    }
}
