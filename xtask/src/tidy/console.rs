//! Checks the files of the console: nothing in them makes HTML from text, and they stay small.

use super::Findings;
use crate::repository::File;

const FOLDER: &str = "crates/admin/console/";

/// What a module must not contain: a text that others wrote could become code. Chromium enforces the same by the policy of
/// the page, but only where a test goes.
const FORBIDDEN: &[&str] = &[
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "createContextualFragment",
    "setHTML",
    "srcdoc",
    "eval(",
    "new Function",
    "javascript:",
    ".style.",
    ".cssText",
    "localStorage",
    "document.cookie",
    "EventSource",
    "trustedTypes",
];

/// The only module that sends requests.
const REQUESTS: (&str, &str) = ("crates/admin/console/api.js", "fetch(");

/// The most lines of a module, and of the module of elements.
const MOST_LINES: usize = 300;
const MOST_LINES_OF_DOM: usize = 120;
/// The most lines of all modules together: more needs another technology.
const MOST_LINES_OF_ALL: usize = 6000;

pub(super) fn check(files: &[File], findings: &mut Findings) {
    let own = files.iter().filter(|file| file.path.starts_with(FOLDER));
    let mut all = 0;
    for file in own {
        if file.path.ends_with(".js") {
            all += file.text.lines().count();
            check_module(file, findings);
        } else if file.path.ends_with(".html") {
            check_page(file, findings);
        }
    }
    if all > MOST_LINES_OF_ALL {
        let text = format!("{all} lines of JavaScript");
        findings.add(FOLDER, 1, &text, &format!("the limit is {MOST_LINES_OF_ALL}"));
    }
}

fn check_module(file: &File, findings: &mut Findings) {
    for (index, line) in file.text.lines().enumerate() {
        let sends = line.contains(REQUESTS.1) && file.path != REQUESTS.0;
        let found = FORBIDDEN.iter().find(|word| line.contains(**word));
        if let Some(word) = found.copied().or(sends.then_some(REQUESTS.1)) {
            let right = "make elements with `h`, and requests with api.js";
            findings.add(&file.path, index + 1, &format!("`{word}`"), right);
        }
    }
    let lines = file.text.lines().count();
    let most = if file.path.ends_with("/dom.js") { MOST_LINES_OF_DOM } else { MOST_LINES };
    if lines > most {
        let right = format!("divide it; the limit is {most}");
        findings.add(&file.path, most + 1, &format!("{lines} lines"), &right);
    }
}

/// The page has no script and no style of its own.
fn check_page(file: &File, findings: &mut Findings) {
    for (index, line) in file.text.lines().enumerate() {
        let has_handler =
            line.split_whitespace().any(|word| word.starts_with("on") && word.contains('='));
        if line.contains("<style") || line.contains("style=") || has_handler {
            let right = "move it to console.css or to a module";
            findings.add(&file.path, index + 1, "a style or a handler in the page", right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Findings, check};
    use crate::repository::File;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Findings::default();
        check(&[file], &mut findings);
        findings.0
    }

    #[test]
    fn html_from_text_is_found_in_modules_of_the_console_only() {
        let text = "const node = h('p');\nnode.innerHTML = text;\n";
        let findings = found("crates/admin/console/pages/x.js", text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].starts_with("crates/admin/console/pages/x.js:2: `innerHTML`"),
            "{findings:?}"
        );
        assert_eq!(found("acceptance/peers/x.js", text), Vec::<String>::new());
        for text in ["eval('1')", "node.style.width = w", "fetch('/x')", "document.write(x)"] {
            assert_eq!(found("crates/admin/console/x.js", text).len(), 1, "{text}");
        }
        assert_eq!(found("crates/admin/console/api.js", "await fetch(path)"), Vec::<String>::new());
    }

    #[test]
    fn long_modules_and_styles_in_the_page_are_found() {
        assert_eq!(found("crates/admin/console/x.js", &"\n".repeat(301)).len(), 1);
        assert_eq!(found("crates/admin/console/dom.js", &"\n".repeat(121)).len(), 1);
        assert_eq!(found("crates/admin/console/index.html", "<p onclick=\"x\">").len(), 1);
        assert_eq!(found("crates/admin/console/index.html", "<p class=\"x\">").len(), 0);
    }
}
