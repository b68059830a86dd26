//! Keys of every kind, keys that are not used, and signatures of the RFCs.

use serde_json::json;

use super::PublicKey;
use crate::crypto::jose::SigningKey;
use crate::resource::algorithm::SignatureAlgorithm;
use crate::resource::testing::{TestKey, decode, object};

const MODULUS: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";

fn check(jwk: serde_json::Value, algorithm: SignatureAlgorithm, jws: &str) {
    let key = PublicKey::read(&object(jwk)).unwrap();
    let (message, signature) = jws.rsplit_once('.').unwrap();
    let signature = decode(signature);
    assert!(key.verify(algorithm, message.as_bytes(), &signature));
    assert!(!key.verify(algorithm, &message.as_bytes()[1..], &signature));
    assert!(!key.verify(algorithm, message.as_bytes(), &signature[1..]));
    assert!(!key.verify(algorithm, message.as_bytes(), &[]));
    for other in SignatureAlgorithm::ALL.into_iter().filter(|it| *it != algorithm) {
        // Both names of EdDSA are the same algorithm.
        let is_same = other.curve().is_some() && other.key_kind() == algorithm.key_kind();
        assert_eq!(key.verify(other, message.as_bytes(), &signature), is_same, "{other:?}");
    }
}

#[test]
fn signatures_of_the_rfcs_are_verified() {
    // RFC 7515, appendix A.2.
    let rsa = json!({ "kty": "RSA", "n": MODULUS, "e": "AQAB" });
    check(
        rsa,
        SignatureAlgorithm::Rs256,
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
    );
    // RFC 7515, appendix A.3.
    let curve = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    check(
        curve,
        SignatureAlgorithm::Es256,
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    );
    // RFC 8037, appendix A.4.
    let edwards = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
    check(
        edwards,
        SignatureAlgorithm::EdDsa,
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
    );
}

#[test]
fn a_signature_of_this_crate_is_verified_with_the_same_thumbprint() {
    let key = SigningKey::generate().unwrap();
    let jws = key.sign(&json!({}), &json!({ "a": 1 })).unwrap();
    check(key.public_key(), SignatureAlgorithm::Es256, &jws);
    assert_eq!(PublicKey::read(&object(key.public_key())).unwrap().thumbprint(), key.id());
}

#[test]
fn a_key_is_used_only_as_it_says() {
    let key = TestKey::new();
    for (members, is_used) in [
        (json!({}), true),
        (json!({ "use": "sig" }), true),
        (json!({ "use": "enc" }), false),
        (json!({ "use": 1 }), false),
        (json!({ "key_ops": ["verify"] }), true),
        (json!({ "key_ops": ["sign", "verify"] }), true),
        (json!({ "key_ops": ["encrypt"] }), false),
        (json!({ "key_ops": [] }), false),
        (json!({ "key_ops": "verify" }), false),
        (json!({ "alg": "ES256" }), true),
        (json!({ "alg": "ES384" }), false),
        (json!({ "alg": "RS256" }), false),
        (json!({ "alg": "ECDH-ES" }), false),
        (json!({ "alg": 1 }), false),
        (json!({ "kty": "oct", "k": "AAAA" }), false),
        (json!({ "crv": "P-384" }), false),
        (json!({ "crv": "secp256k1" }), false),
        (json!({ "x": "AAAA" }), false),
        // Not a point of the curve.
        (json!({ "x": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE" }), false),
        (json!({ "y": null }), false),
        (json!({ "x": "!" }), false),
    ] {
        let read = PublicKey::read(&key.jwk_with(members.clone()));
        assert_eq!(read.is_some(), is_used, "{members}");
    }
    assert!(PublicKey::is_private(&key.jwk_with(json!({ "d": "x" }))));
    assert!(!PublicKey::is_private(&key.jwk()));
}

#[test]
fn rsa_keys_have_an_accepted_size_and_exponent() {
    let read = |n: &str, e: &str| PublicKey::read(&object(json!({ "kty": "RSA", "n": n, "e": e })));
    assert!(read(MODULUS, "AQAB").is_some());
    // 3, 65536, 65535, nothing, a leading zero, and more than 64 bits.
    for exponent in ["Aw", "AQAA", "__8", "", "AAEAAQ", "AQAAAAAAAAAAAQ"] {
        assert!(read(MODULUS, exponent).is_none(), "{exponent}");
    }
    // 1,024 and 2,047 bits, 8,200 bits, and a leading zero.
    let bits = |count: usize| {
        let mut bytes = vec![0xff; count.div_ceil(8)];
        bytes[0] >>= (8 - count % 8) % 8;
        crate::resource::testing::encode(bytes)
    };
    for modulus in [bits(1_024), bits(2_047), bits(8_200), format!("AA{MODULUS}"), String::new()] {
        assert!(read(&modulus, "AQAB").is_none(), "{}", modulus.len());
    }
    assert!(read(&bits(2_048), "AQAB").is_some() && read(&bits(8_192), "AQAB").is_some());
    let fits = read(MODULUS, "AQAB").unwrap();
    assert!(fits.fits(SignatureAlgorithm::Ps512) && !fits.fits(SignatureAlgorithm::Es256));
}
