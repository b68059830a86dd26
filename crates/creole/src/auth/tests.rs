//! Tests of accepted and refused callers, of the cost of a check, and of the information in responses.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Condvar, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::StatusCode;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::credential_files::keys::NewKey;
use super::*;
use crate::secrets::digest;

mod flood;
mod silence;

/// The default cost of a hash.
const USUAL: &str = "m=19456,t=2,p=1";

/// Files of users and keys, with a password check that is fast and counted.
struct AuthFixture {
    folder: TempDir,
    work: Arc<VerifyCounter>,
}

/// The password check of the tests. The hash of a password is its SHA-256, so that a test can do hundreds; the counter
/// records the cost that argon2 would have had.
#[derive(Default)]
struct VerifyCounter {
    total: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
    costs: Mutex<Vec<String>>,
    /// While it is closed, a check does not end.
    closed: Mutex<bool>,
    opened: Condvar,
}

impl VerifyCounter {
    fn verify(&self, password: &[u8], hash: &PasswordHash) -> bool {
        self.total.fetch_add(1, SeqCst);
        let running = self.running.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(running, SeqCst);
        self.costs.lock().unwrap().push(hash.params.to_string());
        let closed = self.closed.lock().unwrap();
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
        self.running.fetch_sub(1, SeqCst);
        hash.hash.as_ref().unwrap().as_bytes() == digest(password)
    }

    fn total(&self) -> usize {
        self.total.load(SeqCst)
    }

    fn close(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.opened.notify_all();
    }
}

/// A line of a users file whose password [`VerifyCounter::verify`] checks.
fn user(name: &str, password: &str, cost: &str, roles: &str) -> String {
    let hash = STANDARD_NO_PAD.encode(digest(password.as_bytes()));
    format!("{name}:$argon2id$v=19${cost}$AAAAAAAAAAAAAAAAAAAAAA${hash}:{roles}\n")
}

impl AuthFixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), work: Arc::default() }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        private(&path);
        path
    }

    /// A file with alice, who has the role `mcp`, and bob, who has none.
    fn users(&self) -> PathBuf {
        let text = user("alice", "sesame", USUAL, "mcp") + &user("bob", "open", USUAL, "");
        self.write("users.txt", &text)
    }

    fn open(&self, settings: AuthSettings) -> Result<Authenticator, AuthError> {
        self.open_with(settings, 2, 64)
    }

    fn open_with(
        &self,
        settings: AuthSettings,
        at_once: usize,
        queue: usize,
    ) -> Result<Authenticator, AuthError> {
        let work = Arc::clone(&self.work);
        let verify = move |password: &[u8], hash: &PasswordHash| work.verify(password, hash);
        Authenticator::with_parts(settings, PasswordPool::new(at_once, queue), Arc::new(verify))
    }

    fn with_users(&self) -> Authenticator {
        self.open(AuthSettings { users: Some(self.users()), ..AuthSettings::default() }).unwrap()
    }
}

#[cfg(unix)]
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn basic(name: &str, password: &str) -> HeaderValue {
    let encoded = STANDARD.encode(format!("{name}:{password}"));
    HeaderValue::try_from(format!("Basic {encoded}")).unwrap()
}

fn bearer(key: &Secret) -> HeaderValue {
    let bytes = [b"Bearer ", key.expose()].concat();
    HeaderValue::from_bytes(&bytes).unwrap()
}

fn peer(number: u32) -> Option<IpAddr> {
    Some(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into())
}

fn granted(decision: AuthDecision) -> Principal {
    match decision {
        AuthDecision::Granted(principal) => principal,
        AuthDecision::Refused(challenge) => panic!("{challenge:?}"),
    }
}

#[track_caller]
fn challenge_of(decision: AuthDecision) -> Challenge {
    match decision {
        AuthDecision::Refused(challenge) => challenge,
        AuthDecision::Granted(principal) => panic!("{principal:?}"),
    }
}

