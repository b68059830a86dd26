//! Password hashing, and the checks of hashes and of new passwords.

pub(crate) mod cache;
pub(crate) mod pool;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};

use super::secret::Secret;

/// Minimum number of characters of a password.
const MIN_CHARACTERS: usize = 12;
/// Maximum number of bytes of a password: more would not fit into a header together with the name.
const MAX_BYTES: usize = 1024;

/// The allowed cost of a hash, in KiB of memory, passes and lanes. Every setting that OWASP recommends for argon2id has
/// at least 7 MiB and at least 35 MiB times passes. Without the maximum, one mistyped line could exhaust the machine.
const MIN_MEMORY_KIB: u32 = 7 * 1024;
const MIN_WORK: u64 = 35 * 1024;
const MAX_MEMORY_KIB: u32 = 256 * 1024;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 16;
/// Minimum number of bytes of the salt and of the hash itself.
const MIN_SALT_BYTES: usize = 8;
const MIN_HASH_BYTES: usize = 16;

/// The hash that is verified for an unknown user. Its password is not known, and would not help.
const DUMMY_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
                      AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of a password in the standard text form: argon2id with 19 MiB and two passes.
///
/// It takes some 20 ms, so it must not run on a thread that serves requests.
///
/// # Errors
/// When the system has no random bytes or no memory.
pub fn hash(password: &Secret) -> Result<String, argon2::password_hash::Error> {
    Argon2::default().hash_password(password.expose()).map(|hash| hash.to_string())
}

/// Checks that a new password is strong enough and fits into a header.
///
/// # Errors
/// The reason why it is rejected.
pub fn check_strength(password: &Secret, user: &str) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(password.expose()) else {
        return Err("the password is not UTF-8 text".to_owned());
    };
    let first = text.chars().next();
    if text.chars().any(char::is_control) {
        Err("the password contains a control character, which clients cannot send".to_owned())
    } else if text.chars().count() < MIN_CHARACTERS {
        Err(format!("the password has fewer than {MIN_CHARACTERS} characters"))
    } else if text.len() > MAX_BYTES {
        Err(format!("the password is longer than {MAX_BYTES} bytes"))
    } else if text.chars().all(|character| Some(character) == first) {
        Err("the password repeats a single character".to_owned())
    } else if text.eq_ignore_ascii_case(user) {
        Err("the password is the user's name".to_owned())
    } else {
        Ok(())
    }
}

/// Computes the hash of a password with the cost and the salt of `hash`, and compares in constant time.
pub(super) fn verify(password: &[u8], hash: &PasswordHash) -> bool {
    Argon2::default().verify_password(password, hash).is_ok()
}

/// A hash with the cost of a real one.
pub(super) fn dummy_hash() -> PasswordHash {
    PasswordHash::new(DUMMY_HASH).expect("the constant is a valid hash")
}

/// Parses a hash, if its kind and cost are accepted.
pub(super) fn parse_hash(text: &str) -> Result<PasswordHash, String> {
    if !text.starts_with("$argon2id$") {
        return Err(explain_unsupported_hash(text).to_owned());
    }
    let damaged = || "the hash is malformed".to_owned();
    let hash = PasswordHash::new(text).map_err(|_| damaged())?;
    let params = Params::try_from(&hash).map_err(|_| damaged())?;
    let long_enough = hash.salt.as_ref().is_some_and(|salt| salt.len() >= MIN_SALT_BYTES)
        && hash.hash.as_ref().is_some_and(|output| output.len() >= MIN_HASH_BYTES);
    if !long_enough || hash.version != Some(19) {
        return Err(damaged());
    }
    let (memory, passes) = (params.m_cost(), params.t_cost());
    if memory < MIN_MEMORY_KIB || u64::from(memory) * u64::from(passes) < MIN_WORK {
        return Err(
            "the cost of the hash is too low: passwords could be guessed from it".to_owned()
        );
    }
    if memory > MAX_MEMORY_KIB || passes > MAX_PASSES || params.p_cost() > MAX_LANES {
        return Err(
            "the cost of the hash is too high: checking it would block the server".to_owned()
        );
    }
    Ok(hash)
}

fn explain_unsupported_hash(text: &str) -> &'static str {
    let is_bcrypt = ["$2a$", "$2b$", "$2y$"].iter().any(|kind| text.starts_with(kind));
    if text.starts_with("$argon2") {
        "the hash is not argon2id but another variant of argon2"
    } else if is_bcrypt {
        "the hash is bcrypt, which is not supported"
    } else if text.starts_with('$') {
        "the kind of the hash is not supported"
    } else {
        "the value is not a hash; it may be the password itself"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_fits_its_password_only() {
        let text = hash(&"correct horse battery".into()).unwrap();
        assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        let parsed = parse_hash(&text).unwrap();
        assert!(verify(b"correct horse battery", &parsed));
        assert!(!verify(b"correct horse batterz", &parsed));
    }

    #[test]
    fn the_recommended_costs_are_accepted_and_weaker_or_excessive_ones_are_not() {
        let with = |cost: &str| parse_hash(&DUMMY_HASH.replace("m=19456,t=2,p=1", cost));
        let right = ["m=7168,t=5,p=1", "m=9216,t=4,p=1", "m=12288,t=3,p=1", "m=47104,t=1,p=1"];
        for cost in right {
            assert!(with(cost).is_ok(), "{cost}");
        }
        for cost in ["m=7167,t=16,p=1", "m=19456,t=1,p=1", "m=8,t=1,p=1"] {
            assert!(
                with(cost).unwrap_err().starts_with("the cost of the hash is too low"),
                "{cost}"
            );
        }
        for cost in ["m=262145,t=1,p=1", "m=19456,t=17,p=1", "m=19456,t=2,p=17"] {
            assert!(
                with(cost).unwrap_err().starts_with("the cost of the hash is too high"),
                "{cost}"
            );
        }
    }

    #[test]
    fn a_value_that_is_not_an_argon2id_hash_is_refused_without_being_shown() {
        let wrong = [
            ("hunter2", "the value is not a hash"),
            ("", "the value is not a hash"),
            ("$2y$10$abcdefghijklmnopqrstuv", "the hash is bcrypt"),
            ("$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA", "the hash is not argon2id"),
            ("$6$salt$hash", "the kind of the hash is not supported"),
            ("$argon2id$", "the hash is malformed"),
            ("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA", "the hash is malformed"),
            (
                "$argon2id$v=16$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
                "the hash is malformed",
            ),
        ];
        for (text, expected) in wrong {
            let output = parse_hash(text).unwrap_err();
            assert!(output.starts_with(expected), "{text}: {output}");
            assert!(!output.contains("hunter2"));
        }
    }

    #[test]
    fn weak_passwords_are_refused() {
        let weak = |password: &str| check_strength(&password.into(), "administrator").unwrap_err();
        assert_eq!(weak("hunter2"), "the password has fewer than 12 characters");
        assert_eq!(weak("aaaaaaaaaaaaaaa"), "the password repeats a single character");
        assert_eq!(weak("Administrator"), "the password is the user's name");
        assert!(weak("correct\u{7f}horse").contains("control character"));
        assert!(weak(&"ab".repeat(600)).contains("longer than 1024 bytes"));
        assert!(check_strength(&vec![0xff; 20].into(), "a").unwrap_err().contains("not UTF-8"));
        assert!(check_strength(&"correct horse: battery".into(), "a").is_ok());
    }
}
