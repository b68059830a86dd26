//! The secrets of the tests, which must not appear in a log, an error, a response or a file.
//!
//! [`watch`] registers a secret; the `Authorization` header of every request of a test is registered by itself. The logs of
//! all processes of the tests, the errors of commands and the responses of servers are then searched for all forms of the
//! secrets: as they are, and encoded as hexadecimal digits, Base64 or in a URL.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A part of every secret that the tests make up themselves. It is always searched for.
pub const MARK: &str = "canary-";

/// The shortest text that is a secret: a shorter one may appear by chance.
const MIN_LENGTH: usize = 7;

/// The maximum number of secrets that are searched for.
const MAX_SECRETS: usize = 256;

/// The registered secrets with all their forms.
static WATCHED: Mutex<Vec<Canary>> = Mutex::new(Vec::new());

/// Sources of further secrets, such as a running authorization server, with their numbers.
static SOURCES: Mutex<(usize, Vec<(usize, SecretSource)>)> = Mutex::new((0, Vec::new()));

type SecretSource = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// A secret and the texts that reveal it.
#[derive(Clone, Debug)]
struct Canary {
    secret: String,
    forms: Vec<String>,
}

impl Canary {
    fn new(secret: &str) -> Self {
        let bytes = secret.as_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut forms = vec![secret.to_owned(), url_encoded(secret), hex.to_uppercase(), hex];
        for skipped in 0..3 {
            let form = base64_inside(bytes, skipped);
            forms.extend([form.replace('+', "-").replace('/', "_"), form]);
        }
        forms.sort();
        forms.dedup();
        Self { secret: secret.to_owned(), forms }
    }

    fn is_in(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form))
    }
}

/// Registers a secret.
pub fn watch(secret: &str) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = watched.iter().any(|canary| canary.secret == secret);
    if secret.len() >= MIN_LENGTH && !is_known && watched.len() < MAX_SECRETS {
        watched.push(Canary::new(secret));
    }
}

/// Registers the secret in an `Authorization` header: its token or password.
pub(crate) fn watch_authorization(value: &str) {
    let Some((scheme, credentials)) = value.split_once(' ') else { return };
    watch(credentials);
    let decoded = decode_base64(credentials).and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some((_, password)) = decoded.as_deref().and_then(|pair| pair.split_once(':'))
        && scheme.eq_ignore_ascii_case("basic")
    {
        watch(password);
    }
}

/// A source of secrets is asked until this is dropped.
pub(crate) struct SourceGuard(usize);

impl Drop for SourceGuard {
    fn drop(&mut self) {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        sources.1.retain(|(number, _)| *number != self.0);
    }
}

/// Asks for further secrets before each search of a log, an error or a file.
pub(crate) fn watch_source(
    source: impl Fn() -> Vec<String> + Send + Sync + 'static,
) -> SourceGuard {
    let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    sources.0 += 1;
    let number = sources.0;
    sources.1.push((number, Arc::new(source)));
    SourceGuard(number)
}

/// Registers what the sources know now.
fn ask_sources() {
    let sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
    for (_, source) in sources {
        source().iter().for_each(|secret| watch(secret));
    }
}

/// The secret that a text reveals.
#[must_use]
pub fn found_in(text: &str) -> Option<String> {
    let own = Canary::new(MARK);
    let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = watched.iter().chain([&own]).find(|canary| canary.is_in(text));
    found.map(|canary| canary.secret.clone())
}

/// Checks that a log or an error reveals no secret.
///
/// # Panics
/// When it does.
#[track_caller]
pub fn assert_absent(place: &str, text: &str) {
    ask_sources();
    assert_unrevealed(place, text);
}

/// Checks that a text reveals no secret that is registered already.
#[track_caller]
pub(crate) fn assert_unrevealed(place: &str, text: &str) {
    // The first failure of a test is the one to read.
    if thread::panicking() {
        return;
    }
    if let Some(secret) = found_in(text) {
        panic!("{place} reveals the secret {secret:?}:\n{text}");
    }
}

/// Checks that no file under a folder reveals a secret, except those that are for secrets.
///
/// # Panics
/// When one does.
#[track_caller]
pub fn assert_absent_in_files(folder: &Path, is_for_secrets: impl Fn(&Path) -> bool) {
    ask_sources();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && !is_for_secrets(&path) => {
                    let bytes = fs::read(&path).unwrap_or_default();
                    let text = String::from_utf8_lossy(&bytes);
                    assert_unrevealed(&path.display().to_string(), &text);
                }
                _ => {}
            }
        }
    }
}

/// The part of the Base64 encoding that only depends on these bytes, if this number of unknown bytes modulo 3 is before
/// them and others follow.
fn base64_inside(bytes: &[u8], before: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    let encoded = base64(&padded);
    // A digit has six bits: the first whole digit begins after the unknown bytes, the last one ends before the others.
    let first = (before * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded[first..last].to_owned()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The Base64 encoding of these bytes.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    let group = |bytes: &[u8]| {
        let value = bytes.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte))
            << (8 * (3 - bytes.len()));
        let digit = |index: usize| match index <= bytes.len() {
            true => char::from(DIGITS[(value >> (18 - 6 * index) & 63) as usize]),
            false => '=',
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// The bytes of a Base64 encoding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').bytes();
    let values: Option<Vec<u32>> =
        digits.map(|digit| DIGITS.iter().position(|it| *it == digit).map(|at| at as u32)).collect();
    let values = values?;
    let bytes = values.chunks(4).flat_map(|group| {
        let value =
            group.iter().fold(0, |value, digit| value << 6 | digit) << (6 * (4 - group.len()));
        let bytes = value.to_be_bytes();
        bytes[1..group.len()].to_vec()
    });
    Some(bytes.collect())
}

/// The text as it is in a URL.
fn url_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::{Canary, base64, decode_base64};

    #[test]
    fn a_secret_is_found_in_every_form() {
        let canary = Canary::new("s3cret+with/signs");
        assert!(canary.is_in("the secret is s3cret+with/signs!"));
        assert!(canary.is_in("https://h/?q=s3cret%2Bwith%2Fsigns&r=1"));
        assert!(canary.is_in("0x7333637265742b776974682f7369676e73"));
        for before in ["", "a", "ab", "abc", "Bearer ", "user:"] {
            for after in ["", "z", "yz", "xyz"] {
                let text = format!("{before}s3cret+with/signs{after}");
                let encoded = base64(text.as_bytes());
                assert!(canary.is_in(&encoded), "{text}: {encoded}");
                assert!(canary.is_in(&encoded.replace('+', "-").replace('/', "_")), "{text}");
            }
        }
        assert!(!canary.is_in("s3cret+with") && !canary.is_in(&base64(b"s3cret+with")));
    }

    #[test]
    fn base64_is_decoded_as_it_was_encoded() {
        for text in ["", "a", "ab", "abc", "abcd", "user:password"] {
            assert_eq!(decode_base64(&base64(text.as_bytes())), Some(text.as_bytes().to_vec()));
        }
        assert_eq!(decode_base64("creole_key"), None);
    }
}
