//! Tests for the rows of the bad-input catalogue (security design, section 4.a) that this layer decides.
//!
//! "-32700" there is a syntax error here. "-32600" is a limit, a repeated key, or a field that the envelope check
//! rejects; the test then compares the fields that the check reads.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    Fields, Frame, Id, IdError, Object, ScanError, ScanErrorKind, ScanLimits, scan, unquote,
};
use crate::framing::sse::{SseEventRef, encode_event};
use crate::framing::{FramedLine, LineDecoder, SseDecoder};

fn read(text: &str) -> Result<Frame<'_>, ScanError> {
    scan(text.as_bytes(), &ScanLimits::default())
}

fn one(text: &str) -> Fields<'_> {
    match read(text) {
        Ok(Frame::One(fields)) => fields,
        other => panic!("{text}: {other:?}"),
    }
}

fn refusal(bytes: impl AsRef<[u8]>) -> ScanErrorKind {
    let bytes = bytes.as_ref();
    match scan(bytes, &ScanLimits::default()) {
        Err(error) => error.kind,
        Ok(frame) => panic!("{}: {frame:?}", String::from_utf8_lossy(bytes)),
    }
}

fn is_syntax(bytes: impl AsRef<[u8]>) -> bool {
    matches!(refusal(bytes), reason @ ScanErrorKind::Syntax(_) if reason.is_syntax())
}

#[test]
fn a01_nothing_but_whitespace() {
    for text in ["", " ", "\r\n\t "] {
        assert_eq!(refusal(text), ScanErrorKind::Empty);
    }
    assert!(ScanErrorKind::Empty.is_syntax());
}

#[test]
fn a02_a_truncated_message() {
    let whole = r#"{"jsonrpc":"2.0","id":[1,-2.5e3,true,null,"\u00e9"]}"#;
    assert!(read(whole).is_ok());
    for length in 1..whole.len() {
        assert!(is_syntax(&whole[..length]), "{}", &whole[..length]);
    }
}

#[test]
fn a03_bytes_after_the_value() {
    for text in ["{}x", "{}{}", "{} {}", "1 2", "[],", "null\0", "{}]"] {
        assert_eq!(refusal(text), ScanErrorKind::Trailing, "{text}");
    }
    assert!(ScanErrorKind::Trailing.is_syntax());
    assert!(read(" {} \r\n\t").is_ok());
}

#[test]
fn a04_almost_json() {
    let values = ["[1,]", "[,1]", "[1 2]", "{\"a\":1,}", "{,}", "{\"a\" 1}", "{\"a\"}", "{a:1}"];
    let words =
        ["NaN", "Infinity", "-Infinity", "True", "nul", "// x\n1", "/**/1", "'a'", "[}", "{]"];
    let numbers = ["01", "-01", "+1", ".5", "-", "1.", "1.e5", "1e", "1e+", "--1", "-a"];
    for text in values.into_iter().chain(words).chain(numbers) {
        assert!(is_syntax(text), "{text}");
    }
    assert_eq!(refusal("0x10"), ScanErrorKind::Trailing);
    assert_eq!(refusal("1/**/"), ScanErrorKind::Trailing);
}

#[test]
fn a05_a_byte_order_mark() {
    assert_eq!(refusal("\u{feff}{}"), ScanErrorKind::ByteOrderMark);
    assert!(ScanErrorKind::ByteOrderMark.is_syntax());
    assert!(is_syntax(" \u{feff}{}"));
}

