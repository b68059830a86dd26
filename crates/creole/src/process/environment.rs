//! Selects the environment entries that a child inherits: those that programs need to run, and none that may be a
//! secret.

use std::ffi::{OsStr, OsString};

/// The variables by which programs find their files, their user, their language and their network settings.
const INHERITED_VARIABLES: [&str; 27] = [
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
    // The certificate authorities of a network, and its proxies. Credentials in a proxy's URL belong to the user, as
    // everything that a program does there.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Whether children inherit this variable.
pub(crate) fn is_inherited(key: &OsStr) -> bool {
    key.to_str().is_some_and(|key| INHERITED_VARIABLES.contains(&key) || key.starts_with("LC_"))
}

/// The environment of a child: the inherited entries, then the configured ones.
pub(super) fn child_environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let inherited = ours.into_iter().filter(|(key, value)| {
        // Bash treats a value that starts like this as a function and runs the code behind it.
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
    fn authorities_and_proxies_of_the_network_are_inherited() {
        for key in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"] {
            assert!(is_inherited(OsStr::new(key)), "{key}");
        }
        for key in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            let small = key.to_lowercase();
            assert!(is_inherited(OsStr::new(key)) && is_inherited(OsStr::new(&small)), "{key}");
        }
        assert!(!is_inherited(OsStr::new("FTP_PROXY")));
    }

    #[test]
    fn only_basic_variables_are_inherited() {
        let ours = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("LD_PRELOAD", "evil.so"),
            ("USER", "() { :; }; echo"),
        ];
        let configured = [entry(("TOKEN", "t")), entry(("PATH", "/opt"))];
        let child = child_environment(ours.map(entry), &configured);
        let expected = [("PATH", "/bin"), ("LC_ALL", "C"), ("TOKEN", "t"), ("PATH", "/opt")];
        assert_eq!(child, expected.map(entry));
    }
}
