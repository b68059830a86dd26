//! Reads an HTTP request on the side of a fake service.

use std::io::BufRead;

/// A request to a service.
#[derive(Clone, Debug)]
pub struct ServiceRequest {
    /// The method and the target.
    pub line: String,
    /// The header fields in their order.
    pub head: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl ServiceRequest {
    /// Reads one request. `None` if its sender has left.
    pub fn read(stream: &mut impl BufRead) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let line = lines.remove(0);
        let field = |line: &String| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        };
        let request =
            Self { line, head: lines.iter().filter_map(field).collect(), body: String::new() };
        let length =
            request.header("content-length").and_then(|output| output.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        Some(Self { body: String::from_utf8(body).ok()?, ..request })
    }

    /// The value of a header field.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.iter();
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}
