//! Requests in every framing, valid and invalid, with the expected statuses.

use crate::serve::http::web::limits::{MAX_HEAD_BYTES, MAX_TARGET_BYTES};

/// Some bytes, and the statuses of the responses to them.
pub(crate) struct FramingCase {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Vec<u16>,
}

const START: &str = "POST /mcp HTTP/1.1\r\n";
const HOST: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
/// A complete valid request.
const RIGHT: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nright";
const GET: &str = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";

const OK: &[u16] = &[200];
const BAD: &[u16] = &[400];
const FORBIDDEN: &[u16] = &[403];
const LONG: &[u16] = &[431];

/// Every framing.
pub(crate) fn all() -> Vec<FramingCase> {
    [
        first_lines(),
        fields(),
        lengths(),
        codings(),
        chunks(),
        trailers(),
        versions(),
        hosts(),
        targets(),
        connections(),
        sequences(),
        unfinished(),
        sizes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn framing(bytes: impl Into<Vec<u8>>, expected: &[u16]) -> FramingCase {
    FramingCase { bytes: bytes.into(), expected: expected.to_vec() }
}

/// Framings of one kind: a pattern, the text for its gap, and the expected statuses.
fn filled(pattern: &str, rows: &[(&str, &[u16])]) -> Vec<FramingCase> {
    rows.iter().map(|(text, expected)| framing(pattern.replace('@', text), expected)).collect()
}

fn first_lines() -> Vec<FramingCase> {
    filled(
        "@Host: localhost\r\nContent-Length: 0\r\n\r\n",
        &[
            ("POST /mcp HTTP/1.1\r\n", OK),
            ("POST  /mcp HTTP/1.1\r\n", BAD),
            ("POST /mcp  HTTP/1.1\r\n", BAD),
            ("POST /mcp HTTP/1.1 \r\n", BAD),
            (" POST /mcp HTTP/1.1\r\n", BAD),
            ("POST\t/mcp HTTP/1.1\r\n", BAD),
            ("POST /m cp HTTP/1.1\r\n", BAD),
            ("POST /mcp\r\n", BAD),
            ("POST\r\n", BAD),
            ("POST /mcp HTTP/1.1\n", BAD),
            ("POST /mcp HTTP/1.1\r\r\n", BAD),
            ("POST /m\rcp HTTP/1.1\r\n", BAD),
            ("POST /m\0cp HTTP/1.1\r\n", BAD),
            ("PO\u{7f}ST /mcp HTTP/1.1\r\n", BAD),
            ("post /mcp HTTP/1.1\r\n", &[405]),
            ("PUT /mcp HTTP/1.1\r\n", &[405]),
            ("OPTIONS /mcp HTTP/1.1\r\n", &[405]),
            ("GET /mcp HTTP/1.1\r\n", OK),
            ("HEAD /health HTTP/1.1\r\n", OK),
            ("\r\nPOST /mcp HTTP/1.1\r\n", OK),
            ("\r\n\r\n\r\n\r\nPOST /mcp HTTP/1.1\r\n", OK),
            ("\nPOST /mcp HTTP/1.1\r\n", OK),
            ("\u{16}\u{3}\u{1}\r\n", BAD),
            ("PRI * HTTP/2.0\r\n", BAD),
        ],
    )
}

fn fields() -> Vec<FramingCase> {
    filled(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n@Content-Length: 5\r\n\r\nfield",
        &[
            ("X: y\r\n", OK),
            ("X:y\r\n", OK),
            ("X:\r\n", OK),
            ("X: \t y \t \r\n", OK),
            ("X: a\tb\r\n", OK),
            ("X: caf\u{e9}\r\n", OK),
            ("X!#$%&'*+.^_`|~: y\r\n", OK),
            ("X : y\r\n", BAD),
            ("X\t: y\r\n", BAD),
            (": y\r\n", BAD),
            ("X\r\n", BAD),
            ("X y\r\n", BAD),
            ("X(): y\r\n", BAD),
            ("X: a\r\n folded\r\n", BAD),
            ("X: a\r\n\tfolded\r\n", BAD),
            (" X: a\r\n", BAD),
            ("X: a\r\n \r\n", BAD),
            ("X: a\rb\r\n", BAD),
            ("X: a\r\r\n", BAD),
            ("X\r: a\r\n", BAD),
            ("X: y\n", BAD),
            ("X: y\n\r\n", BAD),
            ("X: a\0b\r\n", BAD),
            ("X\0: b\r\n", BAD),
            ("X: a\u{1}b\r\n", BAD),
            ("X: a\u{7f}b\r\n", BAD),
            ("caf\u{e9}: y\r\n", BAD),
        ],
    )
}

fn lengths() -> Vec<FramingCase> {
    filled(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n@\r\nabcd",
        &[
            ("Content-Length: 4\r\n", OK),
            ("content-length:4\r\n", OK),
            ("CONTENT-LENGTH: \t4 \r\n", OK),
            ("Content-Length: 0004\r\n", OK),
            ("Content-Length: 4\r\nContent-Length: 4\r\n", BAD),
            ("Content-Length: 4\r\nContent-Length: 5\r\n", BAD),
            ("Content-Length: 0\r\ncontent-length: 4\r\n", BAD),
            ("Content-Length: 4, 4\r\n", BAD),
            ("Content-Length: 4,\r\n", BAD),
            ("Content-Length: +4\r\n", BAD),
            ("Content-Length: -4\r\n", BAD),
            ("Content-Length: 0x4\r\n", BAD),
            ("Content-Length: 4x\r\n", BAD),
            ("Content-Length: 4 4\r\n", BAD),
            ("Content-Length: \"4\"\r\n", BAD),
            ("Content-Length: 4.0\r\n", BAD),
            ("Content-Length:\r\n", BAD),
            ("Content-Length: \r\n", BAD),
            ("Content-Length : 4\r\n", BAD),
            ("Content-Length\t: 4\r\n", BAD),
            ("Content-Length: 4\n", BAD),
            ("Content-Length: 1048577\r\n", &[413]),
            ("Content-Length: 999999999999999999\r\n", &[413]),
            ("Content-Length: 9999999999999999999\r\n", BAD),
            ("Content-Length: 99999999999999999999\r\n", BAD),
        ],
    )
}

fn codings() -> Vec<FramingCase> {
    filled(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n@\r\n4\r\nabcd\r\n0\r\n\r\n",
        &[
            ("Transfer-Encoding: chunked\r\n", OK),
            ("transfer-encoding:CHUNKED\r\n", OK),
            ("Transfer-Encoding: \tchunked \r\n", OK),
            ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", BAD),
            ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", BAD),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", BAD),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", BAD),
            ("Transfer-Encoding: identity\r\n", BAD),
            ("Transfer-Encoding: gzip, chunked\r\n", BAD),
            ("Transfer-Encoding: chunked, gzip\r\n", BAD),
            ("Transfer-Encoding: chunked, chunked\r\n", BAD),
            ("Transfer-Encoding: xchunked\r\n", BAD),
            ("Transfer-Encoding: chunked;q=1\r\n", BAD),
            ("Transfer-Encoding: \"chunked\"\r\n", BAD),
            ("Transfer-Encoding: \u{b}chunked\r\n", BAD),
            ("Transfer-Encoding:\r\n", BAD),
            ("Transfer-Encoding : chunked\r\n", BAD),
            ("Transfer-Encoding\r\n : chunked\r\n", BAD),
            ("Transfer-Encoding:\r\n chunked\r\n", BAD),
        ],
    )
}

fn chunks() -> Vec<FramingCase> {
    let long = format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(20_000));
    let mut framings = filled(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n@",
        &[
            ("0\r\n\r\n", OK),
            ("3\r\nabc\r\n0\r\n\r\n", OK),
            ("003\r\nabc\r\n000\r\n\r\n", OK),
            ("1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", OK),
            ("A\r\n0123456789\r\n0\r\n\r\n", OK),
            ("a\r\n0123456789\r\n0\r\n\r\n", OK),
            ("3;name\r\nabc\r\n0\r\n\r\n", OK),
            ("3;name=value;other=\"x\"\r\nabc\r\n0;last\r\n\r\n", OK),
            ("3 \r\nabc\r\n0\r\n\r\n", OK),
            ("3\t;x\r\nabc\r\n0\r\n\r\n", OK),
            (" 3\r\nabc\r\n0\r\n\r\n", BAD),
            ("\r\nabc\r\n0\r\n\r\n", BAD),
            ("+3\r\nabc\r\n0\r\n\r\n", BAD),
            ("-3\r\nabc\r\n0\r\n\r\n", BAD),
            ("0x3\r\nabc\r\n0\r\n\r\n", BAD),
            ("g\r\nabc\r\n0\r\n\r\n", BAD),
            ("3x\r\nabc\r\n0\r\n\r\n", BAD),
            ("3 3\r\nabc\r\n0\r\n\r\n", BAD),
            ("3\nabc\r\n0\r\n\r\n", BAD),
            ("3\rabc\r\n0\r\n\r\n", BAD),
            ("3\r\nabc\n0\r\n\r\n", BAD),
            ("3\r\nabcd\r\n0\r\n\r\n", BAD),
            ("3\r\nab\r\n0\r\n\r\n", BAD),
            ("3\r\nabc0\r\n\r\n", BAD),
            ("3;x\nabc\r\n0\r\n\r\n", BAD),
            ("1000000000000000\r\nabc\r\n0\r\n\r\n", BAD),
            ("fffffffffffffffff\r\nabc\r\n0\r\n\r\n", BAD),
            (&long, BAD),
        ],
    );
    let large = format!("100001\r\n{}\r\n0\r\n\r\n", "x".repeat(0x10_0001));
    let head = format!("{HOST}Transfer-Encoding: chunked\r\n\r\n");
    framings.push(framing(format!("{head}{large}"), &[413]));
    framings
}