fn offers(challenge: &Challenge) -> Vec<&str> {
    let values = challenge.headers.get_all(WWW_AUTHENTICATE).iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn a_user_with_the_right_password_is_let_in() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let alice = granted(authenticator.authenticate(Some(&basic("alice", "sesame")), peer(1)).await);
    assert_eq!(
        (alice.id(), alice.has_role("mcp"), alice.has_role("admin")),
        ("user:alice", true, false)
    );
    let bob = granted(authenticator.authenticate(Some(&basic("bob", "open")), None).await);
    assert_eq!((bob.id(), bob.roles().len()), ("user:bob", 0));
}

#[tokio::test]
async fn a_real_hash_lets_in_its_password_only() {
    let fixture = AuthFixture::new();
    let hash = password::hash(&"correct horse battery".into()).unwrap();
    let users = Some(fixture.write("users.txt", &format!("# Ours.\n\n alice : {hash} : mcp \r\n")));
    let authenticator =
        Authenticator::new(AuthSettings { users, ..AuthSettings::default() }).unwrap();
    let right = basic("alice", "correct horse battery");
    let decision = authenticator.authenticate(Some(&right), None).await;
    assert_eq!(granted(decision).id(), "user:alice");
    let wrong = authenticator.authenticate(Some(&basic("alice", "correct horse")), None).await;
    assert_eq!(challenge_of(wrong).status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_key_lets_in_until_its_end() {
    let fixture = AuthFixture::new();
    let keys: Vec<NewKey> = (0..4).map(|_| NewKey::random()).collect();
    let text = format!(
        "# Keys\nci:$sha256${}:mcp,ci:2999-01-01\nold:$sha256${}:mcp:2001-01-01T00:00:00Z\nbare:$sha256${}\n",
        keys[0].sha256,
        keys[1].sha256,
        keys[2].sha256.to_uppercase(),
    );
    let written = BearerKey::new("inline", &keys[3].sha256, &["mcp".to_owned()], None).unwrap();
    let settings = AuthSettings {
        keys_file: Some(fixture.write("keys.txt", &text)),
        keys: vec![written],
        ..AuthSettings::default()
    };
    let authenticator = fixture.open(settings).unwrap();
    let mut ids = Vec::new();
    for index in [0, 2, 3] {
        let header = bearer(&keys[index].key);
        ids.push(granted(authenticator.authenticate(Some(&header), peer(1)).await).id().to_owned());
    }
    assert_eq!(
        ids.iter().map(|id| &**id).collect::<Vec<_>>(),
        ["key:ci", "key:bare", "key:inline"]
    );
    let expired =
        challenge_of(authenticator.authenticate(Some(&bearer(&keys[1].key)), peer(1)).await);
    let unknown = NewKey::random().key;
    let unknown = challenge_of(authenticator.authenticate(Some(&bearer(&unknown)), peer(1)).await);
    let garbage = HeaderValue::from_bytes(b"Bearer \xff, Basic x").unwrap();
    let garbage = challenge_of(authenticator.authenticate(Some(&garbage), peer(1)).await);
    assert_eq!((&expired, &expired), (&unknown, &garbage));
    assert_eq!(expired.status, StatusCode::UNAUTHORIZED);
    assert_eq!(fixture.work.total(), 0, "a key needs no slow hash");
    assert_eq!(authenticator.count(), (0, 4));
}

#[test]
fn keys_are_long_and_random_and_end_as_they_should() {
    let keys: Vec<NewKey> = (0..1000).map(|_| NewKey::random()).collect();
    for NewKey { key, sha256 } in &keys {
        let text = std::str::from_utf8(key.expose()).unwrap();
        assert_eq!((text.len(), text.starts_with("creole_")), (50, true));
        assert_eq!(credential_files::file::digest_of_hex(sha256), Some(digest(key.expose())));
    }
    let different: HashSet<&str> = keys.iter().map(|key| key.sha256.as_str()).collect();
    assert_eq!(different.len(), keys.len());
}

#[tokio::test]
async fn a_challenge_offers_the_configured_schemes() {
    let fixture = AuthFixture::new();
    let key = NewKey::random();
    let keys = vec![BearerKey::new("ci", &key.sha256, &[], None).unwrap()];
    let settings = |users: bool, with_keys: bool| AuthSettings {
        users: Some(fixture.users()).filter(|_| users),
        keys: if with_keys { keys.clone() } else { Vec::new() },
        ..AuthSettings::default()
    };
    let (wrong_basic, wrong_bearer) = (basic("alice", "no"), HeaderValue::from_static("Bearer no"));
    let ours = "Basic realm=\"creole\", charset=\"UTF-8\"";
    let theirs = "Bearer realm=\"creole\"";
    let invalid = "Bearer realm=\"creole\", error=\"invalid_token\"";
    let cases = [
        (true, false, None, vec![ours]),
        (true, false, Some(&wrong_basic), vec![ours]),
        (true, false, Some(&wrong_bearer), vec![ours]),
        (false, true, None, vec![theirs]),
        (false, true, Some(&wrong_basic), vec![theirs]),
        (false, true, Some(&wrong_bearer), vec![invalid]),
        (true, true, None, vec![ours, theirs]),
        (true, true, Some(&wrong_basic), vec![ours, theirs]),
        (true, true, Some(&wrong_bearer), vec![ours, invalid]),
    ];
    for (with_users, with_keys, header, expected) in cases {
        let authenticator = fixture.open(settings(with_users, with_keys)).unwrap();
        let challenge = challenge_of(authenticator.authenticate(header, peer(1)).await);
        assert_eq!((challenge.status, offers(&challenge)), (StatusCode::UNAUTHORIZED, expected));
        let response = challenge.into_response::<String>();
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.body().contains("Authorization: Basic"), with_users);
        assert_eq!(response.body().contains("Authorization: Bearer"), with_keys);
    }
}

#[tokio::test]
async fn a_principal_without_the_role_is_forbidden() {
    let fixture = AuthFixture::new();
    let (with_role, without) = (NewKey::random(), NewKey::random());
    let keys = vec![
        BearerKey::new("good", &with_role.sha256, &["mcp".to_owned()], None).unwrap(),
        BearerKey::new("poor", &without.sha256, &["mcp2".to_owned()], None).unwrap(),
    ];
    let requirement = Requirement::role("mcp");
    let settings =
        AuthSettings { users: Some(fixture.users()), keys, requirement, ..AuthSettings::default() };
    let authenticator = fixture.open(settings).unwrap();
    granted(authenticator.authenticate(Some(&basic("alice", "sesame")), None).await);
    granted(authenticator.authenticate(Some(&bearer(&with_role.key)), None).await);
    let bob = challenge_of(authenticator.authenticate(Some(&basic("bob", "open")), None).await);
    assert_eq!((bob.status, offers(&bob)), (StatusCode::FORBIDDEN, vec![]));
    let poor = challenge_of(authenticator.authenticate(Some(&bearer(&without.key)), None).await);
    let scope = "Bearer realm=\"creole\", error=\"insufficient_scope\", scope=\"mcp\"";
    assert_eq!((poor.status, offers(&poor)), (StatusCode::FORBIDDEN, vec![scope]));
    assert_eq!(poor.body, bob.body);
    // An unknown caller does not learn that there is a role.
    let challenge = challenge_of(authenticator.authenticate(Some(&basic("bob", "no")), None).await);
    assert_eq!(challenge.status, StatusCode::UNAUTHORIZED);
    assert!(Requirement::none().check(&Principal::local()).is_ok());
    assert!(Requirement::role("mcp").check(&Principal::local()).is_err());
}

#[tokio::test]
async fn failures_are_indistinguishable_by_response_and_cost() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let encoded = |plain: &[u8]| [b"Basic ", STANDARD.encode(plain).as_bytes()].concat();
    let wrong: Vec<Vec<u8>> = vec![
        encoded(b"alice:wrong"),
        encoded(b"mallory:wrong"),
        encoded(b"mallory:sesame"),
        encoded(b":sesame"),
        encoded(b"alice"),
        encoded(b"Alice:sesame"),
        encoded(b"alice:sesame "),
        encoded(b"alice:\xff"),
        encoded(&[b'a'; 64 * 1024]),
        encoded(&[b"alice:sesame".as_slice(), &[b'e'; 64 * 1024]].concat()),
        b"Basic".to_vec(),
        b"Basic !!!".to_vec(),
        b"Basic \xff".to_vec(),
        b"Basic YWxpY2U6c2VzYW1l, Bearer x".to_vec(),
        b"Basic YWxpY2U6c2VzYW1l YWxpY2U6c2VzYW1l".to_vec(),
    ];
    let mut answers = Vec::new();
    for (number, header) in (0..).zip(&wrong) {
        let header = HeaderValue::from_bytes(header).unwrap();
        answers.push(challenge_of(authenticator.authenticate(Some(&header), peer(number)).await));
        assert_eq!(fixture.work.total(), answers.len(), "one hash for each: {header:?}");
    }
    assert_eq!(answers[0].status, StatusCode::UNAUTHORIZED);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert!(fixture.work.costs.lock().unwrap().iter().all(|cost| cost == USUAL));
}

