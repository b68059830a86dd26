//! Arguments of a verb that are described when the verb is used: a server start pays for one verb and
//! not for all of them.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

/// What a verb takes, described only if that verb is meant or its help is asked for.
#[derive(Clone, Debug)]
pub(crate) struct LazyArgs<T>(T);

impl<T> Deref for LazyArgs<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for LazyArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for LazyArgs<T> {
    fn augment_args(verb: Command) -> Command {
        verb.defer(|verb| with_arguments(verb, T::augment_args))
    }

    fn augment_args_for_update(verb: Command) -> Command {
        verb.defer(|verb| with_arguments(verb, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for LazyArgs<T> {
    fn augment_subcommands(verb: Command) -> Command {
        verb.defer(|verb| with_arguments(verb, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(verb: Command) -> Command {
        verb.defer(|verb| with_arguments(verb, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

/// The verb with what it takes. What is said about it in the list of verbs stays: the words at the type are for
/// readers of the code.
fn with_arguments(verb: Command, describe: fn(Command) -> Command) -> Command {
    let (short, long) = (verb.get_about().cloned(), verb.get_long_about().cloned());
    describe(verb).about(Resettable::from(short)).long_about(Resettable::from(long))
}
