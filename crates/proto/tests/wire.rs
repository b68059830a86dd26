//! Properties of the wire and framing layers, compared with `serde_json` and for any split of the bytes.

use std::collections::HashSet;

use creole_proto::framing::sse::encode_event;
use creole_proto::framing::{FramedLine, LineDecoder, SseDecoder, SseError, SseEvent, SseEventRef};
use creole_proto::wire::{
    Fields, Frame, Id, Object, Raw, ScanLimits, canonical, quote, scan, unquote,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use serde_json::Value;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scan_accepts_what_serde_json_accepts_among_arbitrary_bytes(bytes in vec(any::<u8>(), 0..40)) {
        agrees_with_serde(&bytes);
    }

    #[test]
    fn scan_accepts_what_serde_json_accepts_among_strings_of_json_pieces(bytes in pieces()) {
        agrees_with_serde(&bytes);
    }

    #[test]
    fn scan_accepts_what_serde_json_accepts_among_damaged_json(
        value in json(), seed: u64, damage in vec((any::<Index>(), select(DAMAGE)), 0..3)
    ) {
        let mut bytes = spelled(&value, seed).into_bytes();
        for (index, byte) in damage {
            let index = index.index(bytes.len() + 1);
            match byte {
                Some(byte) => bytes.insert(index, byte),
                None if index < bytes.len() => drop(bytes.remove(index)),
                None => {}
            }
        }
        agrees_with_serde(&bytes);
    }

    #[test]
    fn the_fields_shown_are_those_serde_json_sees(message in message(), seed: u64) {
        let text = spelled(&message, seed);
        let Ok(Frame::One(fields)) = scan(text.as_bytes(), &ScanLimits::default()) else {
            panic!("refused {text}");
        };
        assert!(fields.is_object && !fields.repeated);
        for (key, raw) in known(&fields) {
            assert_eq!(raw.map(parsed).as_ref(), message.get(key), "{key} of {text}");
        }
    }

    #[test]
    fn a_batch_is_its_messages_one_by_one(messages in vec((message(), any::<u64>()), 0..4)) {
        let texts: Vec<_> = messages.iter().map(|(value, seed)| spelled(value, *seed)).collect();
        let alone: Vec<_> = texts.iter().map(|text| scan(text.as_bytes(), &ScanLimits::default())).collect();
        let batch = format!(" [ {} ]", texts.join(" , "));
        let Ok(Frame::Batch(fields)) = scan(batch.as_bytes(), &ScanLimits::default()) else {
            panic!("refused {batch}");
        };
        assert!(alone.into_iter().eq(fields.into_iter().map(|fields| Ok(Frame::One(fields)))));
    }

    #[test]
    fn a_duplicate_key_is_found_at_every_depth(value in json(), seed: u64, key in "\\PC{0,3}") {
        let (first, second) = (spelled(&Value::from(&*key), seed), spelled(&Value::from(&*key), !seed));
        let inner = spelled(&value, seed);
        let text = format!(r#"{{"id":1,"params":[{inner},{{{first}:1,"other":2,{second}:3}}]}}"#);
        let Ok(Frame::One(fields)) = scan(text.as_bytes(), &ScanLimits::default()) else {
            panic!("refused {text}");
        };
        assert!(fields.repeated, "{text}");
    }

    #[test]
    fn an_object_has_the_members_that_serde_json_sees(
        members in btree_map(key(), json(), 0..6), seed: u64, absent in "\\PC{9,12}"
    ) {
        let value: Value = members.into_iter().collect();
        let text = spelled(&value, seed);
        let object = Object::new(&text).unwrap();
        let seen: Value =
            object.members().map(|(key, raw)| (key.into_owned(), parsed(raw))).collect();
        assert_eq!(seen, value);
        assert_eq!(object.get(&absent), None);
        for (key, inner) in value.as_object().unwrap() {
            assert_eq!(object.get(key).map(parsed).as_ref(), Some(inner));
            assert_eq!(object.string(key).ok().flatten().as_deref(), inner.as_str());
            assert_eq!(object.bool(key).ok().flatten(), inner.as_bool());
            assert_eq!(object.object(key).is_ok(), inner.is_object());
            let elements = object.array(key).ok().flatten();
            let elements = elements.map(|raw| raw.into_iter().map(parsed).collect::<Vec<_>>());
            assert_eq!(elements.as_ref(), inner.as_array());
        }
    }

    #[test]
    fn no_text_makes_an_object_or_a_canonical_form_panic(text in any::<String>(), bytes in pieces()) {
        for text in [text, String::from_utf8_lossy(&bytes).into_owned()] {
            let text = format!("{{{text}");
            let object = Object::new(&text).unwrap();
            assert!(object.members().count() <= text.len());
            canonical(&text);
        }
    }

    #[test]
    fn quoting_and_unquoting_are_inverse(text: String, seed: u64) {
        let mut token = Vec::new();
        quote(&mut token, &text);
        let token = String::from_utf8(token).unwrap();
        assert_eq!(unquote(&token).unwrap(), text);
        assert_eq!(serde_json::from_str::<String>(&token).unwrap(), text);
        assert_eq!(unquote(&spelled(&Value::from(&*text), seed)).unwrap(), text);
    }

    #[test]
    fn an_id_is_returned_verbatim_and_equals_itself_in_any_spelling(text: String, seed: u64, number: i64) {
        let spelling = spelled(&Value::from(&*text), seed);
        let id = Id::parse(&spelling).unwrap();
        assert_eq!(id.raw(), spelling);
        assert_eq!(id, Id::from_text(&text));
        assert!(HashSet::from([id.clone()]).contains(&Id::from_text(&text)));
        let number = number.to_string();
        assert_eq!(Id::parse(&number).unwrap().raw(), number);
        assert_ne!(Id::parse(&number).unwrap(), Id::from_text(&number));
    }

    #[test]
    fn ids_are_ordered_like_the_integers_they_are(a: i64, b: i64) {
        let id = |number: i64| Id::parse(&number.to_string()).unwrap();
        assert_eq!(id(a).cmp(&id(b)), a.cmp(&b));
    }

    #[test]
    fn raw_text_survives_serde(value in json(), seed: u64) {
        let text = spelled(&value, seed);
        let raw = Raw::parse(&text).unwrap();
        let output = serde_json::to_string(&[&raw]).unwrap();
        assert_eq!(output, format!("[{text}]"));
        assert_eq!(serde_json::from_str::<[Raw; 1]>(&output).unwrap(), [Raw::parse(text.trim()).unwrap()]);
        assert_eq!(raw.decode::<Value>().unwrap(), value);
    }

    #[test]
    fn the_canonical_form_depends_on_the_value_alone(value in json(), one: u64, two: u64) {
        let form = canonical(&spelled(&value, one));
        assert_eq!(form, canonical(&spelled(&value, two)));
        assert_eq!(form, canonical(&form));
        assert_eq!(parsed(&form), value);
    }

    #[test]
    fn every_split_of_a_stream_gives_the_same_lines(
        stream in vec(select(b"ab \r\n\n\t".as_slice()), 0..80), splits in vec(any::<Index>(), 0..8), limit in 0_usize..8
    ) {
        let expected = lines_by_definition(&stream, limit);
        assert_eq!(lines(limit, [&*stream]), expected);
        assert_eq!(lines(limit, stream.chunks(1)), expected);
        assert_eq!(lines(limit, cut(&stream, &splits)), expected);
    }

    #[test]
    fn any_cutting_of_a_stream_gives_the_same_events(
        stream in vec(select(SSE_PIECES), 0..30), splits in vec(any::<Index>(), 0..8), limit in 0_usize..40
    ) {
        let stream = stream.concat();
        let whole = events(limit, [&*stream]);
        assert_eq!(events(limit, stream.chunks(1)), whole);
        assert_eq!(events(limit, cut(&stream, &splits)), whole);
    }

    #[test]
    fn decoding_undoes_encoding(sent in vec(event(), 0..4), splits in vec(any::<Index>(), 0..8)) {
        let mut stream = Vec::new();
        sent.iter().for_each(|event| encode_event(&mut stream, &event.into()));
        let received = events(1 << 20, cut(&stream, &splits));
        assert!(received.into_iter().eq(sent.into_iter().map(Ok)));
    }

    #[test]
    fn one_event_is_sent_whatever_it_contains(id: String, event: String, data: String, hostile in vec(select(SSE_PIECES), 0..9)) {
        let data = [data, String::from_utf8_lossy(&hostile.concat()).into_owned()].concat();
        let mut stream = Vec::new();
        encode_event(&mut stream, &SseEventRef { id: Some(&id), event: Some(&event), data: &data, retry: None });
        let received = events(1 << 20, [&*stream]);
        let [Ok(received)] = &received[..] else { panic!("{received:?}") };
        assert_eq!(received.data, data.replace("\r\n", "\n").replace('\r', "\n"));
    }
}

const DAMAGE: &[Option<u8>] = &[
    None,
    None,
    None,
    Some(b'"'),
    Some(b'\\'),
    Some(b','),
    Some(b':'),
    Some(b'{'),
    Some(b']'),
    Some(b'0'),
    Some(b'-'),
    Some(b'.'),
    Some(b'e'),
    Some(b'u'),
    Some(b' '),
    Some(0),
    Some(b'\n'),
    Some(0xc3),
    Some(0xa0),
];

const SSE_PIECES: &[&[u8]] = &[
    b"data",
    b"data: ",
    b"id:",
    b"event: ",
    b"retry: 7",
    b": c",
    b":",
    b" ",
    b"x",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xff",
    "é".as_bytes(),
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\"a\"",
        b"\"id\":",
        b"1",
        b"0",
        b"-",
        b".5",
        b"e9",
        b"true",
        b"null",
        b"fals",
        b" ",
        b"\n",
        b"\\",
        b"\\u0061",
        b"\\ud83d",
        b"\\ude00",
        b"\\n",
        b"\x00",
        "é".as_bytes(),
        b"\xff",
        b"1e400",
        b"[{}]",
        b"\"\":[]",
    ];
    vec(select(PIECES), 0..12).prop_map(|pieces| pieces.concat())
}