#[tokio::test]
async fn valid_headers_are_accepted_in_every_standard_form() {
    let authenticator = AuthFixture::new().with_users();
    for form in ["basic YWxpY2U6c2VzYW1l", "BASIC YWxpY2U6c2VzYW1l", "Basic   YWxpY2U6c2VzYW1l"] {
        let verdict = authenticator.authenticate(Some(&HeaderValue::from_static(form)), None).await;
        assert_eq!(granted(verdict).id(), "user:alice", "{form}");
    }
}

#[tokio::test]
async fn with_different_costs_an_unknown_user_costs_as_much_as_a_known_one() {
    let fixture = AuthFixture::new();
    let dear = "m=65536,t=3,p=1";
    let text = user("alice", "sesame", USUAL, "") + &user("bob", "open", dear, "");
    let users = Some(fixture.write("users.txt", &text));
    let authenticator = fixture.open(AuthSettings { users, ..AuthSettings::default() }).unwrap();
    let mut seen = HashSet::new();
    for number in 0..40 {
        for from in [1, 2] {
            let header = basic(&format!("nobody{number}"), "sesame");
            challenge_of(authenticator.authenticate(Some(&header), peer(number * 2 + from)).await);
        }
        let costs = std::mem::take(&mut *fixture.work.costs.lock().unwrap());
        assert_eq!(costs[0], costs[1], "all attempts with one name cost the same");
        seen.extend(costs);
    }
    assert_eq!(seen, HashSet::from([USUAL.to_owned(), dear.to_owned()]));
}

