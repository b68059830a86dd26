//! Secrets do not appear in logs, in errors or in debug output.

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

/// Captures everything that is logged, on every level.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<String>>);

impl Subscriber for CapturedLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("creole")
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut FieldWriter(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

struct FieldWriter<'a>(&'a mut String);

impl Visit for FieldWriter<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}

#[tokio::test]
async fn credentials_are_neither_logged_nor_printed() {
    let log = CapturedLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let fixture = AuthFixture::new();
    let key = NewKey::random();
    let keys = vec![BearerKey::new("ci", &key.sha256, &[], None).unwrap()];
    let settings = AuthSettings { users: Some(fixture.users()), keys, ..AuthSettings::default() };
    let authenticator = fixture.open(settings.clone()).unwrap();
    let canary = "canary-in-the-mine";
    let headers = [
        basic("alice", "sesame"),
        basic("alice", canary),
        basic(canary, canary),
        HeaderValue::from_static("Bearer canary-in-the-mine"),
        HeaderValue::from_static("Basic canary-in-the-mine"),
        HeaderValue::from_static("Canary canary-in-the-mine"),
        bearer(&key.key),
    ];
    let mut printed = format!("{authenticator:?} {settings:?} {key:?}");
    for header in &headers {
        let decision = authenticator.authenticate(Some(header), peer(1)).await;
        let offer = PresentedCredentials::read(Some(header));
        // A name is not a secret in the debug output of the header's parser; a password is.
        if !matches!(&offer, PresentedCredentials::Basic { name, .. } if name == canary) {
            let _ = write!(printed, "{offer:?}");
        }
        let _ = write!(printed, "{decision:?} {:?}", authenticator.shared.credentials.load());
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("authentication failed") && logged.contains("status=401"), "{logged}");
    let key = String::from_utf8(key.key.expose().to_vec()).unwrap();
    let encoded = [STANDARD.encode("alice:sesame"), STANDARD.encode(format!("alice:{canary}"))];
    for secret in [canary, "sesame", &key, &encoded[0], &encoded[1]] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_is_refused_and_one_that_they_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt;

    let log = CapturedLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let fixture = AuthFixture::new();
    let path = fixture.users();
    let open = |mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fixture.open(AuthSettings { users: Some(path.clone()), ..AuthSettings::default() })
    };
    for mode in [0o620, 0o602, 0o666] {
        let text = open(mode).unwrap_err().to_string();
        let shown = path.display();
        let expected = format!(
            "{shown}: users other than the owner may write the file (mode {mode:03o}); chmod 600 {shown}"
        );
        assert_eq!(text, expected);
    }
    for mode in [0o600, 0o640, 0o400] {
        open(mode).unwrap();
    }
    assert_eq!(*log.0.lock().unwrap(), "");
    open(0o644).unwrap();
    assert!(log.0.lock().unwrap().contains("every user of this machine can read the file"));
}
