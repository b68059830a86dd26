//! Tests of how the table `oauth` of an upstream is resolved, and of the errors for invalid ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::Plan;
use crate::plan::upstream::UpstreamAddress;

/// A P-256 key, made for this test.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyeCfkhRa/qchX+lo
5VmDP23IS2uavK+yq+obzN8aSjWhRANCAAT61sshxG68R9YWIeTO9NWo2txtb5Zi
+pjmgBQji39akPT3b2XFvHv9fvRVUievK9lJl0VvinYkbVi4cR/UwwtV
-----END PRIVATE KEY-----
";

fn load(folder: &Path, table: &str) -> Result<OAuthPlan, String> {
    let text = format!("[server]\n[upstreams.wiki]\nurl = \"https://a\"\n{table}");
    let lookup = |name: &str| match name {
        "SECRET" => Ok("s3cret".to_owned()),
        _ => Err(std::env::VarError::NotPresent),
    };
    let plan = Plan::load_text("creole.toml", &text, folder, &[], &lookup);
    let plan = plan.map_err(|error| error.to_string())?;
    match plan.upstreams.into_iter().next().map(|upstream| upstream.address) {
        Some(UpstreamAddress::Url { oauth: Some(oauth), .. }) => Ok(*oauth),
        other => Err(format!("{other:?}")),
    }
}

fn oauth(table: &str) -> Result<OAuthPlan, String> {
    load(Path::new("/nowhere"), &format!("[upstreams.wiki.oauth]\n{table}"))
}

#[test]
fn without_a_table_the_stored_login_is_used() {
    assert_eq!(load(Path::new(""), "").unwrap(), OAuthPlan::default());
    assert_eq!(oauth("").unwrap(), OAuthPlan::default());
}

#[test]
fn the_settings_of_a_login_are_read() {
    let plan = oauth(
        "client_id = \"creole\"\nclient_secret = \"${SECRET}\"\nscopes = [\"a\", \"b\"]\nmax_scopes = [\"a\", \"b\", \"c\"]\n\
         issuer = \"https://id.example.com/\"\nresource_parameter = \"off\"\ndpop = \"require\"\nallow_private = true\n\
         legacy_oauth = false",
    );
    let plan = plan.unwrap();
    assert_eq!(plan.settings.client_id.as_deref(), Some("creole"));
    assert_eq!(plan.settings.client_secret.as_ref().map(SecretText::expose), Some("s3cret"));
    assert_eq!(
        (plan.settings.scopes.clone(), plan.settings.max_scopes.clone()),
        (Scopes::parse("a b"), Some(Scopes::parse("a b c")))
    );
    assert_eq!(plan.settings.issuer.as_deref(), Some("https://id.example.com/"));
    assert!(plan.settings.omits_resource && plan.settings.allows_private);
    assert!(plan.settings.requires_resource_metadata);
    assert_eq!(plan.settings.dpop, DpopMode::Require);
    assert!(!format!("{plan:?}").contains("s3cret"));
}

#[test]
fn secrets_and_keys_come_from_files_beside_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    fs::write(&key, KEY).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path().join("secret"), "s3cret\n").unwrap();
    let load = |table: &str| {
        load(
            folder.path(),
            &format!(
                "[upstreams.wiki.oauth]\ngrant = \"client-credentials\"\nclient_id = \"c\"\n{table}"
            ),
        )
    };
    let plan = load("client_secret_file = \"secret\"").unwrap();
    assert_eq!(plan.settings.client_secret.as_ref().map(SecretText::expose), Some("s3cret"));
    assert_eq!(plan.files, [folder.path().join("secret")]);
    let plan = load("private_key_file = \"key.pem\"\nprivate_key_id = \"k1\"").unwrap();
    let signing = plan.settings.private_key.as_ref().unwrap();
    assert_eq!((signing.id(), signing.algorithm()), ("k1", Algorithm::Es256));
    assert!(!format!("{plan:?}").contains("MIGH"));
    let said =
        load("private_key_file = \"key.pem\"\nprivate_key_algorithm = \"RS256\"").unwrap_err();
    assert!(said.contains("does not fit the signing algorithm"), "{said}");
    let said =
        load("private_key_file = \"key.pem\"\nprivate_key_algorithm = \"none\"").unwrap_err();
    assert!(said.contains("unknown algorithm `none`"), "{said}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let said = load("private_key_file = \"key.pem\"").unwrap_err();
    assert!(
        said.contains("other users can read the private key") && said.contains("chmod 600"),
        "{said}"
    );
}