#[tokio::test]
async fn a_file_without_users_has_the_default_cost_and_authenticates_no_caller() {
    let fixture = AuthFixture::new();
    let users = Some(fixture.write("users.txt", "# nobody\n"));
    let authenticator = fixture.open(AuthSettings { users, ..AuthSettings::default() }).unwrap();
    challenge_of(authenticator.authenticate(Some(&basic("", "")), None).await);
    assert_eq!(*fixture.work.costs.lock().unwrap(), [USUAL]);
}

#[tokio::test(start_paused = true)]
async fn a_right_password_is_not_checked_again_for_a_minute() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let header = basic("alice", "sesame");
    for _ in 0..100 {
        granted(authenticator.authenticate(Some(&header), peer(1)).await);
    }
    assert_eq!(fixture.work.total(), 1);
    granted(authenticator.authenticate(Some(&header), peer(2)).await);
    assert_eq!(fixture.work.total(), 2, "each address is checked separately");
    tokio::time::advance(password::cache::CACHE_TTL).await;
    granted(authenticator.authenticate(Some(&header), peer(1)).await);
    assert_eq!(fixture.work.total(), 3);
}

#[tokio::test]
async fn a_reload_clears_the_password_cache() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let (alice, bob) = (basic("alice", "sesame"), basic("bob", "open"));
    granted(authenticator.authenticate(Some(&alice), None).await);
    granted(authenticator.authenticate(Some(&bob), None).await);
    authenticator.reload().unwrap();
    granted(authenticator.authenticate(Some(&alice), None).await);
    assert_eq!(fixture.work.total(), 3, "the password is verified again");
    fixture.write("users.txt", &user("bob", "open", USUAL, "mcp"));
    authenticator.clone().reload().unwrap();
    challenge_of(authenticator.authenticate(Some(&alice), None).await);
    let bob = granted(authenticator.authenticate(Some(&bob), None).await);
    assert!(bob.has_role("mcp"), "the new roles apply");
}

