//! Which keys of a set are used, and which of them may have signed a token.

use serde_json::{Value, json};

use super::{KeySet, KeySetError};
use crate::resource::algorithm::SignatureAlgorithm;
use crate::resource::testing::TestKey;

fn parse(keys: impl IntoIterator<Item = Value>) -> Result<KeySet, KeySetError> {
    let keys: Vec<_> = keys.into_iter().collect();
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
}

fn key(id: &str) -> Value {
    Value::Object(TestKey::new().jwk_with(json!({ "kid": id })))
}

#[test]
fn keys_that_are_not_used_are_left_out() {
    let keys = [
        key("a"),
        json!({ "kty": "oct", "kid": "b", "k": "AAAA" }),
        json!({ "kty": "RSA", "kid": "c", "n": "AQAB", "e": "AQAB" }),
        json!(7),
        key(&"x".repeat(257)),
        Value::Object(TestKey::new().jwk_with(json!({ "kid": 7 }))),
        Value::Object(TestKey::new().jwk_with(json!({ "use": "enc" }))),
    ];
    let set = parse(keys).unwrap();
    assert_eq!((set.len(), set.repeated_ids()), (1, 0));
    assert_eq!(set.candidates(Some("a"), SignatureAlgorithm::Es256).len(), 1);
    assert_eq!(set.candidates(Some("b"), SignatureAlgorithm::Es256).len(), 0);
    assert_eq!(set.candidates(Some("a"), SignatureAlgorithm::Rs256).len(), 0);
}

#[test]
fn an_id_of_two_keys_drops_both() {
    let (twice, other) = (key("b"), key("c"));
    let set = parse([key("a"), twice.clone(), key("a"), twice, other]).unwrap();
    assert_eq!((set.len(), set.repeated_ids()), (2, 1));
    for (id, count) in [("a", 0), ("b", 1), ("c", 1)] {
        assert_eq!(set.candidates(Some(id), SignatureAlgorithm::Es256).len(), count, "{id}");
    }
    let only = [key("a"), key("a")];
    assert_eq!(parse(only), Err(KeySetError::NoUsableKey));
}

#[test]
fn a_token_without_a_key_id_is_tried_with_few_keys() {
    let four = parse(["a", "b", "c", "d"].map(key)).unwrap();
    assert_eq!(four.candidates(None, SignatureAlgorithm::Es256).len(), 4);
    let five = parse(["a", "b", "c", "d", "e"].map(key)).unwrap();
    assert_eq!(five.candidates(None, SignatureAlgorithm::Es256).len(), 0);
    let unnamed = parse([Value::Object(TestKey::new().jwk())]).unwrap();
    assert_eq!(unnamed.candidates(None, SignatureAlgorithm::Es256).len(), 1);
    assert_eq!(unnamed.candidates(Some(""), SignatureAlgorithm::Es256).len(), 0);
}

#[test]
fn other_documents_are_refused() {
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#, "<html>"] {
        assert_eq!(KeySet::parse(text.as_bytes()), Err(KeySetError::Malformed), "{text}");
    }
    assert_eq!(parse([]), Err(KeySetError::NoUsableKey));
    let many = (0..65).map(|number| key(&number.to_string()));
    assert_eq!(parse(many), Err(KeySetError::TooMany));
    let long = json!({ "keys": [key("a")], "x": "x".repeat(70_000) });
    assert_eq!(KeySet::parse(long.to_string().as_bytes()), Err(KeySetError::Malformed));
}

#[test]
fn sets_with_the_same_keys_are_equal() {
    let (first, second) = (key("a"), key("b"));
    assert_eq!(parse([first.clone()]), parse([first.clone()]));
    assert_ne!(parse([first.clone()]), parse([second.clone()]));
    assert_ne!(parse([first.clone()]), parse([first, second]));
}
