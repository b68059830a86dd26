//! Tables of issuers that are read, and each mistake with its position.

use std::env::VarError;
use std::path::Path;
use std::time::Duration;

use creole::auth::oauth::{KeySource, SignatureAlgorithm};
use creole::client::oauth::ClientAuthMethod;

use crate::Plan;
use crate::plan::issuers::IssuerPlan;

fn read(table: &str) -> Result<Vec<IssuerPlan>, String> {
    read_in(table, Path::new(""))
}

fn read_in(table: &str, folder: &Path) -> Result<Vec<IssuerPlan>, String> {
    let text = format!("[server]\n{table}");
    let lookup = |_: &str| Err(VarError::NotPresent);
    let plan = Plan::read(&text, folder, &[], &lookup);
    plan.map(|plan| plan.auth.unwrap().issuers).map_err(|problem| {
        let error = problem.into_error("creole.toml", &text);
        let place = error.location.as_ref().map(|it| format!("{}:{} ", it.line, it.column));
        format!("{}{}", place.unwrap_or_default(), error.message)
    })
}

fn one(keys: &str) -> Result<Vec<IssuerPlan>, String> {
    read(&format!("[auth.issuers.corp]\nissuer = \"https://id.example.com\"\n{keys}"))
}

#[test]
fn an_issuer_needs_nothing_but_its_name() {
    let plan = one("").unwrap().remove(0).settings;
    assert_eq!((&*plan.label, &*plan.rules.issuer), ("corp", "https://id.example.com"));
    assert_eq!(plan.rules.algorithms, SignatureAlgorithm::DEFAULT);
    assert_eq!((plan.rules.skew, plan.rules.max_age), (60, None));
    assert!(!plan.rules.takes_plain_jwt && plan.audiences.is_none() && !plan.allows_private);
    assert_eq!((plan.keys, plan.introspection), (KeySource::Discovery, None));
}

#[test]
fn everything_that_is_written_is_in_the_plan() {
    let plan = one("audiences = [\"a\"]\nalgorithms = [\"PS512\"]\ntoken_type = \"jwt\"\n\
        jwks_url = \"https://id.example.com/k\"\nsubject_claim = \"oid\"\nscopes_claim = \"x.y\"\n\
        roles_claim = \"roles\"\nclients = [\"c\"]\nskew_seconds = 0\nmax_age_seconds = 9\n\
        allow_private = true\nintrospect = \"always\"\n\
        introspection = { url = \"https://id.example.com/i\", client_id = \"c\", client_secret = \"s\", \
        method = \"post\", cache_seconds = 0, audience = \"implied\" }");
    let plan = plan.unwrap().remove(0).settings;
    assert_eq!(plan.audiences.as_deref(), Some(&["a".to_owned()][..]));
    assert_eq!(plan.rules.algorithms, [SignatureAlgorithm::Ps512]);
    assert!(matches!(&plan.keys, KeySource::Url(url) if url.path() == "/k"));
    assert_eq!(plan.rules.subject_claim.as_ref().map(|it| it.as_str()), Some("oid"));
    assert_eq!((plan.rules.skew, plan.rules.max_age), (0, Some(9)));
    assert!(plan.rules.takes_plain_jwt && plan.allows_private);
    let asked = plan.introspection.unwrap();
    assert_eq!((asked.client.method, asked.cache), (ClientAuthMethod::Post, Duration::ZERO));
    assert!(asked.implies_audience && asked.asks_about_jwts);
    assert!(!format!("{:?}", asked.client).contains("\"s\""), "the secret is not shown");
}

#[test]
fn an_issuer_may_be_on_this_machine_without_encryption() {
    for issuer in ["http://127.0.0.1:3000", "http://localhost:8080/realms/x", "https://10.0.0.1"] {
        assert!(read(&format!("[auth.issuers.a]\nissuer = \"{issuer}\"")).is_ok(), "{issuer}");
    }
}

