//! A browser without a person, for the variable `BROWSER`: `test-browser URL` opens the address, follows its redirects,
//! and ends. `TEST_BROWSER_LOG` names a file to which it appends its arguments.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

#[cfg(unix)]
#[expect(clippy::print_stderr, reason = "stderr is the only place for the error")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(file) = std::env::var_os("TEST_BROWSER_LOG") {
        let log = OpenOptions::new().create(true).append(true).open(file);
        if let Err(error) = log.and_then(|mut log| writeln!(log, "{}", words.join(" "))) {
            eprintln!("test-browser: {error}");
        }
    }
    let mut browser = creole_acceptance::oauth::browser::Browser::default();
    match browser.follow(words.first().map_or("", String::as_str)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("test-browser: {problem}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
