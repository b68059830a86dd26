//! A browser without a person, for the variable `BROWSER`: `test-browser URL` opens the address, follows its redirects,
//! and ends. `TEST_BROWSER_LOG` names a file to which it appends its arguments. With `TEST_BROWSER_WAITS` it opens
//! nothing, as if the person were busy. `TEST_BROWSER_PERSON` names the person who fills in forms. With
//! `TEST_BROWSER_PRINTS` it prints the address of another origin that it is sent to, and does not open it.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

#[cfg(unix)]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its result")]
fn main() -> ExitCode {
    use creole_acceptance::oauth::browser::Browser;

    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(file) = std::env::var_os("TEST_BROWSER_LOG") {
        let log = OpenOptions::new().create(true).append(true).open(file);
        if let Err(error) = log.and_then(|mut log| writeln!(log, "{}", words.join(" "))) {
            eprintln!("test-browser: {error}");
        }
    }
    if std::env::var_os("TEST_BROWSER_WAITS").is_some() {
        return ExitCode::SUCCESS;
    }
    let mut browser = match std::env::var("TEST_BROWSER_PERSON") {
        Ok(person) => Browser::of(&person),
        Err(_) => Browser::default(),
    };
    let url = words.first().map_or("", String::as_str);
    let visited = match std::env::var_os("TEST_BROWSER_PRINTS") {
        Some(_) => browser.open(url).map(|address| println!("{address}")),
        None => browser.follow(url),
    };
    match visited {
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