#[test]
fn each_error_names_its_position_and_problem() {
    let client = "client_id = \"c\", client_secret = \"s\"";
    let cases = [
        ("audiences = []".to_owned(), "4:13 `audiences` is empty, so every token is refused"),
        (
            "audiences = [\"a b\"]".to_owned(),
            "4:14 a value of `audiences` is empty, too long or has a character that is not allowed",
        ),
        ("algorithms = []".to_owned(), "4:14 `algorithms` is empty"),
        ("algorithms = [\"none\"]".to_owned(), "4:15 `none` is not an accepted algorithm"),
        ("algorithms = [\"HS256\"]".to_owned(), "4:15 `HS256` is not an accepted algorithm"),
        (
            "jwks_url = \"http://id.example.com\"".to_owned(),
            "4:12 the URL in `jwks_url` is not encrypted",
        ),
        (
            "jwks_url = \"https://x.example\"\njwks_file = \"k\"".to_owned(),
            "5:13 there are both `jwks_url` and `jwks_file`",
        ),
        ("introspect = \"always\"".to_owned(), "4:14 `introspect` needs the table `introspection`"),
        ("subject_claim = \"\"".to_owned(), "4:17 `subject_claim` is not the name of a claim"),
        ("roles_claim = \"a..b\"".to_owned(), "4:15 `roles_claim` is not the name of a claim"),
        (
            "introspection = { client_id = \"c\" }".to_owned(),
            "4:17 the client has neither a secret nor a private key",
        ),
        (
            format!("introspection = {{ {client}, method = \"private_key_jwt\" }}"),
            "4:66 this `method` needs a private key",
        ),
        (
            format!("jwks_url = \"https://x.example\"\nintrospection = {{ {client} }}"),
            "5:17 `introspection` needs a `url`",
        ),
        (
            "ca_file = \"none.pem\"".to_owned(),
            "4:11 `none.pem` cannot be read: No such file or directory (os error 2)",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(one(&keys).unwrap_err(), expected, "{keys}");
    }
    let whole = [
        (
            "[auth.issuers.a]\nissuer = \"http://id.example.com\"",
            "3:10 the URL in `issuer` is not encrypted",
        ),
        ("[auth.issuers.a]\nissuer = \"https://x/?a=b\"", "3:10 `issuer` has a query"),
        (
            "[auth.issuers.a]\nissuer = \"id\"",
            "3:10 the URL in `issuer` begins neither with http:// nor with https://",
        ),
        ("[auth.issuers.a]\naudiences = [\"x\"]", "2:1 `issuer` is missing"),
        (
            "[auth.issuers.\"a b\"]\nissuer = \"https://x.example\"",
            "2:15 `the name of an issuer` contains a character that is not allowed",
        ),
        (
            "[auth.issuers.a]\nissuer = \"https://x.example\"\n[auth.issuers.b]\nissuer = \"https://x.example\"",
            "5:10 `a` has the same issuer",
        ),
    ];
    for (table, expected) in whole {
        assert_eq!(read(table).unwrap_err(), expected, "{table}");
    }
}

#[test]
fn opaque_tokens_go_to_one_issuer() {
    let table = |name: &str, introspect: &str| {
        format!(
            "[auth.issuers.{name}]\nissuer = \"https://{name}.example\"\nintrospect = \"{introspect}\"\n\
             introspection = {{ client_id = \"c\", client_secret = \"s\" }}\n"
        )
    };
    let both = format!("{}{}", table("a", "opaque"), table("b", "always"));
    assert_eq!(read(&both).unwrap_err(), "6:15 `a` is already asked about opaque tokens");
    let one = format!("{}{}", table("a", "never"), table("b", "always"));
    let plans = read(&one).unwrap();
    assert!(plans[0].settings.introspection.is_none() && plans[1].settings.introspection.is_some());
}

#[test]
fn a_file_of_keys_is_checked_and_watched() {
    let folder = tempfile::tempdir().unwrap();
    let table = "[auth.issuers.a]\nissuer = \"https://x.example\"\njwks_file = \"keys.json\"";
    let error = read_in(table, folder.path()).unwrap_err();
    assert!(error.starts_with("4:13 cannot read"), "{error}");
    let path = folder.path().join("keys.json");
    std::fs::write(&path, "{\"keys\":[]}").unwrap();
    assert_eq!(
        read_in(table, folder.path()).unwrap_err(),
        "4:13 the file of `jwks_file` cannot be used: it has no key that can verify signatures"
    );
    let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    std::fs::write(&path, key).unwrap();
    let plan = read_in(table, folder.path()).unwrap().remove(0);
    assert_eq!((plan.settings.keys, plan.files), (KeySource::File(path.clone()), vec![path]));
}
