//! Which entries of our environment a child inherits: what programs need to run, and nothing that may be a
//! secret.

use std::ffi::{OsStr, OsString};

/// What programs need to find their files, their user and their language.
const INHERITED: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// Whether children get this entry of our environment.
pub fn is_inherited(key: &OsStr) -> bool {
    key.to_str().is_some_and(|key| INHERITED.contains(&key) || key.starts_with("LC_"))
}

/// The environment of a child: what is inherited, then what was configured.
pub(super) fn of_child(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let inherited = ours.into_iter().filter(|(key, value)| {
        // Bash takes a value that begins like this for a function and runs what is behind it.
        is_inherited(key) && !value.as_encoded_bytes().starts_with(b"()")
    });
    inherited.chain(configured.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry((key, value): (&str, &str)) -> (OsString, OsString) {
        (key.into(), value.into())
    }

    #[test]
    fn only_what_programs_need_is_inherited() {
        let ours = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("LD_PRELOAD", "evil.so"),
            ("USER", "() { :; }; echo"),
        ];
        let configured = [entry(("TOKEN", "t")), entry(("PATH", "/opt"))];
        let child = of_child(ours.map(entry), &configured);
        let expected = [("PATH", "/bin"), ("LC_ALL", "C"), ("TOKEN", "t"), ("PATH", "/opt")];
        assert_eq!(child, expected.map(entry));
    }
}