#[test]
fn a06_invalid_utf8() {
    let sequences: [&[u8]; 5] =
        [b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80"];
    for sequence in sequences {
        let bytes = [b"{\"a\":\"", sequence, b"\"}"].concat();
        let error = scan(&bytes, &ScanLimits::default()).unwrap_err();
        assert_eq!(error, ScanError { kind: ScanErrorKind::NotUtf8, at: 6 });
    }
    assert_eq!(refusal(b"\"\xf0\x9f\x98"), ScanErrorKind::NotUtf8);
    assert!(ScanErrorKind::NotUtf8.is_syntax());
}

#[test]
fn a07_lone_surrogates() {
    let halves = [r"\ud800", r"\udc00", r"\ude00\ud83d", r"\ud800x", r"\ud800\n", r"\uD83D\ud83d"];
    for half in halves {
        assert_eq!(
            refusal(format!("{{\"a\":\"{half}\"}}")),
            ScanErrorKind::LoneSurrogate,
            "{half}"
        );
        assert_eq!(refusal(format!("{{\"{half}\":1}}")), ScanErrorKind::LoneSurrogate, "{half}");
    }
    assert!(ScanErrorKind::LoneSurrogate.is_syntax());
    assert_eq!(one(r#"{"params":"\ud83d\ude00"}"#).params, Some(r#""\ud83d\ude00""#));
}

#[test]
fn a08_raw_control_characters() {
    for control in 0..0x20_u8 {
        assert!(is_syntax([b'"', control, b'"']), "{control:#x}");
        assert!(is_syntax([b'"', b'\\', control, b'"']), "{control:#x}");
    }
    for escape in [r"\x", r"\'", r"\u12g4", r"\u+123", r"\U0041"] {
        assert!(is_syntax(format!("\"{escape}\"")), "{escape}");
    }
    assert_eq!(one(r#"{"method":"\u0000"}"#).method, Some(r#""\u0000""#));
}

#[test]
fn a10_as_many_values_as_allowed_and_one_more() {
    let with = |count: usize, value: &str| {
        let values = alloc::vec![value; count - 2].join(",");
        format!("{{\"params\":[{values}]}}")
    };
    for value in ["1", "{}"] {
        assert!(read(&with(200_000, value)).is_ok());
        assert_eq!(refusal(with(200_001, value)), ScanErrorKind::TooManyNodes);
    }
    assert!(!ScanErrorKind::TooManyNodes.is_syntax());
}

#[test]
fn a10_as_deep_as_allowed_and_one_more() {
    let nested =
        |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(read(&nested(128)).is_ok());
    assert_eq!(refusal(nested(129)), ScanErrorKind::TooDeep);
    assert_eq!(refusal("[".repeat(1_000_000)), ScanErrorKind::TooDeep);
    assert_eq!(refusal("{\"a\":".repeat(129)), ScanErrorKind::TooDeep);
    assert!(!ScanErrorKind::TooDeep.is_syntax());
}

#[test]
fn a11_a_repeated_key_of_the_message() {
    let fields = one(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#);
    assert!(fields.repeated);
    assert_eq!(fields.id, Some("1"));
    for second in [r#""id":1"#, r#""\u0069d":2"#, r#""id":null"#] {
        let text = format!(r#"{{"id":1,"method":"a",{second}}}"#);
        let fields = one(&text);
        assert!(fields.repeated && fields.is_object);
        assert_eq!(fields.id, None);
    }
}

#[test]
fn a12_a_repeated_key_anywhere_below() {
    let repeating = [
        r#"{"name":1,"name":2}"#,
        r#"{"name":1,"n\u0061me":2}"#,
        r#"{"\u00e9":1,"é":2}"#,
        r#"{"a":[[{"b":{"":1,"":2}}]]}"#,
        r#"[{"x":{"y":1,"z":2,"y":3}},{}]"#,
    ];
    for params in repeating {
        let text = format!(r#"{{"id":5,"params":{params}}}"#);
        assert!(one(&text).repeated, "{params}");
        assert_eq!(one(&text).id, Some("5"));
    }
    assert!(!one(r#"{"id":1,"params":{"id":1,"a":{"id":1},"b":[{"id":1},{"id":1}]}}"#).repeated);
}

#[test]
fn a12_a_repeated_key_among_very_many() {
    let mut members: Vec<_> = (0..100_000).map(|index| format!("\"k{index}\":0")).collect();
    assert!(!one(&format!("{{\"params\":{{{}}}}}", members.join(","))).repeated);
    members.push(String::from("\"\\u006b77\":0"));
    assert!(one(&format!("{{\"params\":{{{}}}}}", members.join(","))).repeated);
}

#[test]
fn a13_keys_that_are_confusable() {
    let fields = one(r#"{"Method":1,"PARAMS":2,"paramſ":3,"İd":4,"ID":5,"method ":6,"":7}"#);
    assert_eq!(fields, Fields { is_object: true, ..Fields::default() });
    assert_eq!(one(r#"{"\u006dethod":"x"}"#).method, Some("\"x\""));
}

#[test]
fn a16_the_protocol_marker_is_shown_verbatim() {
    assert_eq!(one(r#"{"id":1}"#).jsonrpc, None);
    for marker in ["\"1.0\"", "2.0", "\" 2.0\"", "\"2.0\"", "null"] {
        let text = format!(r#"{{"jsonrpc": {marker} ,"id":1}}"#);
        assert_eq!(one(&text).jsonrpc, Some(marker));
        assert_eq!(one(&text).id, Some("1"));
    }
}

#[test]
fn a17_and_a18_values_that_are_no_ids() {
    assert_eq!(one(r#"{"method":"a"}"#).id, None);
    assert_eq!(one(r#"{"id":null}"#).id.map(Id::parse), Some(Err(IdError::Null)));
    for id in ["true", "{}", "[]", "1.5", "1e2", "1.0"] {
        let text = format!(r#"{{"id":{id}}}"#);
        assert_eq!(one(&text).id.map(Id::parse), Some(Err(IdError::NotStringOrInteger)), "{id}");
    }
}

#[test]
fn a19_and_a21_ids_are_returned_byte_for_byte() {
    let integers = ["-1", "0", "9007199254740991", "9007199254740993", "18446744073709551615"];
    let limits = ["-9223372036854775808", "9223372036854775807"];
    let strings = [r#""""#, r#""\n""#, r#""😀\"\u001b[31m""#];
    for id in integers.into_iter().chain(limits).chain(strings) {
        let text = format!(r#"{{"id" : {id} }}"#);
        let parsed = one(&text).id.map(Id::parse);
        assert_eq!(parsed.and_then(Result::ok).as_ref().map(Id::raw), Some(id));
    }
    let huge = format!(r#"{{"id":"{}"}}"#, "x".repeat(64 * 1024));
    assert_eq!(one(&huge).id.map(Id::parse), Some(Err(IdError::TooLong)));
}

#[test]
fn a27_params_that_are_no_object() {
    for params in ["[1]", "\"{}\"", "1", "null"] {
        let text = format!(r#"{{"method":"a","params":{params}}}"#);
        assert_eq!(one(&text).params, Some(params));
        assert!(Object::new(params).is_none());
    }
}

#[test]
fn a28_a_hybrid_shows_all_its_members() {
    let fields = one(r#"{"method":"a","result":{},"error":null,"id":1}"#);
    assert_eq!(fields.method.and_then(unquote).as_deref(), Some("a"));
    assert_eq!((fields.result, fields.error), (Some("{}"), Some("null")));
}

#[test]
fn a31_batches_are_cut_into_messages() {
    assert_eq!(read(" [ ] "), Ok(Frame::Batch(Vec::new())));
    let Ok(Frame::Batch(messages)) =
        read(r#"[{"id":1},2,[{"id":3}], {"a":{"b":1,"b":2}},{"id":5}]"#)
    else {
        panic!("no batch");
    };
    let ids: Vec<_> = messages.iter().map(|fields| (fields.is_object, fields.id)).collect();
    assert_eq!(
        ids,
        [(true, Some("1")), (false, None), (false, None), (true, None), (true, Some("5"))]
    );
    assert!(messages.iter().map(|fields| fields.repeated).eq([false, false, false, true, false]));
    let long = |count| format!("[{}]", alloc::vec!["{}"; count].join(","));
    assert!(read(&long(100)).is_ok());
    assert_eq!(refusal(long(101)), ScanErrorKind::BatchTooLong);
    assert!(!ScanErrorKind::BatchTooLong.is_syntax());
}

#[test]
fn scalars_are_one_value_that_is_no_object() {
    for text in ["1", "\"a\"", " null ", "-0.0e-0", "true", "false"] {
        assert_eq!(one(text), Fields::default(), "{text}");
    }
}

#[test]
fn a37_the_longest_line_and_one_byte_more() {
    const LIMIT: usize = 1024 * 1024;
    let mut lines = LineDecoder::new(LIMIT);
    let mut seen = Vec::new();
    for length in [LIMIT, LIMIT + 1, 50 * LIMIT, 1] {
        for start in (0..length).step_by(4096) {
            lines.feed(&[b'1'; 4096][..(length - start).min(4096)], |line| seen.extend(size(line)));
        }
        lines.feed(b"\r\n", |line| seen.extend(size(line)));
    }
    assert_eq!(seen, [Some(LIMIT), None, None, Some(1)]);
}

fn size(line: FramedLine<'_>) -> Option<Option<usize>> {
    match line {
        FramedLine::Complete(bytes) => Some(Some(bytes.len())),
        FramedLine::TooLong(_) => Some(None),
        FramedLine::TooLongEnd(_) => None,
    }
}

#[test]
fn a38_each_line_of_pretty_printed_json_is_refused_separately() {
    let mut refused = 0;
    LineDecoder::new(99).feed(b"{\r\n\n  \"id\":\n  1\n}\n{}\n", |line| {
        let FramedLine::Complete(bytes) = line else { panic!("too long") };
        refused += usize::from(scan(bytes, &ScanLimits::default()).is_err());
    });
    assert_eq!(refused, 3);
}

#[test]
fn a56_a_result_that_imitates_an_event_stays_one_event() {
    let mut out = Vec::new();
    encode_event(&mut out, &SseEventRef { data: "x\n\ndata: {}\n\r\n", ..SseEventRef::default() });
    let mut events = 0;
    SseDecoder::new(99).feed(&out, |event| events += usize::from(event.is_ok()));
    assert_eq!(events, 1);
}