#[test]
fn a_changed_key_is_a_changed_plan() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |key: &SigningKey| {
        let mut plan = OAuthPlan::default();
        plan.settings.private_key = Some(key.clone());
        plan
    };
    let read = || {
        let table = "[upstreams.wiki.oauth]\nclient_id = \"c\"\nprivate_key_file = \"key.pem\"";
        load(folder.path(), table).unwrap()
    };
    let file = folder.path().join("key.pem");
    fs::write(&file, KEY).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(), read());
    let key = read().settings.private_key.unwrap();
    let others = [SigningKey::generate().unwrap(), key.clone().with_id("k1")];
    for other in others {
        assert_ne!(plan(&key), plan(&other));
    }
}

#[test]
fn assertions_are_read_for_each_login() {
    let folder = Path::new("/etc/creole");
    let plan =
        load(folder, "[upstreams.wiki.oauth]\ngrant = \"jwt-bearer\"\nassertion_file = \"token\"")
            .unwrap();
    assert_eq!(plan.grant, GrantPlan::JwtBearer(TokenSource::File(folder.join("token"))));
    let plan = oauth(
        "grant = \"enterprise\"\nclient_id = \"c\"\nid_token_command = [\"idp\", \"token\"]\n\
         idp_token_url = \"https://idp.example.com/token\"\nidp_client_id = \"d\"\nidp_client_secret = \"${SECRET}\"",
    );
    let expected = GrantPlan::Enterprise {
        id_token: TokenSource::Command(vec!["idp".to_owned(), "token".to_owned()]),
        token_url: "https://idp.example.com/token".to_owned(),
        client_id: "d".to_owned(),
        client_secret: Some(SecretText::new("s3cret")),
    };
    assert_eq!(plan.unwrap().grant, expected);
}

#[test]
fn a_wrong_table_is_refused_with_what_to_do() {
    let cases = [
        ("assertion_file = \"a\"", "`assertion_file` is only valid with `grant = \"jwt-bearer\"`"),
        ("grant = \"jwt-bearer\"", "`grant = \"jwt-bearer\"` requires `assertion_file`"),
        (
            "grant = \"client-credentials\"",
            "`grant = \"client-credentials\"` requires a `client_id`",
        ),
        ("grant = \"client-credentials\"\nclient_id = \"c\"", "requires a secret or a private key"),
        ("client_secret = \"s3cret\"", "has a secret or a key, but no `client_id`"),
        ("client_id = \"c\"\nclient_secret = \"\"", "the secret of `client_secret` is empty"),
        ("client_id = \"c\"\nclient_secret_file = \"x\"", "cannot read `/nowhere/x`"),
        (
            "client_id = \"c\"\nclient_secret = \"s3cret\"\nclient_secret_file = \"x\"",
            "both `client_secret` and `client_secret_file`",
        ),
        ("scopes = [\"a b\"]", "invalid scope `a b`"),
        ("client_metadata_url = \"http://c/x\"", "invalid `client_metadata_url` `http://c/x`"),
        (
            "grant = \"enterprise\"\nclient_id = \"c\"\nid_token_file = \"i\"",
            "requires `idp_token_url`",
        ),
        ("private_key_id = \"k\"", "there is no `private_key_file`"),
        ("issuer = \"\"", "invalid `issuer`"),
        ("grant = \"logn\"", "logn"),
    ];
    for (table, expected) in cases {
        let said = oauth(table).unwrap_err();
        assert!(said.contains(expected), "{table}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    let said = load(Path::new(""), "token_file = \"t\"\n[upstreams.wiki.oauth]").unwrap_err();
    assert!(said.contains("`oauth` conflicts with `token_file`"), "{said}");
    let said = load(Path::new(""), "headers = { authorization = \"x\" }\n[upstreams.wiki.oauth]")
        .unwrap_err();
    assert!(said.contains("`oauth` conflicts with the header `Authorization`"), "{said}");
}
