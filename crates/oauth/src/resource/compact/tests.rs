//! The form of signed tokens.

use proptest::prelude::{any, proptest};
use serde_json::{Value, json};

use super::CompactToken;
use crate::resource::algorithm::SignatureAlgorithm;
use crate::resource::public_key::PublicKey;
use crate::resource::refusal::TokenRefusal;
use crate::resource::testing::{TestKey, encode};

#[test]
fn a_signed_token_is_read_and_verified() {
    let (key, other) = (TestKey::new(), TestKey::new());
    let text =
        key.sign(&json!({ "alg": "ES256", "kid": "k", "typ": "at+jwt" }), &json!({ "a": 1 }));
    let token = CompactToken::parse(&text).unwrap();
    assert_eq!((token.key_id(), token.kind()), (Ok(Some("k")), Ok(Some("at+jwt"))));
    assert_eq!(token.payload()["a"], 1);
    let algorithm = token.algorithm(&SignatureAlgorithm::DEFAULT).unwrap();
    assert!(token.is_signed_by(&PublicKey::read(&key.jwk()).unwrap(), algorithm));
    assert!(!token.is_signed_by(&PublicKey::read(&other.jwk()).unwrap(), algorithm));
    assert!(!token.is_signed_by(&PublicKey::read(&key.jwk()).unwrap(), SignatureAlgorithm::Rs256));
    assert_eq!(format!("{token:?}"), "CompactToken(…)");
    // A changed payload does not fit.
    let mut parts: Vec<_> = text.split('.').map(str::to_owned).collect();
    parts[1] = encode("{\"a\":2}");
    let changed = parts.join(".");
    let changed = CompactToken::parse(&changed).unwrap();
    assert!(!changed.is_signed_by(&PublicKey::read(&key.jwk()).unwrap(), algorithm));
}

#[test]
fn algorithms_outside_of_the_list_are_refused() {
    let allowed = SignatureAlgorithm::DEFAULT;
    let none = json!({});
    for algorithm in [
        json!("none"),
        json!("None"),
        json!("nOnE"),
        json!("HS256"),
        json!("RS384"),
        json!("rs256"),
        json!(["RS256"]),
        json!(null),
        json!(1),
    ] {
        let text = TestKey::new().sign(&json!({ "alg": algorithm }), &none);
        let token = CompactToken::parse(&text).unwrap();
        assert_eq!(token.algorithm(&allowed), Err(TokenRefusal::Algorithm), "{algorithm}");
    }
    let unsigned = format!("{}.{}.", encode("{\"alg\":\"none\"}"), encode("{}"));
    assert_eq!(
        CompactToken::parse(&unsigned).unwrap().algorithm(&allowed),
        Err(TokenRefusal::Algorithm)
    );
    let missing = TestKey::new().sign(&json!({}), &none);
    assert_eq!(
        CompactToken::parse(&missing).unwrap().algorithm(&allowed),
        Err(TokenRefusal::Algorithm)
    );
}

#[test]
fn extensions_and_other_forms_are_malformed() {
    let key = TestKey::new();
    let sign = |header: Value| key.sign(&header, &json!({}));
    let good = sign(json!({ "alg": "ES256" }));
    let (head, rest) = good.split_once('.').unwrap();
    let texts = [
        sign(json!({ "alg": "ES256", "crit": [] })),
        sign(json!({ "alg": "ES256", "crit": ["exp"] })),
        sign(json!({ "alg": "ES256", "b64": false })),
        sign(json!({ "alg": "ES256", "zip": "DEF" })),
        key.sign_text("{\"alg\":\"ES256\",\"alg\":\"ES256\"}", "{}"),
        key.sign_text("{\"alg\":\"ES256\"}", "{\"a\":1,\"a\":1}"),
        key.sign_text("{\"alg\":\"ES256\"}", "{\"a\":{\"b\":1,\"b\":2}}"),
        key.sign_text("{\"alg\":\"ES256\"}", "[]"),
        key.sign_text("{\"alg\":\"ES256\"}", "x"),
        key.sign_text("[]", "{}"),
        key.sign_text(
            "{\"alg\":\"ES256\"}",
            &format!("{{\"a\":{}{}}}", "[".repeat(16), "]".repeat(16)),
        ),
        key.sign_text(&format!("{{\"alg\":\"ES256\",\"a\":\"{}\"}}", "x".repeat(2_048)), "{}"),
        key.sign_text("{\"alg\":\"ES256\"}", &format!("{{\"a\":\"{}\"}}", "x".repeat(16_384))),
        format!("{good}{}", "A".repeat(2_000)),
        format!("{head}=.{rest}"),
        format!("{good}="),
        format!("{good}\n"),
        format!(" {good}"),
        good.replace('.', ".."),
        head.to_owned(),
        String::new(),
        "..".to_owned(),
    ];
    for text in texts {
        assert_eq!(
            CompactToken::parse(&text),
            Err(TokenRefusal::Malformed),
            "{}",
            &text[..text.len().min(90)]
        );
    }
    let long_id = sign(json!({ "alg": "ES256", "kid": "x".repeat(257) }));
    assert_eq!(CompactToken::parse(&long_id).unwrap().key_id(), Err(TokenRefusal::Malformed));
    let odd = sign(json!({ "alg": "ES256", "kid": 7, "typ": 7 }));
    let odd = CompactToken::parse(&odd).unwrap();
    assert_eq!((odd.key_id(), odd.kind()), (Err(TokenRefusal::Malformed), Err(TokenRefusal::Typ)));
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in any::<String>(), parts in "[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}") {
        for text in [&text, &parts] {
            if let Ok(token) = CompactToken::parse(text) {
                let _ = (token.key_id(), token.kind(), token.algorithm(&SignatureAlgorithm::ALL));
            }
        }
    }

    #[test]
    fn a_token_with_one_changed_character_is_not_signed(at in 0_usize..200, with in "[A-Za-z0-9_-]") {
        let key = TestKey::new();
        let text = key.sign(&json!({ "alg": "ES256" }), &json!({ "sub": "alice", "x": "0123456789012345678901234567890123456789" }));
        let mut bytes = text.clone().into_bytes();
        let at = at % bytes.len();
        if bytes[at] != b'.' {
            bytes[at] = with.as_bytes()[0];
        }
        let changed = String::from_utf8(bytes).unwrap();
        let public = PublicKey::read(&key.jwk()).unwrap();
        let is_signed = CompactToken::parse(&changed)
            .is_ok_and(|token| token.is_signed_by(&public, SignatureAlgorithm::Es256));
        assert_eq!(is_signed, changed == text);
    }
}
