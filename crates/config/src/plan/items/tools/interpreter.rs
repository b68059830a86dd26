//! Rejects commands that would let callers write a script: a placeholder where a shell or an interpreter expects code.

use std::path::Path;

use creole_tools::recipe::command::WordGroup;
use creole_tools::recipe::template::Template;

use crate::syntax::error::ConfigProblem;

/// Programs that take a script as an argument.
struct Interpreter {
    /// Their names, without a version.
    names: &'static [&'static str],
    /// The letters of the options that precede a script.
    letters: &'static str,
    /// The words that precede a script.
    words: &'static [&'static str],
    /// Whether all arguments after the option belong to the script, not only the first.
    takes_all: bool,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["sh", "bash", "dash", "ash", "rbash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"],
        letters: "c",
        words: &["--command", "--init-command"],
        takes_all: false,
    },
    Interpreter { names: &["python", "pypy"], letters: "c", words: &[], takes_all: false },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno"],
        letters: "ep",
        words: &["--eval", "--print", "eval"],
        takes_all: false,
    },
    Interpreter { names: &["perl"], letters: "eE", words: &[], takes_all: false },
    Interpreter { names: &["ruby"], letters: "e", words: &[], takes_all: false },
    Interpreter { names: &["php"], letters: "rBRE", words: &["--run"], takes_all: false },
    Interpreter { names: &["lua", "luajit"], letters: "e", words: &[], takes_all: false },
    Interpreter {
        names: &["julia", "Rscript", "osascript", "groovy", "elixir", "scala"],
        letters: "eE",
        words: &["--eval", "--print"],
        takes_all: false,
    },
    Interpreter {
        names: &["pwsh", "powershell"],
        letters: "c",
        words: &["-command", "-commandwithargs", "-cwa", "-e", "-ec", "-encodedcommand"],
        takes_all: true,
    },
    Interpreter { names: &["cmd"], letters: "", words: &["/c", "/k", "/r"], takes_all: true },
];

/// Programs that run the program in their arguments.
const LAUNCHERS: &[&str] = &[
    "env", "xargs", "find", "busybox", "toybox", "nice", "ionice", "chrt", "nohup", "setsid",
    "timeout", "time", "stdbuf", "sudo", "doas", "su", "runuser", "chroot", "unshare", "nsenter",
    "flock", "watch", "strace", "ltrace", "script", "parallel", "docker", "podman", "kubectl",
];

/// Rejects a command whose script has a placeholder.
pub(crate) fn check(program: &Path, groups: &[WordGroup]) -> Result<(), ConfigProblem> {
    let words: Vec<&Template> = groups.iter().flat_map(|group| &group.words).collect();
    let name = name(&program.to_string_lossy());
    if let Some(interpreter) = named(&name) {
        return check_script(&name, interpreter, &words);
    }
    if !LAUNCHERS.contains(&&*name) {
        return Ok(());
    }
    for (index, word) in words.iter().enumerate() {
        let inner = word.literal().map(self::name).unwrap_or_default();
        if let Some(interpreter) = named(&inner) {
            check_script(&inner, interpreter, &words[index + 1..])?;
        }
    }
    Ok(())
}

fn check_script(
    name: &str,
    interpreter: &Interpreter,
    words: &[&Template],
) -> Result<(), ConfigProblem> {
    for (index, word) in words.iter().enumerate() {
        if !interpreter.is_option(word.literal_prefix()) {
            continue;
        }
        let behind = &words[index + 1..];
        let script = if interpreter.takes_all { behind } else { &behind[..behind.len().min(1)] };
        let mut script = std::iter::once(word).chain(script);
        if let Some(argument) = script.find_map(|word| word.names().next()) {
            let message = format!(
                "`{{{argument}}}` is part of the script of `{name}`: callers would write the script"
            );
            let help = "pass the value as an argument after the script, such as [\"sh\", \"-c\", \
                \"wc -l -- \\\"$1\\\"\", \"sh\", \"{file}\"], or set \
                `dangerously_let_callers_write_scripts = true`";
            return Err(ConfigProblem::new(message).help(help));
        }
    }
    Ok(())
}

impl Interpreter {
    /// Whether a word with this beginning contains a script or precedes one.
    fn is_option(&self, beginning: &str) -> bool {
        let word = beginning.split_once('=').map_or(beginning, |(option, _)| option);
        if self.words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            return true;
        }
        // One letter, or several options in one word.
        let letters = beginning.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let is_cluster =
            |text: &&str| text.chars().all(|character| character.is_ascii_alphanumeric());
        letters
            .filter(is_cluster)
            .is_some_and(|text| text.contains(|one| self.letters.contains(one)))
    }
}

fn named(name: &str) -> Option<&'static Interpreter> {
    INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))
}

/// The name of a program without its folder, extension and version.
fn name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(command: &[&str]) -> bool {
        let words = command[1..]
            .iter()
            .map(|word| WordGroup { when: None, words: vec![Template::parse(word).unwrap()] });
        check(Path::new(command[0]), &words.collect::<Vec<_>>()).is_err()
    }

    #[test]
    fn a_placeholder_in_a_script_is_refused() {
        for command in [
            &["sh", "-c", "{c}"][..],
            &["/bin/bash", "-lc", "echo {c}"],
            &["bash", "-e", "-c", "{c}"],
            &["fish", "--command={c}"],
            &["python3.12", "-c", "print({c})"],
            &["python", "-Ic", "{c}"],
            &["node", "--eval", "{c}"],
            &["node", "-p", "{c}"],
            &["node", "--eval={c}"],
            &["perl", "-ne", "{c}"],
            &["perl", "-e{c}"],
            &["ruby", "-e", "{c}"],
            &["php", "-r", "{c}"],
            &["lua5.4", "-e", "{c}"],
            &["pwsh", "-NoProfile", "-Command", "Get-Item", "{c}"],
            &["cmd.exe", "/C", "dir", "{c}"],
            &["env", "A=1", "sh", "-c", "{c}"],
            &["xargs", "-0", "sh", "-c", "{c}"],
            &["busybox", "sh", "-c", "{c}"],
            &["timeout", "5", "/usr/bin/python3", "-c", "{c}"],
        ] {
            assert!(is_refused(command), "{command:?}");
        }
    }

    #[test]
    fn a_value_beside_a_script_is_an_argument() {
        for command in [
            &["sh", "-c", "wc -l -- \"$1\"", "sh", "{file}"][..],
            &["python3", "-c", "import sys", "{name}"],
            &["python3", "script.py", "{name}"],
            &["bash", "script.sh", "{name}"],
            &["grep", "-e", "{pattern}"],
            &["git", "log", "-c", "{name}"],
            &["env", "A={a}", "printenv"],
            &["node", "tool.mjs", "--name", "{name}"],
        ] {
            assert!(!is_refused(command), "{command:?}");
        }
    }
}
