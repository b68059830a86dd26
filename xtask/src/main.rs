//! The development tasks of this repository. `cargo xtask` lists them.

mod bench;
mod dashboards;
mod docs;
mod repository;
mod test;
mod tidy;

use std::env;
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--only STEP]    run all checks that must pass before a merge; `test --list` lists the steps
  tidy                  check the rules of the source tree that compilers do not check
  docs [--check]        generate docs/dialects, docs/conformance.md, docs/configuration.md and docs/metrics.md,
                        or report which of them are outdated
  dashboards            generate packaging/grafana and packaging/prometheus from the table of metrics
  bench stdio           compare Creole, rmcp, rust-mcp-sdk and bare echoes on stdio
  bench http            compare Creole, rmcp, tower-mcp and a bare responder on HTTP
  bench gateway         compare calls through Creole, other gateways and a bare relay
  bench scale           measure calls with several replicas on one store
  bench instructions    count the instructions per call with callgrind";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem);
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => show(USAGE),
        ["test", rest @ ..] => test::run(rest),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["dashboards"] => dashboards::write(),
        ["bench", "stdio", ..] => bench::stdio(&arguments[2..]),
        ["bench", "http", ..] => bench::http(&arguments[2..]),
        ["bench", "gateway", ..] => bench::gateway(&arguments[2..]),
        ["bench", "scale", ..] => bench::scale(&arguments[2..]),
        ["bench", "instructions", ..] => bench::instructions(&arguments[2..]),
        _ => Err(format!("unknown task `{}`\n{USAGE}", words.join(" "))),
    }
}

/// Writes a message to stderr. A failed write is ignored.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes the output to stdout.
fn show(text: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| format!("cannot print: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{USAGE, run};

    #[test]
    fn an_invalid_command_shows_the_valid_ones() {
        for invalid in [&["tset"][..], &["docs", "--chekc"], &["tidy", "now"], &["bench"]] {
            let words: Vec<String> = invalid.iter().map(ToString::to_string).collect();
            assert!(run(&words).unwrap_err().ends_with(USAGE));
        }
    }
}