fn key() -> impl Strategy<Value = String> {
    const CHARACTERS: &[char] =
        &['a', 'a', 'b', 'c', '"', '\\', '/', '\0', '\n', '\u{7f}', 'é', '€', '\u{fb33}', '😀'];
    vec(select(CHARACTERS), 0..4).prop_map(String::from_iter)
}

fn json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Fractions that serde_json parses exactly, which it does not guarantee for all.
        any::<i16>().prop_map(|number| Value::from(f64::from(number) / 8.0 + 0.0625)),
        key().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 20, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(key(), inner, 0..16).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn message() -> impl Strategy<Value = Value> {
    let keys = select(&["jsonrpc", "id", "method", "params", "result", "error", "Id", "other"][..]);
    btree_map(keys.prop_map(String::from), json(), 0..6)
        .prop_map(|members| members.into_iter().collect())
}

fn event() -> impl Strategy<Value = SseEvent> {
    let name = || proptest::option::of("[^\r\n\0]{0,6}");
    let data =
        proptest::string::string_regex("[^\r]{0,9}(\n\n?data: x)?").expect("a valid pattern");
    (name(), name(), data, any::<Option<u64>>()).prop_map(|(id, event, data, retry)| SseEvent {
        id,
        event,
        data,
        retry,
    })
}