fn trailers() -> Vec<FramingCase> {
    let many = "X: y\r\n".repeat(200);
    let long = format!("X: {}\r\n", "y".repeat(40_000));
    filled(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n@\r\n",
        &[
            ("X: y\r\n", OK),
            ("X: y\r\nZ: y\r\n", OK),
            ("Content-Length: 44\r\n", OK),
            ("Transfer-Encoding: chunked\r\n", OK),
            ("Host: evil.example\r\n", OK),
            ("X: y\n", BAD),
            ("\n", BAD),
            (&many, BAD),
            (&long, BAD),
        ],
    )
}

fn versions() -> Vec<FramingCase> {
    filled(
        "POST /mcp @\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd",
        &[
            ("HTTP/1.1", OK),
            ("HTTP/1.0", OK),
            ("HTTP/1.0\r\nConnection: keep-alive", OK),
            ("HTTP/1.2", BAD),
            ("HTTP/1.10", BAD),
            ("HTTP/0.9", BAD),
            ("HTTP/2.0", BAD),
            ("HTTP/3", BAD),
            ("http/1.1", BAD),
            ("HTTP/1,1", BAD),
            ("HTTPS/1.1", BAD),
        ],
    )
}

fn hosts() -> Vec<FramingCase> {
    filled(
        "POST /mcp HTTP/1.1\r\n@Content-Length: 4\r\n\r\nabcd",
        &[
            ("Host: localhost\r\n", OK),
            ("Host: localhost:8080\r\n", OK),
            ("host:LOCALHOST\r\n", OK),
            ("Host: 127.0.0.1\r\n", OK),
            ("Host: [::1]:1\r\n", OK),
            ("", FORBIDDEN),
            ("Host:\r\n", FORBIDDEN),
            ("Host: localhost\r\nHost: localhost\r\n", FORBIDDEN),
            ("Host: localhost\r\nHost: evil.example\r\n", FORBIDDEN),
            ("Host: evil.example\r\n", FORBIDDEN),
            ("Host: localhost, evil.example\r\n", FORBIDDEN),
            ("Host: localhost@evil.example\r\n", FORBIDDEN),
            ("Host: localhost evil.example\r\n", FORBIDDEN),
        ],
    )
}

