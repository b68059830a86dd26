//! Checks the allowed dependencies of each crate, and that each dependency has a documented reason.

use super::Findings;
use crate::repository::File;

/// A crate, the crates of this workspace that it may use, and its external crates.
type Allowed = (&'static str, &'static [&'static str], &'static [&'static str]);

/// How tests wait. The tests of every crate may use it.
const TEST_WAIT: &str = "creole-test-wait";

/// The directions of ARCHITECTURE.md. Dependencies of tests need a reason but no entry here.
const ALLOWED: &[Allowed] = &[
    ("creole-proto", &[], &["memchr", "once_cell", "serde", "serde_json", "simdutf8"]),
    (TEST_WAIT, &[], &["tokio"]),
    (
        "creole-oauth",
        &["creole-proto"],
        &["aws-lc-rs", "base64", "getrandom", "serde", "serde_json", "subtle", "zeroize"],
    ),
    (
        "creole",
        &["creole-oauth", "creole-proto"],
        &[
            "arc-swap",
            "argon2",
            "base64",
            "bytes",
            "chacha20poly1305",
            "close_fds",
            "getrandom",
            "granit-parser",
            "http",
            "http-body",
            "httparse",
            "httpdate",
            "hyper",
            "hyper-rustls",
            "hyper-util",
            "jsonschema",
            "pin-project-lite",
            "redis",
            "rusqlite",
            "rustix",
            "rustls",
            "schemars",
            "serde",
            "serde_json",
            "sha2",
            "subtle",
            "tokio",
            "tokio-postgres",
            "tokio-rustls",
            "tower-service",
            "tracing",
        ],
    ),
    (
        "creole-gateway",
        &["creole", "creole-proto"],
        &["memchr", "regex", "serde", "serde_json", "tokio", "tracing"],
    ),
    (
        "creole-policy",
        &["creole", "creole-gateway", "creole-proto"],
        &["jiff", "regex", "serde_json"],
    ),
    (
        "creole-telemetry",
        &["creole", "creole-proto"],
        &[
            "base64",
            "bytes",
            "http",
            "httpdate",
            "opentelemetry-proto",
            "prost",
            "tokio",
            "tracing",
        ],
    ),
    (
        "creole-admin",
        &["creole", "creole-gateway", "creole-proto", "creole-telemetry"],
        &[
            "base64",
            "bytes",
            "http",
            "hyper",
            "hyper-util",
            "schemars",
            "serde",
            "serde_json",
            "tokio",
            "tracing",
        ],
    ),
    (
        "creole-config",
        &[
            "creole",
            "creole-admin",
            "creole-gateway",
            "creole-policy",
            "creole-proto",
            "creole-telemetry",
            "creole-tools",
            "creole-wordpress",
        ],
        &["regex", "schemars", "serde", "serde_json", "tokio", "toml", "tracing"],
    ),
    (
        "creole-tools",
        &["creole", "creole-proto"],
        &[
            "base64",
            "bytes",
            "etcetera",
            "getrandom",
            "granit-parser",
            "http",
            "minijinja",
            "nanoexpr",
            "notify",
            "rquickjs",
            "rusqlite",
            "rustix",
            "serde",
            "serde_json",
            "tokio",
            "tokio-postgres",
            "tracing",
        ],
    ),
    (
        "creole-wordpress",
        &["creole", "creole-proto", "creole-tools"],
        &["base64", "bytes", "http", "serde_json", "tokio", "tracing"],
    ),
    (
        "creole-commands",
        &[
            "creole",
            "creole-admin",
            "creole-config",
            "creole-gateway",
            "creole-policy",
            "creole-proto",
            "creole-tools",
            "creole-wordpress",
        ],
        &[
            "base64",
            "clap",
            "clap_complete",
            "clap_mangen",
            "jsonc-parser",
            "listenfd",
            "open",
            "rustix",
            "sd-notify",
            "serde_json",
            "tokio",
            "toml_edit",
            "tracing",
            "tracing-subscriber",
            "unicode-width",
        ],
    ),
    ("creole-cli", &["creole-commands"], &[]),
    (
        "creole-acceptance",
        &[
            "creole",
            "creole-config",
            "creole-gateway",
            "creole-proto",
            "creole-telemetry",
            "creole-test-wait",
            "creole-tools",
        ],
        &[
            "jsonschema",
            "rusqlite",
            "rust-mcp-schema",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "socket2",
            "tempfile",
            "tokio",
        ],
    ),
    ("xtask", &["creole-proto"], &[]),
];

const REASONS: &str = "docs/dependencies.md";

pub(super) fn check(files: &[File], findings: &mut Findings) {
    let text_of = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let manifests: Vec<Manifest<'_>> = files.iter().filter_map(Manifest::of_member).collect();
    for manifest in &manifests {
        manifest.check(findings);
    }
    let shared = entries(text_of("Cargo.toml").unwrap_or_default(), "workspace.dependencies");
    let shared: Vec<&Entry> = shared.iter().filter(|entry| !is_ours(&entry.name)).collect();
    let reasons = rows(text_of(REASONS).unwrap_or_default());
    for Entry { line, name, .. } in &shared {
        if !reasons.iter().any(|(_, row)| row == name) {
            let right = format!("add a row with the reason to {REASONS}");
            findings.add(
                "Cargo.toml",
                *line,
                &format!("`{name}` has no documented reason"),
                &right,
            );
        }
        if !manifests.iter().any(|manifest| manifest.uses(name)) {
            findings.add("Cargo.toml", *line, &format!("no crate uses `{name}`"), "remove it");
        }
    }
    for (line, row) in reasons {
        if !shared.iter().any(|entry| entry.name == row) {
            let problem = format!("a reason for `{row}`, which is not a dependency");
            findings.add(REASONS, line, &problem, "remove it");
        }
    }
}

/// The dependencies of one crate of the workspace.
struct Manifest<'a> {
    path: &'a str,
    name: String,
    normal: Vec<Entry>,
    for_tests: Vec<Entry>,
}

impl<'a> Manifest<'a> {
    fn of_member(file: &'a File) -> Option<Self> {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        let is_member = matches!(folder, "acceptance" | "xtask")
            || folder.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
        let name = file.text.lines().find_map(|line| line.strip_prefix("name = \""))?;
        is_member.then(|| Self {
            path: &file.path,
            name: name.trim_end_matches('"').to_owned(),
            normal: entries(&file.text, "dependencies"),
            for_tests: entries(&file.text, "dev-dependencies"),
        })
    }

    fn uses(&self, name: &str) -> bool {
        self.normal.iter().chain(&self.for_tests).any(|entry| entry.name == name)
    }

    fn check(&self, findings: &mut Findings) {
        let Some((_, ours, theirs)) = ALLOWED.iter().find(|(name, ..)| *name == self.name) else {
            let right = "add a row to xtask/src/tidy/dependencies.rs";
            return findings.add(
                self.path,
                1,
                "this crate has no list of allowed dependencies",
                right,
            );
        };
        let may_use =
            |name: &str| if is_ours(name) { ours.contains(&name) } else { theirs.contains(&name) };
        let is_directed = |entry: &&Entry| is_ours(&entry.name) && entry.name != TEST_WAIT;
        let for_tests = self.for_tests.iter().filter(is_directed);
        for Entry { line, name, .. } in self.normal.iter().chain(for_tests) {
            if !may_use(name) {
                let problem = format!("`{}` must not depend on `{name}`", self.name);
                let right =
                    "remove it, or change ARCHITECTURE.md and xtask/src/tidy/dependencies.rs";
                findings.add(self.path, *line, &problem, right);
            }
        }
        for Entry { line, name, versioned } in self.normal.iter().chain(&self.for_tests) {
            if *versioned {
                let problem = format!("`{name}` has its own version");
                findings.add(
                    self.path,
                    *line,
                    &problem,
                    "set the version in the root Cargo.toml, and use `workspace = true` here",
                );
            }
        }
    }
}

/// Whether a crate belongs to this workspace.
fn is_ours(name: &str) -> bool {
    name == "creole" || name.starts_with("creole-") || name == "xtask"
}

/// One line of a table of dependencies.
struct Entry {
    line: usize,
    name: String,
    versioned: bool,
}

/// The dependencies in a table, including platform-specific tables.
fn entries(manifest: &str, table: &str) -> Vec<Entry> {
    let mut inside = false;
    let mut entries = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let platform = header.strip_prefix("target.").and_then(|rest| rest.rsplit_once('.'));
            inside = platform.map_or(header, |(_, kind)| kind) == table;
        } else if let Some((key, value)) =
            line.split_once('=').filter(|_| inside && !line.starts_with('#'))
        {
            let name = undated(key.trim().split('.').next().unwrap_or_default());
            let versioned = value.trim().starts_with('"') || value.contains("version = ");
            entries.push(Entry { line: index + 1, name: name.to_owned(), versioned });
        }
    }
    entries
}