#[tokio::test]
async fn a_check_that_began_before_a_reload_is_not_remembered_after_it() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    fixture.work.close(true);
    let begun = {
        let authenticator = authenticator.clone();
        tokio::spawn(async move {
            authenticator.authenticate(Some(&basic("alice", "sesame")), None).await
        })
    };
    while fixture.work.total() == 0 {
        tokio::task::yield_now().await;
    }
    fixture.write("users.txt", &user("bob", "open", USUAL, ""));
    authenticator.reload().unwrap();
    fixture.work.close(false);
    granted(begun.await.unwrap());
    challenge_of(authenticator.authenticate(Some(&basic("alice", "sesame")), None).await);
}

#[tokio::test]
async fn an_invalid_file_keeps_the_old_one_and_names_the_error() {
    let fixture = AuthFixture::new();
    let authenticator = fixture.with_users();
    let path = fixture.folder.path().join("users.txt");
    let header = basic("alice", "sesame");
    fixture.write("users.txt", &(user("bob", "open", USUAL, "") + "\ncarol:hunter2\n"));
    let error = authenticator.reload().unwrap_err();
    assert_eq!((error.file.as_deref(), error.line), (Some(&*path), Some(3)));
    let shown = path.display();
    let expected = format!(
        "{shown}:3: of `carol`: the value is not a hash; it may be the password itself; `creole passwd {shown} NAME` stores the hash of a password"
    );
    assert_eq!(error.to_string(), expected);
    granted(authenticator.authenticate(Some(&header), None).await);
    fs::remove_file(&path).unwrap();
    assert_eq!(
        authenticator.reload().unwrap_err().to_string(),
        format!("{shown}: the file does not exist; `creole passwd` creates it")
    );
    granted(authenticator.authenticate(Some(&header), None).await);
}

#[test]
fn settings_that_admit_no_caller_or_confuse_keys_are_refused() {
    let fixture = AuthFixture::new();
    let said = |settings| fixture.open(settings).unwrap_err().to_string();
    assert!(said(AuthSettings::default()).starts_with("neither users nor keys are configured"));
    let (one, two) = (NewKey::random().sha256, NewKey::random().sha256);
    let key = |name: &str, sha256: &str| BearerKey::new(name, sha256, &[], None).unwrap();
    let keys = |keys: Vec<BearerKey>| AuthSettings { keys, ..AuthSettings::default() };
    let twice = said(keys(vec![key("ci", &one), key("ci", &two)]));
    assert_eq!(twice, "two keys have the name `ci`");
    let same = said(keys(vec![key("ci", &one), key("cd", &one)]));
    assert!(same.starts_with("the key `cd` has the same SHA-256 as another key; "), "{same}");
    let file = fixture.write("keys.txt", &format!("\nci:$sha256${two}\n"));
    let both = AuthSettings { keys_file: Some(file.clone()), ..keys(vec![key("ci", &one)]) };
    assert_eq!(said(both), format!("{}:2: two keys have the name `ci`", file.display()));
    let problem = BearerKey::new("ci", "creole_secret", &[], None).unwrap_err().to_string();
    assert_eq!(problem, "the SHA-256 of the key `ci` is not 64 hexadecimal digits");
    assert!(
        BearerKey::new("ci", &one, &[], Some("soon"))
            .unwrap_err()
            .message
            .contains("not a valid date")
    );
    assert!(BearerKey::new("c:i", &one, &[], None).is_err());
    assert!(BearerKey::new("ci", &one, &["a b".to_owned()], None).is_err());
}
