//! The verbs of the command line, one per file.

mod admin;
mod approve;
mod audit;
mod call;
mod check;
mod config;
mod connect;
mod list;
mod login;
mod man;
mod passwd;
mod policy;
mod prompt;
mod read;
mod reap;
mod serve;
mod setup;
mod status;

use crate::args::Command;
use crate::failure::{Failure, suggestion};

/// Runs the verb.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Connect(args) => connect::run(args),
        Command::List(args) => list::run(args),
        Command::Call(args) => call::run(args),
        Command::Read(args) => read::run(args),
        Command::Prompt(args) => prompt::run(args),
        Command::Check(args) => check::run(args),
        Command::Status(args) => status::run(args),
        Command::Login(args) => login::run(args),
        Command::Logout(args) => login::logout::run(args),
        Command::Logins(args) => login::logins::run(args),
        Command::Init(args) => setup::init::run(args),
        Command::Add(args) => setup::add::run(args),
        Command::Install(args) => setup::install::run(args),
        Command::Import(args) => setup::import::run(args),
        Command::Config(command) => config::run(command),
        Command::Policy(command) => policy::run(command),
        Command::Audit(command) => audit::run(command),
        Command::Passwd(args) => passwd::run(args),
        Command::Completions(args) => man::print_completions(args),
        Command::Man(args) => man::run(args),
        Command::Reap => {
            reap::run();
            Ok(())
        }
        Command::Console(args) => admin::console::run(args),
        Command::Top(args) => admin::top::run(args),
        Command::Trace(args) => admin::trace::run(args),
        Command::Approve(args) => approve::run(args),
    }
}

/// The only positional argument besides the server.
fn only_word<'a>(rest: &'a [String], description: &str, verb: &str) -> Result<&'a str, Failure> {
    match rest {
        [word] => Ok(word),
        [] => Err(Failure::Usage(format!(
            "{description} is missing; `{verb}` shows what the server offers"
        ))),
        [_, extra, ..] if extra.contains('=') => {
            Err(Failure::Usage(format!("unexpected argument `{extra}`; write --arg {extra}")))
        }
        [_, extra, ..] => Err(Failure::Usage(format!("unexpected argument `{extra}`"))),
    }
}

/// The error for an unknown name, with the known ones.
fn unknown_name(server: &str, description: &str, name: &str, known: &[&str]) -> String {
    let hint = match known {
        [] => "it has none".to_owned(),
        known => suggestion(name, known),
    };
    crate::output::printable(&format!("`{server}` has no {description} `{name}`: {hint}"))
}