fn targets() -> Vec<FramingCase> {
    let query = |length: usize| format!("/mcp?{}", "q".repeat(length - "/mcp?".len()));
    let (fits, long, longer) =
        (query(MAX_TARGET_BYTES), query(MAX_TARGET_BYTES + 1), query(20_000));
    filled(
        "POST @ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd",
        &[
            ("/mcp?a=b", OK),
            ("/mcp?", OK),
            ("http://localhost/mcp", OK),
            ("HTTP://localhost/mcp", OK),
            ("http://localhost:80/mcp", FORBIDDEN),
            ("http://evil.example/mcp", FORBIDDEN),
            ("http://localhost@evil.example/mcp", FORBIDDEN),
            ("//mcp", &[404]),
            ("/mcp/", &[404]),
            ("/%6dcp", &[404]),
            ("/MCP", &[404]),
            ("/a/../mcp", &[404]),
            ("/mcp#fragment", OK),
            ("mcp", FORBIDDEN),
            ("*", &[404]),
            ("localhost:80", FORBIDDEN),
            ("/m\u{e9}", &[404]),
            (&fits, OK),
            (&long, &[414]),
            (&longer, &[414]),
        ],
    )
}

fn connections() -> Vec<FramingCase> {
    // Another request behind it shows whether the connection continues.
    let pattern = format!("{HOST}@Content-Length: 4\r\n\r\nabcd{RIGHT}");
    filled(
        &pattern,
        &[
            ("Connection: close\r\n", OK),
            ("connection: Close\r\n", OK),
            ("Connection: keep-alive, close\r\n", OK),
            ("Connection: keep-alive\r\nConnection: close\r\n", OK),
            ("Connection: keep-alive\r\n", &[200, 200]),
            ("Connection: Keep-Alive\r\n", &[200, 200]),
            ("Connection: upgrade\r\nUpgrade: h2c\r\n", &[200, 200]),
            ("Upgrade: websocket\r\n", &[200, 200]),
            ("Expect: 100-continue\r\n", &[100, 200, 200]),
            ("Expect: something\r\n", &[200, 200]),
            ("TE: trailers\r\n", &[200, 200]),
            ("X-Do: panic\r\n", &[500, 200]),
        ],
    )
}