/// The name without a date. A crate that is used in several releases has the date of a revision after its name.
fn undated(name: &str) -> &str {
    let is_date = |tail: &str| {
        tail.starts_with("-20")
            && tail.chars().skip(1).all(|character| character == '-' || character.is_ascii_digit())
    };
    match name
        .len()
        .checked_sub("-2026-07-28".len())
        .and_then(|offset| name.split_at_checked(offset))
    {
        Some((crate_name, tail)) if is_date(tail) => crate_name,
        _ => name,
    }
}

/// The names in the first column of a document's tables, with their lines.
fn rows(document: &str) -> Vec<(usize, &str)> {
    let name = |line: &'_ str| Some(line.strip_prefix("| `")?.split_once('`')?.0.len());
    let lines = document.lines().enumerate();
    lines.filter_map(|(index, line)| Some((index + 1, &line[3..3 + name(line)?]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        let files: Vec<File> = files.iter().map(file).collect();
        let mut findings = Findings::default();
        check(&files, &mut findings);
        findings.0
    }

    #[test]
    fn the_configuration_joins_gateway_and_tools_which_do_not_know_each_other() {
        let config = "name = \"creole-config\"\n[dependencies]\ncreole-tools.workspace = true\n\
                      creole-gateway.workspace = true\n";
        assert_eq!(findings(&[("crates/config/Cargo.toml", config)]), Vec::<String>::new());
        let gateway = "name = \"creole-gateway\"\n[dependencies]\ncreole-tools.workspace = true\n";
        let messages = findings(&[("crates/gateway/Cargo.toml", gateway)]);
        assert_eq!(messages.len(), 1);
        assert!(
            messages[0].contains("`creole-gateway` must not depend on `creole-tools`"),
            "{messages:?}"
        );
        let tools = "name = \"creole-tools\"\n[dependencies]\ncreole-gateway.workspace = true\n";
        let messages = findings(&[("crates/tools/Cargo.toml", tools)]);
        assert_eq!(messages.len(), 1);
        assert!(
            messages[0].starts_with("crates/tools/Cargo.toml:3: `creole-tools` must not depend")
        );
    }

    #[test]
    fn tests_may_use_crates_of_others_but_not_reverse_a_direction() {
        let manifest = "name = \"creole-proto\"\n[dev-dependencies]\nproptest.workspace = true\n\
                        creole-test-wait.workspace = true\ncreole = { workspace = true }\n[target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n";
        let messages = findings(&[("crates/proto/Cargo.toml", manifest)]);
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[0].contains("on `rustix`") && messages[1].contains("on `creole`"));
        assert!(messages[2].contains("`rustix` has its own version"));
    }

    #[test]
    fn each_dependency_has_a_reason_and_each_reason_a_dependency() {
        let root =
            "[workspace.dependencies]\ncreole = { path = \"x\" }\nserde = \"1\"\n[profile.dev]\n";
        let user = "name = \"creole-proto\"\n[dependencies]\nserde.workspace = true\n";
        let messages = findings(&[
            ("Cargo.toml", root),
            ("crates/proto/Cargo.toml", user),
            (REASONS, "| crate | why |\n| `clap` | - |\n"),
        ]);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[0].contains("`serde` has no documented reason")
                && messages[1].contains("`clap`")
        );
    }
}
