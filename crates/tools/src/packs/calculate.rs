//! The pack `calculate`: one tool that evaluates arithmetic in double precision.

use creole::{Server, ToolError};
use nanoexpr::{Error, ErrorKind, Evaluator, Math};
use serde::Deserialize;

use crate::packs::tool;

const ABOUT: &str = "Calculates an arithmetic expression in double precision: + - * / % ^ ! and \
                     parentheses, pi and e, and functions such as sqrt, sin, ln, log, round, min and max";

/// Maximum length of an expression, in characters.
const MAX_EXPRESSION_CHARS: usize = 1000;

/// Maximum nesting of parentheses, calls and operators.
const MAX_NESTING: usize = 100;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "expression": {
            "type": "string",
            "description": "The expression, such as (1 + 2) * 3 or sqrt(2) ^ 4",
            "minLength": 1, "maxLength": 1000
        }
    },
    "required": ["expression"],
    "additionalProperties": false
}"#;

#[derive(Deserialize)]
struct CalculateInput {
    expression: String,
}

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    server.tool(tool("calculate", ABOUT, SCHEMA, calculate).read_only())
}

async fn calculate(asked: CalculateInput) -> Result<String, ToolError> {
    evaluate(&asked.expression).map(format_number).map_err(ToolError::Failed)
}

fn evaluate(expression: &str) -> Result<f64, String> {
    if expression.chars().count() > MAX_EXPRESSION_CHARS {
        return Err(format!("the expression is longer than {MAX_EXPRESSION_CHARS} characters"));
    }
    // The innermost operand counts as a level.
    let evaluator = Evaluator::<Math>::new(&Math).max_depth(MAX_NESTING + 1);
    match evaluator.evaluate::<f64>(expression) {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(NOT_FINITE.to_owned()),
        Err(error) => Err(explain_error(error, expression)),
    }
}

const NOT_FINITE: &str = "the result is not a finite number";

/// Describes an error, its position and the part concerned.
fn explain_error(error: Error, expression: &str) -> String {
    let description = match error.kind {
        ErrorKind::DivisionByZero => return "division by zero".to_owned(),
        ErrorKind::Domain | ErrorKind::Overflow => return NOT_FINITE.to_owned(),
        ErrorKind::TooDeep => {
            return format!("the expression is nested more than {MAX_NESTING} levels deep");
        }
        ErrorKind::UnexpectedEnd => return "the expression ends too early".to_owned(),
        ErrorKind::UnexpectedCharacter | ErrorKind::UnexpectedToken => "unexpected",
        ErrorKind::UnknownVariable => "unknown name",
        kind => kind.description(),
    };
    let before = expression.get(..error.span.start).unwrap_or_default();
    let part = expression.get(error.span.start..error.span.end).unwrap_or_default();
    format!("{description} `{part}` at character {}", before.chars().count() + 1)
}

/// Formats a number: integers without a decimal point, very large and very small ones with an exponent.
fn format_number(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e21).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(expression: &str) -> String {
        match evaluate(expression) {
            Ok(value) => format_number(value),
            Err(reason) => format!("failed: {reason}"),
        }
    }

    #[test]
    fn arithmetic_follows_the_usual_rules() {
        for (expression, expected) in [
            ("1+2", "3"),
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("10 - 2 - 3", "5"),
            ("2^3^2", "512"),
            ("-2^2", "-4"),
            ("2^-1", "0.5"),
            ("--3", "3"),
            ("7 % 3", "1"),
            ("1.5e3", "1500"),
            ("max(1, 2, sqrt(16))", "4"),
            ("5!", "120"),
            ("cos(pi)", "-1"),
            ("-0", "0"),
            ("1/4", "0.25"),
            ("10^21", "1e21"),
            ("1/10^9", "1e-9"),
            ("0.1+0.2", "0.30000000000000004"),
        ] {
            assert_eq!(answer(expression), expected, "{expression}");
        }
    }

    #[test]
    fn a_result_that_is_not_a_number_is_a_failure() {
        for (expression, expected) in [
            ("1/0", "division by zero"),
            ("0/0", "division by zero"),
            ("7 % 0", "division by zero"),
            ("sqrt(-1)", "the result is not a finite number"),
            ("10^400", "the result is not a finite number"),
            ("171!", "the result is not a finite number"),
        ] {
            assert_eq!(answer(expression), format!("failed: {expected}"), "{expression}");
        }
    }

    #[test]
    fn a_syntax_error_is_shown_with_its_position() {
        for (expression, expected) in [
            ("1 + * 2", "unexpected `*` at character 5"),
            ("é + 1", "unexpected `é` at character 1"),
            ("1 + é", "unexpected `é` at character 5"),
            ("(1", "unclosed parenthesis `(` at character 1"),
            ("2 3", "unexpected `3` at character 3"),
            ("1 +", "the expression ends too early"),
            (" ", "the expression ends too early"),
            ("x + 1", "unknown name `x` at character 1"),
            ("1 + foo(2)", "unknown function `foo` at character 5"),
            ("sin()", "wrong number of arguments `sin()` at character 1"),
        ] {
            assert_eq!(answer(expression), format!("failed: {expected}"), "{expression}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let nested = |levels: usize| "(".repeat(levels) + "1" + &")".repeat(levels);
        assert_eq!(answer(&nested(100)), "1");
        assert_eq!(
            answer(&nested(101)),
            "failed: the expression is nested more than 100 levels deep"
        );
        assert!(answer(&nested(499)).contains("nested"));
        assert!(answer(&"-".repeat(1000)).contains("nested"));
        assert!(answer(&"1^".repeat(500)).contains("nested"));
        assert_eq!(answer(&("1".to_owned() + &"+1".repeat(499))), "500");
        assert_eq!(
            answer(&"1".repeat(1001)),
            "failed: the expression is longer than 1000 characters"
        );
    }
}
