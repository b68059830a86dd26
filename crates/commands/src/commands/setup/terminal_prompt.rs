//! Prompts of Creole itself to the user at the terminal.

use std::io;
use std::io::{BufRead, IsTerminal, Read};

use crate::failure::Failure;
use crate::output;

/// The maximum length of an input line.
const MAX_LINE: u64 = 64 * 1024;

/// Whether a user can be asked.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a line. The end of the input ends the command.
pub(crate) fn ask_line(question: &str) -> Result<String, Failure> {
    output::prompt(question);
    let mut line = String::new();
    match io::stdin().lock().take(MAX_LINE).read_line(&mut line) {
        Ok(1..) => Ok(line.trim().to_owned()),
        _ => {
            output::write_message("");
            Err(Failure::Usage("stdin ended before an answer; nothing was changed".to_owned()))
        }
    }
}

/// Asks until the answer is valid.
pub(crate) fn ask_until_valid<T>(
    question: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    for _ in 0..10 {
        match read(&ask_line(question)?) {
            Ok(answer) => return Ok(answer),
            Err(problem) => output::write_message(&format!("  {problem}")),
        }
    }
    Err(Failure::Usage("too many invalid answers; nothing was changed".to_owned()))
}

/// Asks for yes or no.
pub(crate) fn confirm(question: &str) -> Result<bool, Failure> {
    ask_until_valid(&format!("{question} (yes or no): "), |answer| {
        match answer.to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" | "" => Ok(false),
            other => Err(format!("invalid answer `{other}`; write yes or no")),
        }
    })
}
