//! A server with one tool, `large`, which returns a text of a given size. It is the upstream of a gateway whose memory
//! is measured. It supports only the messages that gateways send.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use serde::Deserialize;
use serde_json::Value;

/// The tool's name.
pub const TOOL: &str = "large";

const ABOUT: &str = concat!(
    r#""capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"0.1.0"},"#,
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"large","version":"0.1.0"}}"#,
);

/// Serves on stdin and stdout until the input ends.
pub fn serve_stdio(size: usize) -> Result<(), String> {
    let text = "x".repeat(size);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let Some(answer) = answer(line.as_bytes(), &text)? else { continue };
        let written = output.write_all(answer.as_bytes()).and_then(|()| output.write_all(b"\n"));
        written.and_then(|()| output.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Serves on HTTP until the process is killed, and prints its address on stderr.
pub fn serve_http(size: usize) -> Result<(), String> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    eprintln!("large: it listens on http://{address}/mcp");
    for stream in listener.incoming().flatten() {
        let text = "x".repeat(size);
        // The error of a client that disconnects is ignored.
        std::thread::spawn(move || converse(stream, &text));
    }
    Ok(())
}

fn converse(stream: TcpStream, text: &str) -> Result<(), String> {
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let mut output = stream.try_clone().map_err(|error| error.to_string())?;
    let mut input = BufReader::new(stream);
    while let Some((is_post, body)) = request(&mut input).map_err(|error| error.to_string())? {
        let response = match answer(&body, text)? {
            _ if !is_post => "HTTP/1.1 405 Not Here\r\nContent-Length: 0\r\n\r\n".to_owned(),
            None => "HTTP/1.1 202 Taken\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Some(answer) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
                answer.len()
            ),
        };
        output.write_all(response.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reads the next request: whether it is a POST, and its body.
fn request(input: &mut impl BufRead) -> std::io::Result<Option<(bool, Vec<u8>)>> {
    let (mut line, mut length) = (String::new(), 0);
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let is_post = line.starts_with("POST ");
    while line.trim_end() != "" {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
        input.read_line(&mut line)?;
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some((is_post, body)))
}

/// The parts of a message that determine the response.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<Value>,
    method: Option<&'a str>,
}

fn answer(message: &[u8], text: &str) -> Result<Option<String>, String> {
    if message.is_empty() {
        return Ok(None);
    }
    let message: Message<'_> =
        serde_json::from_slice(message).map_err(|error| format!("not a message: {error}"))?;
    let (Some(id), Some(method)) = (message.id, message.method) else { return Ok(None) };
    let members = match method {
        "initialize" => format!(r#""protocolVersion":"2025-11-25",{ABOUT}"#),
        "server/discover" => format!(r#""supportedVersions":["2026-07-28"],{ABOUT}"#),
        "tools/list" => {
            format!(r#""tools":[{{"name":"{TOOL}","inputSchema":{{"type":"object"}}}}]"#)
        }
        "tools/call" => format!(
            r#""content":[{{"type":"text","text":"{text}"}}],"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"large","version":"0.1.0"}}}}"#
        ),
        _ => String::new(),
    };
    // A client of the handshake era ignores unknown members.
    let kind = if method == "initialize" { "" } else { r#""resultType":"complete","# };
    let result = format!("{kind}{members}");
    let result = result.trim_end_matches(',');
    Ok(Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{result}}}}}"#)))
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn every_request_is_answered_with_json() {
        for method in ["initialize", "server/discover", "tools/list", "tools/call", "ping"] {
            let request = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}"}}"#);
            let answer = answer(request.as_bytes(), "xyz").unwrap().unwrap();
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["id"], "a");
            assert!(answer["result"].is_object());
        }
        assert_eq!(answer(br#"{"method":"notifications/initialized"}"#, ""), Ok(None));
    }
}