/// `value` written with whitespace, escapes and an order of keys that follow from `seed`.
fn spelled(value: &Value, seed: u64) -> String {
    let mut text = String::new();
    Speller { dice: seed | 1, text: &mut text }.value(value);
    text
}

struct Speller<'a> {
    dice: u64,
    text: &'a mut String,
}

impl Speller<'_> {
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % sides
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\n", "\t\r\n"][self.roll(6) as usize];
        self.text.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(values) => {
                let mut separator = "[";
                for value in values {
                    self.text.push_str(separator);
                    self.space();
                    self.value(value);
                    self.space();
                    separator = ",";
                }
                self.text.push_str(if values.is_empty() { "[ ]" } else { "]" });
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let turn = self.roll(members.len() as u64 + 1) as usize;
                members.rotate_left(turn);
                let mut separator = "{";
                for (key, value) in &members {
                    self.text.push_str(separator);
                    self.space();
                    self.string(key);
                    self.space();
                    self.text.push(':');
                    self.space();
                    self.value(value);
                    self.space();
                    separator = ",";
                }
                self.text.push_str(if members.is_empty() { "{}" } else { "}" });
            }
            scalar => self.text.push_str(&scalar.to_string()),
        }
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            let mut units = [0; 2];
            if self.roll(8) == 0 {
                for unit in character.encode_utf16(&mut units) {
                    self.text.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                let token = serde_json::to_string(&character).expect("a string");
                self.text.push_str(&token[1..token.len() - 1]);
            }
        }
        self.text.push('"');
    }
}

fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).expect("valid JSON")
}

fn known<'a>(fields: &Fields<'a>) -> [(&'static str, Option<&'a str>); 6] {
    [
        ("jsonrpc", fields.jsonrpc),
        ("id", fields.id),
        ("method", fields.method),
        ("params", fields.params),
        ("result", fields.result),
        ("error", fields.error),
    ]
}

fn agrees_with_serde(bytes: &[u8]) {
    let shown = String::from_utf8_lossy(bytes);
    match (scan(bytes, &ScanLimits::default()), serde_json::from_slice::<Value>(bytes)) {
        (Ok(_), Ok(_)) => {}
        (Err(refusal), Err(_)) => {
            assert!(refusal.at <= bytes.len() && refusal.kind.is_syntax(), "{shown}")
        }
        (Err(refusal), Ok(_)) => panic!("only we refuse {shown}: {refusal}"),
        // A number that is not a double is still valid JSON, and is forwarded unchanged.
        (Ok(_), Err(error)) => assert_eq!(
            error.to_string().split(" at").next(),
            Some("number out of range"),
            "{shown}"
        ),
    }
}

fn cut<'a>(stream: &'a [u8], splits: &[Index]) -> Vec<&'a [u8]> {
    let mut indexes: Vec<_> = splits.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    indexes.extend([0, stream.len()]);
    indexes.sort_unstable();
    indexes.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

fn lines<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut seen = Vec::new();
    let mut lines = LineDecoder::new(limit);
    chunks.into_iter().for_each(|chunk| lines.feed(chunk, |line| seen.extend(framed_bytes(line))));
    seen.extend(lines.finish().and_then(framed_bytes));
    seen
}

fn framed_bytes(line: FramedLine<'_>) -> Option<Option<Vec<u8>>> {
    match line {
        FramedLine::Complete(bytes) => Some(Some(bytes.to_vec())),
        FramedLine::TooLong(_) => Some(None),
        FramedLine::TooLongEnd(_) => None,
    }
}

/// The rules of [`LineDecoder`], applied to a whole stream at once.
fn lines_by_definition(stream: &[u8], limit: usize) -> Vec<Option<Vec<u8>>> {
    stream
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| line.len() > limit || !line.iter().all(u8::is_ascii_whitespace))
        .map(|line| (line.len() <= limit).then(|| line.to_vec()))
        .collect()
}

fn events<'a>(
    limit: usize,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<SseEvent, SseError>> {
    let mut seen = Vec::new();
    let mut decoder = SseDecoder::new(limit);
    chunks.into_iter().for_each(|chunk| decoder.feed(chunk, |event| seen.push(event)));
    seen
}
