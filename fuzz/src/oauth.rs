//! The invariants of logins and tokens: documents, challenges and tokens of other programs.

use std::sync::LazyLock;

use creole_oauth::discovery::challenge::Challenge;
use creole_oauth::discovery::metadata::{ResourceMetadata, ServerMetadata};
use creole_oauth::flow::authorization::{AuthorizationParameters, AuthorizationRequest};
use creole_oauth::http::document::Document;
use creole_oauth::http::exchange::form_decode;
use creole_oauth::resource::TokenShape;
use creole_oauth::resource::algorithm::SignatureAlgorithm;
use creole_oauth::resource::compact::CompactToken;
use creole_oauth::resource::key_set::KeySet;
use creole_oauth::scopes::Scopes;
use creole_oauth::web_url::WebUrl;
use serde_json::Value;

/// The issuer of the seeds.
const ISSUER: &str = "https://id.example.com";

/// The server of the seeds.
static SERVER: LazyLock<WebUrl> =
    LazyLock::new(|| WebUrl::parse("https://mcp.example.com/mcp").expect("an address"));

/// The parameters of challenges that a login uses.
const PARAMETERS: [&str; 4] = ["resource_metadata", "scope", "error", "realm"];

/// A parameter of a challenge is read, and is the same when it is written in quotes and read again.
pub fn challenge(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let headers: Vec<&str> = text.split('\n').collect();
    let found = Challenge::parse_all(headers.iter().copied());
    assert!(found.len() <= 16);
    for name in PARAMETERS {
        let Some(value) = Challenge::oauth_parameter(&found, name) else { continue };
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let again = Challenge::parse_all([&*format!("Bearer {name}=\"{quoted}\"")]);
        assert_eq!(Challenge::oauth_parameter(&again, name), Some(value));
    }
}

/// Documents that are accepted are JSON objects without repeated names, of the resource and of the issuer that were asked
/// for, and name only encrypted addresses.
pub fn metadata(bytes: &[u8]) {
    let Some(document) = Document::parse(bytes) else { return };
    let reference: Value = serde_json::from_slice(bytes).expect("only our reader accepts it");
    assert!(reference.is_object());
    if let Ok(read) = ResourceMetadata::read(&document, &SERVER, &SERVER) {
        let resource = WebUrl::parse(&read.resource).expect("an address");
        assert!(resource.is_same_origin(&SERVER));
        assert!((1..=8).contains(&read.issuers.len()));
    }
    if let Ok(read) = ServerMetadata::read(&document, ISSUER, &SERVER) {
        assert_eq!(reference["issuer"], ISSUER);
        let others = [
            &read.authorization_endpoint,
            &read.registration_endpoint,
            &read.revocation_endpoint,
            &read.device_endpoint,
            &read.required_par_endpoint,
        ];
        let endpoints = others.into_iter().flatten().chain([&read.token_endpoint]);
        endpoints.for_each(|url| assert!(url.is_https(), "{url}"));
    }
}

/// A request whose responses are read.
static REQUEST: LazyLock<AuthorizationRequest> = LazyLock::new(|| {
    let text = format!(
        r#"{{"issuer":"{ISSUER}","authorization_endpoint":"{ISSUER}/a","token_endpoint":"{ISSUER}/t",
        "code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true}}"#
    );
    let document = Document::parse(text.as_bytes()).expect("a document");
    let server = ServerMetadata::read(&document, ISSUER, &SERVER).expect("metadata");
    let wanted = AuthorizationParameters {
        client_id: "c",
        redirect_uri: REDIRECT,
        resource: None,
        scopes: &Scopes::default(),
    };
    AuthorizationRequest::new(&server, wanted).expect("random bytes")
});

const REDIRECT: &str = "http://127.0.0.1:40001/callback";

/// Only a query with the state and the issuer of the request, and without an error or a repeated parameter, has a code.
/// `STATE` in the input stands for the state.
pub fn callback_query(bytes: &[u8]) {
    let url = REQUEST.url();
    let own = form_decode(url.split_once('?').expect("a query").1).expect("our own query");
    let state = own.iter().find(|(name, _)| name == "state").map(|(_, state)| state.as_str());
    let state = state.expect("a state");
    let query = String::from_utf8_lossy(bytes).replace("STATE", state);
    let address = format!("{REDIRECT}?{query}");
    let copied = REQUEST.copied_response(&address);
    assert!(copied.is_err() || query.contains(state));
    let Ok(code) = REQUEST.code(&query) else { return };
    assert!(REQUEST.is_response(&query));
    let parameters = form_decode(&query).expect("a query with a code");
    let values = |wanted: &str| -> Vec<&str> {
        let found = parameters.iter().filter(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!((values("state"), values("iss")), (vec![state], vec![ISSUER]));
    assert_eq!((values("error").len(), values("code")), (0, vec![code.expose()]));
}

/// The key of the seed `signed` (RFC 7515, appendix A.3).
static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
    let text =
        br#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
    KeySet::parse(text).expect("a key set")
});

/// The part of the seed `signed` that its signature covers.
const SIGNED: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

/// A token that is read has the shape of one, and only the token that was signed has a valid signature.
pub fn jws(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\n');
    let Ok(token) = CompactToken::parse(text) else { return };
    assert_eq!(TokenShape::of(text), TokenShape::Jwt);
    let algorithm = token.algorithm(&SignatureAlgorithm::ALL);
    let is_signed = algorithm.is_ok_and(|algorithm| {
        let id = token.key_id().ok().flatten();
        KEYS.candidates(id, algorithm).iter().any(|key| token.is_signed_by(key, algorithm))
    });
    assert!(!is_signed || text.starts_with(SIGNED), "a forged token is accepted");
    let is_seed = text.len() == SIGNED.len() + 87 && text.starts_with(SIGNED) && bytes == SEED;
    assert!(is_signed || !is_seed, "the signed token is refused");
}

const SEED: &[u8] = include_bytes!("../seeds/jws/signed");

/// A key set has usable keys within the limit, and few are tried for a token without a key id.
pub fn jwk_set(bytes: &[u8]) {
    let Ok(set) = KeySet::parse(bytes) else { return };
    let reference: Value = serde_json::from_slice(bytes).expect("only our reader accepts it");
    let listed = reference["keys"].as_array().expect("a list of keys").len();
    assert!((1..=64).contains(&set.len()) && set.len() + set.repeated_ids() <= listed);
    for algorithm in SignatureAlgorithm::ALL {
        assert!(set.candidates(None, algorithm).len() <= 4);
        assert!(set.candidates(Some("unknown"), algorithm).len() <= 1);
    }
}
