//! The arguments of a program, from the words of a template and the values of a call.
//!
//! A value is always one program argument or a part of one, whatever it contains. An array becomes several arguments
//! only if a word is just its placeholder. A value that begins with `-` cannot become an option: it is rejected at the
//! start of a word, unless `--` precedes it, the configuration lists it as a choice, or allows it by name.

use creole::ToolError;
use serde_json::Value;

use super::WordGroup;
use crate::recipe::argument::{ArgumentValues, invalid_argument, text};
use crate::recipe::template::{Template, TemplatePart};

/// Maximum length of a program argument (execve(2), `MAX_ARG_STRLEN`).
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Maximum total length of all arguments.
const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// The arguments of the program.
pub(super) fn build_argv(
    groups: &[WordGroup],
    values: &ArgumentValues<'_>,
) -> Result<Vec<String>, ToolError> {
    let mut filling = ArgvBuilder { values, argv: Vec::new(), is_after_dashes: false };
    for group in groups {
        filling.group(group)?;
    }
    if filling.argv.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_TOTAL_BYTES {
        return Err(invalid_argument("arguments", "are too long for a program"));
    }
    Ok(filling.argv)
}

struct ArgvBuilder<'a> {
    values: &'a ArgumentValues<'a>,
    argv: Vec<String>,
    /// Whether the following arguments cannot be options.
    is_after_dashes: bool,
}

impl ArgvBuilder<'_> {
    fn group(&mut self, group: &WordGroup) -> Result<(), ToolError> {
        let wanted = |name: &String| self.values.get(name) == Some(&Value::Bool(true));
        let is_there = |name: &str| match self.values.get(name) {
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
            None => false,
        };
        if !group.when.as_ref().is_none_or(wanted)
            || !group.words.iter().flat_map(Template::names).all(is_there)
        {
            return Ok(());
        }
        group.words.iter().try_for_each(|word| self.word(word))
    }

    fn word(&mut self, word: &Template) -> Result<(), ToolError> {
        if let Some(text) = word.literal() {
            self.is_after_dashes |= text == "--";
            self.argv.push(text.to_owned());
            return Ok(());
        }
        if let Some(name) = word.single_argument()
            && let Some(Value::Array(items)) = self.values.get(name)
        {
            return items.iter().try_for_each(|item| self.push(word, text(item)));
        }
        match word.fill(|name| self.values.to_text(name)) {
            Some(text) => self.push(word, text),
            None => Ok(()),
        }
    }

    fn push(&mut self, word: &Template, text: String) -> Result<(), ToolError> {
        let name = word.names().next().unwrap_or_default();
        if text.contains('\0') {
            return Err(invalid_argument(name, "contains a NUL character"));
        }
        if text.len() > MAX_ARGUMENT_BYTES {
            return Err(invalid_argument(name, "is too long for a program"));
        }
        let may = self
            .values
            .argument(name)
            .is_some_and(|argument| argument.is_choice || argument.leading_dash);
        let begins = matches!(word.parts().first(), Some(TemplatePart::Argument(_)));
        if begins && text.starts_with('-') && !self.is_after_dashes && !may {
            return Err(invalid_argument(name, "must not begin with `-`"));
        }
        self.argv.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use serde_json::json;

    use super::*;
    use crate::recipe::argument::tests::argument;
    use crate::recipe::argument::{ArgumentType, RecipeArgument};

    fn words(texts: &[&str]) -> WordGroup {
        let words = texts.iter().map(|text| Template::parse(text).unwrap()).collect();
        WordGroup { when: None, words }
    }

    fn arguments() -> Vec<RecipeArgument> {
        vec![
            argument("a", ArgumentType::String),
            argument("b", ArgumentType::String),
            argument("list", ArgumentType::Array),
            argument("yes", ArgumentType::Boolean),
            RecipeArgument { is_choice: true, ..argument("choice", ArgumentType::String) },
            RecipeArgument { leading_dash: true, ..argument("free", ArgumentType::String) },
        ]
    }

    fn filled(groups: &[WordGroup], brought: Value) -> Result<Vec<String>, ToolError> {
        let arguments = arguments();
        build_argv(groups, &ArgumentValues::new(&arguments, brought))
    }

    #[test]
    fn every_value_is_one_argument_whatever_is_in_it() {
        let hostile = [
            "; rm -rf /",
            "$(id)",
            "`id`",
            "a|b",
            "a\nb",
            "*",
            "~",
            "",
            " ",
            "'\"\\",
            "{b}",
            "%s",
            "&&",
            ">x",
        ];
        for value in hostile {
            let argv =
                filled(&[words(&["{a}"]), words(&["x{a}y"])], json!({ "a": value })).unwrap();
            assert_eq!(argv, [value.to_owned(), format!("x{value}y")]);
        }
    }

    #[test]
    fn a_value_cannot_become_an_option() {
        for value in ["-x", "--upload-pack=x", "-"] {
            assert!(filled(&[words(&["{a}"])], json!({ "a": value })).is_err(), "{value}");
            assert!(filled(&[words(&["{a}{b}"])], json!({ "a": "", "b": value })).is_err());
            assert!(filled(&[words(&["{list}"])], json!({ "list": ["ok", value] })).is_err());
            let behind = filled(&[words(&["--"]), words(&["{a}"])], json!({ "a": value })).unwrap();
            assert_eq!(behind, ["--", value]);
            assert_eq!(filled(&[words(&["--o={a}"])], json!({ "a": value })).unwrap().len(), 1);
            assert!(filled(&[words(&["{choice}"])], json!({ "choice": value })).is_ok());
            assert!(filled(&[words(&["{free}"])], json!({ "free": value })).is_ok());
        }
        // A value `--` does not count as the separator.
        let both = [words(&["{free}"]), words(&["{a}"])];
        assert!(filled(&both, json!({ "free": "--", "a": "-x" })).is_err());
    }

    #[test]
    fn words_of_a_group_are_present_or_absent_together() {
        let groups = [words(&["log"]), words(&["-n", "{a}"]), words(&["{b}"])];
        assert_eq!(filled(&groups, json!({})).unwrap(), ["log"]);
        assert_eq!(filled(&groups, json!({ "a": "3" })).unwrap(), ["log", "-n", "3"]);
        let flag = WordGroup { when: Some("yes".into()), ..words(&["--all"]) };
        assert_eq!(filled(slice::from_ref(&flag), json!({ "yes": true })).unwrap(), ["--all"]);
        assert!(filled(slice::from_ref(&flag), json!({ "yes": false })).unwrap().is_empty());
        assert!(filled(&[flag], json!({})).unwrap().is_empty());
    }

    #[test]
    fn a_list_alone_becomes_several_arguments() {
        let groups = [words(&["--tags", "{list}"])];
        let argv = filled(&groups, json!({ "list": ["a b", "c"] })).unwrap();
        assert_eq!(argv, ["--tags", "a b", "c"]);
        assert!(filled(&groups, json!({ "list": [] })).unwrap().is_empty());
    }

    #[test]
    fn arguments_that_no_program_accepts_are_refused() {
        let long = "x".repeat(MAX_ARGUMENT_BYTES + 1);
        for value in ["a\0b", &long] {
            assert!(filled(&[words(&["{a}"])], json!({ "a": value })).is_err());
        }
        let many = vec!["y".repeat(MAX_ARGUMENT_BYTES); 9];
        assert!(filled(&[words(&["{list}"])], json!({ "list": many })).is_err());
    }
}
