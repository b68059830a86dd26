//! Parses calls: functions, methods, and the macros `has`, `all`, `exists`, `exists_one`, `map` and `filter`.

use regex::RegexBuilder;

use super::ExpressionError;
use super::ast::{Comprehension, ComprehensionKind, Constant, Expr, Function};
use super::lexer::TokenKind;
use super::parser::Parser;
use super::time::{TimePart, Zone};

/// The maximum size of a compiled regular expression in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

impl Parser {
    /// A function, after its opening bracket.
    pub(super) fn function(&mut self, name: &str, offset: usize) -> Result<Expr, ExpressionError> {
        if name == "has" {
            return self.has(offset);
        }
        let arguments = self.separated(")", Self::expression)?;
        if name == "matches" && arguments.len() == 2 {
            return matches(arguments, offset);
        }
        let found = Function::ALL
            .iter()
            .find(|(known, _, _, is_function, _)| *known == name && *is_function);
        let Some((_, function, _, _, count)) = found else {
            return Err(unknown_function(name, offset));
        };
        check_count(name, arguments.len(), *count, offset)?;
        Ok(Expr::Call { function: *function, arguments })
    }

    /// A method, after its opening bracket.
    pub(super) fn method(
        &mut self,
        target: Expr,
        name: &str,
        offset: usize,
    ) -> Result<Expr, ExpressionError> {
        if let Some(kind) = ComprehensionKind::named(name) {
            return self.comprehension(kind, target, offset);
        }
        let mut arguments = vec![target];
        arguments.extend(self.separated(")", Self::expression)?);
        if let Some(part) = TimePart::named(name) {
            return time_part(part, arguments, offset);
        }
        if name == "matches" && arguments.len() == 2 {
            return matches(arguments, offset);
        }
        let found =
            Function::ALL.iter().find(|(known, _, is_method, ..)| *known == name && *is_method);
        let Some((_, function, _, _, count)) = found else {
            return Err(unknown_function(name, offset));
        };
        check_count(name, arguments.len() - 1, *count - 1, offset)?;
        Ok(Expr::Call { function: *function, arguments })
    }

    fn has(&mut self, offset: usize) -> Result<Expr, ExpressionError> {
        let operand = self.expression()?;
        self.expect(")")?;
        match operand {
            Expr::Select { operand, field } => Ok(Expr::Has { operand, field }),
            Expr::Principal(member) => Ok(Expr::HasPrincipal(member)),
            _ => {
                let message = "`has` needs a member, such as `has(arguments.owner)`".to_owned();
                Err(ExpressionError { message, offset })
            }
        }
    }

    fn comprehension(
        &mut self,
        kind: ComprehensionKind,
        range: Expr,
        offset: usize,
    ) -> Result<Expr, ExpressionError> {
        if self.local.is_some() {
            let message = "a comprehension must not contain another one".to_owned();
            return Err(ExpressionError { message, offset });
        }
        let TokenKind::Name(name) = self.advance() else {
            let message = "expected the name of a variable and an expression".to_owned();
            return Err(ExpressionError { message, offset });
        };
        self.expect(",")?;
        self.local = Some(name);
        let parts = self.separated(")", Self::expression);
        self.local = None;
        let mut parts = parts?;
        let has_condition = parts.len() == 2 && kind == ComprehensionKind::Map;
        if parts.len() != 1 && !has_condition {
            let message = "expected the name of a variable and one expression".to_owned();
            return Err(ExpressionError { message, offset });
        }
        let condition = has_condition.then(|| parts.remove(0));
        let body = parts.remove(0);
        Ok(Expr::Comprehension(Box::new(Comprehension { kind, range, condition, body })))
    }
}

fn unknown_function(name: &str, offset: usize) -> ExpressionError {
    ExpressionError { message: format!("unknown function `{name}`"), offset }
}

fn check_count(
    name: &str,
    count: usize,
    expected: usize,
    offset: usize,
) -> Result<(), ExpressionError> {
    if count == expected {
        return Ok(());
    }
    let message = format!("`{name}` takes {expected} arguments, not {count}");
    Err(ExpressionError { message, offset })
}

/// A match with a literal pattern, which is compiled now.
fn matches(mut arguments: Vec<Expr>, offset: usize) -> Result<Expr, ExpressionError> {
    let Some(Expr::Constant(Constant::String(text))) = arguments.pop() else {
        let message = "the pattern of `matches` must be a literal string".to_owned();
        return Err(ExpressionError { message, offset });
    };
    let pattern = RegexBuilder::new(&text).size_limit(MAX_PATTERN_SIZE).build();
    let pattern = pattern.map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let message = format!("invalid regular expression `{text}`: {reason}");
        ExpressionError { message, offset }
    })?;
    Ok(Expr::Matches { operand: Box::new(arguments.remove(0)), pattern })
}

/// A part of a timestamp, with a literal time zone, which is looked up now.
fn time_part(
    part: TimePart,
    mut arguments: Vec<Expr>,
    offset: usize,
) -> Result<Expr, ExpressionError> {
    let operand = Box::new(arguments.remove(0));
    let zone = match &arguments[..] {
        [] => Zone::UTC,
        [Expr::Constant(Constant::String(name))] => {
            Zone::named(name).map_err(|message| ExpressionError { message, offset })?
        }
        _ => {
            let message = "expected a literal time zone, such as \"Europe/Berlin\"".to_owned();
            return Err(ExpressionError { message, offset });
        }
    };
    Ok(Expr::Time { part, operand, zone })
}
