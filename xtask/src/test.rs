//! `cargo xtask test`: runs all checks that must pass before a merge, as a list of steps.
//!
//! Steps that fail quickly come first and the tests come last, so that their summary ends the output.

mod steps;

use std::env;
use std::time::{Duration, Instant};

use crate::repository::Repository;
use crate::{say, show};
use steps::{STEPS, Step};

/// The result of a step. The note of a success may say that not everything could be checked.
type Outcome = Result<Option<String>, String>;

/// Runs all steps, or the named one.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let repository = Repository::find()?;
    match words {
        [] => run_all(&repository),
        ["--only", name] => run_only(&repository, name),
        ["--list"] => show(&list()),
        _ => Err(format!("usage: cargo xtask test [--only STEP]; the steps are:\n{}", list())),
    }
}

fn run_all(repository: &Repository) -> Result<(), String> {
    let started = Instant::now();
    let mut notes = Vec::new();
    for (position, step) in STEPS.iter().enumerate() {
        let location = format!("{}/{} ", position + 1, STEPS.len());
        notes.extend(take(step, &location, repository)?);
    }
    say(&summary(STEPS.len(), started.elapsed(), &notes));
    Ok(())
}

fn run_only(repository: &Repository, name: &str) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name);
    let step = step.ok_or_else(|| format!("unknown step `{name}`; the steps are:\n{}", list()))?;
    take(step, "", repository).map(drop)
}

/// Runs one step under a heading, and reports its duration.
fn take(step: &Step, location: &str, repository: &Repository) -> Outcome {
    let Step { name, about, .. } = step;
    say(&format!("\n== {location}{name}: {about}"));
    let started = Instant::now();
    match (step.run)(repository) {
        Ok(note) => {
            if let Some(note) = &note {
                say(&format!("== {name}: INCOMPLETE: {note}"));
            }
            say(&format!("== {name}: passed in {}", seconds(started.elapsed())));
            Ok(note)
        }
        Err(problem) => Err(format!(
            "\n== {name}: FAILED after {}: {problem}\n   to repeat only this step: \
             cargo xtask test --only {name}",
            seconds(started.elapsed()),
        )),
    }
}

fn summary(steps: usize, took: Duration, notes: &[String]) -> String {
    let mut summary = format!("\n== all {steps} steps passed in {}", seconds(took));
    for note in notes {
        summary.push_str(&format!("\n   not checked: {note}"));
    }
    summary
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn list() -> String {
    let lines = STEPS.iter().map(|step| format!("  {:10} {}", step.name, step.about));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether an incomplete check is a failure.
fn is_strict() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_step_shows_the_valid_ones() {
        let message = run(&["--only", "everything"]).unwrap_err();
        for step in STEPS {
            assert!(message.contains(step.name), "{message}");
        }
    }

    #[test]
    fn a_failure_names_the_command_that_repeats_it() {
        let step = Step { name: "lint", about: "", run: |_| Err("it is untidy".into()) };
        let message = take(&step, "", &Repository::find().unwrap()).unwrap_err();
        assert!(
            message.contains("it is untidy") && message.ends_with("cargo xtask test --only lint")
        );
    }

    #[test]
    fn the_summary_repeats_the_skipped_checks() {
        let notes = ["the schemas".to_owned()];
        let message = summary(9, Duration::from_millis(1540), &notes);
        assert_eq!(message, "\n== all 9 steps passed in 1.5 s\n   not checked: the schemas");
    }
}