fn sequences() -> Vec<FramingCase> {
    let chunked = format!("{HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    let two_lengths = format!("{HOST}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd");
    let rows: [(String, &[u16]); 12] = [
        (RIGHT.repeat(2), &[200, 200]),
        (RIGHT.repeat(5), &[200, 200, 200, 200, 200]),
        (format!("{RIGHT}{GET}{RIGHT}"), &[200, 200, 200]),
        (format!("{GET}{RIGHT}"), &[200, 200]),
        (format!("{RIGHT}{chunked}{RIGHT}"), &[200, 200, 200]),
        (format!("{chunked}\r\n{RIGHT}"), &[200, 200]),
        (format!("{RIGHT}\r\n{RIGHT}"), &[200, 200]),
        (format!("{RIGHT}\n\n{RIGHT}"), &[200, 200]),
        (format!("{RIGHT}garbage\r\n\r\n{RIGHT}"), &[200, 400]),
        (format!("{RIGHT}{two_lengths}{RIGHT}"), &[200, 400]),
        (format!("{two_lengths}{RIGHT}"), BAD),
        // A request without a length has no body: the next request follows.
        (format!("{HOST}\r\n{RIGHT}"), &[200, 200]),
    ];
    rows.into_iter().map(|(text, expected)| framing(text, expected)).collect()
}

fn unfinished() -> Vec<FramingCase> {
    let chunked = format!("{HOST}Transfer-Encoding: chunked\r\n\r\n");
    let rows: [(String, &[u16]); 13] = [
        (String::new(), &[]),
        ("\r\n".to_owned(), &[]),
        ("P".to_owned(), &[]),
        ("POST /mcp".to_owned(), &[]),
        (START.to_owned(), &[]),
        (HOST.to_owned(), &[]),
        (format!("{RIGHT}POST /mcp"), OK),
        (format!("{HOST}Content-Length: 4\r\n\r\n"), BAD),
        (format!("{HOST}Content-Length: 4\r\n\r\nabc"), BAD),
        (format!("{HOST}Content-Length: 100000\r\n\r\n{}", "x".repeat(99_999)), BAD),
        (format!("{chunked}3\r\nab"), BAD),
        (format!("{chunked}3\r\nabc\r\n"), BAD),
        (format!("{chunked}3\r\nabc\r\n0\r\n"), BAD),
    ];
    rows.into_iter().map(|(text, expected)| framing(text, expected)).collect()
}

/// Sizes around each limit.
fn sizes() -> Vec<FramingCase> {
    let request = |headers: &str| format!("{HOST}{headers}Content-Length: 5\r\n\r\nsized");
    let head = |length: usize| {
        let rest = request("X: \r\n").len() - "sized".len();
        request(&format!("X: {}\r\n", "v".repeat(length - rest)))
    };
    let named = |length: usize| {
        let rest = request(": y\r\n").len() - "sized".len();
        request(&format!("{}: y\r\n", "x".repeat(length - rest)))
    };
    let padded = |length: usize| {
        let rest = request("X: y\r\n").len() - "sized".len();
        request(&format!("X: {}y\r\n", " ".repeat(length - rest)))
    };
    // The request already has two headers.
    let many = |count: usize| request(&"X: y\r\n".repeat(count - 2));
    let target = format!("POST /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(40_000));
    let mut framings = Vec::new();
    for (length, expected) in [
        (8 * 1024, OK),
        (MAX_HEAD_BYTES - 2, OK),
        (MAX_HEAD_BYTES - 1, OK),
        (MAX_HEAD_BYTES, OK),
        (MAX_HEAD_BYTES + 1, LONG),
        (MAX_HEAD_BYTES + 2, LONG),
        (MAX_HEAD_BYTES + 3, LONG),
        (33_000, LONG),
        (MAX_HEAD_BYTES + 8 * 1024, LONG),
        (MAX_HEAD_BYTES + 8 * 1024 + 24, LONG),
        (65_536, LONG),
        (400_000, LONG),
    ] {
        framings.push(framing(head(length), expected));
        framings.push(framing(format!("{RIGHT}{}", head(length)), &[OK, expected].concat()));
    }
    for (length, expected) in [(MAX_HEAD_BYTES, OK), (MAX_HEAD_BYTES + 1, LONG), (33_000, LONG)] {
        framings.push(framing(named(length), expected));
        framings.push(framing(padded(length), expected));
    }
    for (count, expected) in
        [(47, OK), (48, OK), (49, OK), (99, OK), (100, OK), (101, LONG), (200, LONG)]
    {
        framings.push(framing(many(count), expected));
    }
    framings.push(framing(target, LONG));
    framings
}
